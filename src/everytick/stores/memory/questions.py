"""The answers to the questions of pages and pictures, each from the rows as they are."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from heapq import merge
from itertools import chain, islice, takewhile
from typing import Any, TypeAlias, TypeVar, cast

from everytick.domain.durations import MICROSECOND
from everytick.domain.headlines import fingerprint
from everytick.domain.questions import (
    COUNTED,
    LATEST,
    MOST_IN_A_LANE,
    RUNS_MEASURED,
    Alike,
    Bucket,
    Buckets,
    By,
    Counts,
    Coverage,
    Covered,
    CoveredRuns,
    Days,
    DayTally,
    FailureKind,
    Glance,
    Glances,
    JobLengths,
    LastRuns,
    Lengths,
    Question,
    QuestionBatch,
    QueueWait,
    Tally,
    TimeWindow,
    WaitingInQueues,
    buckets_of,
    days_of,
    failures_of,
    lengths_of,
    tally_of,
    waits_of,
    why_of,
    with_headlines,
)
from everytick.domain.statuses import ENDED, FAILURES, OccurrenceStatus
from everytick.stores.memory.base import Shared
from everytick.stores.memory.ordered import Ordered
from everytick.stores.memory.rows import JobRow, OccurrenceRow

A = TypeVar("A")


Answers: TypeAlias = Mapping[type[Any], Callable[[Any], Any]]
"""The function that answers each type of question."""


class QuestionVerbs:
    """Answers from all rows that exist; what retention forgot is counted in `JobRow.forgotten`.

    `others` answer the questions of other parts.
    """

    def __init__(self, shared: Shared, others: Answers) -> None:
        self._shared, self._tables = shared, shared.tables
        self._answers: Answers = {
            **others,
            TimeWindow: self._window,
            LastRuns: self._last_runs,
            WaitingInQueues: self._waits,
            Counts: self._counts,
            Buckets: self._buckets,
            Lengths: self._lengths,
            Days: self._days,
            Alike: self._alike,
            Coverage: self._coverage,
        }

    def ask(self, question: Question[A]) -> A:
        """Answer one of the questions in `domain.questions` and `domain.lookups`."""
        if isinstance(question, QuestionBatch):
            return cast("A", tuple([self.ask(part) for part in question.questions]))
        return cast("A", self._answers[type(question)](question))

    def _jobs_of(self, job_ids: Iterable[str] | None) -> list[JobRow]:
        jobs = self._tables.jobs
        return list(jobs.values()) if job_ids is None else [jobs[id_] for id_ in dict.fromkeys(job_ids) if id_ in jobs]

    def _window(self, asked: TimeWindow) -> Glances:
        jobs = self._jobs_of(asked.job_ids)
        held = (row for job in jobs for row in job.busy if row.owner is not None)
        early = sorted((row for row in held if row.creation.scheduled_for <= asked.after), key=_place, reverse=True)
        rows = list(islice(chain(_newest(jobs, asked.after, asked.through), early), asked.limit + 1))
        return Glances(tuple(map(_glance, rows[: asked.limit])), len(rows) > asked.limit)

    def _last_runs(self, asked: LastRuns) -> dict[str, tuple[Glance, ...]]:
        jobs = self._jobs_of(asked.job_ids)
        return {job.id: tuple(map(_glance, islice(reversed(job.history), asked.count))) for job in jobs if job.history}

    def _waits(self, _: WaitingInQueues) -> tuple[QueueWait, ...]:
        now, early = self._shared.now(), self._tables.early
        lanes = [*_ready_lanes(self._tables.ready), *((needs, rows.through(now)) for needs, rows in early.items())]
        waiting = ((needs, [*_first_waiting(rows, now)]) for needs, rows in lanes)
        return waits_of((needs, len(moments), min(moments)) for needs, moments in waiting if moments)

    def _counts(self, asked: Counts) -> Tally:
        jobs = self._jobs_of(None if asked.job_id is None else (asked.job_id,))
        rows = _newest(jobs, asked.after, asked.through)
        some = [(row.status, 1) for row in rows if asked.cause in (None, row.creation.cause)]
        return tally_of(some, is_estimated=len(some) > COUNTED)

    def _buckets(self, asked: Buckets) -> tuple[Bucket, ...]:
        jobs = self._jobs_of(asked.job_ids)
        first = asked.known_from(self._shared.now())
        rows = _newest(jobs, first - MICROSECOND, asked.end - MICROSECOND)
        if asked.by is By.JOB:
            cells = [(_at(row), row.job.id, row.status, 1) for row in islice(rows, asked.MOST_LOOKED_AT)]
            return buckets_of(cells, asked.step)
        forgotten = ((at, band, status, count) for (at, band, status), count in self._tables.forgotten.items())
        known = chain(((_at(row), row.band, row.status, 1) for row in rows), forgotten)
        cells = [
            (at, band if asked.by is By.BAND else "", status, count)
            for at, band, status, count in known
            if first <= at < asked.end
        ]
        return buckets_of(cells, asked.step)

    def _lengths(self, asked: Lengths) -> dict[str, JobLengths]:
        measured = {job.id: lengths_of(_lengths_of(job)) for job in self._jobs_of(asked.job_ids)}
        return {id_: lengths for id_, lengths in measured.items() if lengths is not None}

    def _days(self, asked: Days) -> tuple[DayTally, ...]:
        cells = [
            (day, status, count, took)
            for job in self._jobs_of((asked.job_id,))
            for (day, status), (count, took) in (*_days_of(job), *job.forgotten.items())
            if asked.first <= day <= asked.last
        ]
        return days_of(cells)

    def _alike(self, asked: Alike) -> tuple[FailureKind, ...]:
        rows = (row for row in self._tables.occurrences.values() if row.status in FAILURES)
        since = [row for row in rows if row.ended_at is not None and row.ended_at > asked.since]
        kinds = map(_lone, since)
        failures = failures_of((kind for kind in kinds if asked.fingerprint in (None, kind.fingerprint)), asked.limit)
        return with_headlines(failures, {row.id: row.error for row in since})

    def _coverage(self, asked: Coverage) -> CoveredRuns:
        rows = reversed([*_newest(self._jobs_of((asked.job_id,)), asked.after, asked.through)])
        page = list(islice(rows, asked.limit + 1))
        return CoveredRuns(tuple(map(_covered, page[: asked.limit])), len(page) > asked.limit)


def _ready_lanes(ready: Mapping[str, Ordered[OccurrenceRow]]) -> Iterator[tuple[str, Iterator[OccurrenceRow]]]:
    """Give the lanes of each text of needs, one for each priority: the first rows are the first in line."""
    for needs, rows in ready.items():
        first = next(iter(rows), None)
        while first is not None:
            yield needs, _of_priority(rows, first.priority)
            first = next(rows.since((1 - first.priority,)), None)


def _of_priority(rows: Ordered[OccurrenceRow], priority: int) -> Iterator[OccurrenceRow]:
    return takewhile(lambda row: row.priority == priority, rows.since((-priority,)))


def _first_waiting(rows: Iterator[OccurrenceRow], now: datetime) -> Iterator[datetime]:
    """Give since when the first occurrences of a lane are ready, without those that are between two attempts."""
    waiting = (row.ready_at for row in rows if row.status is OccurrenceStatus.PENDING and row.ready_at <= now)
    return islice(waiting, MOST_IN_A_LANE)


def _place(row: OccurrenceRow) -> tuple[datetime, str]:
    return row.creation.scheduled_for, row.id


def _at(row: OccurrenceRow) -> datetime:
    return row.creation.scheduled_for


def _newest(jobs: list[JobRow], after: datetime | None, through: datetime | None) -> Iterator[OccurrenceRow]:
    """Give the occurrences of these jobs with their instant in `(after, through]`, newest first."""
    lines = [reversed(job.history) if through is None else job.history.before((through + MICROSECOND,)) for job in jobs]
    newest_first: Iterator[OccurrenceRow] = merge(*lines, key=_place, reverse=True)
    return takewhile(lambda row: after is None or row.creation.scheduled_for > after, newest_first)


def _glance(row: OccurrenceRow) -> Glance:
    creation = row.creation
    return Glance(
        id=row.id,
        job_id=row.job.id,
        scheduled_for=creation.scheduled_for,
        status=row.status,
        cause=creation.cause,
        late=creation.late,
        started_at=row.started_at,
        ended_at=row.ended_at,
        why=why_of(row.reason, row.error),
        node=row.node,
    )


def _lone(row: OccurrenceRow) -> FailureKind:
    ended_at = cast("datetime", row.ended_at)
    return FailureKind(fingerprint(row.error or ""), "", 1, (row.job.id,), ended_at, ended_at, row.id)


def _lengths_of(job: JobRow) -> Iterator[timedelta]:
    """Give the lengths of the latest runs of a job that completed."""
    seen = (row.took for row in islice(reversed(job.history), RUNS_MEASURED))
    return islice((length for length in seen if length is not None), LATEST)


def _days_of(job: JobRow) -> Iterator[tuple[tuple[date, OccurrenceStatus], tuple[int, timedelta]]]:
    """Give the end of each occurrence that has ended, by its day."""
    return ((row.day, (1, row.took or timedelta(0))) for row in job.history if row.status in ENDED)


def _covered(row: OccurrenceRow) -> Covered:
    creation = row.creation
    return Covered(
        row.id, creation.covers_after, creation.covers_through, row.status, creation.cause, creation.scheduled_for
    )
