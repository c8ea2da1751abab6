"""history, whole, existing and spans: queries about the past."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from everytick.domain import ids
from everytick.domain.codes import STATUS_CODE
from everytick.domain.decisions import Span, Why
from everytick.domain.lookups import ExistingIds, IdRange, MissedSpans, OccurrenceStatuses, Spans, SpansOfJobs
from everytick.domain.occurrence import Occurrence
from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.errors import NotFound
from everytick.stores.base import HistoryFilter, Page, Whole, WholeRuns, task_run, whole_of
from everytick.stores.open_requests import as_asked
from everytick.stores.sql import rows
from everytick.stores.sql.commands import Found, Rows, Verb, Versions
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Query, Row
from everytick.stores.sql.verbs.backfills import NO_INSTANT
from everytick.stores.sql.verbs.job_records import job_key
from everytick.stores.sql.verbs.locked_job import version_of

_CURSOR = re.compile(r"(\S+) (occ_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def history(q: ColdQueries, filter: HistoryFilter) -> Verb[Page]:
    """Return a page of occurrences, newest first."""
    cursor_for, cursor_id = (None, None) if filter.cursor is None else _read_cursor(filter.cursor)
    limit = max(filter.limit, 0)
    asked = {
        "statuses": [STATUS_CODE[status] for status in filter.statuses],
        "cause": filter.cause,
        "begin_after": filter.after,
        "end_through": filter.through,
        "cursor_for": cursor_for,
        "cursor_occurrence_id": cursor_id,
        "limit": limit + 1,
    }
    found: Rows = yield _page(q, filter, asked)
    page = yield from _occurrences(q, [row["handle"] for row in found[:limit]])
    return Page(page, _cursor(page[-1]) if page and len(found) > limit else None)


def _page(q: ColdQueries, filter: HistoryFilter, asked: dict[str, Any]) -> Query:
    """Return the statement for the page: what is under way is found without reading what has ended."""
    is_active = bool(filter.statuses) and ACTIVE.issuperset(filter.statuses)
    if filter.job_id is None:
        return q.history_page_active(**asked) if is_active else q.history_page(**asked)
    of = q.history_page_active_of if is_active else q.history_page_of
    return of(**asked, job_id=filter.job_id)


def _occurrences(q: ColdQueries, handles: list[int]) -> Verb[tuple[Occurrence, ...]]:
    """Return these occurrences, in this order."""
    found: Rows = (yield q.occurrences_of(handles=handles)) if handles else ()
    by_handle = {row["handle"]: rows.occurrence(row) for row in found}
    return tuple(by_handle[handle] for handle in handles)


def _cursor(record: Occurrence) -> str:
    return f"{record.scheduled_for.isoformat(timespec='microseconds')} {record.id}"


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    named = _CURSOR.fullmatch(cursor)
    try:
        at = None if named is None else datetime.fromisoformat(named[1])
    except ValueError:
        at = None
    if named is None or at is None or at.tzinfo is None:
        raise NotFound("page of the history at", cursor)
    return at, named[2]


def whole(q: ColdQueries, occurrence_id: str) -> Verb[Whole]:
    """Return one occurrence with its runs and attempts, in the order of its job's tasks."""
    found: Rows = yield q.handle_of(occurrence_id=occurrence_id)
    if not found:
        return (yield from _asked_for(q, occurrence_id))
    [row] = yield q.occurrences_of(handles=[found[0]["handle"]])
    record = rows.occurrence(row)
    runs = {run["task"]: rows.run_state(run) for run in (yield q.runs_of(handles=[row["handle"]]))}
    attempts: Rows = yield q.attempts_of(handle=row["handle"])
    names = yield from _tasks_in_order(row, {*runs, *(attempt["task"] for attempt in attempts)})
    task_ids = {name: ids.task_id(record.job_id, name) for name in names}
    ordered = sorted(attempts, key=lambda attempt: (names.index(attempt["task"]), attempt["number"]))
    return whole_of(
        record,
        tuple(task_run(record.id, task_ids[name], name, run) for name in names if (run := runs.get(name)) is not None),
        tuple(
            (attempt["task"], rows.attempt(attempt, ids.run_id(record.id, task_ids[attempt["task"]])))
            for attempt in ordered
        ),
    )


