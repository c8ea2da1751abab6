"""A SQLite file as one of the two stores of a move."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from everytick.stores.moving.base import ROWS_AT_ONCE, Changes, Contents, changes_of
from everytick.stores.moving.marks import ARRIVED, CHANGES, FOLLOWING, SOURCE, TABLE, TARGET, MoveMark, MoveMarks
from everytick.stores.moving.tables import BORN_WITH_ROWS, BY_NAME, TABLES, Key, MovedTable, Row
from everytick.stores.sqlite.failures import saying_which_file
from everytick.stores.sqlite.opening import MIGRATIONS, Driver, applied, connect, marks_in, patiently, prepare
from everytick.stores.sqlite.thread_calls import in_own_thread

T = TypeVar("T")

_EVENTS = ("insert", "update", "delete")

_MARKS = f"""create table if not exists {TABLE} (
  role text primary key check (role in ('{SOURCE}', '{TARGET}')),
  move_id text not null, state text not null, other text not null, changed_at text not null
) strict, without rowid"""
_NOTES = f"""create table if not exists {CHANGES} (
  change_key integer primary key autoincrement, name text not null, key text not null
) strict"""
_SET_MARK = f"insert or replace into {TABLE} values (?, ?, ?, ?, datetime('now'))"


class SqliteSide:
    """A file. Its statements run in threads, one after the other, on one connection."""

    def __init__(self, path: Path, driver: Driver) -> None:
        self._path, self._driver = path, driver
        self._connection: sqlite3.Connection | None = None

    @property
    def where(self) -> str:
        """The address of the file."""
        return f"sqlite:///{self._path.absolute()}"

    async def schema(self) -> tuple[int, int]:
        """Return the number of the newest migration that the file has, and that this everytick knows."""
        return await self._alone(lambda: applied(self._path, self._driver)), MIGRATIONS[-1].number

    async def make(self) -> None:
        """Make the file and its tables."""
        await self._alone(partial(prepare, self._path, driver=self._driver))

    async def identity(self) -> str:
        """Return which file this is, whatever its path."""
        stat = await asyncio.to_thread(self._path.stat)
        return f"file {stat.st_dev} {stat.st_ino}"

    async def now(self) -> datetime:
        """Return the host's time."""
        return datetime.now(UTC)

    async def marks(self) -> MoveMarks:
        """Return the marks of the file."""
        return await self._do(marks_in)

    async def filled_tables(self) -> Collection[str]:
        """Return the tables that hold more than in a new store."""
        counts = (await self._do(_contents)).counts
        return [name for name, count in counts.items() if count > (name in BORN_WITH_ROWS)]

    async def set_mark(self, role: str, mark: MoveMark) -> None:
        """Write the mark of this role."""
        async with self._transaction("immediate") as session:
            await session.do(lambda db: _set_mark(db, role, mark))

    async def note_changes(self, mark: MoveMark) -> None:
        """Note the key of every row that changes from now on, and write the mark."""
        async with self._transaction("immediate") as session:
            await session.do(_note_changes)
            await session.do(lambda db: _set_mark(db, SOURCE, mark))

    async def forget_changes(self, notes: Sequence[int]) -> None:
        """Delete these notes."""
        if notes:
            async with self._transaction("immediate") as session:
                # Notes are numbered in the order of commits: one process writes at a time.
                await session.do(lambda db: db.execute(f"delete from {CHANGES} where change_key <= ?", (max(notes),)))

    async def stop_noting(self) -> None:
        """Note no more changes, and delete the notes and the mark."""
        async with self._transaction("immediate") as session:
            await session.do(_drop_notes)
            await session.do(lambda db: db.execute(f"delete from {TABLE} where role = ?", (SOURCE,)))

    @asynccontextmanager
    async def reading(self) -> AsyncIterator["SqliteSession"]:
        """Read the file as of now, beside those who write to it."""
        async with self._transaction("deferred") as session:
            yield session

    @asynccontextmanager
    async def holding(self) -> AsyncIterator["SqliteSession"]:
        """Hold every writer."""
        async with self._transaction("immediate") as session:
            yield session

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["SqliteSession"]:
        """Write to the file without its triggers and with foreign keys that are checked at the end."""
        async with self._transaction("immediate") as session:
            await session.do(lambda db: db.execute("pragma defer_foreign_keys = on"))
            triggers: Sequence[Row] = await session.do(_drop_triggers)
            yield session
            await session.do(lambda db: [db.execute(sql) for (sql,) in triggers])

    async def arrive(self, move_id: str) -> None:
        """Let the file be used, if this move fills it."""
        async with self._transaction("immediate") as session:
            await session.do(lambda db: _arrive(db, move_id))

    async def close(self) -> None:
        """Close the connection."""
        db, self._connection = self._connection, None
        if db is not None:
            await asyncio.to_thread(db.close)

    async def _alone(self, work: Callable[[], T]) -> T:
        return await in_own_thread(work, f"everytick moving {self._path.name}")

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._work, work)

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with saying_which_file(self._path):
            if self._connection is None:
                # Full: a mark that was told must not be lost when the power fails.
                self._connection = connect(self._path, "full", driver=self._driver)
            return work(self._connection)

    @asynccontextmanager
    async def _transaction(self, kind: str) -> AsyncIterator["SqliteSession"]:
        await self._do(lambda db: patiently(lambda: db.execute(f"begin {kind}")))
        try:
            yield SqliteSession(self._do)
        except BaseException:
            await asyncio.shield(self._do(_roll_back))
            raise
        await self._do(lambda db: patiently(lambda: db.execute("commit")))


