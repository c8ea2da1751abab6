"""A schema of PostgreSQL as one of the two stores of a move. Rows are read and written as SQLite holds them."""

import random
from asyncio import sleep
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from everytick.errors import Contended
from everytick.stores.moving.base import ROWS_AT_ONCE, Changes, Contents, changes_of
from everytick.stores.moving.marks import (
    ARRIVED,
    CHANGES,
    FOLLOWING,
    SOURCE,
    SQLSTATE,
    TABLE,
    TARGET,
    MoveMark,
    MoveMarks,
)
from everytick.stores.moving.postgres_statements import (
    TableColumns,
    all_rows,
    columns_of,
    deletes,
    derives,
    inserts,
    key_out,
    rows_by_key,
)
from everytick.stores.moving.tables import BORN_WITH_ROWS, BY_NAME, TABLES, Key, MovedTable, Row
from everytick.stores.postgres.connections import Address, Connection, Connections, connected
from everytick.stores.postgres.migrate import applied, marks_in, migrate
from everytick.stores.postgres.queries import in_schema, migrations

_EVENTS = {"insert": ("new",), "update": ("old", "new"), "delete": ("old",)}

_WAITS_MS = (100, 200, 400, 800, 1_600, 3_000)
"""How long the mover waits for its locks, try by try. It begins with a short wait: a node's write waits behind it."""

_MARKS = f"""create table if not exists everytick.{TABLE} (
    role text primary key check (role in ('{SOURCE}', '{TARGET}')),
    move_id text not null, state text not null, other text not null, changed_at timestamptz not null)"""
_NOTES = f"""create table if not exists everytick.{CHANGES} (
    change_key bigint generated always as identity primary key, name text not null, key text not null)"""
_SET_MARK = f"""insert into everytick.{TABLE} values ($1, $2, $3, $4, clock_timestamp())
    on conflict (role) do update set move_id = excluded.move_id, state = excluded.state, other = excluded.other,
                                     changed_at = excluded.changed_at"""

_FOREIGN_KEYS = """select c.conname, r.relname from pg_constraint c join pg_class r on r.oid = c.conrelid
     join pg_namespace n on n.oid = r.relnamespace where n.nspname = $1 and c.contype = 'f' order by 1"""

_IDENTITIES = """select r.relname, pg_get_serial_sequence(format('%I.%I', n.nspname, r.relname), a.attname)
      from pg_attribute a join pg_class r on r.oid = a.attrelid join pg_namespace n on n.oid = r.relnamespace
     where n.nspname = $1 and r.relkind = 'r' and a.attidentity <> '' and not a.attisdropped"""

_TRIGGER = "select 1 from pg_trigger where tgrelid = to_regclass($1) and tgname = $2"

LOCKED = (*(table.name for table in TABLES), "job_tally", "wake", "active", "claimable")
"""Every table that a verb writes to."""

NOTED = (
    *((table.name, table) for table in TABLES),
    ("job_tally", BY_NAME["job_state"]),
    ("wake", BY_NAME["job_state"]),
)
"""The tables whose changes are noted, each with the table that is carried for it."""

_LOCK_REFUSED = ("55P03", "40P01")
"""What the server answers if a lock is not had in time, or only by a deadlock."""


