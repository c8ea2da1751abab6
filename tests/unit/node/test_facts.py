"""What a node says of itself: told when it starts, and again when it changes."""

import os
import platform
import socket
from datetime import timedelta

from everytick import __version__
from everytick.domain.nodes import NodeFacts
from everytick.node.hooks import HookTable
from everytick.schedules.timezones import zone_data
from everytick.stores.base import Nodes
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, Function, World, pause


async def _told(world: World) -> NodeFacts:
    [found] = await world.store.ask(Nodes())
    facts: NodeFacts | None = found.facts
    assert facts is not None
    return facts


def test_a_node_says_what_it_is_when_it_starts(live: Live) -> None:

    async def story(world: World) -> None:
        node = world.node(slots=7, queues=["default", "mail"])
        await node.start()
        told, tables = await _told(world), zone_data()
        assert told == NodeFacts(
            version=__version__,
            python=platform.python_version(),
            zone_data=f"{tables.version} ({tables.source})",
            host=socket.gethostname(),
            pid=os.getpid(),
            slots=7,
            queues=("default", "mail"),
            started_at=NOON,
            met=("", "queue:mail"),
        )
        await node.stop()

    live(story)


def test_a_clock_that_drifts_is_told_within_a_minute_or_so(live: Live) -> None:
    """C-05: how far each host is off can be seen from every other."""

    async def story(world: World) -> None:
        node = world.node()
        await node.start()
        assert (await _told(world)).clock_offset == timedelta(0)
        node.offset._host = lambda: world.now() + timedelta(seconds=2.51)
        await pause("2m")
        assert (await _told(world)).clock_offset == timedelta(seconds=2.5)
        await node.stop()

    live(story)


def test_broken_files_are_told_at_once_and_until_others_are(live: Live) -> None:

    async def story(world: World) -> None:
        node = world.node()
        await node.start()
        await node.register(broken_files={"b.yaml": "x" * 5_000, "a.yaml": "no schedule"})
        assert (await _told(world)).broken_files == (("a.yaml", "no schedule"), ("b.yaml", "x" * 2_000))
        await pause("5m")
        assert len((await _told(world)).broken_files) == 2
        await node.register(broken_files={})
        assert (await _told(world)).broken_files == (await _told(world)).stale_jobs == ()
        await node.stop()

    live(story)


def test_a_job_that_cannot_be_run_here_is_told_until_it_can(live: Live) -> None:
    """C-21: the store shows that no node knows the function."""

    async def story(world: World) -> None:
        async def body() -> None:
            return

        job = await world.define("elsewhere", body)
        knows: dict[str, dict[str, Function]] = {}
        node = world.node(knows=knows)
        await node.start()
        asked = await world.trigger(job)
        await pause("10s")
        [(told, reason)] = (await _told(world)).unknown_targets
        assert told == job.id
        assert reason.startswith("task 'a': this application has no function")
        await pause("5m")
        assert (await _told(world)).unknown_targets == ((job.id, reason),)
        knows[job.id] = {job.tasks[0].name: body}
        node.learn(HookTable())
        await world.ended(asked)
        await pause("10s")
        assert (await _told(world)).unknown_targets == ()
        await node.stop()

    live(story)