class SqliteSession:
    """The file within one transaction."""

    def __init__(self, do: Callable[..., Any]) -> None:
        self.do = do

    # ---------------------------------------------------------------------------------------------------------- read

    async def rows(self, table: MovedTable) -> AsyncIterator[Sequence[Row]]:
        """Give all rows of a table, some at a time."""
        place = await self.do(lambda db: _place(db, table))
        columns, after = await self.do(lambda db: _columns(db, table.name)), None
        while True:
            page: Sequence[Row] = await self.do(partial(_page, table=table, columns=columns, place=place, after=after))
            if page:
                yield [row[: len(columns)] for row in page]
            if len(page) < ROWS_AT_ONCE:
                return
            after = page[-1][len(columns) :]

    async def rows_of(self, table: MovedTable, keys: Sequence[Key]) -> Sequence[Row]:
        """Return the rows with these keys that exist."""

        def find(db: sqlite3.Connection) -> list[Row]:
            columns, where = ", ".join(_columns(db, table.name)), " and ".join(f"{name} = ?" for name in table.key)
            sql = f"select {columns} from {table.name} where {where}"
            return [row for key in keys for row in db.execute(sql, key).fetchall()]

        return list(await self.do(find))

    async def changes(self) -> Changes:
        """Return what has changed since changes are noted."""
        notes: list[Row] = await self.do(
            lambda db: db.execute(f"select change_key, name, key from {CHANGES}").fetchall()
        )
        return changes_of(notes)

    async def counters(self) -> Mapping[str, int]:
        """Return the last number that each table has given to a row."""
        found: list[Row] = await self.do(lambda db: db.execute("select name, seq from sqlite_sequence").fetchall())
        return {name: number for name, number in found if name in BY_NAME}

    async def contents(self) -> Contents:
        """Return what is compared."""
        found: Contents = await self.do(_contents)
        return found

    # ---------------------------------------------------------------------------------------------------------- shut

    async def shut(self, mark: MoveMark, words: str) -> None:
        """Refuse every write with these words from the commit on."""
        await self.do(lambda db: _shut(db, mark, words))

    # ---------------------------------------------------------------------------------------------------------- fill

    async def empty(self) -> None:
        """Delete every row that is carried."""
        await self.do(lambda db: [db.execute(f"delete from {table.name}") for table in reversed(TABLES)])

    async def delete(self, table: MovedTable, keys: Sequence[Key]) -> None:
        """Delete the rows with these keys."""
        where = " and ".join(f"{name} = ?" for name in table.key)
        await self.do(lambda db: db.executemany(f"delete from {table.name} where {where}", keys))

    async def insert(self, table: MovedTable, rows: Sequence[Row]) -> None:
        """Insert these rows."""

        def write(db: sqlite3.Connection) -> None:
            columns = _columns(db, table.name)
            places = ", ".join("?" * len(columns))
            db.executemany(f"insert into {table.name} ({', '.join(columns)}) values ({places})", rows)

        await self.do(write)

    async def finish(self, counters: Mapping[str, int], mark: MoveMark) -> None:
        """Set the counters, and write the mark."""
        await self.do(lambda db: _set_counters(db, counters.items()))
        await self.do(lambda db: _set_mark(db, TARGET, mark))


