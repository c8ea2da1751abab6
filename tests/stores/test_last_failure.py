"""last_failure_at: when an attempt of a job last failed, whatever has been forgotten since."""

from datetime import datetime, timedelta
from typing import Any

from everytick.domain.outcome import TimedOut
from tests.stores.acting import FAILED, AnyStore, began, claim_one, deliver, ended, job, plan_once, put, remove, run_one
from tests.stores.clock import ManualClock

FORGETFUL: dict[str, Any] = {"retention": {"success": "2h", "failure": "2h", "keep_last": 0}}


async def failed_at(store: AnyStore, clock: ManualClock) -> datetime:
    """Let the job of the hour fail; return when it did."""
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store, FAILED)
    return clock.time


async def known(store: AnyStore, job_id: str) -> datetime | None:
    """Return what the record of the job says, which is the same in `get` and `list`."""
    [listed] = [each for each in await store.list() if each.job.id == job_id]
    assert (await store.get([job_id]))[job_id] == listed
    return listed.last_failure_at


async def test_the_latest_failure_of_each_job_is_told(store: AnyStore, clock: ManualClock) -> None:
    """S2-025: also of one that went well since; a job that never failed says so."""
    bad, good = await put(store, job("bad")), await put(store, job("good", "0 0 1 1 *"))
    assert await known(store, bad.job_id) is None
    await failed_at(store, clock)
    latest = await failed_at(store, clock)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    assert await known(store, bad.job_id) == latest
    assert await known(store, good.job_id) is None
    clock.move(hours=1)
    await plan_once(store)
    assert await known(store, bad.job_id) == latest, "a plan keeps it"


async def test_a_timeout_and_an_attempt_that_is_tried_again_are_failures(store: AnyStore, clock: ManualClock) -> None:
    """S2-025: it is told before the retry, and a plan in between keeps it."""
    stored = await put(store, job(retry={"max": 3, "interval": "1h"}))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    step = ended(claim, began(claim, clock.time), clock.time, TimedOut())
    await store.commit_steps([(claim, step)])
    assert step.end is None
    failed = clock.time
    assert await known(store, stored.job_id) == failed
    clock.move(hours=1)
    await plan_once(store)
    assert await known(store, stored.job_id) == failed


async def test_a_failure_is_known_when_its_occurrence_is_forgotten(store: AnyStore, clock: ManualClock) -> None:
    """S2-025: the latest of those forgotten and those kept, until the job itself is purged."""
    stored = await put(store, job(**FORGETFUL))
    await failed_at(store, clock)
    latest = await failed_at(store, clock)
    await deliver(store)
    clock.move(hours=3)
    assert await store.prune(limit=1) == 1
    assert await store.prune() == 1
    assert await known(store, stored.job_id) == latest

    newer = await failed_at(store, clock)
    assert newer - latest > timedelta(0)
    assert await known(store, stored.job_id) == newer

    await remove(store, stored.job_id)
    assert await store.purge(stored.job_id)
    assert (await put(store, job(**FORGETFUL))).job_id == stored.job_id
    assert await known(store, stored.job_id) is None
