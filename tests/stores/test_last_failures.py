"""last_failures: when an attempt of a job last failed, whatever has been forgotten since."""

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


async def test_the_latest_failure_of_each_job_is_told(store: AnyStore, clock: ManualClock) -> None:
    """S2-025: also of one that went well since; a job that never failed, or that nobody knows, is left out."""
    bad, good = await put(store, job("bad")), await put(store, job("good", "0 0 1 1 *"))
    asked = [bad.job_id, good.job_id, "job_unknown"]
    assert await store.last_failures(asked) == {}
    await failed_at(store, clock)
    latest = await failed_at(store, clock)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)

    assert await store.last_failures(asked) == {bad.job_id: latest}
    assert await store.last_failures([good.job_id]) == {}


async def test_a_timeout_and_an_attempt_that_is_tried_again_are_failures(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(retry={"max": 3, "interval": "1h"}))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    step = ended(began(claim, clock.time), clock.time, TimedOut())
    await store.commit_steps([(claim, step)])
    assert step.end is None

    assert await store.last_failures([stored.job_id]) == {stored.job_id: clock.time}


async def test_a_failure_is_known_when_its_occurrence_is_forgotten(store: AnyStore, clock: ManualClock) -> None:
    """S2-025: the latest of those forgotten and those kept, until the job itself is purged."""
    stored = await put(store, job(**FORGETFUL))
    await failed_at(store, clock)
    latest = await failed_at(store, clock)
    await deliver(store)
    clock.move(hours=3)
    assert await store.prune(limit=1) == 1
    assert await store.prune() == 1
    assert await store.last_failures([stored.job_id]) == {stored.job_id: latest}

    newer = await failed_at(store, clock)
    assert newer - latest > timedelta(0)
    assert await store.last_failures([stored.job_id]) == {stored.job_id: newer}

    await remove(store, stored.job_id)
    assert await store.purge(stored.job_id)
    assert (await put(store, job(**FORGETFUL))).job_id == stored.job_id
    assert await store.last_failures([stored.job_id]) == {}
