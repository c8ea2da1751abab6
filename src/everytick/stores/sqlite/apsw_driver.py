"""Opens the file by apsw, which brings a newer SQLite than Python's, with the interface of the standard driver.

Errors are those of `sqlite3`, so that no other module needs to know which of the two it is. Rows
are read at once: an error then has one place to come from.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import apsw

_KINDS: dict[int, type[sqlite3.Error]] = {
    sqlite3.SQLITE_CONSTRAINT: sqlite3.IntegrityError,
    sqlite3.SQLITE_MISMATCH: sqlite3.IntegrityError,
    sqlite3.SQLITE_INTERNAL: sqlite3.InternalError,
    sqlite3.SQLITE_MISUSE: sqlite3.InterfaceError,
    sqlite3.SQLITE_RANGE: sqlite3.InterfaceError,
    sqlite3.SQLITE_TOOBIG: sqlite3.DataError,
    sqlite3.SQLITE_AUTH: sqlite3.DatabaseError,
    sqlite3.SQLITE_CORRUPT: sqlite3.DatabaseError,
    sqlite3.SQLITE_NOTADB: sqlite3.DatabaseError,
}


def translated(error: apsw.Error) -> sqlite3.Error:
    """Return the error that the standard driver would have raised."""
    code: int = getattr(error, "extendedresult", 0)
    if not code:
        return sqlite3.ProgrammingError(str(error))
    found = _KINDS.get(code & 0xFF, sqlite3.OperationalError)(str(error))
    found.sqlite_errorcode = code
    return found


class Rows:
    """The rows of a statement, and how many rows it changed."""

    __slots__ = ("_left", "description", "rowcount")

    def __init__(self, rows: Iterable[tuple[Any, ...]], rowcount: int, description: Sequence[Any] = ()) -> None:
        self._left = iter(rows)
        self.rowcount = rowcount
        self.description = description

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._left

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows that are left."""
        return list(self._left)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        return next(self._left, None)

    def close(self) -> None:
        """Return: all rows were read already."""


class ApswConnection(apsw.Connection):
    """An apsw connection with the results and errors of the standard driver."""

    def execute(self, statements: str, bindings: Any = (), **_: Any) -> Any:
        """Carry out one statement and read all that it answers.

        Columns are named for statements whose parameters come by name: those of the hot verbs are read by place.
        """
        before = self.total_changes()
        description: Sequence[Any] = ()
        try:
            cursor = super().execute(statements, bindings)
            if type(bindings) is dict:
                # apsw has no description after the last row, and none is needed without rows.
                with suppress(apsw.ExecutionCompleteError):
                    description = cursor.getdescription()
            rows = cursor.fetchall()
        except apsw.Error as error:
            raise translated(error) from error
        return Rows(rows, self.total_changes() - before, description)

    def executemany(self, statements: str, sequenceofbindings: Any, **_: Any) -> Any:
        """Carry out one statement for each of the rows. `rowcount` is how many rows it changed in all."""
        before = self.total_changes()
        try:
            super().executemany(statements, cast("Sequence[Any]", sequenceofbindings)).fetchall()
        except apsw.Error as error:
            raise translated(error) from error
        return Rows((), self.total_changes() - before)


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection to an existing file. It does not wait for locks: the caller retries."""
    try:
        connection = ApswConnection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=256)
    except apsw.Error as error:
        raise translated(error) from error
    return cast("sqlite3.Connection", connection)


def connect_to_look(address: str, lock_seconds: float) -> sqlite3.Connection:
    """Return a read-only connection. It waits up to this many seconds for locks."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        connection = ApswConnection(address, flags=flags)
        connection.set_busy_timeout(int(lock_seconds * 1000))
    except apsw.Error as error:
        raise translated(error) from error
    return cast("sqlite3.Connection", connection)


def library_version() -> str:
    """Return which SQLite apsw brings along."""
    return apsw.sqlite_lib_version()
