"""The queries of this store by name. `queries.sql` says what each guarantees."""

import sqlite3
from typing import TypeVar

from everytick.stores.queries import bind_queries, read_text, with_parts
from everytick.stores.sql.commands import Many, PlainVerb
from everytick.stores.sql.queries import cold_queries
from everytick.stores.sql.statements import Query, Row, Statement, with_statements
from everytick.stores.sqlite.claims import CLAIM_COLUMNS, READY_COLUMNS
from everytick.stores.sqlite.dialect import SQLITE
from everytick.stores.sqlite.row_statements import Bulk, RowStatement
from everytick.stores.sqlite.rows import Columns
from everytick.stores.sqlite.rows_read import ActiveRow, DueJob, PlannedJob
from everytick.stores.sqlite.rows_written import (
    ADVANCE_COLUMNS,
    ATTEMPT_COLUMNS,
    CREATION_COLUMNS,
    END_COLUMNS,
    MOVE_COLUMNS,
    RUN_COLUMNS,
    SPAN_COLUMNS,
)

PACKAGE = "everytick.stores.sqlite"


T = TypeVar("T")


class Queries:
    """Every query of `queries.sql`: a name too many or too few on either side is an error at import."""

    due_jobs: Statement
    standing_by_id: Statement
    next_wake: Statement
    count_needs: Statement
    all_needs: Statement
    add_needs: Statement
    next_ready: Statement
    active: Statement
    pauses: Statement
    adjustments: Statement
    requests: Statement
    definition: Statement
    past_versions: Statement
    states_of_jobs: Statement
    move_watermark: RowStatement
    park_plan: Statement
    create_occurrence: RowStatement
    release: Statement
    end_unowned: Statement
    owe_reports: Statement
    ask_to_stop: Statement
    ask_all_to_stop: Statement
    mark_awaited: Statement
    tell_dependents: Statement
    add_span: RowStatement
    use_adjustment: Statement
    forget_adjustments: Statement
    forget_reschedule: Statement
    forget_narrowing: Statement
    note_stop: Statement
    forget_pauses: Statement
    forget_editions: Statement
    release_early: Statement
    ready_occurrences: Statement
    limits_hold: Statement
    own_occurrences: Statement
    claims_of: Statement
    step_marks: Statement
    advance_occurrence: RowStatement
    forget_claims: Statement
    hold_given_back: Statement
    retired_of: Statement
    end_owned: Bulk
    write_run: Bulk
    write_attempt: Bulk
    wake_job: Statement
    note_end: Statement
    count_runs: Statement
    note_failure: Statement
    note_failed_attempt: Statement
    note_last_ends: Statement
    note_last_successes: Statement
    wake_jobs_of: Statement
    beat: Statement
    forget_request: Statement
    begin_kept: Statement
    keep_runs: Statement
    jobs_with_aged: Statement
    last_kept: Statement
    aged: Statement
    last_of_jobs: Statement
    forget_keys: Statement
    forgettable_of: Statement
    forget_occurrences: Statement


_SELECTED = {
    "active": ActiveRow._fields,
    "claim": CLAIM_COLUMNS,
    "due_job": DueJob._fields,
    "planned_job": PlannedJob._fields,
    "ready": READY_COLUMNS,
}
_TEXT = with_parts(read_text(PACKAGE, "queries.sql"), {name: ", ".join(names) for name, names in _SELECTED.items()})

_WRITTEN = {
    "add_span": SPAN_COLUMNS,
    "advance_occurrence": ADVANCE_COLUMNS,
    "create_occurrence": CREATION_COLUMNS,
    "end_owned": END_COLUMNS,
    "move_watermark": MOVE_COLUMNS,
    "write_attempt": ATTEMPT_COLUMNS,
    "write_run": RUN_COLUMNS,
}


def _with_rows(bound: Queries) -> Queries:
    """Return the queries, where those that are sent rows take the columns that their rows have."""
    for name, columns in _WRITTEN.items():
        setattr(bound, name, Queries.__annotations__[name](name, getattr(bound, name), columns))
    return bound


Q = _with_rows(with_statements(bind_queries(Queries, _TEXT, f"{PACKAGE}/queries.sql"), SQLITE))
COLD = cold_queries(PACKAGE, SQLITE)


def fetch(connection: sqlite3.Connection, query: Query) -> list[Row]:
    """Return the rows of a query by column name, in values of the domain."""
    found = connection.execute(query.statement.sql, query.arguments)
    columns = found.description
    return query.statement.read([column[0] for column in columns], found.fetchall()) if columns else []


def selected(connection: sqlite3.Connection, query: Query) -> list[Columns]:
    """Return the rows of a query as the driver gives them, for those whose columns are declared."""
    return connection.execute(query.statement.sql, query.arguments).fetchall()


def send(connection: sqlite3.Connection, command: Query | Many) -> list[Row]:
    """Carry out a query, or a statement with many sets of arguments, and return its rows."""
    if isinstance(command, Query):
        return fetch(connection, command)
    if command.arguments:
        given = [command.statement(**arguments).arguments for arguments in command.arguments]
        connection.executemany(command.statement.sql, given)
    return []


def carried_out(connection: sqlite3.Connection, verb: PlainVerb[T]) -> T:
    """Send the statements of the verb on this connection, one after another, and return its answer."""
    rows: list[Row] | None = None
    while True:
        try:
            command = verb.send(rows)
        except StopIteration as done:
            answer: T = done.value
            return answer
        rows = send(connection, command)
