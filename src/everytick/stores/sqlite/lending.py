"""A request on the caller's own connection: it is committed with the caller's transaction, or not at all."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from everytick.domain.facts import Fact
from everytick.errors import Conflict
from everytick.stores.base import Receipt
from everytick.stores.sql.verbs import facts
from everytick.stores.sqlite.definition_cache import FileDefinitions
from everytick.stores.sqlite.failures import saying_which_file
from everytick.stores.sqlite.opening import Driver
from everytick.stores.sqlite.queries import COLD
from everytick.stores.sqlite.runner import SyncRunner
from everytick.stores.sqlite.writer import Transaction


def checked(within: Any, path: Path, driver: Driver) -> sqlite3.Connection:
    """Return the connection if it is to this file. Two SQLite libraries in one process must not share a file."""
    if driver != "sqlite3":
        raise Conflict(f"the store opens {path.name} by {driver}: no other library may have it open in this process")
    if not isinstance(within, sqlite3.Connection):
        kind = type(within).__name__
        raise TypeError(f"within must be a sqlite3 connection to {path}, not a {kind}")
    cursor = within.cursor()
    cursor.row_factory = None
    [main] = [row[2] for row in cursor.execute("pragma database_list") if row[1] == "main"]
    if not main or not Path(main).exists() or not Path(main).samefile(path):
        raise Conflict(f"within is a connection to {main or 'a database in memory'}, and this store is in {path}")
    return within


def request(
    connection: sqlite3.Connection, path: Path, now: int, definitions: FileDefinitions, job_id: str, fact: Fact
) -> Receipt:
    """Write the request in the caller's open transaction, or in a new one that the caller commits."""
    with saying_which_file(path), _as_ours(connection):
        if not connection.in_transaction and not _commits_by_itself(connection):
            connection.execute("begin immediate")
        connection.execute("savepoint everytick_request")
        try:
            runner = SyncRunner(Transaction(connection, now), definitions)
            receipt = runner.run(partial(facts.request, COLD, job_id, fact))
        except BaseException:
            connection.execute("rollback to everytick_request")
            connection.execute("release everytick_request")
            raise
        connection.execute("release everytick_request")
        return receipt


def _commits_by_itself(connection: sqlite3.Connection) -> bool:
    """Whether the connection is in autocommit mode."""
    mode = getattr(connection, "autocommit", None)
    return mode if isinstance(mode, bool) else connection.isolation_level is None


@contextmanager
def _as_ours(connection: sqlite3.Connection) -> Iterator[None]:
    """Reset the caller's row and text factories in the block."""
    rows, texts = connection.row_factory, connection.text_factory
    connection.row_factory, connection.text_factory = None, str
    try:
        yield
    finally:
        connection.row_factory, connection.text_factory = rows, texts
