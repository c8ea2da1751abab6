"""The queries of this store by name. `queries.sql` says what each guarantees."""

import sqlite3
from typing import TypeVar

from everytick.stores.queries import load_queries
from everytick.stores.sql.commands import Many, PlainVerb
from everytick.stores.sql.queries import cold_queries
from everytick.stores.sql.statements import Query, Row, Statement, with_statements
from everytick.stores.sqlite.dialect import SQLITE

PACKAGE = "everytick.stores.sqlite"


T = TypeVar("T")


class Queries:
    """Every query of `queries.sql`: a name too many or too few on either side is an error at import."""

    due_jobs: Statement
    look_at_jobs: Statement
    next_wake: Statement
    count_needs: Statement
    all_needs: Statement
    add_needs: str
    next_ready: Statement
    active_of_jobs: str
    active_counts: str
    crowds_of_jobs: str
    pauses_of_jobs: Statement
    adjustments_of_jobs: Statement
    requests_of_jobs: Statement
    definition: str
    past_versions: Statement
    states_of_jobs: str
    move_watermark: str
    park_plan: Statement
    create_occurrence: str
    release_occurrence: Statement
    end_occurrence: str
    owe_reports: str
    ask_to_cancel: Statement
    ask_all_to_cancel: Statement
    await_ends: str
    tell_dependents: str
    add_span: str
    use_adjustment: Statement
    forget_adjustments: Statement
    forget_reschedule: Statement
    forget_narrowing: Statement
    forget_pauses: Statement
    forget_editions: str
    come_of_age: str
    ready_occurrences: str
    limits_hold: str
    own_occurrences: Statement
    held_occurrences: str
    fences: str
    advance_occurrence: str
    forget_claims: Statement
    hold_given_back: Statement
    retired_of: Statement
    end_owned: str
    write_run: str
    write_attempt: str
    wake_job: str
    note_end: str
    count_runs: str
    note_failure: str
    note_failed_attempt: str
    note_last_ends: str
    note_last_successes: str
    wake_jobs_of: str
    beat: str
    forget_request: Statement
    begin_kept: Statement
    keep_runs: Statement
    jobs_with_aged: Statement
    last_kept: Statement
    aged_of_job: Statement
    last_of_jobs: Statement
    forget_keys: Statement
    forgettable_of: Statement
    forget_occurrences: Statement


Q = with_statements(load_queries(Queries, PACKAGE), SQLITE)
COLD = cold_queries(PACKAGE, SQLITE)


def fetch(connection: sqlite3.Connection, query: Query) -> list[Row]:
    """Return the rows of a query by column name, in values of the domain."""
    found = connection.execute(query.statement.sql, query.arguments)
    columns = found.description
    return query.statement.read([column[0] for column in columns], found.fetchall()) if columns else []


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
