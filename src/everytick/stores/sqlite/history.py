"""What people ask of the past, and how it is forgotten."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime

from everytick.domain import ids
from everytick.domain.codes import CAUSE_CODE, FIRST_ENDED, STATUS_CODE, STATUSES
from everytick.domain.decisions import Span
from everytick.domain.occurrence import Attempt
from everytick.domain.snapshots import Edition
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import NotFound
from everytick.stores.base import HistoryFilter, Page, Whole, task_run, whole_of
from everytick.stores.open_requests import as_asked
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.compiled import Definitions
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import Columns, micros
from everytick.stores.sqlite.writer import Transaction

JOBS_AT_ONCE = 10_000
"""So many jobs are looked through at most when something is to be forgotten; the next call goes on behind them."""

# What retention counts as success; a span that was skipped on purpose is no failure.
_S = OccurrenceStatus
_ENDED = tuple(code for code in STATUSES if code >= FIRST_ENDED)
_WELL = frozenset(STATUS_CODE[status] for status in (_S.COMPLETED, _S.COMPLETED_WITH_ERRORS, _S.SKIPPED))
_FIRST, _LAST = -(2**63), 2**63 - 1


def history(connection: sqlite3.Connection, filter: HistoryFilter) -> Page:
    """Return a page of occurrences, newest first."""
    codes = json.dumps([STATUS_CODE[status] for status in filter.statuses])
    because = None if filter.cause is None else CAUSE_CODE[filter.cause]
    after = _FIRST if filter.after is None else micros(filter.after)
    through = _LAST if filter.through is None else micros(filter.through)
    limit, place = max(filter.limit, 0), _read_cursor(filter.cursor)
    asked: Columns = (*place, after, through, codes, codes, because, because, limit + 1)
    if filter.job_id is None:
        found = connection.execute(Q.history, asked).fetchall()
    else:
        found = connection.execute(Q.history_of_job, (filter.job_id, *asked)).fetchall()
    page = found[:limit]
    more = len(found) > len(page) and bool(page)
    cursor = f"{page[-1][4]} {rows.id_text(page[-1][1])}" if more else None
    return Page(tuple(rows.occurrence(row) for row in page), cursor)


def _read_cursor(cursor: str | None) -> tuple[int, bytes]:
    """Return the place that a page ended at; without one, a place behind everything."""
    if cursor is None:
        return _LAST, b""
    at, _, id_ = cursor.partition(" ")
    place = rows.id_bytes(id_)
    if place is None or not at.removeprefix("-").isdecimal():
        raise NotFound("page of the history at", cursor)
    return int(at), place


def whole(connection: sqlite3.Connection, definitions: Definitions, occurrence_id: str) -> Whole:
    """Return one occurrence with its runs and attempts; no definition is needed for one that exists."""
    row = connection.execute(Q.record_of_id, (rows.id_bytes(occurrence_id),)).fetchone()
    if row is None:
        return _asked_for(connection, definitions, occurrence_id)
    record = rows.occurrence(row)
    runs = []
    for _, task, *columns in connection.execute(Q.runs, (json.dumps([row[0]]),)):
        runs.append(task_run(record.id, ids.task_id(record.job_id, task), task, rows.run_state(columns)))
    attempts = [_attempt(record.id, record.job_id, row) for row in connection.execute(Q.attempts, (row[0],))]
    return whole_of(record, runs, attempts)


def _asked_for(connection: sqlite3.Connection, definitions: Definitions, occurrence_id: str) -> Whole:
    """Return what is asked for and no plan has made yet."""
    asked = connection.execute(Q.asked_for, (rows.id_bytes(occurrence_id),)).fetchone()
    if asked is None:
        raise NotFound("occurrence", occurrence_id)
    job, *columns = asked
    version, _, _ = connection.execute(Q.newest_version, (job,)).fetchone()
    compiled = definitions.get(connection, job, version)
    if compiled is None:
        raise NotFound("readable definition of occurrence", occurrence_id)
    return as_asked(compiled.job, rows.request(columns))


def _attempt(occurrence_id: str, job_id: str, row: Columns) -> tuple[str, Attempt]:
    task, *columns = row
    return task, rows.attempt(columns, ids.run_id(occurrence_id, ids.task_id(job_id, task)))


def existing(connection: sqlite3.Connection, occurrence_ids: Collection[str]) -> frozenset[str]:
    """Return those of these ids that an occurrence has."""
    execute = connection.execute
    return frozenset(id_ for id_ in occurrence_ids if execute(Q.is_there, (rows.id_bytes(id_),)).fetchone())


def spans(connection: sqlite3.Connection, job_id: str, after: datetime, through: datetime) -> list[Span]:
    """Return the spans of instants that did not run and touch `(after, through]`, in order."""
    job = connection.execute(Q.job_by_id, (job_id,)).fetchone()
    if job is None:
        raise NotFound("job", job_id)
    return [rows.span(row) for row in connection.execute(Q.spans, (job[0], micros(after), micros(through)))]


def editions(
    connection: sqlite3.Connection,
    definitions: Definitions,
    job_id: str,
    versions: Collection[int],
    at: datetime | None,
) -> list[Edition]:
    """Return these versions of a job's definition, and the one in force at a moment, in order."""
    job = connection.execute(Q.job_by_id, (job_id,)).fetchone()
    if job is None:
        raise NotFound("job", job_id)
    newest = connection.execute(Q.newest_version, (job[0],)).fetchone()[0]
    wanted = {version for version in versions if 1 <= version <= newest}
    if at is not None:
        wanted.update(row[0] for row in connection.execute(Q.version_at, (job[0], micros(at))))
    found = [definitions.get(connection, job[0], version) for version in sorted(wanted)]
    return [Edition(each.job, each.in_force_after) for each in found if each is not None]


def forgettable(connection: sqlite3.Connection, now: int, limit: int, after: int) -> tuple[list[int], int]:
    """Return the handles of what retention no longer keeps of the jobs after this one, and where to go on.

    It looks through `JOBS_AT_ONCE` jobs, and in each only at what is old enough. The search
    holds up no write.
    """
    found: list[int] = []
    for job, keep_success, keep_failure, keep_last in connection.execute(
        Q.jobs_with_aged, (after, JOBS_AT_ONCE, now, now)
    ).fetchall():
        place = connection.execute(Q.last_kept, (job, keep_last - 1)).fetchone() if keep_last else (_LAST, b"")
        for status in _ENDED:
            kept = keep_success if status in _WELL else keep_failure
            if place is not None and kept is not None:
                asked = (job, status, now - kept, *place, max(limit - len(found), 0))
                found += [row[0] for row in connection.execute(Q.aged_of_job, asked)]
        if len(found) >= limit:
            return found, after
    last = connection.execute(Q.last_of_jobs, (after, JOBS_AT_ONCE - 1)).fetchone()
    return found, 0 if last is None else last[0]


def forget(transaction: Transaction, handles: Sequence[int]) -> int:
    """Forget these occurrences with their runs and attempts, and return how many there still were."""
    asked = (json.dumps(handles),)
    transaction.execute(Q.forget_attempts, asked)
    transaction.execute(Q.forget_runs, asked)
    transaction.execute(Q.forget_keys, asked)
    return transaction.execute(Q.forget_occurrences, asked).rowcount
