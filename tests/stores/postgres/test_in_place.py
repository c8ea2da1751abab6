"""Claims and ends are written in place: no index of `occurrence` names what changes; narrow tables list the rest."""

import asyncio
from typing import Any

from everytick.domain.facts import Pause, Resume, Trigger
from everytick.stores.base import Commit
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import began, ended, everything, job, plan_once, put
from tests.stores.clock import ManualClock

NEVER_CHANGED = {"handle", "id", "job_key", "scheduled_for"}
INDEXED = """
select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
 where i.indrelid = 'occurrence'::regclass
"""
LISTED = "select (select count(*) from active), (select count(*) from claimable)"
UPDATED = """
select coalesce(sum(n_tup_upd), 0)::int, coalesce(sum(n_tup_hot_upd), 0)::int
  from pg_stat_user_tables where relid = 'occurrence'::regclass
"""
JOBS = 200


async def test_no_index_of_occurrences_names_what_changes(db: Any) -> None:
    """A row version that changes no indexed column, in the key or in the condition, costs no index entry (HOT)."""
    assert {row[0] for row in await db.fetch(INDEXED)} == NEVER_CHANGED
    conditions = "select count(*) from pg_index where indrelid = 'occurrence'::regclass and indpred is not null"
    assert await db.fetchval(conditions) == 0


async def updates(db: Any, least: int) -> tuple[int, int]:
    """Return how many updates of occurrences the server has counted and how many were HOT, once it counted enough.

    Each session reports what it did when it has been idle for a moment.
    """
    async with asyncio.timeout(60):
        while True:
            await db.execute("select pg_stat_clear_snapshot()")
            found = tuple(await db.fetchrow(UPDATED))
            if found[0] >= least:
                return found


async def test_claims_and_ends_are_written_beside_the_old_row_and_touch_no_index(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """Four of five at least: a page whose other rows were not cleared yet may have no room left."""
    before = await updates(db, 0)
    for number in range(JOBS):
        await put(store, job(f"job-{number}", reports=False))
    clock.move(hours=1)
    while (await plan_once(store)) != []:
        pass
    scope = await everything(store)
    for _ in range(10):
        claims = await store.claim(scope, JOBS // 10)
        steps = [(claim, ended(claim, began(claim, clock.time), clock.time)) for claim in claims]
        assert await store.commit_steps(steps) == [Commit.COMMITTED] * (JOBS // 10)
    after = await updates(db, before[0] + 2 * JOBS)
    updated, in_place = after[0] - before[0], after[1] - before[1]
    assert in_place >= 0.8 * updated, f"{in_place} of {updated} updates were HOT"


async def test_the_lists_follow_an_occurrence_through_its_life(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """Created it is active and claimable, claimed it is active, paused and resumed it comes back, ended it is gone."""

    async def listed() -> tuple[int, int]:
        return tuple(await db.fetchrow(LISTED))

    stored = await put(store, job(overlap="allow"))
    clock.move(hours=1)
    await plan_once(store)
    assert await listed() == (1, 1)
    await store.request(stored.job_id, Pause())
    assert await listed() == (1, 0)
    await store.request(stored.job_id, Resume())
    await plan_once(store)
    assert await listed() == (1, 1)
    await store.request(stored.job_id, Trigger("k"))
    await plan_once(store)
    assert await listed() == (2, 2)
    claims = await store.claim(await everything(store), 10)
    assert await listed() == (2, 0)
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time)) for claim in claims])
    assert await listed() == (0, 0)
