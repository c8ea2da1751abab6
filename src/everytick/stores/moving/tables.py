"""What a move carries: every table by its key, in the order in which rows may be inserted.

Rows travel as SQLite holds them: times as microseconds, ids as bytes, switches as 0 and 1. A test compares this list
with the migrations of both stores, so that a new table cannot be forgotten.
"""

from typing import Any, TypeAlias

from everytick.domain.values import value

Row: TypeAlias = tuple[Any, ...]
"""The columns of one row, in the order of the SQLite table."""

Key: TypeAlias = tuple[Any, ...]
"""The key of one row, as SQLite holds it."""


@value(frozen=True)
class MovedTable:
    """A table whose rows are carried. `key` tells its rows apart in both stores, each of which has an index on it."""

    name: str
    key: tuple[str, ...]


TABLES = tuple(
    MovedTable(name, tuple(key.split()))
    for name, key in {
        "needs": "text",
        "job": "job_key",
        "job_version": "job_key version",
        "job_state": "job_key",
        "pause": "job_key pause_key",
        "dependency": "job_key name",
        "adjustment": "job_key instant_at",
        "coming": "job_key instant_at",
        "request": "job_key cause key",
        "request_key": "job_key cause key",
        "backfill": "backfill_key",
        "filled": "backfill_key place",
        "span": "job_key span_key",
        "promise": "job_key kind",
        "breach": "job_key kind broken_for",
        "occurrence": "handle",
        "report": "needs ended_at handle",
        "rollup": "only_row",
        "unfolded": "job_key handle",
        "version_band": "job_key version",
        "bucket": "is_day step_at band status",
        "job_day": "job_key day_at status",
        "job_length": "job_key",
        "failure": "handle",
        "task_run": "handle task",
        "attempt": "handle task number",
        "node": "id",
        "name_set": "hash",
        "reach": "reach",
        "brake": "brake_key",
        "limit_start": "reach handle fence",
        "limit_change": "change_key",
        "user_account": "name",
        "token": "id",
        "session": "hash",
        "sign_in_failure": "name",
        "deed": "deed_key",
    }.items()
)

BY_NAME = {table.name: table for table in TABLES}

SEEDED = ("occurrence_status", "run_status", "attempt_status", "cause")
"""Tables that a migration fills and no verb changes."""

BORN_WITH_ROWS = ("rollup",)
"""Tables of which a new store has a row already."""

ONLY_POSTGRES = {
    "job_tally": "columns of job_state in SQLite",
    "wake": "counted into woken and wake_at of job_state in SQLite",
    "active": "follows from occurrence",
    "claimable": "follows from occurrence",
    "store": "says which store this is, and is never carried",
}
"""Tables that PostgreSQL has beside, and what becomes of their rows."""

ONLY_SQLITE_COLUMNS = {
    "job_state": frozenset(
        {"planned_woken", "run_count", "last_error", "last_failure_at"}
        | {
            f"{end}_{part}"
            for end in ("last_end", "last_success", "other_success")
            for part in ("scheduled_for", "started_at", "at", "id")
        }
    ),
}
"""Columns that PostgreSQL keeps in `job_tally` and `wake`."""

ONLY_POSTGRES_COLUMNS = {"occurrence": frozenset({"has_rows"})}
"""`has_rows` may be true of any occurrence: its end then looks for rows that are not there."""
