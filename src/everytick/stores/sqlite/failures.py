"""What an error of SQLite means: the file is away, it is broken, or what was asked is wrong.

A result code says which. Only for SQLITE_ERROR the text has to be read: a table that is
missing has the same code as a value that no function takes.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everytick.errors import StoreBroken, StoreUnavailable
from everytick.stores.moving.marks import refused

_AWAY = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_INTERRUPT,
    }
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_INTERNAL})
_MISSING = re.compile(r"no such (table|column|index|function)|has no column named|no query solution")


def named(error: Exception, path: Path) -> StoreUnavailable | None:
    """Return the error as one about the store. Return None if the statement is wrong."""
    if isinstance(error, OSError):
        return StoreUnavailable(str(path), str(error))
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _AWAY:
        return StoreUnavailable(str(path), str(error))
    if code == sqlite3.SQLITE_CONSTRAINT:
        return refused(str(path), str(error))
    if code in _DAMAGED or code == sqlite3.SQLITE_SCHEMA:
        return StoreBroken(str(path), str(error))
    if code == sqlite3.SQLITE_ERROR and _MISSING.search(str(error)):
        return StoreBroken(str(path), str(error))
    return None


def ends_transaction(error: sqlite3.Error) -> bool:
    """Say whether nothing more can be done in the transaction that met this error."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _AWAY or code in _DAMAGED


@contextmanager
def saying_which_file(path: Path) -> Iterator[None]:
    """Name errors of the file or the disk. Errors of the statement pass unchanged."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        found = named(error, path)
        if found is None:
            raise
        raise found from error
