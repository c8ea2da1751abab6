"""How a node stops: in order, within its grace period, and so that nothing is lost."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from everytick.domain.durations import duration
from everytick.domain.facts import Cancel
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus
from everytick.runners.context import Context
from everytick.schedules.interval import every
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, has_run_short_bodies, passing, pause


@pytest.mark.parametrize(
    ("on_orphan", "becomes"),
    [
        ("fail", OccurrenceStatus.CANCELED),
        ("restart", OccurrenceStatus.PENDING),
        ("resume", OccurrenceStatus.PENDING),
    ],
)
def test_a_stop_cancels_what_runs_and_its_job_says_what_becomes_of_it(
    on_orphan: str,
    becomes: OccurrenceStatus,
    live: Live,
) -> None:
    """H1, C-17: the attempt ends as canceled by the shutdown, the occurrence follows on_orphan."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(3600)

        job = await world.define("long", body, on_orphan=on_orphan, task_timeout="2h")
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await pause("10s")
        before = world.loop.time()
        await node.stop()
        assert world.loop.time() - before < 2
        whole = await world.store.whole(asked)
        assert whole.occurrence.status is becomes
        assert whole.occurrence.owner is None
        [(_, attempt)] = whole.attempts
        assert (attempt.status, attempt.error) == (AttemptStatus.CANCELED, "shutdown")

    live(story)


def test_a_drain_lets_what_runs_finish(live: Live) -> None:
    """`stop("drain")`: no cancel, nothing new, and the end is recorded."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(100)

        job = await world.define("long", body)
        node = world.node()
        await node.start()
        running = await world.trigger(job, "running")
        await pause("10s")
        late = await world.trigger(job, "late")
        await node.stop("drain")
        assert await world.status(running) is OccurrenceStatus.COMPLETED
        assert await world.status(late) is OccurrenceStatus.PENDING

    live(story)


def test_what_had_not_begun_is_given_back_untouched(live: Live) -> None:
    """H1: claimed ahead, not started: another node finds it pending, with no attempt used up."""

    async def story(world: World) -> None:
        async def long() -> None:
            await passing(3600)

        slow = await world.define("slow", long)
        node = world.node(slots=2)
        await node.start()
        await has_run_short_bodies(node)
        jobs = [await world.define(f"slow-{number}", long) for number in range(10)]
        asked = [await world.trigger(job) for job in (slow, *jobs)]
        await pause("100ms")
        assert len(node.engine.named) > 2
        await node.stop()
        found = [(await world.store.whole(id_)).occurrence.status for id_ in asked]
        assert found.count(OccurrenceStatus.CANCELED) == 2
        assert found.count(OccurrenceStatus.PENDING) == 9
        for id_, status in zip(asked, found, strict=True):
            if status is OccurrenceStatus.PENDING:
                assert (await world.store.whole(id_)).attempts == ()

    live(story)


def test_nothing_starts_after_a_stop_has_returned(live: Live) -> None:
    """H4: neither a tick nor a retry that was waited for."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())
            raise ValueError

        await world.define("tick", body, every("3s", start=NOON), retry={"max": 5, "interval": "2s"})
        node = world.node()
        await node.start()
        await pause("4s")
        await node.stop()
        known = len(begun)
        assert known >= 1
        await pause("60s")
        assert len(begun) == known

    live(story)


def test_the_heartbeat_stops_last(live: Live) -> None:
    """E7: while a stopping node waits for what runs, it still beats, so that no reaper takes its work."""

    async def story(world: World) -> None:
        async def stubborn() -> None:
            try:
                await passing(3600)
            except asyncio.CancelledError:
                await passing(25)
                raise

        job = await world.define("long", stubborn, task_timeout="2h")
        node, other = world.node(), world.node()
        await node.start()
        asked = await world.trigger(job)
        await pause("5s")
        await other.start()
        await node.stop()
        assert await world.status(asked) is OccurrenceStatus.CANCELED
        await other.stop()

    live(story)


