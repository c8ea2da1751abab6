"""A store with rows in every table that differ in every column, made by plain inserts."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from everytick.stores.moving.base import Reading
from everytick.stores.moving.sqlite_columns import sqlite_columns
from everytick.stores.moving.tables import TABLES, MovedTable, Row
from everytick.stores.sqlite.opening import prepare

ROWS = 3
MOMENT = 1_700_000_000_000_000

_WORDS: dict[tuple[str, str], Sequence[Any]] = {
    ("job_version", "kind"): ("task", "flow", "task"),
    ("job_version", "effective"): ('{"a":1}', '{"a":2}', '{"b":  3}'),
    ("job_state", "planned_woken"): (5, 4, 0),
    ("pause", "missed"): ("skip", "catch_up", "last"),
    ("adjustment", "kind"): ("skip", "move", "amend"),
    ("backfill", "status"): ("planned", "running", "filled"),
    ("span", "status"): (15, 16, 15),
    ("promise", "kind"): ("success_within", "start_by", "finish_by"),
    ("breach", "kind"): ("success_within", "start_by", "finish_by"),
    ("occurrence", "status"): (0, 2, 12),
    ("occurrence", "ended_at"): (None, None, MOMENT + 5),
    ("occurrence", "owner"): (None, "node-ä", None),
    ("occurrence", "is_early"): (0, 1, None),
    ("user_account", "role"): ("viewer", "operator", "admin"),
    ("token", "role"): ("viewer", "operator", "admin"),
    ("session", "kind"): ("cookie", "link", "cookie"),
    ("rollup", "only_row"): (1,),
}
_SWITCHES = frozenset(
    "enabled reports is_needed late superseded_by_next awaited holds_place again as_of_now newest_first is_done is_day"
    " is_stale out_of_time is_burst is_release_burst is_withdrawn is_begin_owed is_end_owed".split()
)
_IDS = frozenset({"last_end_id", "last_success_id", "other_success_id"})
_REFERS = frozenset({"job_key", "handle", "backfill_key"})


def fill(path: Path) -> None:
    """Make a store in this file and put rows into every table."""
    prepare(path)
    with closing(sqlite3.connect(path)) as it, it:
        for table in TABLES:
            types = {row[1]: row[2] for row in it.execute(f"pragma table_xinfo({table.name})")}
            columns = sqlite_columns(table.name)
            it.execute(f"delete from {table.name}")
            for number in range(1 if table.name == "rollup" else ROWS):
                row = [_value(table, name, types[name], number) for name in columns]
                it.execute(f"insert into {table.name} values ({', '.join('?' * len(row))})", row)
        # More numbers were given than there are rows: the next row must not get one that was given before.
        it.execute("update sqlite_sequence set seq = seq + 100")


def _value(table: MovedTable, column: str, kind: str, number: int) -> Any:
    if (words := _WORDS.get((table.name, column))) is not None:
        return words[number]
    if column in _REFERS or column in ("version", "cause") or column.endswith("_key"):
        return number + 1
    if column in _SWITCHES:
        return (number + len(column)) % 2
    if kind == "BLOB":
        return bytes([number, len(column)] * 8)
    if kind == "TEXT":
        return f"{table.name}.{column} ✓ {number}"
    if kind == "REAL":
        return number + 0.25
    if column.endswith(("_at", "_for", "_after", "_through", "_since")) or column in ("watermark", "judged_through"):
        return MOMENT + number * 1_000_003 + len(column)
    if column in ("status", "last_attempt_status", "found"):
        return number
    return number + len(column)


async def all_rows(reading: Reading) -> dict[str, list[Row]]:
    """Return the rows of every table."""
    return {
        table.name: sorted([row async for some in reading.rows(table) for row in some], key=repr) for table in TABLES
    }
