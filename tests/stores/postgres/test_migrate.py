"""Migrations: forward only, one node does them, a death in the middle leaves nothing behind."""

import asyncio
from dataclasses import replace

import asyncpg
import pytest

from everytick.errors import SchemaMismatch, StoreUnavailable
from everytick.stores.postgres.connections import Connections, read_address
from everytick.stores.postgres.migrate import migrate
from everytick.stores.postgres.queries import migrations
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.queries import Migration
from tests.servers.launch import Server
from tests.stores.postgres.kit import schema


def connections(server: Server, name: str) -> Connections:
    return Connections(read_address(server.address, name))


async def applied(server: Server, name: str) -> list[int]:
    db = await asyncpg.connect(server.address)
    try:
        if not await db.fetchval("select to_regclass($1) is not null", f"{name}.migration"):
            return []
        return [row["number"] for row in await db.fetch(f"select number from {name}.migration order by number")]
    finally:
        await db.close()


async def test_of_nodes_that_start_together_one_migrates(postgres: Server) -> None:
    async with schema(postgres) as name:
        await asyncio.gather(*(migrate(connections(postgres, name)) for _ in range(8)))
        assert await applied(postgres, name) == [each.number for each in migrations()]


async def test_a_node_that_dies_in_a_migration_leaves_nothing_behind(postgres: Server) -> None:
    """The session is killed by the server in the middle, after tables were made."""
    deadly = Migration(len(migrations()) + 1, "deadly", "select pg_terminate_backend(pg_backend_pid())")
    async with schema(postgres) as name:
        with pytest.raises(StoreUnavailable):
            await migrate(connections(postgres, name), (*migrations(), deadly))
        assert await applied(postgres, name) == []

        await migrate(connections(postgres, name))
        assert await applied(postgres, name) == [each.number for each in migrations()]


async def test_newer_tables_than_the_code_are_refused(postgres: Server) -> None:
    newer = Migration(len(migrations()) + 1, "sundials", "create table everytick.sundial (angle int)")
    async with schema(postgres) as name:
        await migrate(connections(postgres, name), (*migrations(), newer))
        with pytest.raises(SchemaMismatch, match=r"\(sundials\) and this everytick knows \d+: upgrade it"):
            await PostgresStore(postgres.address, schema=name).open()


async def test_a_migration_whose_text_changed_is_refused(postgres: Server) -> None:
    async with schema(postgres) as name:
        await migrate(connections(postgres, name))
        changed = replace(migrations()[0], text=migrations()[0].text + "\n-- a word more")
        with pytest.raises(SchemaMismatch, match="was applied with another text"):
            await migrate(connections(postgres, name), (changed, *migrations()[1:]))


async def test_two_schemas_in_one_database_know_nothing_of_each_other(postgres: Server) -> None:
    async with schema(postgres) as one, schema(postgres) as two:
        await migrate(connections(postgres, one))
        assert await applied(postgres, two) == []
        await migrate(connections(postgres, two))
        assert await applied(postgres, two) == await applied(postgres, one)