def test_a_cancel_stops_what_runs_and_ends_what_does_not(live: Live) -> None:
    """Cancel: the coroutine is canceled within a beat; an unclaimed occurrence ends in the verb itself."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(3600)

        job = await world.define("long", body, overlap="queue", task_timeout="2h")
        node = world.node()
        await node.start()
        first = await world.trigger(job, "one")
        await pause("1s")
        second = await world.trigger(job, "two")
        await pause("5s")
        assert await world.status(second) is OccurrenceStatus.QUEUED
        assert (await world.store.request(second, Cancel())).changed
        assert await world.status(second) is OccurrenceStatus.CANCELED
        assert (await world.store.request(first, Cancel("enough"))).changed
        ended = await world.ended(first, "10s")
        assert (ended.status, ended.error) == (OccurrenceStatus.CANCELED, "enough")
        await node.stop()

    live(story)


def test_stopping_again_and_again_loses_nothing(live: Live) -> None:
    """C4, D3, H1: a job every ten seconds, a node that lives for a few seconds at a time: every instant once."""

    async def story(world: World) -> None:
        seen: list[Any] = []

        async def body(ctx: Context) -> None:
            seen.append(ctx.scheduled_for)

        job = await world.define("tick", body, every("10s", start=NOON), recovery="execute_all")
        for length in (3, 7, 1, 13, 2, 29, 5, 11, 17, 4):
            node = world.node()
            await node.start()
            await pause(f"{length}s")
            await node.stop()
            await pause("4s")
        node = world.node()
        await node.start()
        await pause("1s")
        await node.stop()
        instants = [each.scheduled_for for each in await world.history(job)]
        assert sorted(seen) == instants
        assert len(set(seen)) == len(seen)
        apart = {(later - earlier).total_seconds() for earlier, later in pairwise(instants)}
        assert apart == {10.0}

    live(story)


def test_a_stop_returns_as_soon_as_everything_has_ended(live: Live) -> None:
    """S0-110: the grace period is a bound, not a wait."""

    async def story(world: World) -> None:
        async def body() -> None:
            try:
                await passing(3600)
            except asyncio.CancelledError:
                await passing(2)
                raise

        job = await world.define("tidy", body, task_timeout="2h")
        node = world.node(grace_period="5m")
        await node.start()
        await world.trigger(job)
        await pause("5s")
        before = world.loop.time()
        await node.stop()
        assert 2 <= world.loop.time() - before < 4

    live(story)


@pytest.mark.parametrize(("timeout", "has_cleaned_up"), [(None, False), ("60s", True)])
def test_a_stop_may_have_a_longer_timeout_than_the_grace_period(
    live: Live, timeout: str | None, has_cleaned_up: bool
) -> None:
    """S0-110: `stop(timeout=)` takes the place of the grace period for this call, also where it is longer."""

    async def story(world: World) -> None:
        cleaned: list[bool] = []
        told: list[float] = []

        async def body(ctx: Context) -> None:
            try:
                await passing(3600)
            finally:
                told.append(ctx._grace_seconds)
                await passing(20)
                cleaned.append(True)

        job = await world.define("long", body, task_timeout="2h")
        node = world.node(grace_period="2s")
        await node.start()
        asked = await world.trigger(job)
        await pause("10s")
        before = world.loop.time()
        await node.stop(grace=None if timeout is None else duration(timeout))
        assert bool(cleaned) is has_cleaned_up
        assert told == [60.0 if has_cleaned_up else 2.0], "threads and processes have as long"
        assert (world.loop.time() - before >= 20) is has_cleaned_up
        assert world.loop.time() - before < 30
        whole = await world.store.whole(asked)
        assert whole.occurrence.status is OccurrenceStatus.CANCELED
        assert [attempt.error for _, attempt in whole.attempts] == ["shutdown"]

    live(story)


def test_what_ends_well_within_the_grace_period_is_completed(live: Live) -> None:
    """S0-109: it was told to stop and finished its work instead; the record says what became of it."""

    async def story(world: World) -> None:
        async def finishes() -> None:
            try:
                await passing(3600)
            except asyncio.CancelledError:
                await passing(5)

        job = await world.define("finishes", finishes, task_timeout="2h")
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await pause("5s")
        await node.stop()
        whole = await world.store.whole(asked)
        assert whole.occurrence.status is OccurrenceStatus.COMPLETED
        assert [attempt.status for _, attempt in whole.attempts] == [AttemptStatus.SUCCESS]

    live(story)


def test_no_instant_is_planned_while_a_stopping_node_waits_for_what_runs(live: Live) -> None:
    """S0-109: the tickers stop first; what falls into the grace period is left for the next node."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def slow_to_leave() -> None:
            try:
                await passing(3600)
            finally:
                await passing(20)

        async def tick() -> None:
            begun.append(world.loop.time())

        long = await world.define("long", slow_to_leave, task_timeout="2h")
        ticks = await world.define("ticks", tick, every("5s", start=NOON), recovery="execute_all")
        node = world.node()
        await node.start()
        await world.trigger(long)
        await pause("12s")
        assert len(begun) == 2
        await node.stop()
        assert world.loop.time() >= 32
        assert (len(begun), len(await world.history(ticks))) == (2, 2)
        heir = world.node()
        await heir.start()
        await pause("1s")
        assert [each.scheduled_for - NOON for each in await world.history(ticks)] == [
            timedelta(seconds=5 * (number + 1)) for number in range(len(begun))
        ]
        assert len(begun) >= 6
        await heir.stop()

    live(story)
