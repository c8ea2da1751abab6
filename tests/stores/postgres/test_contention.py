"""Contention: deadlocks and failed serializations are retried before they are raised."""

import asyncio
from typing import Any

import pytest

from everytick.errors import Contended, StoreUnavailable
from everytick.stores.base import Claim, Commit, NodeScope
from everytick.stores.postgres.connections import patiently
from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import began, ended, job, plan_once, put
from tests.stores.clock import ManualClock

WAITS = "select exists (select from pg_locks where not granted)"
WAITS_AT_GATE = "select exists (select from pg_locks where not granted and locktype = 'advisory')"
WAITS_FOR_ROW = "select exists (select from pg_locks where not granted and locktype <> 'advisory')"


async def claimed(store: PostgresStore, clock: ManualClock) -> list[Claim]:
    """Return two claims."""
    await put(store, job(recovery="execute_all", overlap="allow"))
    clock.move(hours=2)
    await plan_once(store)
    return await store.claim(NodeScope("node-1"), 2)


async def until(db: Any, asked: str) -> None:
    while not await db.fetchval(asked):
        pass


GATE = """
create function wait_at_gate() returns trigger language plpgsql as
$$ begin perform pg_advisory_xact_lock(1); return new; end $$;
create trigger gate before update on occurrence for each row when (old.handle = {}) execute function wait_at_gate();
"""
"""A statement that updates this row waits for an advisory lock while it holds the row."""


async def test_steps_that_meet_a_deadlock_are_written_all_the_same(
    postgres: Server, store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """Another program locks our rows the other way round; our statement is the one that the server ends.

    The server looks for a deadlock once, soon after a statement begins to wait. So the other program has to wait
    already when our statement comes to the second row: the gate keeps it at the first one until then.
    """
    claims = await claimed(store, clock)
    hasty = PostgresStore(postgres.address, schema=store.schema, clock=clock, settings={"deadlock_timeout": "10ms"})
    await hasty.open()
    await db.execute("set deadlock_timeout = '1h'")
    before = await db.fetchval("select deadlocks from pg_stat_database where datname = current_database()")
    first, last = sorted(claim.handle for claim in claims)
    await db.execute(GATE.format(first))
    async with store._connections.connection() as watcher:
        await watcher.execute("select pg_advisory_lock(1)")
        async with db.transaction():
            await db.execute("select from occurrence where handle = $1 for update", last)
            steps = [(claim, ended(claim, began(claim, clock.time), clock.time)) for claim in claims]
            committing = asyncio.create_task(hasty.commit_steps(steps))
            await until(watcher, WAITS_AT_GATE)
            locking = asyncio.create_task(db.execute("select from occurrence where handle = $1 for update", first))
            await until(watcher, WAITS_FOR_ROW)
            await watcher.execute("select pg_advisory_unlock(1)")
            await locking
    assert await committing == [Commit.COMMITTED] * 2
    told = "select deadlocks > $1 from pg_stat_database where datname = current_database()"
    while not await db.fetchval(told, before):
        pass
    await hasty.close()


async def test_a_server_that_isolates_more_strictly_gives_the_same_answers(
    postgres: Server, store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """There a zombie's step, waiting behind a take-over, fails to serialize instead of finding its fence gone."""
    claim = (await claimed(store, clock))[0]
    strict = PostgresStore(
        postgres.address,
        schema=store.schema,
        clock=clock,
        settings={"default_transaction_isolation": "repeatable read"},
    )
    await strict.open()
    async with db.transaction():
        await db.execute("update occurrence set fence = fence + 1, owner = 'other' where handle = $1", claim.handle)
        late = ended(claim, began(claim, clock.time), clock.time)
        committing = asyncio.create_task(strict.commit_steps([(claim, late)]))
        async with store._connections.connection() as watcher:
            await until(watcher, WAITS)
    assert await committing == [Commit.STALE]
    await strict.close()


async def test_what_stays_in_the_way_is_unavailable_in_the_end() -> None:
    calls = 0

    @patiently
    async def verb() -> None:
        nonlocal calls
        calls += 1
        raise Contended("a store", "deadlock detected")

    with pytest.raises(StoreUnavailable, match="deadlock detected"):
        await verb()
    assert calls == 4
