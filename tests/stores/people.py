"""People with plain SQL: the same questions to SQLite's file and to PostgreSQL's schema, without everytick."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg

from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sqlite.store import SqliteStore
from tests.servers.launch import Server
from tests.stores.postgres.kit import schema

SqlStore: TypeAlias = SqliteStore | PostgresStore


class Person:
    """A person with a client of the database's own."""

    def __init__(self, sqlite: Path | None = None, postgres: tuple[str, str] | None = None) -> None:
        self._sqlite, self._postgres = sqlite, postgres

    async def ask(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows by column; what SQLite says as text or number is read as what it stands for."""
        if self._sqlite is not None:
            with closing(sqlite3.connect(self._sqlite)) as file:
                file.row_factory = sqlite3.Row
                found = [dict(row) for row in file.execute(sql).fetchall()]
                file.commit()
            return found
        assert self._postgres is not None
        address, name = self._postgres
        db = await asyncpg.connect(address, server_settings={"search_path": name})
        try:
            return [dict(row) for row in await db.fetch(sql)]
        finally:
            await db.close()

    async def one(self, sql: str) -> Any:
        """Return the only value of the only row."""
        [row] = await self.ask(sql)
        [value] = row.values()
        return value

    async def time(self, sql: str) -> datetime | None:
        """Return the only value, which is a time with its zone on both."""
        found = await self.one(sql)
        read = datetime.fromisoformat(found) if isinstance(found, str) else found
        assert read is None or read.tzinfo is not None, f"{found} has no zone"
        return None if read is None else read.astimezone(UTC)

    async def columns(self, view: str) -> list[str]:
        """Return the names of a view's columns, in order."""
        if self._sqlite is not None:
            return [row["name"] for row in await self.ask(f"pragma table_info({view})")]
        return [
            row["attname"]
            for row in await self.ask(
                f"select attname from pg_attribute where attrelid = '{view}'::regclass and attnum > 0 order by attnum"
            )
        ]


def read(value: Any) -> Any:
    """Return what a column with JSON says."""
    return json.loads(value)


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator[tuple[SqliteStore, Person]]:
    """Give a store on the host's clock, and a person beside it."""
    store = SqliteStore(folder / "people.db")
    await store.open()
    try:
        yield store, Person(sqlite=folder / "people.db")
    finally:
        await store.close()


@asynccontextmanager
async def on_postgres(server: Server) -> AsyncIterator[tuple[PostgresStore, Person]]:
    """Give a store on the server's clock, and a person beside it."""
    async with schema(server) as name:
        store = PostgresStore(server.address, schema=name)
        await store.open()
        try:
            yield store, Person(postgres=(server.address, name))
        finally:
            await store.close()
