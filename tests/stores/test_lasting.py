"""run_count and last_error: values of a job that retention does not take away."""

from datetime import timedelta

from everytick.domain.facts import Cancel, Trigger
from everytick.domain.outcome import Failed
from everytick.stores.base import HistoryFilter, JobRecord, NodeScope
from tests.stores.acting import FAILED, AnyStore, began, deliver, ended, job, plan_once, put, run_one
from tests.stores.clock import ManualClock


async def _record(store: AnyStore) -> JobRecord:
    [record] = await store.list()
    return record


async def test_runs_are_counted_and_the_last_error_is_kept_beyond_retention(
    store: AnyStore, clock: ManualClock
) -> None:
    """S3-003: RunCount and LastError; a success after it leaves the last error to be read, beside last_success."""
    await put(store, job(retention={"success": "1h", "failure": "1h", "keep_last": 0}))
    assert ((await _record(store)).run_count, (await _record(store)).last_error) == (0, None)
    for outcome in (None, FAILED, None, Failed("later"), None, None, None):
        clock.move(hours=1)
        await plan_once(store)
        await run_one(store, outcome)
    assert ((await _record(store)).run_count, (await _record(store)).last_error) == (7, "later")
    await plan_once(store)
    clock.move(hours=5)
    await deliver(store)
    while await store.prune():
        pass
    assert (await store.history(HistoryFilter())).occurrences == ()
    found = await _record(store)
    assert (found.run_count, found.last_error) == (7, "later")
    assert found.last_success is not None


async def test_what_never_began_is_not_counted(store: AnyStore, clock: ManualClock) -> None:
    """S3-003: a canceled one that no node claimed did not run."""
    id_ = (await put(store, job())).job_id
    asked = (await store.request(id_, Trigger("k"))).id
    await plan_once(store)
    await store.request(asked, Cancel())
    await plan_once(store)
    assert ((await _record(store)).run_count, (await _record(store)).last_error) == (0, None)


async def test_several_ends_of_one_job_written_together_are_all_counted(store: AnyStore, clock: ManualClock) -> None:
    """S3-003: whatever the size of the batch."""
    id_ = (await put(store, job(overlap="allow"))).job_id
    for size in (3, 40):
        for number in range(size):
            await store.request(id_, Trigger(f"{size}-{number}"))
        await plan_once(store)
        claims = await store.claim(NodeScope("node-1"), 100)
        assert len(claims) == size
        outcomes = [FAILED if place == 1 else None for place in range(size)]
        steps = [
            (each, ended(each, began(each, clock.time), clock.time, how))
            for each, how in zip(claims, outcomes, strict=True)
        ]
        await store.commit_steps(steps)
    assert ((await _record(store)).run_count, (await _record(store)).last_error) == (43, "boom")
    clock.time += timedelta(minutes=1)
    await plan_once(store)
    assert ((await _record(store)).run_count, (await _record(store)).last_error) == (43, "boom")
