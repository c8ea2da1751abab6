"""The columns of SQLite's tables, in the order in which rows travel: read once, from the migrations."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache

from everytick.stores.moving.tables import TABLES
from everytick.stores.sqlite.opening import MIGRATIONS, expanded, statements


def sqlite_columns(table: str) -> Sequence[str]:
    """Return the columns of a table, without generated ones."""
    return _all_columns()[table]


@cache
def _all_columns() -> Mapping[str, Sequence[str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for migration in MIGRATIONS:
            for statement in statements(expanded(migration.text)):
                db.execute(statement)
        found = {table.name: db.execute(f"pragma table_xinfo({table.name})").fetchall() for table in TABLES}
    return {table: [row[1] for row in rows if not row[6]] for table, rows in found.items()}
