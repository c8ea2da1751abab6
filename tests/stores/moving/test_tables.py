"""What a move carries is compared with the migrations of both stores: a new table or column cannot be forgotten."""

import sqlite3
from pathlib import Path

import asyncpg

from everytick.stores.moving.postgres_side import LOCKED, PostgresSide
from everytick.stores.moving.sqlite_columns import sqlite_columns
from everytick.stores.moving.tables import (
    BY_NAME,
    ONLY_POSTGRES,
    ONLY_POSTGRES_COLUMNS,
    ONLY_SQLITE_COLUMNS,
    SEEDED,
    TABLES,
)
from everytick.stores.postgres.connections import read_address
from everytick.stores.postgres.queries import migrations
from everytick.stores.queries import tables_of
from everytick.stores.sqlite.opening import MIGRATIONS, expanded, statements
from tests.servers.launch import Server
from tests.stores.moving.rows import fill
from tests.stores.postgres.kit import schema

NOWHERE = frozenset({"store"})
"""What no verb writes to."""


def test_every_table_of_sqlite_is_carried() -> None:
    assert set(tables_of(MIGRATIONS)) == {*BY_NAME, *SEEDED}


def test_every_table_of_postgres_is_carried_or_follows_from_one_that_is() -> None:
    found = {name.removeprefix("everytick.") for name in tables_of(migrations())}
    assert found == {*BY_NAME, *SEEDED, *ONLY_POSTGRES}
    assert set(LOCKED) == found - set(SEEDED) - NOWHERE, "a write to any of them is held and refused"


async def test_the_columns_of_both_stores_are_the_same_but_for_those_that_are_named(postgres: Server) -> None:
    question = """select a.attname from pg_attribute a where a.attrelid = to_regclass($1) and a.attnum > 0
                     and not a.attisdropped and a.attgenerated = ''"""
    async with schema(postgres) as name:
        await PostgresSide(read_address(postgres.address, name)).make()
        db = await asyncpg.connect(postgres.address)
        for table in TABLES:
            theirs = {row[0] for row in await db.fetch(question, f"{name}.{table.name}")}
            ours = set(sqlite_columns(table.name))
            assert ours - theirs == ONLY_SQLITE_COLUMNS.get(table.name, set()), table.name
            assert theirs - ours == ONLY_POSTGRES_COLUMNS.get(table.name, set()), table.name
        await db.close()


def test_the_key_of_a_table_is_unique_and_indexed(tmp_path: Path) -> None:
    fill(tmp_path / "store.db")
    with sqlite3.connect(tmp_path / "store.db") as it:
        for table in TABLES:
            columns = ", ".join(table.key)
            [many] = it.execute(f"select count(*) from (select 1 from {table.name} group by {columns})").fetchone()
            assert many == it.execute(f"select count(*) from {table.name}").fetchone()[0]
            plan = it.execute(
                f"explain query plan select 1 from {table.name} where "
                + " and ".join(f"{column} = 1" for column in table.key)
            ).fetchall()
            assert "SEARCH" in plan[0][3], f"{table.name} is read whole to find one row"
    it.close()


def test_rows_are_inserted_after_those_to_which_they_refer() -> None:
    names = [each.name for each in TABLES]
    with sqlite3.connect(":memory:") as it:
        for statement in statements(expanded(MIGRATIONS[0].text)):
            it.execute(statement)
        for place, name in enumerate(names):
            for row in it.execute(f"pragma foreign_key_list({name})"):
                assert row[2] in SEEDED or names.index(row[2]) < place
    it.close()
