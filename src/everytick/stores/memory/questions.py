"""The answers to the questions of pages and pictures, each from the rows as they are."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from heapq import merge
from itertools import chain, islice, takewhile
from typing import Any, ClassVar, TypeVar, cast

from everytick.domain.durations import MICROSECOND
from everytick.domain.headlines import fingerprint
from everytick.domain.lookups import (
    Breaches,
    ComingRuns,
    Editions,
    LaterRequests,
    LimitsAndBrakes,
    NewestBackfills,
    ParkedJobs,
    Promises,
    Spans,
    SpansOfJobs,
    UndefinedJobs,
)
from everytick.domain.questions import (
    COUNTED,
    LATEST,
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
    Tally,
    TimeWindow,
    buckets_of,
    days_of,
    failures_of,
    lengths_of,
    tally_of,
    why_of,
    with_headlines,
)
from everytick.domain.statuses import ENDED, FAILURES, OccurrenceStatus
from everytick.stores.base import WholeRuns
from everytick.stores.memory.definers import Definers
from everytick.stores.memory.history import HistoryVerbs
from everytick.stores.memory.promises import PromiseVerbs
from everytick.stores.memory.rows import JobRow, OccurrenceRow

A = TypeVar("A")


class QuestionVerbs(PromiseVerbs, Definers, HistoryVerbs):
    """Answers from all rows that exist; what retention forgot is counted in `JobRow.forgotten`."""

    folds_at_once: ClassVar[int] = 1

    async def ask(self, question: Question[A]) -> A:
        """Answer one of the questions in `domain.questions` and `domain.lookups`."""
        answers: Mapping[type[Any], Callable[[Any], Any]] = {
            TimeWindow: self._window,
            LastRuns: self._last_runs,
            Counts: self._counts,
            Buckets: self._buckets,
            Lengths: self._lengths,
            Days: self._days,
            Alike: self._alike,
            Coverage: self._coverage,
            ParkedJobs: self._parked,
            Editions: self._editions,
            LaterRequests: self._later,
            ComingRuns: self._coming,
            NewestBackfills: self._newest_backfills,
            Spans: self._spans,
            SpansOfJobs: self._spans_of_jobs,
            WholeRuns: self._wholes,
            Promises: self._promised,
            Breaches: self._breaches,
            LimitsAndBrakes: self._limits,
            UndefinedJobs: self._undefined,
        }
        if isinstance(question, QuestionBatch):
            return cast("A", tuple([await self.ask(each) for each in question.questions]))
        return cast("A", answers[type(question)](question))

    async def fold(self, limit: int = 1000) -> int:
        """Return 0: every answer is read from the rows."""
        return 0

    def _jobs_of(self, job_ids: Iterable[str] | None) -> list[JobRow]:
        jobs = self._tables.jobs
        return list(jobs.values()) if job_ids is None else [jobs[id_] for id_ in dict.fromkeys(job_ids) if id_ in jobs]

    def _window(self, asked: TimeWindow) -> Glances:
        jobs = self._jobs_of(asked.job_ids)
        held = (row for job in jobs for row in job.busy if row.owner is not None)
        early = sorted((row for row in held if row.creation.scheduled_for <= asked.after), key=_place, reverse=True)
        found = list(islice(chain(_newest(jobs, asked.after, asked.through), early), asked.limit + 1))
        return Glances(tuple(map(_glance, found[: asked.limit])), len(found) > asked.limit)

    def _last_runs(self, asked: LastRuns) -> dict[str, tuple[Glance, ...]]:
        jobs = self._jobs_of(asked.job_ids)
        return {job.id: tuple(map(_glance, islice(reversed(job.history), asked.count))) for job in jobs if job.history}

    def _counts(self, asked: Counts) -> Tally:
        jobs = self._jobs_of(None if asked.job_id is None else (asked.job_id,))
        rows = _newest(jobs, asked.after, asked.through)
        some = [(row.status, 1) for row in rows if asked.cause in (None, row.creation.cause)]
        return tally_of(some, is_estimated=len(some) > COUNTED)

    def _buckets(self, asked: Buckets) -> tuple[Bucket, ...]:
        jobs = self._jobs_of(asked.job_ids)
        first = asked.known_from(self._now())
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
        found = {job.id: lengths_of(_lengths_of(job)) for job in self._jobs_of(asked.job_ids)}
        return {id_: lengths for id_, lengths in found.items() if lengths is not None}

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
        found = failures_of((each for each in kinds if asked.fingerprint in (None, each.fingerprint)), asked.limit)
        return with_headlines(found, {row.id: row.error for row in since})

    def _coverage(self, asked: Coverage) -> CoveredRuns:
        rows = reversed([*_newest(self._jobs_of((asked.job_id,)), asked.after, asked.through)])
        found = list(islice(rows, asked.limit + 1))
        return CoveredRuns(tuple(map(_covered, found[: asked.limit])), len(found) > asked.limit)


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