class PostgresSide:
    """A schema, through one connection."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connections = Connections(address)
        self._db: Connection | None = None
        self._columns: TableColumns | None = None

    @property
    def where(self) -> str:
        """The address, without user and password."""
        return f"{self._address}, schema {self._address.schema}"

    async def schema(self) -> tuple[int, int]:
        """Return the number of the newest migration that the schema has, and that this everytick knows."""
        return await applied(self._connections), migrations()[-1].number

    async def make(self) -> None:
        """Make the tables."""
        await migrate(self._connections)

    async def identity(self) -> str:
        """Return which schema of which server this is."""
        found: str = await self._fetchval("select everytick.identity()")
        return found

    async def now(self) -> datetime:
        """Return the server's time."""
        found: datetime = await self._fetchval("select everytick.everytick_now()")
        return found

    async def marks(self) -> MoveMarks:
        """Return the marks of the schema."""
        with self._connections.answering():
            return await marks_in(await self._connected(), self._address.schema)

    async def filled_tables(self) -> Collection[str]:
        """Return the tables that hold more than in a new store."""
        async with self.reading() as reading:
            counts = (await reading.contents()).counts
        return [name for name, count in counts.items() if count > (name in BORN_WITH_ROWS)]

    async def set_mark(self, role: str, mark: MoveMark) -> None:
        """Write the mark of this role."""
        async with self._transaction() as db:
            await db.set_mark(role, mark)

    async def note_changes(self, mark: MoveMark) -> None:
        """Note the key of every row that changes from now on, and write the mark."""
        async with self._locked() as db:
            await db.execute(_NOTES)
            for name, table in NOTED:
                await db.note_changes_of(name, table)
            await db.set_mark(SOURCE, mark)

    async def forget_changes(self, notes: Sequence[int]) -> None:
        """Delete these notes. Others with lower numbers may come: those of transactions that were still open."""
        if notes:
            async with self._transaction() as db:
                await db.execute(f"delete from everytick.{CHANGES} where change_key = any($1::bigint[])", notes)

    async def stop_noting(self) -> None:
        """Note no more changes, and delete the notes and the mark."""
        async with self._transaction() as db:
            await db.drop_notes()
            await db.execute(f"delete from everytick.{TABLE} where role = $1", SOURCE)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator["PostgresSession"]:
        """Read the schema as of now."""
        async with self._transaction(is_reading=True) as db:
            yield db

    @asynccontextmanager
    async def holding(self) -> AsyncIterator["PostgresSession"]:
        """Hold every writer."""
        async with self._locked() as db:
            yield db

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["PostgresSession"]:
        """Write to the schema without its triggers, and with foreign keys that are checked at the end."""
        async with self._transaction() as db:
            await db.relax()
            yield db
            await db.restore()

    async def arrive(self, move_id: str) -> None:
        """Let the schema be used, if this move fills it."""
        where = f"role = '{TARGET}' and move_id = $1 and state = '{FOLLOWING}'"
        async with self._transaction() as db:
            await db.execute(f"update everytick.{TABLE} set state = '{ARRIVED}' where {where}", move_id)

    async def close(self) -> None:
        """Close the connection."""
        db, self._db = self._db, None
        if db is not None:
            await db.close()

    # ------------------------------------------------------------------------------------------------------ the session

    async def _connected(self) -> Connection:
        if self._db is None or self._db.is_closed():
            # With the server's own settings: whole tables are read.
            self._db = await connected(self._address)
        return self._db

    async def _fetchval(self, sql: str) -> Any:
        with self._connections.answering():
            return await (await self._connected()).fetchval(in_schema(sql, self._address.schema))

    @asynccontextmanager
    async def _transaction(self, *, is_reading: bool = False) -> AsyncIterator["PostgresSession"]:
        with self._connections.answering():
            db = await self._connected()
            if self._columns is None:
                self._columns = await columns_of(db, self._address.schema)
            begun = db.transaction(isolation="repeatable_read", readonly=True) if is_reading else db.transaction()
            async with begun:
                yield PostgresSession(db, self._address.schema, self._columns)

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator["PostgresSession"]:
        """Begin once every table is locked for writers. Try again if that fails: writers lock in other orders."""
        tables = ", ".join(f"everytick.{name}" for name in LOCKED)
        for wait in (*_WAITS_MS, None):
            try:
                async with self._transaction() as db:
                    await db.execute(f"set local lock_timeout = {wait or _WAITS_MS[-1]}")
                    try:
                        await db.execute(f"lock table {tables} in share row exclusive mode")
                    except BaseException as error:
                        raise _Unlocked from error
                    yield db
                return
            except _Unlocked as unlocked:
                cause = unlocked.__cause__
                assert cause is not None, "it was raised from one"
                if getattr(cause, "sqlstate", None) not in _LOCK_REFUSED:
                    raise cause from None
                if wait is None:
                    reason = "other sessions hold its tables: try again when fewer statements run long"
                    raise Contended(self.where, reason) from cause
                await sleep(wait / 1_000 * (0.5 + random.random()))  # noqa: S311, a spread is no secret


