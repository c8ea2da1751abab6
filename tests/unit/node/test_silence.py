"""Silence and deadlines: judged on the observer's own clock, by the version that an occurrence runs under."""

from datetime import timedelta
from typing import Any

import pytest

from everytick.domain.nodes import NodeFacts
from everytick.domain.statuses import OccurrenceStatus
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.node.silence import Silence
from everytick.stores.base import ClaimKey, NodeRecord, Nodes
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, passing, pause

SETTINGS = node_settings(grace_period="10s")
KEY = ClaimKey(7, 1, 42)


def facts(heartbeat: float = 5.0) -> NodeFacts:
    beats = timedelta(seconds=heartbeat)
    return NodeFacts("1", "3.11", "", "host", 1, 50, ("default",), NOON, heartbeat=beats)


def seen(beats: int, *, age: float = 0.0, holds: int = 1, overdue: tuple[ClaimKey, ...] = ()) -> NodeRecord:
    """Return another node as a store shows it whose clock stands at noon."""
    return NodeRecord("other", NOON - timedelta(seconds=age), holds, facts(), beats, overdue)


@pytest.mark.parametrize(
    ("age", "silent_after"),
    [(0, 20), (19, 20), (21, 10), (3600, 10), (-3600, 20)],
)
def test_a_node_is_silent_once_its_beats_were_seen_unchanged_for_long_enough(age: float, silent_after: int) -> None:
    """V2: for node_timeout, or for two heartbeats where the store's clock already shows as much."""
    silence = Silence("me", SETTINGS)
    for second in range(0, silent_after, 5):
        assert silence.look([seen(4, age=age)], NOON, 100.0 + second).silent == {}
    assert silence.look([seen(4, age=age)], NOON, 100.0 + silent_after).silent == {"other": 4}


def test_a_node_that_beats_is_healthy_whatever_the_stores_clock_shows() -> None:
    """A clock that was set ahead by a year, or goes on and on, takes nothing from it."""
    silence = Silence("me", SETTINGS)
    for number in range(100):
        assert silence.look([seen(number + 1, age=number * 1e6)], NOON, 5.0 * number).silent == {}


def test_who_left_or_never_beat_is_silent_at_once() -> None:
    assert Silence("me", SETTINGS).look([seen(0)], NOON, 5.0).silent == {"other": 0}


def test_who_holds_nothing_and_the_node_itself_are_left_alone() -> None:
    silence = Silence("other", SETTINGS)
    assert silence.look([seen(0, overdue=(KEY,))], NOON, 5.0).silent == {}
    assert silence.look([seen(0, overdue=(KEY,))], NOON, 500.0).overdue == ()
    assert Silence("me", SETTINGS).look([seen(0, holds=0)], NOON, 5.0).silent == {}


def test_time_between_two_checks_does_not_count_as_silence() -> None:
    """A reaper that was frozen, or whose question hung, has not watched the others meanwhile."""
    silence = Silence("me", SETTINGS)
    assert silence.look([seen(4, age=60, overdue=(KEY,))], NOON, 0.0).silent == {}
    found = silence.look([seen(4, age=60)], NOON, 1000.0)
    assert found.silent == {"other": 4}, "two intervals count, which are two heartbeats"
    silence.look([seen(5)], NOON, 1005.0)
    assert silence.look([seen(5)], NOON, 2000.0).silent == {}


def test_a_claim_is_taken_once_it_was_seen_overdue_for_the_grace_period() -> None:
    """F14: at every look, and a clock that jumped ahead for a moment kills nothing."""
    silence = Silence("me", SETTINGS)
    for second in (0.0, 5.0):
        assert silence.look([seen(1, overdue=(KEY,))], NOON, second).overdue == ()
    assert silence.look([seen(2)], NOON, 10.0).overdue == (), "the clock was set right again"
    for second in (15.0, 20.0):
        assert silence.look([seen(3, overdue=(KEY,))], NOON, second).overdue == ()
    assert silence.look([seen(4, overdue=(KEY,))], NOON, 25.0).overdue == (KEY,)


