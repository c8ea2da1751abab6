"""fold where several nodes write at once: each end is counted once, whichever node folds, deletes or dies meanwhile."""

import asyncio
from typing import Any

import pytest

from everytick.domain.occurrence import Cause
from everytick.domain.questions import Buckets, By, Counts, Days
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import StoreUnavailable
from everytick.stores.base import NodeScope
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sql.verbs.rollups import GAP_KEPT
from tests.stores.acting import began, deliver, ended, job, plan_once, put, remove
from tests.stores.clock import START, ManualClock

COUNTED = "select coalesce(sum(count), 0)::int from bucket where is_day"
END_WAITING = "select pg_terminate_backend(pid) from pg_locks where relation = 'job_day'::regclass and not granted"
ENDED = """
insert into occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at,
                        covers_through, created_at, updated_at, needs, started_at, ended_at)
select gen_random_uuid(), job_key, version, scheduled_for, status, $2, priority, late, line_at, ready_at,
       covers_through, created_at, updated_at, needs, started_at, ended_at
  from (select * from occurrence order by handle limit 1) o, generate_series(1, $1) returning handle
"""


async def run_all(store: PostgresStore, clock: ManualClock, hours: int, **policies: Any) -> str:
    """Let an hourly job run so often, all at once, and return its id."""
    stored = await put(store, job("one", tags=["crm"], recovery="execute_all", overlap="allow", **policies))
    clock.move(hours=hours)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), hours)
    await store.commit_steps([(each, ended(each, began(each, clock.time), clock.time)) for each in claims])
    await plan_once(store)
    await deliver(store)
    return stored.job_id


async def counted(store: PostgresStore, clock: ManualClock) -> int:
    """Return how many ends are answered by the steps of time."""
    buckets = await store.ask(Buckets(START.replace(hour=0), clock.time, by=By.BAND))
    return sum(each.tally.total for each in buckets)


async def fold_all(*stores: PostgresStore, limit: int = 3) -> None:
    """Let these nodes fold at the same time, until none of them finds anything."""
    while any(await asyncio.gather(*(store.fold(limit) for store in stores))):
        pass


async def test_what_commits_later_than_a_higher_handle_is_counted_once(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    await run_all(store, clock, 1)
    late = db.transaction()
    await late.start()
    gap = await db.fetchval(ENDED, 1, 0)
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 1)
    assert claim.handle > gap
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
    await fold_all(store)
    assert await counted(store, clock) == 2
    await late.commit()
    assert await counted(store, clock) == 3, "an answer looks at the gaps itself"
    await fold_all(store)
    await fold_all(store)
    assert (await counted(store, clock), await db.fetchval(COUNTED)) == (3, 3)
    assert await db.fetch("select * from unfolded") == []


async def test_a_handle_that_was_drawn_for_nothing_is_forgotten_after_an_hour(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    await run_all(store, clock, 1)
    undone = db.transaction()
    await undone.start()
    gap = await db.fetchval(ENDED, 1, 0)
    await undone.rollback()
    clock.move(hours=1)
    await plan_once(store)
    clock.move(minutes=1)
    await fold_all(store)
    assert gap in [row["handle"] for row in await db.fetch("select handle from unfolded where job_key = 0")]
    clock.move(seconds=GAP_KEPT.total_seconds() + 1)
    await store.fold()
    assert await db.fetch("select handle from unfolded where job_key = 0") == []


async def test_nodes_that_fold_at_once_count_each_end_once(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, db: Any
) -> None:
    job_id = await run_all(store, clock, 30)
    await fold_all(store, other, store, other)
    assert await db.fetchval(COUNTED) == 30
    days = await store.ask(Days(job_id, START.year))
    assert sum(each.tally.total for each in days) == 30


async def test_what_retention_deletes_beside_a_fold_is_counted_once(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, db: Any
) -> None:
    await run_all(store, clock, 30, retention={"success": "1h", "failure": "1h", "keep_last": 0})
    clock.move(hours=2)
    pruned = 1
    while pruned:
        _, pruned, _ = await asyncio.gather(store.fold(2), other.prune(2), other.fold(2))
    await fold_all(store, other)
    assert await db.fetchval(COUNTED) == 30
    assert await db.fetchval("select sum(kept)::int from bucket where is_day") == 0


async def test_a_job_that_is_purged_beside_a_fold_leaves_its_band_counted_once(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, db: Any
) -> None:
    job_id = await run_all(store, clock, 30)
    await remove(store, job_id)
    await plan_once(store)
    purged = False
    while not purged:
        _, purged, _ = await asyncio.gather(store.fold(2), other.purge(job_id, 2), other.fold(2))
    await fold_all(store, other)
    assert await db.fetchval(COUNTED) == 30
    assert await db.fetch("select * from job_day") == []
    # What was purged before a fold came to it is a gap among the handles, which is given up after a while.
    clock.move(days=1)
    await fold_all(store, other, limit=100)
    assert await db.fetch("select * from unfolded") == []
    assert await db.fetchval(COUNTED) == 30


async def test_a_node_that_dies_in_a_fold_has_counted_nothing(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """The second of its tables is locked, so it has written to the first when its connection ends."""
    await run_all(store, clock, 5)
    assert await store.fold(2) == 2
    async with db.transaction():
        await db.execute("lock table job_day")
        dying = asyncio.create_task(store.fold(2))
        while not await db.fetch(END_WAITING):
            pass
        with pytest.raises(StoreUnavailable):
            await dying
    assert (await db.fetchval(COUNTED), await counted(other, clock)) == (2, 5)
    await fold_all(other)
    assert (await db.fetchval(COUNTED), await counted(other, clock)) == (5, 5)


async def test_more_than_ten_thousand_are_estimated_from_what_was_folded(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    await run_all(store, clock, 1)
    await db.fetch(ENDED, 9_999, 0)
    exact = await store.ask(Counts())
    assert (exact.total, exact.is_estimated) == (10_000, False)
    await db.fetch(ENDED, 2_000, 1)
    await fold_all(store, limit=5_000)
    found = await store.ask(Counts())
    assert (found.counts, found.is_estimated) == (((OccurrenceStatus.COMPLETED, 12_000),), True)
    parts = [await store.ask(Counts(cause=each)) for each in (Cause.SCHEDULE, Cause.TRIGGER)]
    assert all(each.is_estimated for each in parts)
    assert sum(each.total for each in parts) == pytest.approx(12_000, abs=2)