class _Unlocked(Exception):
    """The tables could not be locked; the cause says why."""


class PostgresSession:
    """The schema within one transaction."""

    def __init__(self, db: Connection, schema: str, columns: TableColumns) -> None:
        self._db, self._schema, self._columns = db, schema, columns

    async def execute(self, sql: str, *arguments: object) -> None:
        """Carry out one statement."""
        await self._db.execute(in_schema(sql, self._schema), *arguments)

    async def _fetch(self, sql: str, *arguments: object) -> list[Row]:
        return [tuple(row) for row in await self._db.fetch(in_schema(sql, self._schema), *arguments)]

    # ---------------------------------------------------------------------------------------------------------- read

    async def rows(self, table: MovedTable) -> AsyncIterator[Sequence[Row]]:
        """Give all rows of a table, some at a time."""
        sql = in_schema(all_rows(table, self._columns), self._schema)
        some: list[Row] = []
        async for row in self._db.cursor(sql, prefetch=ROWS_AT_ONCE):
            some.append(tuple(row))
            if len(some) == ROWS_AT_ONCE:
                yield some
                some = []
        if some:
            yield some

    async def rows_of(self, table: MovedTable, keys: Sequence[Key]) -> Sequence[Row]:
        """Return the rows with these keys that exist."""
        found: list[Row] = []
        for some in _some(keys):
            found += await self._fetch(rows_by_key(table, self._columns), *_columns_in(some))
        return found

    async def changes(self) -> Changes:
        """Return what has changed since changes are noted."""
        return changes_of(await self._fetch(f"select change_key, name, key from everytick.{CHANGES}"))

    async def counters(self) -> Mapping[str, int]:
        """Return the last number that each table has given to a row."""
        carried = {table.name for table in TABLES}
        found = [row for row in await self._fetch(_IDENTITIES, self._schema) if row[0] in carried]
        given = {name: await self._fetch(f"select last_value, is_called from {sequence}") for name, sequence in found}
        return {name: last if is_called else 0 for name, [(last, is_called)] in given.items()}

    async def contents(self) -> Contents:
        """Return what is compared."""
        counts = {
            table.name: (await self._fetch(f"select count(*) from everytick.{table.name}"))[0][0] for table in TABLES
        }
        watermark = "(extract(epoch from watermark) * 1000000)::bigint"
        jobs = f"select id, version, revision, {watermark} from everytick.job_state order by job_key"
        sums = "coalesce(max(handle), 0), coalesce(sum(fence), 0)::bigint, coalesce(sum(status), 0)::bigint"
        [claims] = await self._fetch(f"select {sums} from everytick.occurrence")
        return Contents(counts, await self._fetch(jobs), claims)

    # ---------------------------------------------------------------------------------------------------------- shut

    async def set_mark(self, role: str, mark: MoveMark) -> None:
        """Write the mark of this role."""
        await self.execute(_MARKS)
        await self.execute(_SET_MARK, role, mark.move_id, mark.state, mark.other)

    async def note_changes_of(self, name: str, table: MovedTable) -> None:
        """Note the keys of all rows of this table that change: each statement once, whatever it changes."""
        key = ", ".join(key_out(self._columns[table.name], column, "c.") for column in table.key)
        for event, sides in _EVENTS.items():
            named = f"everytick.move_{event}_{name}"
            noted = " union ".join(
                f"select '{table.name}', json_build_array({key})::text from {side}_rows c" for side in sides
            )
            await self.execute(
                f"create or replace function {named}() returns trigger language plpgsql as $$ begin"
                f" insert into everytick.{CHANGES} (name, key) {noted}; return null; end $$"
            )
            seen = " ".join(f"{side} table as {side}_rows" for side in sides)
            if await self._fetch(_TRIGGER, f"{self._schema}.{name}", f"move_{event}"):
                continue  # of a move that was given up: to drop it would wait for every reader
            await self.execute(
                f"create trigger move_{event} after {event} on everytick.{name} referencing {seen}"
                f" for each statement execute function {named}()"
            )

    async def drop_notes(self) -> None:
        """Note no more changes. The triggers stay and do nothing: a drop would wait for every reader."""
        for name, _ in NOTED:
            for event in _EVENTS:
                await self.execute(
                    f"create or replace function everytick.move_{event}_{name}() returns trigger language plpgsql"
                    " as $$ begin return null; end $$"
                )
        await self.execute(f"delete from everytick.{CHANGES}")

    async def shut(self, mark: MoveMark, words: str) -> None:
        """Refuse every write with these words from the commit on. Nothing comes as far as to be noted then."""
        said = words.replace("'", "''").replace("%", "%%")
        await self.execute(
            "create function everytick.refuse_moved() returns trigger language plpgsql as $moved$ begin"
            f" raise exception '{said}' using errcode = '{SQLSTATE}'; end $moved$"
        )
        for name in LOCKED:
            await self.execute(
                f"create trigger moved before insert or update or delete on everytick.{name}"
                " for each statement execute function everytick.refuse_moved()"
            )
        await self.set_mark(SOURCE, mark)

    # ---------------------------------------------------------------------------------------------------------- fill

    async def relax(self) -> None:
        """Defer foreign keys and turn triggers off until `restore`, so that rows may come in any order."""
        for name, table in await self._fetch(_FOREIGN_KEYS, self._schema):
            await self.execute(f"alter table everytick.{table} alter constraint {name} deferrable")
        await self.execute("set constraints all deferred")
        for moved in TABLES:
            await self.execute(f"alter table everytick.{moved.name} disable trigger user")

    async def restore(self) -> None:
        """Check the foreign keys, and let triggers and constraints hold as before."""
        await self.execute("set constraints all immediate")
        for moved in TABLES:
            await self.execute(f"alter table everytick.{moved.name} enable trigger user")
        for name, table in await self._fetch(_FOREIGN_KEYS, self._schema):
            await self.execute(f"alter table everytick.{table} alter constraint {name} not deferrable")

    async def empty(self) -> None:
        """Delete every row that is carried."""
        for name in reversed(LOCKED):
            await self.execute(f"delete from everytick.{name}")

    async def delete(self, table: MovedTable, keys: Sequence[Key]) -> None:
        """Delete the rows with these keys."""
        for some in _some(keys):
            for sql in deletes(table, self._columns):
                await self.execute(sql, *_columns_in(some))

    async def insert(self, table: MovedTable, rows: Sequence[Row]) -> None:
        """Insert these rows."""
        for some in _some(rows):
            for sql in inserts(table, self._columns):
                await self.execute(sql, *_columns_in(some))

    async def finish(self, counters: Mapping[str, int], mark: MoveMark) -> None:
        """Derive what follows from the rows, set the counters, and write the mark."""
        for sql in derives():
            await self.execute(sql)
        sequences: dict[str, str] = dict(await self._fetch(_IDENTITIES, self._schema))
        for name, number in counters.items():
            # 1 with false is what a sequence says that has given no number.
            await self.execute("select setval($1::text::regclass, $2, $3)", sequences[name], max(number, 1), number > 0)
        await self.set_mark(TARGET, mark)


def _some(items: Sequence[Any]) -> Sequence[Sequence[Any]]:
    return [items[start : start + ROWS_AT_ONCE] for start in range(0, len(items), ROWS_AT_ONCE)]


def _columns_in(rows: Sequence[Row]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
