"""due and commit_plans: what was decided is written whole, or not at all."""

import pytest

from everytick.deciding.plan import plan
from everytick.domain.facts import Move, Pause, Reschedule, Skip
from everytick.domain.ids import occurrence_id
from everytick.domain.lookups import Spans
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import AnyStore, batch_of, deliver, job, occurrences, plan_once, put, run_one, statuses
from tests.stores.clock import ManualClock


async def test_only_jobs_whose_time_has_come_are_due_and_the_longest_waiting_first(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-007."""
    for name, when in (("b", "30 * * * *"), ("a", "15 * * * *"), ("c", "0 0 1 1 *")):
        await put(store, job(name, when))
    await plan_once(store)
    clock.move(minutes=40)
    async with store.due(NodeScope("node-1"), 10) as batch:
        assert [snapshot.editions[0].job.name for snapshot in batch.snapshots] == ["a", "b"]
    async with store.due(NodeScope("node-1"), 1) as batch:
        assert len(batch.snapshots) == 1


async def test_a_plan_makes_one_occurrence_and_moves_the_watermark(store: AnyStore, clock: ManualClock) -> None:
    """S4-026, S0-008."""
    stored = await put(store, job())
    clock.move(hours=1)
    assert await plan_once(store) == [Commit.COMMITTED]
    [made] = await occurrences(store)
    record = (await store.get([stored.job_id]))[stored.job_id]

    assert (made.id, made.scheduled_for) == (occurrence_id(stored.job_id, clock.time), clock.time)
    assert made.reason == "on time"
    assert record.watermark == clock.time
    assert record.wake_at is not None
    assert record.wake_at > clock.time


@pytest.mark.parametrize(
    ("minutes", "late"), [(60, [False]), (70, [True]), (180, [True, True, False])], ids=["live", "late", "both"]
)
async def test_every_planned_run_moves_the_watermark(
    store: AnyStore, clock: ManualClock, minutes: int, late: list[bool]
) -> None:
    """S4-026: live or late, it is decided through the moment of the plan, and a second look decides nothing."""
    stored = await put(store, job(recovery="execute_all", overlap="allow"))
    clock.move(minutes=minutes)
    assert await plan_once(store) == [Commit.COMMITTED]
    made = await occurrences(store)
    assert [each.late for each in made] == late
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert record.watermark == clock.time
    assert max(each.scheduled_for for each in made) <= record.watermark
    await plan_once(store)
    assert await occurrences(store) == made


async def test_a_plan_from_an_old_snapshot_changes_nothing(store: AnyStore, clock: ManualClock) -> None:
    """S0-013, S0-053, S0-063, S1-033; the revision: two planners read the same snapshot, one of them commits."""
    await put(store, job())
    clock.move(hours=1)
    async with store.due(NodeScope("node-1"), 1) as batch:
        [snapshot] = batch.snapshots
    first = plan(snapshot, clock.time)
    clock.move(hours=1)
    second = plan(snapshot, clock.time)

    assert (await store.commit_plans(batch, [first])).answers == [Commit.COMMITTED]
    before = await occurrences(store)
    assert (await store.commit_plans(batch_of(clock.time, snapshot), [second])).answers == [Commit.STALE]
    assert await occurrences(store) == before


async def test_each_plan_of_a_batch_stands_alone(store: AnyStore, clock: ManualClock) -> None:
    for name in ("a", "b"):
        await put(store, job(name))
    clock.move(hours=1)
    async with store.due(NodeScope("node-1"), 10) as batch:
        plans = [plan(snapshot, clock.time) for snapshot in batch.snapshots]
        await store.request(batch.snapshots[0].job_id, Pause())
        assert (await store.commit_plans(batch, plans)).answers == [Commit.STALE, Commit.COMMITTED]
    assert len(await occurrences(store)) == 1


async def test_an_ending_between_snapshot_and_commit_is_not_slept_through(store: AnyStore, clock: ManualClock) -> None:
    """Architecture 1, `woken`: Y is queued behind X, but X has ended meanwhile; the job must be looked at again."""
    stored = await put(store, job(overlap="queue"))
    clock.move(hours=1)
    await plan_once(store)
    clock.move(hours=1)
    async with store.due(NodeScope("node-1"), 1) as batch:
        [snapshot] = batch.snapshots
        assert snapshot.busy_count == 1
        await run_one(store)
        assert (await store.commit_plans(batch, [plan(snapshot, clock.time)])).answers == [Commit.COMMITTED]

    assert await statuses(store) == ["completed", "queued"]
    assert (await store.get([stored.job_id]))[stored.job_id].wake_at == clock.time
    await plan_once(store)
    assert await statuses(store) == ["completed", "pending"]


async def test_an_awaited_ending_between_snapshot_and_commit_is_not_slept_through(
    store: AnyStore, clock: ManualClock
) -> None:
    """Architecture 1, `woken`: X, whose end is awaited, ends while Z is put behind Y; the plan must not hide it."""
    stored = await put(store, job(overlap="queue"))
    for _ in range(2):
        clock.move(hours=1)
        await plan_once(store)
        await plan_once(store)
    clock.move(hours=1)
    async with store.due(NodeScope("node-1"), 1) as batch:
        [snapshot] = batch.snapshots
        assert (snapshot.busy_count, snapshot.waiting_count, snapshot.awaited) == (1, 1, True)
        made = plan(snapshot, clock.time)
        assert made.wake_at != clock.time, "the plan itself sees no reason to look again"
        await run_one(store)
        assert (await store.commit_plans(batch, [made])).answers == [Commit.COMMITTED]

    assert await statuses(store) == ["completed", "queued", "queued"]
    assert (await store.get([stored.job_id]))[stored.job_id].wake_at == clock.time
    await plan_once(store)
    assert await statuses(store) == ["completed", "pending", "queued"]


async def test_a_pruned_occurrence_does_not_come_back(store: AnyStore, clock: ManualClock) -> None:
    """S4-021; Architecture 1, third: create-if-absent forgets when the row goes; the revision does not."""
    await put(store, job(retention={"success": "0s", "failure": "0s", "keep_last": 0}))
    clock.move(hours=1)
    async with store.due(NodeScope("node-1"), 1) as batch:
        late = [plan(snapshot, clock.time) for snapshot in batch.snapshots]
    await plan_once(store)
    await run_one(store)
    clock.move(seconds=1)
    await deliver(store)
    assert await store.prune() == 1

    assert (await store.commit_plans(batch, late)).answers == [Commit.STALE]
    assert await occurrences(store) == []


async def test_what_was_skipped_is_kept_as_a_span_with_its_reason(store: AnyStore, clock: ManualClock) -> None:
    """S0-093, C-36."""
    stored = await put(store, job())
    begun = clock.time
    clock.move(hours=5, minutes=30)
    await plan_once(store)
    [span] = await store.ask(Spans(stored.job_id, begun, clock.time))
    assert (span.why, span.count) == ("not last", 4)
    assert await store.ask(Spans(stored.job_id, clock.time, clock.move(hours=1))) == []


@pytest.mark.parametrize(("to", "when"), [(None, []), (90, ["10:30"])])
async def test_a_single_instant_can_be_skipped_or_moved(
    store: AnyStore, clock: ManualClock, to: int | None, when: list[str]
) -> None:
    stored = await put(store, job())
    await plan_once(store)
    instant = clock.time.replace(hour=10)
    moved = None if to is None else clock.time.replace(hour=10, minute=30)
    await store.request(stored.job_id, Skip(instant) if moved is None else Move(instant, moved))
    for _ in range(8):
        clock.move(minutes=12)
        await plan_once(store)
    assert [f"{each.scheduled_for:%H:%M}" for each in await occurrences(store)] == when


async def test_a_reschedule_takes_the_place_of_the_instants_before_it(store: AnyStore, clock: ManualClock) -> None:
    """S1-023."""
    stored = await put(store, job())
    await plan_once(store)
    await store.request(stored.job_id, Reschedule(clock.time.replace(hour=11, minute=20)))
    for _ in range(10):
        clock.move(minutes=15)
        await plan_once(store)
    assert [f"{each.scheduled_for:%H:%M}" for each in await occurrences(store)] == ["11:20"]
    spans = await store.ask(Spans(stored.job_id, clock.time.replace(hour=9), clock.time))
    assert {span.why for span in spans} == {"rescheduled"}
    assert sum(span.count or 0 for span in spans) == 2


@pytest.mark.parametrize("claimed", [True, False])
async def test_a_plan_does_not_replace_an_occurrence_that_was_claimed_since(
    store: AnyStore, clock: ManualClock, claimed: bool
) -> None:
    """F1: the plan ends an unclaimed occurrence that is claimed before the commit."""
    await put(store, job(overlap="cancel_running"))
    clock.move(hours=1)
    await plan_once(store)
    clock.move(hours=1)
    async with store.due(NodeScope("node-1"), 10) as batch:
        plans = [plan(snapshot, clock.time) for snapshot in batch.snapshots]
    if claimed:
        assert len(await store.claim(NodeScope("node-1"), 10)) == 1
    assert (await store.commit_plans(batch, plans)).answers == [Commit.COMMITTED]
    assert sum(status in ("pending", "running") for status in await statuses(store)) == int(claimed)
    while await plan_once(store):
        pass
    assert await statuses(store) == (["running", "queued"] if claimed else ["superseded", "pending"])
    orders = await store.beat("node-1", [])
    assert [claim.life.cancel for claim in orders.adopt] == ["asked by overlap cancel_running"] * claimed
