"""The stores that tests are given: a schema is used again, and is as it was when its tables were made."""

import asyncpg

from tests.servers.launch import Server
from tests.stores.acting import job, plan_once, put, run_one
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import opened


async def contents(server: Server, schema: str) -> dict[str, object]:
    """Return the rows of every table but the clock's, and where the sequences stand."""
    db = await asyncpg.connect(server.address)
    tables = await db.fetch("select tablename from pg_tables where schemaname = $1 and tablename <> 'clock'", schema)
    found: dict[str, object] = {row[0]: await db.fetch(f'select * from "{schema}"."{row[0]}"') for row in tables}
    sequences = "select sequencename, last_value from pg_sequences where schemaname = $1"
    found |= {row[0]: row[1] for row in await db.fetch(sequences, schema)}
    await db.close()
    return found


async def test_a_schema_that_is_used_again_is_as_new(postgres: Server, clock: ManualClock) -> None:
    async with opened(postgres, clock) as store:
        schema, new = store.schema, await contents(postgres, store.schema)
        await put(store, job())
        clock.move(hours=1)
        await plan_once(store)
        await run_one(store)
        assert await contents(postgres, schema) != new

    async with opened(postgres, ManualClock()) as again:
        assert again.schema == schema
        assert await contents(postgres, schema) == new
        assert await again.now() == ManualClock().time


async def test_a_schema_that_a_test_has_changed_is_not_used_again(postgres: Server, clock: ManualClock) -> None:
    async with opened(postgres, clock) as store:
        schema = store.schema
        db = await asyncpg.connect(postgres.address)
        await db.execute(f"alter table {schema}.job add column color text")
        await db.close()

    async with opened(postgres, clock) as again:
        assert again.schema != schema
