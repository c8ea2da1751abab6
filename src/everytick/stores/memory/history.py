"""The verbs of the history: pages, whole occurrences, spans, and retention."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice, takewhile
from operator import itemgetter

from everytick.domain import ids
from everytick.domain.decisions import Span
from everytick.domain.durations import MICROSECOND
from everytick.domain.lookups import ExistingIds, IdRange, MissedSpans, OccurrenceStatuses, Spans, SpansOfJobs
from everytick.domain.snapshots import Request
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.stores.base import HistoryFilter, Page, Whole, WholeRuns, task_run, whole_of
from everytick.stores.memory.base import Shared
from everytick.stores.memory.ordered import Place
from everytick.stores.memory.rows import JobRow, OccurrenceRow
from everytick.stores.open_requests import as_asked

_S = OccurrenceStatus
_KEPT_AS_SUCCESS = frozenset({_S.COMPLETED, _S.COMPLETED_WITH_ERRORS, _S.SKIPPED})


class HistoryVerbs:
    """Occurrences and spans as people see them."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._tables = shared, shared.tables

    def page(self, filter: HistoryFilter) -> Page:
        """Return a page of occurrences, newest first."""
        tables, after = self._tables, filter.after
        ids_ = tables.jobs if filter.job_id is None else {filter.job_id} & tables.jobs.keys()
        jobs = [tables.jobs[id_] for id_ in ids_]
        bounds: list[Place] = []
        if filter.through is not None:
            bounds.append((filter.through + MICROSECOND,))
        if filter.cursor is not None:
            bounds.append(_read_cursor(filter.cursor))
        lines = [job.history.before(min(bounds)) if bounds else reversed(job.history) for job in jobs]
        newest_first: Iterator[OccurrenceRow] = merge(*lines, key=_place, reverse=True)
        if after is not None:
            newest_first = takewhile(lambda row: row.creation.scheduled_for > after, newest_first)
        rows = (
            row
            for row in newest_first
            if (not filter.statuses or row.status in filter.statuses)
            and (filter.cause is None or row.creation.cause is filter.cause)
        )
        page = list(islice(rows, filter.limit))
        more = bool(page) and next(rows, None) is not None
        return Page(tuple(row.record() for row in page), _cursor(page[-1]) if more else None)

    def wholes(self, asked: WholeRuns) -> tuple[Whole, ...]:
        """Return those of these occurrences that exist or are asked for."""
        tables = self._tables
        known = [id_ for id_ in asked.occurrence_ids if id_ in tables.occurrences or tables.asked_for(id_)]
        return tuple(map(self.whole, known))

    def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        if occurrence_id not in self._tables.occurrences and (asked := self._tables.asked_for(occurrence_id)):
            return as_asked(asked[0][0].job, asked[0][1])
        row = self._shared.occurrence(occurrence_id)
        job, _ = row.job.versions[row.version]
        tasks = {task.name: task for task in job.tasks}
        runs = tuple(
            task_run(row.id, task.id, task.name, run)
            for task in job.tasks
            if (run := row.runs.get(task.name)) is not None
        )
        attempts = sorted(row.attempts.items(), key=lambda item: (tasks[item[0][0]].order, item[0][1]))
        return whole_of(
            row.record(),
            runs,
            tuple(
                (task, attempt.record(ids.run_id(row.id, tasks[task].id), number))
                for (task, number), attempt in attempts
            ),
        )

    def existing(self, asked: ExistingIds) -> frozenset[str]:
        """Return those of these ids that have an occurrence."""
        return frozenset(id_ for id_ in asked.occurrence_ids if id_ in self._tables.occurrences)

    def existing_between(self, asked: IdRange) -> frozenset[str]:
        """Return the first ids in a range that have an occurrence or are asked for."""
        known = {*self._tables.occurrences, *self._tables.open_requests}
        inside = (id_ for id_ in known if asked.first <= id_ <= asked.last)
        return frozenset(sorted(inside)[: asked.limit])

    def spans(self, asked: Spans) -> Sequence[Span]:
        """Return the stretches of a job in which nothing ran, within these bounds."""
        row = self._shared.job(asked.job_id)
        return [span for span in row.spans if span.through > asked.after and span.after < asked.through]

    def spans_of_jobs(self, asked: SpansOfJobs) -> dict[str, tuple[Span, ...]]:
        """Return the same for each of these jobs that has some."""
        known = [id_ for id_ in asked.job_ids if id_ in self._tables.jobs]
        within = {id_: tuple(self.spans(Spans(id_, asked.after, asked.through))) for id_ in known}
        return {id_: spans for id_, spans in within.items() if spans}

    def missed_spans(self, asked: MissedSpans) -> list[tuple[str, Span]]:
        """Return the stretches that were missed in any job and overlap these bounds, newest first."""
        missed = [
            (id_, span)
            for id_, job in self._tables.jobs.items()
            for span in job.spans
            if span.status is _S.MISSED and span.through > asked.after and span.after < asked.through
        ]
        missed.sort(key=itemgetter(0))
        missed.sort(key=lambda pair: pair[1].through, reverse=True)
        return missed[: asked.limit]

    def statuses(self, asked: OccurrenceStatuses) -> dict[str, OccurrenceStatus]:
        """Return the status of each of these occurrences that exists."""
        known = self._tables.occurrences
        return {id_: known[id_].status for id_ in asked.occurrence_ids if id_ in known}

    def prune(self, limit: int) -> int:
        """Delete up to `limit` ended occurrences that the retention of their job no longer keeps. Return how many."""
        now = self._shared.now()
        expired = (row for job in self._tables.jobs.values() for row in _no_longer_kept(job, now))
        pruned = list(islice(expired, limit))
        for row in pruned:
            self._tables.remove(row)
        for job in {row.job.id: row.job for row in pruned}.values():
            _forget_keys(job, {row.id for row in pruned})
        return len(pruned)


def _forget_keys(job: JobRow, pruned: set[str]) -> None:
    """Delete the keys whose newest use is one of these occurrences."""
    requests = {key: Request(key[1], key[0], job.created_at, nth=nth) for key, (nth, _) in job.keys.items()}
    for key, request in requests.items():
        if request.occurrence_id(job.id) in pruned:
            del job.keys[key]


def _place(row: OccurrenceRow) -> tuple[datetime, str]:
    return row.creation.scheduled_for, row.id


def _no_longer_kept(job: JobRow, now: datetime) -> Iterator[OccurrenceRow]:
    """Give the occurrences that the job's retention no longer keeps, oldest first. One whose report is due stays."""
    keep = job.retention
    ended = [row for row in job.history if row.status in ENDED]
    for row in ended[: max(len(ended) - keep.keep_last, 0)]:
        age = keep.success if row.status in _KEPT_AS_SUCCESS else keep.failure
        if age is not None and row.ended_at is not None and now - row.ended_at > age and not row.report_due:
            yield row


def _cursor(row: OccurrenceRow) -> str:
    return f"{row.creation.scheduled_for.isoformat()} {row.id}"


def _read_cursor(cursor: str) -> Place:
    at, _, id_ = cursor.partition(" ")
    return datetime.fromisoformat(at), id_
