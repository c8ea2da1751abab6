"""The Execution Report tells every attempt of every task, whichever node delivers it."""

from datetime import timedelta

from everytick.domain.facts import Cancel
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.report import Report
from everytick.domain.retry import Retry
from everytick.errors import StoreUnavailable
from everytick.node.node import Node
from everytick.schedules.interval import every
from everytick.stores.base import Whole
from everytick.stores.memory import MemoryStore
from tests.stores.acting import put
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, Function, World, living, passing, pause

SECOND = timedelta(seconds=1)


async def _reporting(world: World, **functions: Function) -> tuple[Job, list[Report]]:
    """Define a job of these tasks in order; return it with the reports that its hook will be given."""
    told: list[Report] = []

    async def on_complete(report: Report) -> None:
        told.append(report)

    tasks = [define_task("told", name, policies={"retry": Retry(1, "1m")}) for name in functions]
    job = define_job("told", every("P1Y", start=NOON), policies={"on_orphan": "resume"}, tasks=tasks, reports=True)
    world.functions[job.id] = functions
    await put(world.store, job)
    world.hooks[job.id] = {"on_complete": on_complete}
    return job, told


async def _silence(node: Node) -> None:
    """Stop the beat and everything that would write, as if the process were frozen."""
    await node._beat.stop()
    await node._loops.end("bell", "planner", "reaper", "janitor", "reports", "unknown", "claims", "writer")


def test_a_report_tells_the_attempts_of_each_task(live: Live) -> None:
    """S0-033: number, start, end, duration, status and error of each, also of those before a retry."""

    async def story(world: World) -> None:
        tried: list[str] = []

        async def first() -> None:
            await passing(2)

        async def second() -> None:
            await passing(3)
            tried.append("second")
            if len(tried) == 1:
                raise ValueError("not yet")

        job, told = await _reporting(world, first=first, second=second)
        node = world.node()
        await node.start()
        await world.ended(await world.trigger(job))
        await pause("1s")
        [report] = told
        [well] = report.task("first").attempt_reports
        assert (well.number, well.status, well.error) == (1, "success", None)
        assert 2 * SECOND <= (well.duration or 0 * SECOND) < 3 * SECOND
        assert (well.started_at, well.ended_at) == (report.task("first").started_at, report.task("first").ended_at)
        failed, again = report.task("second").attempt_reports
        assert [(each.number, each.status) for each in (failed, again)] == [(1, "failed"), (2, "success")]
        assert "not yet" in (failed.error or "")
        assert failed.started_at == report.task("second").started_at
        assert again.ended_at == report.task("second").ended_at
        assert again.error is None
        assert failed.ended_at is not None
        assert again.started_at is not None
        assert 3 * SECOND <= (failed.duration or 0 * SECOND) < 4 * SECOND
        assert again.started_at - failed.ended_at >= 60 * SECOND
        await node.stop()

    live(story)


def test_a_report_of_what_never_began_tells_no_attempt(live: Live) -> None:
    """S0-033: canceled while it waited, and delivered by a node that never held it."""

    async def story(world: World) -> None:
        async def body() -> None: ...

        job, told = await _reporting(world, body=body)
        strange = world.node(knows={})
        await strange.start()
        asked = await world.trigger(job)
        await pause("1s")
        await world.store.request(asked, Cancel())
        await world.ended(asked)
        await strange.stop()
        node = world.node()
        await node.start()
        await pause("31s")
        [report] = told
        assert (report.status, report.task("body").attempts, report.task("body").attempt_reports) == ("canceled", 0, ())
        await node.stop()

    live(story)


def test_a_report_from_another_node_tells_the_attempt_that_was_lost(live: Live) -> None:
    """S0-033, S0-074: the node that takes over tells what it has not seen itself, from the store."""

    async def story(world: World) -> None:
        begun: list[str] = []

        async def first() -> None: ...

        async def second() -> None:
            begun.append("second")
            if len(begun) == 1:
                await passing(60)

        job, told = await _reporting(world, first=first, second=second)
        silent = world.node()
        await silent.start()
        asked = await world.trigger(job)
        await pause("2s")
        assert begun == ["second"]
        other = world.node()
        await other.start()
        await _silence(silent)
        await world.ended(asked)
        await pause("1s")
        [report] = told
        assert [each.status for each in report.task("first").attempt_reports] == ["success"]
        lost, again = report.task("second").attempt_reports
        assert [(each.number, each.status) for each in (lost, again)] == [(1, "lost"), (2, "success")]
        assert lost.error
        assert (lost.duration or 0 * SECOND) > SECOND
        await other.stop()

    live(story)


class Forgetful(MemoryStore):
    """A store that does not answer when it is first asked for the records of an ended occurrence."""

    refused = 0

    async def whole(self, occurrence_id: str) -> Whole:
        found = await super().whole(occurrence_id)
        if found.occurrence.ended_at is not None and not self.refused:
            self.refused += 1
            raise StoreUnavailable("the store", "cut off")
        return found


def test_a_report_whose_attempts_cannot_be_read_is_told_once_they_can() -> None:
    """S0-025, S0-033: the store owes it meanwhile; it is told once, and whole."""

    async def story(world: World) -> None:
        async def body() -> None:
            raise ValueError("never")

        job, told = await _reporting(world, body=body)
        node = world.node()
        await node.start()
        await world.trigger(job)
        await pause("3m")
        assert world.store.refused == 1
        [report] = told
        assert [each.status for each in report.task("body").attempt_reports] == ["failed", "failed"]
        await node.stop()

    living(story, Forgetful)