def wholes(q: ColdQueries, asked: WholeRuns) -> Verb[tuple[Whole, ...]]:
    """Return these occurrences with their runs and attempts."""
    found: list[Whole] = []
    for id_ in asked.occurrence_ids:
        try:
            one = yield from whole(q, id_)
        except NotFound:
            continue
        found.append(one)
    return tuple(found)


def _asked_for(q: ColdQueries, occurrence_id: str) -> Verb[Whole]:
    """Return the open request for this occurrence, as people see it."""
    for request in (yield q.asked_for(occurrence_id=occurrence_id)):
        job = (yield from version_of(request["job_key"], request["version"])).job
        return as_asked(job, rows.request(request))
    raise NotFound("occurrence", occurrence_id)


def _tasks_in_order(row: Row, known: Iterable[str]) -> Verb[list[str]]:
    """Return the names of the tasks in the order of their definition, sorted if that is unreadable."""
    found: Found = yield Versions(((row["job_key"], row["version"]),))
    names = [task.name for compiled in found.read.values() for task in compiled.job.tasks]
    return names + sorted(set(known).difference(names))


def existing(q: ColdQueries, asked: ExistingIds) -> Verb[frozenset[str]]:
    """Return those of these ids that have an occurrence."""
    found: Rows = yield q.existing(occurrence_ids=asked.occurrence_ids)
    return frozenset(row["occurrence_id"] for row in found)


def existing_between(q: ColdQueries, asked: IdRange) -> Verb[frozenset[str]]:
    """Return the first ids in a range that have an occurrence or are asked for."""
    ends = {"first_occurrence_id": asked.first, "last_occurrence_id": asked.last}
    found: Rows = yield q.existing_between(**ends, limit=asked.limit + 1)
    ids_ = [row["occurrence_id"] for row in found if row["occurrence_id"] != NO_INSTANT]
    return frozenset(ids_[: asked.limit])


def spans(q: ColdQueries, asked: Spans) -> Verb[list[Span]]:
    """Return the spans of instants that did not run and that overlap `(after, through]`, in order."""
    key = yield from job_key(q, asked.job_id)
    found: Rows = yield q.spans_of(job_key=key, begin_after=asked.after, end_through=asked.through)
    return [_span(row) for row in found]


def spans_of_jobs(q: ColdQueries, asked: SpansOfJobs) -> Verb[dict[str, tuple[Span, ...]]]:
    """Return the same of several jobs, by job id."""
    known: Rows = (yield q.keys_of_jobs(job_ids=list(asked.job_ids))) if asked.job_ids else ()
    ids_ = {row["job_key"]: row["job_id"] for row in known}
    span = {"begin_after": asked.after, "end_through": asked.through}
    overlapping: Rows = (yield q.spans_of_jobs(job_keys=list(ids_), **span)) if ids_ else ()
    found: dict[str, list[Span]] = {}
    for row in overlapping:
        found.setdefault(ids_[row["job_key"]], []).append(_span(row))
    return {job_id: tuple(own) for job_id, own in found.items()}


def missed_spans(q: ColdQueries, asked: MissedSpans) -> Verb[list[tuple[str, Span]]]:
    """Return the newest spans of missed instants of all jobs that overlap `(after, through]`."""
    bounds = {"begin_after": asked.after, "end_through": asked.through}
    found: Rows = yield q.missed_spans(**bounds, limit=asked.limit)
    return [(row["job_id"], _span(row)) for row in found]


def statuses(q: ColdQueries, asked: OccurrenceStatuses) -> Verb[dict[str, OccurrenceStatus]]:
    """Return the status of each of these occurrences that there is."""
    ids_ = list(asked.occurrence_ids)
    found: Rows = (yield q.statuses_of(occurrence_ids=ids_)) if ids_ else ()
    return {row["occurrence_id"]: row["status"] for row in found}


def _span(row: Row) -> Span:
    return Span(
        row["status"],
        Why(row["why"]),
        row["detail"],
        row["span_after"],
        row["span_through"],
        row["version"],
        row["count"],
    )
