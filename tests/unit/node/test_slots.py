"""Slots: what may be claimed ahead follows how fast slots become free, and long bodies get nothing ahead."""

from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.domain.statuses import OccurrenceStatus
from everytick.node.slots import MOST_AHEAD, Slots
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, has_run_short_bodies, passing, pause


class Time:
    """A monotonic clock that is moved by hand."""

    def __init__(self) -> None:
        self.reading = 100.0

    def __call__(self) -> float:
        return self.reading


def run_bodies(slots: Slots, time: Time, *, bodies: int, each: float) -> None:
    """Carry out so many bodies, as many at once as there are slots."""
    for _ in range(bodies // slots.count):
        for _ in range(slots.count):
            slots.take()
        time.reading += each
        for _ in range(slots.count):
            slots.ran(each)
            slots.free(NOON)
        slots.ahead()


def test_nothing_is_claimed_ahead_before_a_slot_was_freed() -> None:
    """F1: a burst of starts says nothing of how soon the slots are free again."""
    time = Time()
    slots = Slots(50, time)
    for _ in range(50):
        slots.take()
    time.reading += 0.03

    assert slots.ahead() == 0
    assert not slots.is_free


def test_short_bodies_let_a_node_claim_what_begins_within_fifty_milliseconds() -> None:
    time = Time()
    slots = Slots(10, time)
    run_bodies(slots, time, bodies=10_000, each=0.001)

    assert slots.ahead() == pytest.approx(0.05 * 10 / 0.001, rel=0.1)


def test_no_more_is_claimed_ahead_than_one_answer_may_hold() -> None:
    time = Time()
    slots = Slots(500, time)
    run_bodies(slots, time, bodies=1_000_000, each=0.0005)

    assert slots.ahead() == MOST_AHEAD


def test_a_heartbeat_beside_long_bodies_does_not_make_them_look_short() -> None:
    """F1: with a heartbeat job beside them, jobs of 3 s were claimed by the thousand."""
    time = Time()
    slots = Slots(50, time)
    run_bodies(slots, time, bodies=200, each=3.0)
    for _ in range(100):
        slots.take()
        slots.ran(0.0001)
        slots.free(NOON)
    time.reading += 0.03

    assert slots.ahead() == 0


def test_after_idleness_only_the_free_slots_are_claimed_for() -> None:
    time = Time()
    slots = Slots(10, time)
    run_bodies(slots, time, bodies=10_000, each=0.001)
    slots.ahead()
    time.reading += 60.0

    assert slots.ahead() == 0


def test_after_a_give_back_nothing_is_claimed_ahead_until_something_has_begun() -> None:
    time = Time()
    slots = Slots(10, time)
    run_bodies(slots, time, bodies=10_000, each=0.001)
    slots.give_back()
    assert slots.ahead() == 0

    slots.take()
    assert slots.ahead() > 0


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory://"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'slots.db'}"
    return str(request.getfixturevalue("postgres").address)


async def test_the_deadline_of_what_waits_for_a_slot_does_not_run(address: str) -> None:
    """F1, S0-067, S0-104: fourteen bodies of 0.4 s on two slots, each with 2 s, after many short ones."""
    tick = Everytick(address, name="slots", slots=2)

    @tick.job(every("P1Y"))
    async def short() -> None:
        pass

    @tick.job(every("P1Y"), execution_timeout="2s")
    async def long() -> None:
        await passing(0.4)

    async with tick:
        for asked in [await tick.trigger("short", overlap="allow") for _ in range(100)]:
            await asked.wait(timeout="60s")
        longer = [await tick.trigger("long", overlap="allow") for _ in range(14)]
        ended = [await each.wait(timeout="60s") for each in longer]

    assert {each.status for each in ended} == {OccurrenceStatus.COMPLETED}


def test_what_finds_no_slot_is_given_back_as_the_claim_found_it(live: Live) -> None:
    """F1, F2, S0-108: after 250 ms the claim is pending again, without a start, and another runs it."""

    async def story(world: World) -> None:
        async def long() -> None:
            await passing(60)

        node = world.node(slots=1)
        await node.start()
        await has_run_short_bodies(node)
        jobs = [await world.define(f"long-{number}", long) for number in range(3)]
        asked = [await world.trigger(job) for job in jobs]
        await pause("100ms")
        assert node.engine.slots.waiting == 2

        await pause("1s")
        assert node.engine.slots.waiting == 0
        found = [(await world.store.whole(id_)).occurrence for id_ in asked]
        assert [each.status for each in found].count(OccurrenceStatus.RUNNING) == 1
        given_back = [each for each in found if each.status is OccurrenceStatus.PENDING]
        assert [(each.owner, each.started_at) for each in given_back] == [(None, None)] * 2

        second = world.node(slots=2)
        await second.start()
        await pause("10s")
        statuses = {await world.status(id_) for id_ in asked}
        assert statuses == {OccurrenceStatus.RUNNING}
        for each in (second, node):
            await each.stop("drain")

    live(story)
