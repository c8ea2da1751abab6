"""A request by one statement: as soon as the job is known, and without overlooking what comes in between."""

import asyncio
from typing import Any

import asyncpg
import pytest

from everytick.domain import ids
from everytick.domain.facts import Trigger
from everytick.domain.payload import payload
from everytick.errors import JobDisabled, NotFound, OccurrenceExists
from everytick.stores.base import Receipt
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import job, occurrences, plan_once, put, remove
from tests.stores.clock import ManualClock

ASKED = """
insert into request (job_key, key, cause, requested_at, payload, reason, requested_by, id)
select job_key, 'k', 1, '2026-01-01', '1', '', '', gen_random_uuid() from job_state
"""
PLANNED = """
with made as (
    insert into occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, created_at,
                            updated_at, needs, payload)
    select $1, job_key, 1, '2026-01-01', 1, 1, 0, false, '2026-01-01', '2026-01-01', '2026-01-01', '', '1'
      from job_state
    returning job_key, handle
)
insert into active (job_key, handle) select job_key, handle from made
"""


def ask(clock: ManualClock, key: str, what: object = None) -> Trigger:
    return Trigger(key, None if what is None else payload(what))


async def known(store: PostgresStore, clock: ManualClock) -> str:
    """Make a job that was asked for before, so that the store knows its newest definition."""
    stored = await put(store, job(overlap="allow"))
    await plan_once(store)
    await store.request(stored.job_id, ask(clock, "first"))
    await plan_once(store)
    return stored.job_id


async def until_somebody_waits(db: Any, query: str = "%request%") -> None:
    waits = "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like $1)"
    async with asyncio.timeout(60):
        while not await db.fetchval(waits, query):
            await db.execute("select pg_stat_clear_snapshot()")  # in a transaction it would always see the same


async def test_a_job_that_is_known_is_asked_for_in_one_go(store: PostgresStore, clock: ManualClock, db: Any) -> None:
    job_id = await known(store, clock)
    before = await db.fetchval("select woken + (select count(*) from wake) from job_state")
    id_ = (await store.request(job_id, ask(clock, "second", {"x": 1}))).id
    assert await db.fetchval("select woken + (select count(*) from wake) from job_state") == before + 1
    assert await store.bell(20)
    await plan_once(store)
    [_, made] = sorted(await occurrences(store), key=lambda each: each.id == id_)
    assert (made.id, made.cause, made.overrides.get("payload")) == (id_, "trigger", payload({"x": 1}))


async def test_what_is_known_of_a_job_is_not_trusted(
    store: PostgresStore, other: PostgresStore, clock: ManualClock
) -> None:
    """Another node may have edited or removed it since."""
    job_id = await known(store, clock)
    await put(other, job(overlap="allow", enabled=False))
    with pytest.raises(JobDisabled):
        await store.request(job_id, ask(clock, "second"))
    await put(other, job(overlap="allow", payload={"x": 1}))
    id_ = (await store.request(job_id, ask(clock, "third", {"x": 1}))).id
    await plan_once(store)
    [made] = [each for each in await occurrences(store) if each.id == id_]
    assert not made.overrides.items, "it is the job's own payload now"
    await remove(other, job_id)
    with pytest.raises(NotFound):
        await store.request(job_id, ask(clock, "fourth"))


async def test_the_same_key_at_the_same_moment_is_asked_for_once(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """S0-057: another caller's request with another payload is committed while this one waits for the job."""
    job_id = await known(store, clock)
    async with db.transaction():
        await db.execute("select from job_state for no key update")
        asking = asyncio.create_task(store.request(job_id, ask(clock, "k", 2)))
        await until_somebody_waits(db)
        await db.execute(ASKED)
    with pytest.raises(OccurrenceExists):
        await asking
    assert [row["payload"] for row in await db.fetch("select payload from request")] == ["1"]
    assert await db.fetchval("select count(*) from wake") == 0


async def test_a_key_that_is_asked_for_and_planned_while_it_waits_is_not_asked_for_again(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """S0-057: the occurrence is newer than what the statement sees, and the revision tells of it."""
    job_id = await known(store, clock)
    async with db.transaction():
        await db.execute("select from job_state for no key update")
        asking = asyncio.create_task(store.request(job_id, ask(clock, "k", 2)))
        await until_somebody_waits(db)
        await db.execute(PLANNED, ids.trigger_id(job_id, "k")[4:])
        await db.execute("update job_state set revision = revision + 1")
    with pytest.raises(OccurrenceExists):
        await asking
    assert await db.fetchval("select count(*) from request") == 0


@pytest.mark.parametrize("what", [1, 2])
async def test_two_transactions_of_callers_that_ask_by_one_key_are_answered_one_after_the_other(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, db: Any, what: int
) -> None:
    """The second caller with another payload is refused, as if the first had asked long ago."""
    job_id = await known(store, clock)
    first, second = await asyncpg.connect(store.url), await asyncpg.connect(store.url)
    async with second.transaction():
        begun = first.transaction()
        await begun.start()
        id_ = (await store.request(job_id, ask(clock, "k", 1), within=first)).id
        waiting = asyncio.create_task(other.request(job_id, ask(clock, "k", what), within=second))
        await until_somebody_waits(db)
        await begun.commit()
        if what == 1:
            assert await waiting == Receipt(id_, False)
        else:
            with pytest.raises(OccurrenceExists):
                await waiting
    await first.close()
    await second.close()


async def test_a_job_that_a_callers_transaction_asks_for_is_purged_with_that_request(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """The request is seen only once it is committed: the first look fails by it, the next one takes it away."""
    job_id = await known(store, clock)
    own = await asyncpg.connect(store.url)
    await remove(store, job_id)
    begun = own.transaction()
    await begun.start()
    job_key = await own.fetchval(f"select job_key from {store.schema}.job")
    await own.execute(f"set local search_path = {store.schema}")
    await own.execute(ASKED)
    waiting = asyncio.create_task(store.purge(job_id))
    await until_somebody_waits(db, f'delete from "{store.schema}".job where%')
    await begun.commit()
    assert not await waiting, "something is left"
    assert await store.purge(job_id)
    assert await db.fetchval("select count(*) from request where job_key = $1", job_key) == 0
    await own.close()
