"""A store's clock that was ahead and is set right (C-45): time goes back, and what was decided stays decided."""

from datetime import timedelta

import pytest

from everytick.domain.decisions import put_off
from everytick.domain.facts import Fact, Pause, Resume, Rewind, SetLimit, Skip, Trigger, Undo
from everytick.domain.lookups import Spans
from everytick.domain.outcome import Failed
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import NodeScope
from tests.stores.acting import AnyStore, began, claim_one, ended, everything, job, occurrences, plan_once, put, run_one
from tests.stores.clock import START, ManualClock

HOUR = timedelta(hours=1)


async def test_the_stores_time_follows_its_clock_back(store: AnyStore, clock: ManualClock) -> None:
    """L4, C-05, C-45, S1-030: it does not stand still until the clock has caught up."""
    clock.move(hours=1)
    await put(store, job())
    assert await store.now() == START + HOUR
    clock.move(hours=-1)
    assert await store.now() == START
    clock.move(seconds=2)
    assert await store.now() == START + timedelta(seconds=2)


async def test_what_was_decided_ahead_is_not_decided_again_and_other_jobs_go_on(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-45: only the job that was planned while the clock was ahead has to wait."""
    early = await put(store, job("early", "*/10 * * * *"))
    other = await put(store, job("other", "*/10 * * * *"))
    await plan_once(store)
    await store.request(other.job_id, Pause())
    clock.move(hours=1)
    await plan_once(store)
    made = len(await occurrences(store, early.job_id))
    clock.move(hours=-1)
    await store.request(other.job_id, Resume())
    clock.move(minutes=10)
    await plan_once(store)
    assert len(await occurrences(store, early.job_id)) == made
    assert [each.scheduled_for for each in await occurrences(store, other.job_id)] == [START + timedelta(minutes=10)]


async def test_what_was_asked_for_ahead_is_ready_at_once(store: AnyStore, clock: ManualClock) -> None:
    """C-45: planned before the clock was set right, or after it."""
    first, second = [await put(store, job(name, "0 0 1 1 *")) for name in ("first", "second")]
    await plan_once(store)
    clock.move(hours=1)
    await store.request(first.job_id, Trigger("k"))
    await plan_once(store)
    await store.request(second.job_id, Trigger("k"))
    clock.move(hours=-1)
    await store.settle_clock()
    await plan_once(store)
    assert {claim.job.name for claim in await store.claim(NodeScope("node-1"), 10)} == {"first", "second"}


async def test_a_job_that_was_defined_ahead_is_looked_at_at_once(store: AnyStore, clock: ManualClock) -> None:
    """C-45: it is due to be looked at from the moment it was stored, which lies ahead once the clock is set right."""
    clock.move(hours=1)
    stored = await put(store, job("new", "0 0 1 1 *", on_create="immediately"))
    clock.move(hours=-1)
    await store.settle_clock()
    await plan_once(store)
    assert [each.job_id for each in await occurrences(store)] == [stored.job_id]
    assert [claim.job.name for claim in await store.claim(NodeScope("node-1"), 10)] == ["new"]


async def test_a_retry_that_was_parked_ahead_is_brought_back_to_its_own_wait(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-45: it waits as long as its policy says, and not until the clock is there again."""
    stored = await put(store, job(retry={"max": 3, "interval": "7m"}))
    clock.move(hours=1)
    await store.request(stored.job_id, Trigger("k"))
    await plan_once(store)
    await run_one(store, Failed("no"))
    [parked] = [each for each in await occurrences(store) if each.status is OccurrenceStatus.AWAITING_RETRY]
    assert parked.ready_at == START + HOUR + timedelta(minutes=7)

    clock.move(hours=-1)
    await store.settle_clock()
    [brought] = [each for each in await occurrences(store) if each.status is OccurrenceStatus.AWAITING_RETRY]
    assert brought.ready_at == START + timedelta(minutes=7)
    assert (await store.ahead(NodeScope("node-1"))).ready_at == START + timedelta(minutes=7)
    await store.settle_clock()
    assert (await store.ahead(NodeScope("node-1"))).ready_at == START + timedelta(minutes=7)
    clock.move(minutes=7)
    claim = await claim_one(store)
    assert claim.occurrence.id == parked.id
    assert [start.number for start in began(claim, clock.time).starts] == [2]


async def test_jobs_that_were_decided_ahead_are_named_and_can_be_set_right(store: AnyStore, clock: ManualClock) -> None:
    """C-45: the one exception to Monotony; an instant that has an occurrence keeps it, the others are decided anew."""
    early = await put(store, job("early", "*/10 * * * *", overlap="allow", recovery="mark_as_missed"))
    await put(store, job("right", "0 0 1 1 *"))
    await plan_once(store)
    assert await store.settle_clock() == []
    clock.move(minutes=30)
    await plan_once(store)
    clock.move(minutes=-30)
    before = await occurrences(store, early.job_id)
    assert await store.settle_clock() == [("early", START + timedelta(minutes=30))]

    assert (await store.request(early.job_id, Rewind())).changed
    assert not (await store.request(early.job_id, Rewind())).changed
    assert await store.settle_clock() == []
    [record] = (await store.get([early.job_id])).values()
    assert record.watermark == START
    for _ in range(4):
        clock.move(minutes=10)
        await plan_once(store)
    after = await occurrences(store, early.job_id)
    assert [each.id for each in after if each.id in {kept.id for kept in before}] == [each.id for each in before]
    minutes = {round((each.scheduled_for - START) / timedelta(minutes=1)) for each in after}
    assert minutes == {10, 20, 30, 40}
    spans = await store.ask(Spans(early.job_id, START, START + HOUR))
    assert list(spans) == []


async def test_setting_right_brings_back_what_was_said_of_the_job_ahead(store: AnyStore, clock: ManualClock) -> None:
    """An edit and a pause of the hour that never was are in force from now on."""
    early = await put(store, job("early", "*/10 * * * *"))
    clock.move(hours=1)
    await plan_once(store)
    await put(store, job("early", "*/5 * * * *"))
    await store.request(early.job_id, Pause())
    clock.move(hours=-1)
    assert (await store.request(early.job_id, Rewind())).changed
    [snapshot] = (await store.look([early.job_id])).values()
    assert snapshot.watermark == START
    assert [each.job.version for each in snapshot.editions] == [2]
    assert [pause.since for pause in snapshot.pauses] == [START]
    assert (await store.request(early.job_id, Resume())).changed
    await plan_once(store)
    [record] = (await store.get([early.job_id])).values()
    assert record.wake_at == START + timedelta(minutes=5)


async def test_what_was_said_of_a_job_ahead_is_in_force_once_the_clock_is_set_right(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-45: by a command, while no node ran: nothing else tells that the clock was ahead."""
    edited = await put(store, job("edited", "*/10 * * * *", overlap="allow"))
    paused = await put(store, job("paused", "*/10 * * * *"))
    await plan_once(store)
    clock.move(hours=1)
    await put(store, job("edited", "*/5 * * * *", overlap="allow"))
    await store.request(paused.job_id, Pause())
    clock.move(hours=-1)
    assert await store.settle_clock() == []

    seen = await store.look([edited.job_id, paused.job_id])
    assert [each.job.version for each in seen[edited.job_id].editions] == [2]
    assert [pause.since for pause in seen[paused.job_id].pauses] == [START]
    clock.move(minutes=5)
    await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store)] == [clock.time]

    await put(store, job("edited", "*/7 * * * *", overlap="allow"))
    clock.move(minutes=2)
    await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store)][1:] == [clock.time]
    assert [each.job.version for each in (await store.look([edited.job_id]))[edited.job_id].editions] == [3]


async def test_what_was_queued_ahead_is_ready_when_its_turn_comes(store: AnyStore, clock: ManualClock) -> None:
    """C-45: everything goes on at once that was not decided, not when the clock is there again."""
    line = await put(store, job("line", "0 0 1 1 *", overlap="queue"))
    await plan_once(store)
    clock.move(hours=1)
    for key in ("first", "second"):
        await store.request(line.job_id, Trigger(key))
    await plan_once(store)
    first = await claim_one(store)
    clock.move(hours=-1)
    await store.settle_clock()
    await store.commit_steps([(first, ended(first, began(first, clock.time), clock.time))])
    await plan_once(store)
    second = await claim_one(store)
    assert second.header.id != first.header.id


async def test_an_edit_after_the_clock_was_set_back_is_the_newest(store: AnyStore, clock: ManualClock) -> None:
    """C-45, S0-115: also if the definition before it came into force while the clock was ahead."""
    stored = await put(store, job("edited", "*/10 * * * *"))
    clock.move(minutes=30)
    await plan_once(store)
    clock.move(hours=1)
    await put(store, job("edited", "*/20 * * * *"))
    clock.move(minutes=-80)
    await put(store, job("edited", "*/15 * * * *"))
    await store.settle_clock()
    await plan_once(store)
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert (record.job.version, str(record.job.schedule)) == (3, "cron: */15 * * * *")


async def test_a_resume_that_was_made_ahead_is_in_force_once_the_clock_is_set_right(
    store: AnyStore, clock: ManualClock
) -> None:
    """L4, C-45: by a command, while no node ran. The end of another pause, which a person named, stays as it is."""
    resumed, held = [await put(store, job(name, "*/10 * * * *")) for name in ("resumed", "held")]
    for each in (resumed, held):
        await store.request(each.job_id, Pause())
    await plan_once(store)
    clock.move(hours=1)
    await store.request(resumed.job_id, Resume())
    await store.request(held.job_id, Pause(until=START + 3 * HOUR))
    clock.move(hours=-1)
    await store.settle_clock()

    records = await store.get([resumed.job_id, held.job_id])
    assert records[resumed.job_id].pause is None
    assert records[resumed.job_id].next_run == START + timedelta(minutes=10)
    other = records[held.job_id].pause
    assert other is not None
    assert other.until == START + 3 * HOUR
    clock.move(minutes=10)
    await plan_once(store)
    assert [each.job_id for each in await occurrences(store)] == [resumed.job_id]


async def test_setting_right_brings_back_a_resume(store: AnyStore, clock: ManualClock) -> None:
    """C-45: also of a job whose watermark lies ahead."""
    early = await put(store, job("early", "*/10 * * * *", overlap="allow"))
    await plan_once(store)
    clock.move(hours=1)
    await plan_once(store)
    await store.request(early.job_id, Pause())
    clock.move(minutes=1)
    await store.request(early.job_id, Resume())
    clock.move(minutes=-61)
    assert (await store.request(early.job_id, Rewind())).changed
    clock.move(minutes=10)
    await plan_once(store)
    assert clock.time in [each.scheduled_for for each in await occurrences(store)]


@pytest.mark.parametrize("fact", [Skip(START + HOUR / 3), Undo(START + HOUR / 3)], ids=["skip", "undo"])
async def test_a_job_that_was_woken_ahead_and_not_planned_is_looked_at_at_once(
    store: AnyStore, clock: ManualClock, fact: Fact
) -> None:
    """L4, C-45: by a command, while no node ran: only the time of the wake tells that the clock was ahead."""
    stored = await put(store, job("skipped", "*/10 * * * *"))
    await plan_once(store)
    clock.move(hours=1)
    await store.request(stored.job_id, fact)
    clock.move(hours=-1)
    await store.settle_clock()
    clock.move(minutes=10)
    await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store)] == [clock.time]


async def test_an_edit_that_was_brought_back_wakes_no_other_job(store: AnyStore, clock: ManualClock) -> None:
    """C-45: nothing else says that the clock was ahead, so the other job is due when its plan says."""
    await put(store, job("edited", "*/10 * * * *"))
    other = await put(store, job("other", "0 0 1 1 *"))
    await plan_once(store)
    due_at = (await store.get([other.job_id]))[other.job_id].wake_at
    clock.move(hours=1)
    await put(store, job("edited", "*/20 * * * *"))
    clock.move(hours=-1)
    await store.settle_clock()
    assert (await store.get([other.job_id]))[other.job_id].wake_at == due_at


async def test_a_job_whose_plan_was_put_off_ahead_is_looked_at_at_once(store: AnyStore, clock: ManualClock) -> None:
    """C-45: nothing of it was decided, and the minute it was to wait ends only once the clock is there again."""
    await put(store, job("late", "*/10 * * * *"))
    await plan_once(store)
    clock.move(hours=1)
    await store.beat("node-1", [])
    async with store.due(NodeScope("node-1"), 10) as batch:
        await store.commit_plans(batch, [put_off(each, batch.now) for each in batch.snapshots])
    assert await plan_once(store) == []
    clock.move(hours=-1)
    assert await store.settle_clock() == []
    clock.move(minutes=10)
    await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store)] == [clock.time]


@pytest.mark.parametrize("change", ["limit", "edit"])
async def test_what_was_ready_stays_ready_in_another_lane_or_version(
    store: AnyStore, clock: ManualClock, change: str
) -> None:
    """L4, C-45: half a second is no step that a node corrects, so only what is written anew is judged by it."""
    stored = await put(store, job("asked", "0 0 1 1 *", tags=["crm"]))
    await store.request(stored.job_id, Trigger("k"))
    await plan_once(store)
    clock.move(seconds=-0.5)
    if change == "limit":
        await store.request("tag:crm", SetLimit(most=5))
    else:
        await put(store, job("asked", "0 0 1 1 *", tags=["erp"], queue="gpu"))
    assert [claim.job.name for claim in await store.claim(await everything(store), 10)] == ["asked"]


async def test_a_job_is_due_as_its_newest_fact_says(store: AnyStore, clock: ManualClock) -> None:
    """C-45: a step back by less than a second is not corrected. What is asked for after it is due at once."""
    stored = await put(store, job("asked", "0 0 1 1 *", overlap="allow"))
    await plan_once(store)
    clock.move(milliseconds=800)
    await store.request(stored.job_id, Trigger("before"))
    clock.move(milliseconds=-500)
    await store.request(stored.job_id, Trigger("after"))
    async with store.due(NodeScope("node-1"), 10) as batch:
        assert [(each.job_id, each.wake_at) for each in batch.snapshots] == [(stored.job_id, clock.time)]


async def test_a_job_whose_newest_fact_lies_ahead_is_known_to_come(store: AnyStore, clock: ManualClock) -> None:
    """C-45: an older fact that is due does not make the job due, so the node has to know when it will be."""
    stored = await put(store, job("asked", "0 0 1 1 *", overlap="allow"))
    await plan_once(store)
    await store.request(stored.job_id, Trigger("before"))
    clock.move(milliseconds=800)
    await store.request(stored.job_id, Trigger("after"))
    ahead = clock.time
    clock.move(milliseconds=-500)
    async with store.due(NodeScope("node-1"), 10) as batch:
        assert not batch.snapshots
    assert (await store.ahead(NodeScope("node-1"))).wake_at == ahead