def test_what_a_step_ahead_of_the_stores_clock_made_overdue_has_that_much_longer() -> None:
    """Its owner counts on a monotonic clock; what is overdue long after the step is so by itself."""
    silence, stepped = Silence("me", SETTINGS), (2.0, 60.0)
    for second in range(0, 70, 5):
        assert silence.look([seen(1, overdue=(KEY,))], NOON, float(second), stepped).overdue == ()
    assert silence.look([seen(1, overdue=(KEY,))], NOON, 70.0, stepped).overdue == (KEY,)
    other = ClaimKey(8, 1, 43)
    for later in (75.0, 80.0):
        assert silence.look([seen(1, overdue=(other,))], NOON, later, stepped).overdue == ()
    assert silence.look([seen(1, overdue=(other,))], NOON, 85.0, stepped).overdue == (other,)


# --------------------------------------------------------------------------------------------------- with real nodes


async def _hold_up(node: Node) -> None:
    """Let a task block the node's loop: neither alarms nor anything else happens on it, only the beat goes on."""
    node._alarms.stop()
    await node._loops.end("writer", "claims", "planner", "bell", "reaper", "janitor", "reports", "unknown")


def test_what_hangs_on_a_living_node_is_settled_though_its_job_was_edited(live: Live) -> None:
    """F6, F14, S0-068, S0-074: by the version it runs under, within the grace period and two looks of the reaper."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(10_000)

        job = await world.define("stuck", body, execution_timeout="2s", task_timeout="1d")
        settings: dict[str, Any] = {"grace_period": "1s", "reaper_interval": "0.5s"}
        held_up, other = world.node(**settings), world.node(**settings)
        await held_up.start()
        asked = await world.trigger(job)
        await pause("1s")
        begun = (await world.store.whole(asked)).occurrence.started_at
        assert begun is not None
        await _hold_up(held_up)
        edited = await world.define("stuck", body, execution_timeout="5h", task_timeout="1d", description="edited")
        assert edited.id == job.id
        await other.start()
        ended = await world.ended(asked, "20s")
        assert (ended.status, ended.error) == (OccurrenceStatus.FAILED_STALE, "Execution exceeded timeout")
        assert ended.ended_at is not None
        assert ended.ended_at - begun < timedelta(seconds=2 + 1 + 4 * 0.5)
        await other.stop()
        await held_up._beat.stop()

    live(story)


@pytest.mark.parametrize("on_orphan", ["fail", "restart"])
def test_a_step_of_the_stores_clock_takes_nothing_from_healthy_nodes(live: Live, on_orphan: str) -> None:
    """The clock steps ahead by more than node_timeout, again and again, beside three healthy nodes."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())
            await passing(120)

        job = await world.define("long", body, on_orphan=on_orphan)
        nodes = [world.node() for _ in range(3)]
        for node in nodes:
            await node.start()
        asked = await world.trigger(job)
        await pause("6s")
        for _ in range(4):
            world.offset += timedelta(seconds=30)
            await pause("17s")
        ended = await world.ended(asked, "3m")
        assert (ended.status, len(begun)) == (OccurrenceStatus.COMPLETED, 1)
        for node in nodes:
            await node.stop()

    live(story)


def test_what_a_node_left_behind_that_said_goodbye_is_settled_at_once(live: Live) -> None:
    """Its silence need not be waited for: the reaper's next look is enough."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(1000)

        job = await world.define("long", body, task_timeout="1d")
        leaving, other = world.node(), world.node()
        await leaving.start()
        asked = await world.trigger(job)
        await pause("2s")
        await other.start()
        await _hold_up(leaving)
        await leaving._beat.stop()
        await leaving._leave()
        ended = await world.ended(asked, "6s")
        assert ended.status is OccurrenceStatus.FAILED_STALE
        await other.stop()

    live(story)


def test_a_stop_says_goodbye(live: Live) -> None:
    async def story(world: World) -> None:
        node = world.node()
        await node.start()
        assert [each.beats > 0 for each in await world.store.ask(Nodes())] == [True]
        await node.stop()
        assert [each.beats for each in await world.store.ask(Nodes())] == [0]

    live(story)
