"""A node holds no wait for a retry of a job that was removed or disabled, however short it is."""

from collections.abc import Awaitable, Callable

from everytick.domain.job import Job
from everytick.domain.retry import Retry
from everytick.node.node import Node
from tests.stores.acting import remove
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import World, passing

Body = Callable[[], Awaitable[None]]
SHORT = Retry(max=None, interval="2s")


async def _retrying(world: World, tries: list[int], seconds: float = 0) -> tuple[Body, Node, Job, str]:
    """Start a node with a job whose attempts take so long, fail, and are repeated; return after seven seconds."""

    async def fails() -> None:
        tries.append(1)
        await passing(seconds)
        raise ValueError("never")

    job = await world.define("job", fails, retry=SHORT, task_timeout=None)
    node = world.node()
    await node.start()
    asked = await world.trigger(job)
    await passing(7)
    return fails, node, job, asked


def test_a_removed_job_retries_no_more_however_short_its_waits(live: Live) -> None:
    """F8, S0-133: the node is told by its beat, gives the wait up, and the plan ends it."""

    async def story(world: World) -> None:
        tries: list[int] = []
        _, node, job, asked = await _retrying(world, tries)
        assert len(tries) > 2
        await remove(world.store, job.id)
        ended = await world.ended(asked)
        known = len(tries)
        await passing(60)
        assert (ended.status, len(tries)) == ("canceled", known)
        await node.stop()

    live(story)


def test_what_runs_when_its_job_is_removed_fails_once(live: Live) -> None:
    """F8, S0-133: the attempt ends as it does; the short wait after it is given up, and the plan ends it."""

    async def story(world: World) -> None:
        tries: list[int] = []
        _, node, job, asked = await _retrying(world, tries, seconds=20)
        await remove(world.store, job.id)
        ended = await world.ended(asked)
        await passing(60)
        assert (ended.status, len(tries)) == ("canceled", 1)
        await node.stop()

    live(story)


def test_a_disabled_job_goes_on_retrying_when_it_is_enabled(live: Live) -> None:
    """F8, S0-132: no attempt begins meanwhile, and none is lost."""

    async def story(world: World) -> None:
        tries: list[int] = []
        fails, node, _, asked = await _retrying(world, tries)
        await world.define("job", fails, retry=SHORT, task_timeout=None, enabled=False)
        await passing(10)
        known = len(tries)
        await passing(600)
        assert (await world.status(asked), len(tries)) == ("awaiting_retry", known)
        await world.define("job", fails, retry=SHORT, task_timeout=None)
        await passing(10)
        assert len(tries) > known
        await node.stop()

    live(story)
