"""Early occurrences: parked retries and jitter stand apart until their time comes, then in line with the others."""

import asyncio
from typing import Any

from everytick.domain.facts import Pause, Resume
from everytick.domain.outcome import Failed
from everytick.stores.base import Commit, NodeScope
from everytick.stores.postgres.queries import queries_in
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import began, ended, job, plan_once, put
from tests.stores.clock import ManualClock

PARKED = """
with made as (
    insert into occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at,
                            created_at, updated_at, needs, is_early)
    select gen_random_uuid(), 1, 1, at, 3, 0, 0, false, at, at + interval '10 years', at, at, '', true
      from (select n, '2025-01-01'::timestamptz + make_interval(secs => n) as at from generate_series(1, 5000) n) o
    returning *
), actives as (
    insert into active (job_key, handle) select job_key, handle from made
)
insert into claimable (handle, id, line_at, ready_at, priority, is_early, needs)
select handle, id, line_at, ready_at, priority, is_early, needs from made
"""


async def rows_read(db: Any, store: PostgresStore) -> int:
    """How many rows of occurrences the server reads to claim one."""
    claim = queries_in(store.schema).claim
    query = claim(node="n", needs=[""], limit=1, unknown_ids=[], is_released=False, token=1)
    await db.execute("begin")
    shown = await db.fetch(f"explain (analyze, timing off, costs off) {claim.sql}", *query.arguments)
    await db.execute("rollback")
    lines = [row[0] for row in shown]
    [scan] = [line for line in lines if "claimable_ready" in line]
    filtered = sum(int(line.split(":")[1]) for line in lines if "Rows Removed by Filter" in line)
    return filtered + int(scan.split("rows=")[1].split()[0])


async def test_a_claim_does_not_walk_past_parked_retries(store: PostgresStore, clock: ManualClock, db: Any) -> None:
    """They are older than anything that is ready, and there are thousands of them."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    await db.execute(PARKED)
    assert await rows_read(db, store) == 1
    assert len(await store.claim(NodeScope("node-1"), 10)) == 1


async def test_those_whose_time_has_come_stand_in_line_by_priority_and_age(
    store: PostgresStore, clock: ManualClock
) -> None:
    """The retry is of higher priority, so it comes before what was ready all the time."""
    await put(store, job("low", "30 * * * *"))
    await put(store, job("high", "0 * * * *", priority=5, retry={"max": 1, "interval": "40m"}))
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 1)
    failed = ended(claim, began(claim, clock.time), clock.time, Failed("boom"))
    assert await store.commit_steps([(claim, failed)]) == [Commit.COMMITTED]
    clock.move(minutes=30)
    await plan_once(store)
    assert (await store.ahead(NodeScope("node-1"))).ready_at == failed.resume_at
    clock.move(minutes=10)
    claims = await store.claim(NodeScope("node-1"), 1)
    assert [each.job.name for each in claims] == ["high"]
    assert [each.job.name for each in await store.claim(NodeScope("node-1"), 5)] == ["low"]


async def test_claimers_that_meet_newly_ready_occurrences_at_once_get_each_once(
    store: PostgresStore, other: PostgresStore, clock: ManualClock
) -> None:
    """A claimer that does not move them into the line claims them too, once they are there.

    A claim locks up to its limit in each lane, and lets go of those beyond its limit. Others pass those over meanwhile,
    and find them when they look next.
    """
    await put(store, job(when="* * * * *", recovery="execute_all", overlap="allow", jitter="30s"))
    clock.move(minutes=60)
    await plan_once(store)
    clock.move(seconds=30)
    claims = await asyncio.gather(
        *((store, other)[number % 2].claim(NodeScope(f"node-{number}"), 20) for number in range(8))
    )
    claims.append(await store.claim(NodeScope("node-0"), 60))
    assert len({claim.handle for claimed in claims for claim in claimed}) == 60
    assert sum(map(len, claims)) == 60


async def test_what_waits_in_line_and_is_let_in_before_its_time_stays_early(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """A pause puts it back in line; the resume lets it in, and its jitter still holds."""
    stored = await put(store, job(jitter="30m"))
    clock.move(hours=1)
    await plan_once(store)
    [ready_at] = [row["ready_at"] for row in await db.fetch("select ready_at from occurrences")]
    assert ready_at > clock.time
    await store.request(stored.job_id, Pause())
    assert (await store.ahead(NodeScope("node-1"))).ready_at is None
    await store.request(stored.job_id, Resume())
    await plan_once(store)
    assert (await store.ahead(NodeScope("node-1"))).ready_at == ready_at
    assert await store.claim(NodeScope("node-1"), 1) == []
    clock.time = ready_at
    assert len(await store.claim(NodeScope("node-1"), 1)) == 1
