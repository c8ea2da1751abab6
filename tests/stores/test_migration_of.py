"""migration_of: which tables a store has, without opening it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from everytick.errors import SchemaMismatch
from everytick.stores.addresses import migration_of
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.redis.log import FORMAT
from everytick.stores.sqlite.store import SqliteStore
from tests.servers.launch import Server
from tests.stores.acting import AnyStore


async def test_an_open_store_has_the_newest(store: AnyStore) -> None:
    newest = FORMAT if store.address.kind == "redis" else 1
    assert await migration_of(store.address) == (0 if store.address.is_in_memory else newest)


async def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "new.db")

    assert await migration_of(store.address) == 0
    assert os.listdir(tmp_path) == []
    (tmp_path / "new.db").touch()
    assert await migration_of(store.address) == 0
    assert (tmp_path / "new.db").stat().st_size == 0


async def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("create table theirs (x)")

    with pytest.raises(SchemaMismatch, match="tables of another program"):
        await migration_of(SqliteStore(tmp_path / "other.db").address)


async def test_a_schema_that_is_not_there_is_not_made(postgres: Server) -> None:
    store = PostgresStore(postgres.address, schema="never_made")

    assert await migration_of(store.address) == 0
    assert await migration_of(store.address) == 0
