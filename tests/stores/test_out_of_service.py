"""Jobs that are disabled or removed run nothing: unowned occurrences wait, or end, retries included."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick.deciding.advance import advance
from everytick.domain.facts import Trigger
from everytick.domain.outcome import Failed
from everytick.domain.retry import Retry
from everytick.domain.steps import Stopping
from everytick.stores.base import Claim, Commit, NodeScope
from tests.stores.acting import AnyStore, began, claim_one, ended, job, plan_once, put, reap, remove, statuses
from tests.stores.clock import ManualClock

FOR_EVER = Retry(max=None, interval="1h")


async def failed(store: AnyStore, claim: Claim, now: datetime) -> None:
    """Let the first attempt fail: a retry follows an hour later, without an owner until then."""
    assert await store.commit_steps([(claim, ended(claim, began(claim, now), now, Failed("boom")))]) == [
        Commit.COMMITTED
    ]


async def running(store: AnyStore, clock: ManualClock, **policies: Any) -> tuple[str, Claim]:
    """Return a job that retries without end and its occurrence, whose first attempt runs."""
    stored = await put(store, job(retry=FOR_EVER, **policies))
    clock.move(hours=1)
    await plan_once(store)
    return stored.job_id, await claim_one(store)


async def test_disabling_queues_every_unclaimed_occurrence(store: AnyStore, clock: ManualClock) -> None:
    """F8, S0-132: whatever its cause; it goes on when the job is enabled."""
    stored = await put(store, job(overlap="allow"))
    await store.request(stored.job_id, Trigger("by-hand"))
    clock.move(hours=1)
    await plan_once(store)
    assert await statuses(store) == ["pending", "pending"]

    await put(store, job(overlap="allow", enabled=False))

    assert await statuses(store) == ["queued", "queued"]
    await plan_once(store)
    assert await store.claim(NodeScope("node-1"), 10) == []
    await put(store, job(overlap="allow"))
    await plan_once(store)
    assert len(await store.claim(NodeScope("node-1"), 10)) >= 1


@pytest.mark.parametrize("parked_first", [True, False])
async def test_a_retry_of_a_disabled_job_waits_until_it_is_enabled(
    store: AnyStore, clock: ManualClock, parked_first: bool
) -> None:
    """F8, S0-132: parked before or after, it is not claimed, and nothing says that it will be."""
    _, claim = await running(store, clock)
    if parked_first:
        await failed(store, claim, clock.time)
    await put(store, job(retry=FOR_EVER, enabled=False))
    if not parked_first:
        await failed(store, claim, clock.time)
    assert (await store.ahead(NodeScope("node-1"))).ready_at is None
    clock.move(hours=50)
    await plan_once(store)

    assert await store.claim(NodeScope("node-1"), 10) == []
    assert await statuses(store) == ["awaiting_retry"]

    await put(store, job(retry=FOR_EVER))
    assert (await claim_one(store)).occurrence.id == claim.occurrence.id


async def test_an_edit_of_a_disabled_job_wakes_no_retry(store: AnyStore, clock: ManualClock) -> None:
    """F8: it stays as it is until the job is enabled, and then waits for its own time."""
    _, claim = await running(store, clock)
    await failed(store, claim, clock.time)
    await put(store, job(retry=FOR_EVER, enabled=False))
    await put(store, job(retry=FOR_EVER, enabled=False, priority=3))
    clock.move(minutes=30)
    await put(store, job(retry=FOR_EVER))

    assert await store.claim(NodeScope("node-1"), 10) == []
    assert (await store.ahead(NodeScope("node-1"))).ready_at == clock.time + timedelta(minutes=30)
    clock.move(minutes=30)
    assert (await claim_one(store)).occurrence.id == claim.occurrence.id


async def test_an_occurrence_given_back_of_a_disabled_job_is_not_claimed(store: AnyStore, clock: ManualClock) -> None:
    """F8: neither what a stopping node had begun, nor what a silent one held."""
    _, claim = await running(store, clock, on_orphan="resume")
    await put(store, job(retry=FOR_EVER, on_orphan="resume", enabled=False))
    given = advance(claim.header, claim.life, Stopping(), clock.time)
    assert given.release
    await store.commit_steps([(claim, given)])

    assert await store.claim(NodeScope("node-2"), 10) == []
    await put(store, job(retry=FOR_EVER, on_orphan="resume"))
    await plan_once(store)
    again = await claim_one(store, "node-2")
    assert again.occurrence.id == claim.occurrence.id

    await put(store, job(retry=FOR_EVER, on_orphan="resume", enabled=False))
    clock.move(minutes=5)
    await reap(store)
    assert await statuses(store) == ["queued"]
    assert await store.claim(NodeScope("node-3"), 10) == []


async def test_a_removed_job_retries_no_more(store: AnyStore, clock: ManualClock) -> None:
    """F8, S0-133: a parked retry ends with the job."""
    job_id, claim = await running(store, clock)
    await failed(store, claim, clock.time)
    await remove(store, job_id)

    await plan_once(store)

    assert await statuses(store) == ["canceled"]
    clock.move(hours=2)
    assert await store.claim(NodeScope("node-1"), 10) == []


async def test_what_runs_when_its_job_is_removed_is_not_retried(store: AnyStore, clock: ManualClock) -> None:
    """F8, S0-133: running ones finish; one that would wait for a retry ends then."""
    job_id, claim = await running(store, clock)
    await remove(store, job_id)
    for _ in range(3):
        await plan_once(store)
    assert await statuses(store) == ["running"]
    assert (await store.get([job_id]))[job_id].wake_at is None

    await failed(store, claim, clock.time)
    await plan_once(store)

    assert await statuses(store) == ["canceled"]
