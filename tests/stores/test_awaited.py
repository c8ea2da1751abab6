"""Awaited ends wake their job; others do not."""

from datetime import datetime, timedelta

from everytick.deciding.advance import advance
from everytick.deciding.plan import plan
from everytick.domain.facts import Pause, Resume, Trigger
from everytick.domain.lookups import Spans
from everytick.domain.outcome import Failed, Succeeded
from everytick.domain.policies import Overlap
from everytick.domain.retry import Retry
from everytick.domain.steps import AttemptEnded, Claimed
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import AnyStore, claim_one, job, plan_once, put, run_one, statuses
from tests.stores.clock import ManualClock

HOUR = timedelta(hours=1)


async def wake_at(store: AnyStore, job_id: str) -> datetime | None:
    return (await store.get([job_id]))[job_id].wake_at


async def is_awaited(store: AnyStore, job_id: str) -> bool:
    """Whether the end of every busy one wakes the job."""
    return (await store.look([job_id]))[job_id].awaited


async def test_an_unawaited_end_wakes_no_job(store: AnyStore, clock: ManualClock) -> None:
    """A node that ends thousands in a second must not look at each of their jobs again."""
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    coming = clock.time + HOUR
    woken = (await store.look([stored.job_id]))[stored.job_id].woken

    await run_one(store)

    assert await wake_at(store, stored.job_id) == coming
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert seen.woken == woken
    # Though no job was woken, the next snapshot has it.
    assert seen.last_end is not None
    assert seen.last_end == seen.last_success
    assert seen.last_end.scheduled_for == clock.time
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert record.last_end == record.last_success == seen.last_end


async def test_the_last_end_is_known_to_the_plans_that_follow(store: AnyStore, clock: ManualClock) -> None:
    """skip_if_successful reads the last success, whether or not it woke the job."""
    stored = await put(store, job(skip_if_successful=True))
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    clock.move(minutes=1)
    await store.request(stored.job_id, Trigger("by-hand"))
    await plan_once(store)
    await run_one(store)
    clock.move(minutes=59)

    await plan_once(store)

    assert await statuses(store) == ["completed", "completed"]
    [span] = await store.ask(Spans(stored.job_id, clock.time - HOUR, clock.time))
    assert span.why == "already successful"


async def test_an_end_wakes_the_job_of_a_waiting_occurrence(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(overlap="queue"))
    clock.move(hours=1)
    await plan_once(store)
    assert not await is_awaited(store, stored.job_id)
    clock.move(hours=1)
    await plan_once(store)
    # An occurrence began to wait behind an unawaited one: one more plan, and all are marked.
    assert await wake_at(store, stored.job_id) == clock.time
    assert await is_awaited(store, stored.job_id)
    await plan_once(store)
    assert await wake_at(store, stored.job_id) == clock.time + HOUR

    await run_one(store)

    assert await wake_at(store, stored.job_id) == clock.time
    await plan_once(store)
    assert await statuses(store) == ["completed", "pending"]


async def test_an_end_before_the_mark_is_not_slept_through(store: AnyStore, clock: ManualClock) -> None:
    """Architecture 1, `woken`: X ends unawaited between the snapshot and the plan that queues Y behind it."""
    await put(store, job(overlap="allow"))
    [stored] = await store.list()
    clock.move(hours=1)
    await plan_once(store)
    await store.request(stored.job.id, Trigger("k", overlap=Overlap.QUEUE))
    async with store.due(NodeScope("node-1"), 1) as batch:
        [snapshot] = batch.snapshots
        await run_one(store)
        assert (await store.commit_plans(batch, [plan(snapshot, clock.time)])).answers == [Commit.COMMITTED]
    assert await statuses(store) == ["completed", "queued"]

    await plan_once(store)

    assert await statuses(store) == ["completed", "pending"]


async def test_occurrences_created_while_another_waits_are_awaited_too(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(overlap="allow"))
    clock.move(hours=1)
    await plan_once(store)
    first = await claim_one(store)
    await store.request(stored.job_id, Trigger("k", overlap=Overlap.QUEUE))
    await plan_once(store)
    clock.move(hours=1)
    await plan_once(store)
    # Pending beside the first, and the request waits behind both.
    assert await statuses(store) == ["running", "queued", "pending"]
    await plan_once(store)
    began = advance(first.header, first.life, Claimed(), clock.time)
    await store.commit_steps(
        [(first, advance(first.header, began.after, AttemptEnded("main", 1, Succeeded()), clock.time))]
    )
    await plan_once(store)
    assert await statuses(store) == ["completed", "queued", "pending"]

    await run_one(store)

    assert await wake_at(store, stored.job_id) == clock.time
    await plan_once(store)
    assert await statuses(store) == ["completed", "pending", "completed"]


async def test_a_parked_retry_wakes_a_job_with_waiting_occurrences_only(store: AnyStore, clock: ManualClock) -> None:
    """The next instant may make a parked retry pointless; where none has come, its `ready_at` is all there is."""
    retry = Retry(3, "10m", superseded_by_next=True)
    alone = await put(store, job("alone", retry=retry))
    lined = await put(store, job("lined", overlap="queue", retry=retry))
    clock.move(hours=1)
    await plan_once(store)
    claims = {claim.job.id: claim for claim in await store.claim(NodeScope("node-1"), 10)}
    began = {id_: advance(claim.header, claim.life, Claimed(), clock.time) for id_, claim in claims.items()}
    await store.request(lined.job_id, Trigger("k"))
    await plan_once(store)
    await plan_once(store)
    assert await wake_at(store, lined.job_id) == clock.time + HOUR

    for id_, claim in claims.items():
        parked = advance(claim.header, began[id_].after, AttemptEnded("main", 1, Failed("boom")), clock.time)
        assert parked.resume_at is not None
        assert await store.commit_steps([(claim, parked)]) == [Commit.COMMITTED]

    assert await wake_at(store, lined.job_id) == clock.time
    assert await wake_at(store, alone.job_id) == clock.time + HOUR
    assert (await store.ahead(NodeScope("node-1"))).ready_at == clock.time + timedelta(minutes=10)


async def test_the_schedule_that_follows_an_end_hears_of_it(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(when="after: 10m"))
    clock.move(minutes=10)
    await plan_once(store)
    assert await is_awaited(store, stored.job_id)
    clock.move(minutes=1)

    await run_one(store)

    assert await wake_at(store, stored.job_id) == clock.time
    await plan_once(store)
    assert await wake_at(store, stored.job_id) == clock.time + timedelta(minutes=10)


async def test_an_edit_that_follows_ends_marks_what_runs(store: AnyStore, clock: ManualClock) -> None:
    """What has started keeps its own definition, but the new one counts from its end."""
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await put(store, job(when="after: 10m"))
    await plan_once(store)
    await plan_once(store)
    began = advance(claim.header, claim.life, Claimed(), clock.time)

    await store.commit_steps(
        [(claim, advance(claim.header, began.after, AttemptEnded("main", 1, Succeeded()), clock.time))]
    )

    assert await wake_at(store, stored.job_id) == clock.time


async def test_what_a_pause_put_back_in_line_is_marked_when_it_comes_out(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(overlap="allow"))
    clock.move(hours=1)
    await plan_once(store)
    clock.move(hours=1)
    await plan_once(store)
    await store.request(stored.job_id, Pause())
    await store.request(stored.job_id, Resume())
    await plan_once(store)
    assert await statuses(store) == ["pending", "queued"]
    assert await is_awaited(store, stored.job_id)

    await run_one(store)
    await plan_once(store)

    assert await statuses(store) == ["completed", "pending"]