# ------------------------------------------------------------------------------------- on the connection, in a thread


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Return the columns of a table, without generated ones."""
    return [row[1] for row in db.execute(f"pragma table_xinfo({table})").fetchall() if not row[6]]


def _place(db: sqlite3.Connection, table: MovedTable) -> tuple[str, ...]:
    """Return the columns by which the rows of a table are stored: the number of the row, or the key of the table."""
    [is_without_rowid] = db.execute("select wr from pragma_table_list where name = ?", (table.name,)).fetchone()
    return table.key if is_without_rowid else ("rowid",)


def _page(
    db: sqlite3.Connection, *, table: MovedTable, columns: Sequence[str], place: Sequence[str], after: Row | None
) -> list[Row]:
    by = ", ".join(place)
    where = "" if after is None else f" where ({by}) > ({', '.join('?' * len(place))})"
    sql = f"select {', '.join(columns)}, {by} from {table.name}{where} order by {by} limit {ROWS_AT_ONCE}"
    return db.execute(sql, after or ()).fetchall()


def _contents(db: sqlite3.Connection) -> Contents:
    counts = {table.name: db.execute(f"select count(*) from {table.name}").fetchone()[0] for table in TABLES}
    jobs = "select id, version, revision, watermark from job_state order by job_key"
    claims = "select coalesce(max(handle), 0), coalesce(sum(fence), 0), coalesce(sum(status), 0) from occurrence"
    return Contents(counts, db.execute(jobs).fetchall(), tuple(db.execute(claims).fetchone()))


def _set_mark(db: sqlite3.Connection, role: str, mark: MoveMark) -> None:
    db.execute(_MARKS)
    db.execute(_SET_MARK, (role, mark.move_id, mark.state, mark.other))


def _note_changes(db: sqlite3.Connection) -> None:
    db.execute(_NOTES)
    for table in TABLES:
        for event in _EVENTS:
            sides = {"insert": ("new",), "update": ("old", "new"), "delete": ("old",)}[event]
            keys = (f"json_array({', '.join(f'{side}.{name}' for name in table.key)})" for side in sides)
            noted = " union ".join(f"select '{table.name}', {key}" for key in keys)
            db.execute(
                f"create trigger if not exists move_{event}_{table.name} after {event} on {table.name} begin"
                f" insert into {CHANGES} (name, key) {noted}; end"
            )


def _drop_notes(db: sqlite3.Connection) -> None:
    for table in TABLES:
        for event in _EVENTS:
            db.execute(f"drop trigger if exists move_{event}_{table.name}")
    db.execute(f"drop table if exists {CHANGES}")


def _shut(db: sqlite3.Connection, mark: MoveMark, words: str) -> None:
    _drop_notes(db)
    said = words.replace("'", "''")
    for table in TABLES:
        for event in _EVENTS:
            db.execute(
                f"create trigger moved_{event}_{table.name} before {event} on {table.name} begin"
                f" select raise(abort, '{said}'); end"
            )
    _set_mark(db, SOURCE, mark)


def _drop_triggers(db: sqlite3.Connection) -> list[Row]:
    """Drop the triggers of all tables that are carried, and return how they are made."""
    sql = "select name, tbl_name, sql from sqlite_schema where type = 'trigger' order by rowid"
    found = [row for row in db.execute(sql).fetchall() if row[1] in BY_NAME]
    for name, _, _ in found:
        db.execute(f"drop trigger {name}")
    return [(row[2],) for row in found]


def _set_counters(db: sqlite3.Connection, counters: Iterable[tuple[str, int]]) -> None:
    for name, number in counters:
        changed = db.execute("update sqlite_sequence set seq = max(seq, ?) where name = ?", (number, name)).rowcount
        if not changed:
            db.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (name, number))


def _arrive(db: sqlite3.Connection, move_id: str) -> None:
    sql = f"update {TABLE} set state = '{ARRIVED}' where role = '{TARGET}' and move_id = ? and state = '{FOLLOWING}'"
    if db.execute(sql, (move_id,)).rowcount:
        # PostgreSQL notes handles whose rows may still come. That store is shut now, so none of them comes.
        db.execute("delete from unfolded where job_key = 0 and handle not in (select handle from occurrence)")
        late = "from unfolded u join occurrence o on o.handle = u.handle where u.job_key = 0"
        db.execute(f"insert or ignore into unfolded select o.job_key, o.handle, o.scheduled_for {late}")
        db.execute("delete from unfolded where job_key = 0")


def _roll_back(db: sqlite3.Connection) -> None:
    if db.in_transaction:
        db.execute("rollback")
