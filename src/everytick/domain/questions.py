"""What pages and pictures ask of a store: one value for each question, and one for each answer.

Every question is bounded when it is built, so that no page can ask for more than a store answers in some milliseconds.
A store answers all of them by one verb, `ask`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import groupby
from math import ceil, floor
from operator import attrgetter, itemgetter
from typing import Any

from everytick.domain.durations import format_duration
from everytick.domain.headlines import headline
from everytick.domain.ids import EPOCH
from everytick.domain.job import Job
from everytick.domain.needs import queue_of
from everytick.domain.occurrence import Cause
from everytick.domain.policy_checks import choice, fill, refused, whole
from everytick.domain.question import Question as Question
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value

MOST_RUNS = 5_000
"""Most occurrences of one window: 24 lanes of 120 marks are 2,880."""

MOST_BUCKETS = 2_000
"""Most steps of time in one answer: three days of five minutes are 864."""

MOST_JOBS = 20_000
"""Most jobs that one question names."""

MOST_LAST_RUNS = 20_000
"""Most occurrences of one answer about the last runs: 600 strips of 30."""

MOST_IN_A_STRIP = 200
"""Most occurrences in the strip of one job."""

COUNTED = 10_000
"""Up to here occurrences are counted; more of them are estimated."""

LATEST = 25
"""The lengths of a job are those of so many runs that completed."""

RUNS_MEASURED = 100
"""Only the latest so many occurrences of a job are looked at for its lengths."""

LOOKED_UP = 100
"""The lengths of up to so many jobs are read from their runs; those of more as the last fold has left them."""

CELL = timedelta(minutes=5)
"""The shortest step of buckets."""

CELLS_KEPT = timedelta(days=8)
"""Steps shorter than a day are kept for so long; whole days are kept for good."""

DAY = timedelta(days=1)
MOST_ALIKE = 200
"""Most occurrences of one answer about those that failed alike."""

MOST_IN_A_LANE = 1_000
"""Of each text of needs and each priority, so many occurrences that wait are looked at: the first in line."""

MOST_COVERED = 10_000
"""Most occurrences of one answer about coverage; the next question goes on behind them."""


# ---------------------------------------------------------------------------------------------------- occurrences


@value
class Glance:
    """One occurrence as a picture or a table shows it. `why` is the headline of its error, else its reason."""

    id: str
    job_id: str
    scheduled_for: datetime
    status: OccurrenceStatus
    cause: Cause
    late: bool
    started_at: datetime | None
    ended_at: datetime | None
    why: str
    node: str | None


@value(frozen=True)
class Glances:
    """Occurrences at a glance, newest first. `is_cut` says that there are more than the question asked for."""

    runs: tuple[Glance, ...]
    is_cut: bool


@value(frozen=True)
class TimeWindow(Question[Glances]):
    """Which occurrences have their instant in `(after, through]`, or have an earlier one and are held by a node now?

    `job_ids` are the jobs to look at; None is all.
    """

    after: datetime
    through: datetime
    limit: int = MOST_RUNS
    job_ids: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _in_order(self.after, self.through)
        whole("limit", self.limit, 1, MOST_RUNS)
        _some_jobs(self.job_ids)


@value(frozen=True)
class LastRuns(Question[dict[str, tuple[Glance, ...]]]):
    """Which are the last `count` occurrences of each of these jobs? The answer has them by job id, newest first."""

    job_ids: tuple[str, ...]
    count: int = 30

    def __post_init__(self) -> None:
        whole("count", self.count, 1, MOST_IN_A_STRIP, "count=30")
        _some_jobs(self.job_ids, MOST_LAST_RUNS // self.count)


# --------------------------------------------------------------------------------------------------------- queues


@value(frozen=True)
class QueueWait:
    """What waits in a queue: how many, and since when the first is ready. `is_cut`: there may be more than `count`."""

    queue: str
    count: int
    since: datetime
    is_cut: bool = False


@value(frozen=True)
class WaitingInQueues(Question[tuple[QueueWait, ...]]):
    """In which queues do pending occurrences wait that are ready, how many, and since when? By name of the queue.

    Who waits longest is found however many wait: they are looked at in the order in which they are claimed. Only a
    jitter can hide it, in a queue in which over 1,000 of one priority wait.
    """


@value(frozen=True)
class QueueLoad:
    """A queue: how many of its occurrences run and wait for a slot, and the slots of the living nodes that serve it.

    `is_cut` says that there are more than were counted. `oldest` is since when the first of the waiting is ready, also
    then.
    """

    queue: str
    running: int
    waiting: int
    slots: int
    nodes: int
    oldest: datetime | None = None
    is_cut: bool = False


# --------------------------------------------------------------------------------------------------------- counts


@value(frozen=True)
class Tally:
    """How many occurrences stand in each status. `is_estimated` says that there are too many to count."""

    counts: tuple[tuple[OccurrenceStatus, int], ...] = ()
    is_estimated: bool = False

    @property
    def total(self) -> int:
        """How many they are together."""
        return sum(count for _, count in self.counts)

    def of(self, *statuses: OccurrenceStatus) -> int:
        """Return how many stand in one of these statuses."""
        return sum(count for status, count in self.counts if status in statuses)


@value(frozen=True)
class Counts(Question[Tally]):
    """How many occurrences with their instant in `(after, through]` stand in each status? Past 10,000 it estimates."""

    job_id: str | None = None
    after: datetime | None = None
    through: datetime | None = None
    cause: Cause | None = None

    def __post_init__(self) -> None:
        if self.after is not None and self.through is not None:
            _in_order(self.after, self.through)


class By(StrEnum):
    """What the counts of buckets are apart by: nothing, the band of the job, or the job."""

    ALL = "all"
    BAND = "band"
    JOB = "job"


@value(frozen=True)
class Bucket:
    """How many occurrences have their instant in the step of time from `at` on; `group` is a band or a job id."""

    at: datetime
    group: str
    tally: Tally


@value(frozen=True)
class Buckets(Question[tuple[Bucket, ...]]):
    """How many occurrences does each step of time have, from the one with `after` to the one with `through`?

    `step` is whole days, or a part of a day that is a multiple of five minutes: such steps are known for eight days.
    By job it is asked about `job_ids`, up to 50, and looks at the newest 20,000 of their occurrences.
    """

    after: datetime
    through: datetime
    step: timedelta = CELL
    by: By = By.ALL
    job_ids: tuple[str, ...] | None = None

    MOST_JOBS = 50
    MOST_LOOKED_AT = 20_000
    """Occurrences under way, or ended and not folded yet, that are counted one by one."""

    def __post_init__(self) -> None:
        fill(self, by=choice("by", By, self.by))
        _in_order(self.after, self.through)
        if self.step < CELL or self.step % CELL or (DAY % self.step and self.step % DAY):
            raise refused(
                "step",
                format_duration(self.step),
                "must be whole days or a part of a day in fives of minutes",
                'step="5m"',
                'step="1d"',
            )
        if (self.through - self.after) / self.step > MOST_BUCKETS:
            count = ceil((self.through - self.after) / self.step)
            raise refused(
                "step",
                format_duration(self.step),
                f"makes {count:,} steps, and {MOST_BUCKETS:,} is the most",
                "a longer step",
            )
        if (self.by is By.JOB) != (self.job_ids is not None):
            raise refused("by", self.by, "and jobs go together", 'by="job" with jobs', "neither")
        _some_jobs(self.job_ids, self.MOST_JOBS)

    def at(self, instant: datetime) -> datetime:
        """Return the beginning of the step that an instant is in."""
        return step_of(instant, self.step)

    @property
    def first(self) -> datetime:
        """The beginning of the first step."""
        return self.at(self.after)

    @property
    def end(self) -> datetime:
        """The end of the last step, which does not belong to it."""
        return self.at(self.through) + self.step

    def known_from(self, now: datetime) -> datetime:
        """Return the beginning of the first step that is known at `now`."""
        return self.first if self.is_of_days else max(self.first, self.at(now - CELLS_KEPT))

    @property
    def is_of_days(self) -> bool:
        """Whether it is answered by what is kept for good."""
        return self.step % DAY == timedelta(0)


# -------------------------------------------------------------------------------------------------------- lengths


@value(frozen=True)
class JobLengths:
    """How long the latest runs of a job that completed took. `count` says of how many runs this is known."""

    count: int
    p5: timedelta
    p50: timedelta
    p95: timedelta


@value(frozen=True)
class Lengths(Question[dict[str, JobLengths]]):
    """How long do these jobs take? None is all. A job of which no run completed lately is not in the answer.

    The lengths of up to 100 jobs are read from their runs; those of more are some minutes old.
    """

    job_ids: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _some_jobs(self.job_ids)


# ----------------------------------------------------------------------------------------------------------- days


@value(frozen=True)
class DayTally:
    """How the instants of one UTC day ended. `took` is the mean length of the runs that completed."""

    day: date
    tally: Tally
    took: timedelta | None = None


@value(frozen=True)
class Days(Question[tuple[DayTally, ...]]):
    """How did the days of a year end for this job? Days without an end are left out; retention forgets none."""

    job_id: str
    year: int

    def __post_init__(self) -> None:
        whole("year", self.year, 1970, 9998)

    @property
    def first(self) -> date:
        """The first day of the year."""
        return date(self.year, 1, 1)

    @property
    def last(self) -> date:
        """The last day of the year."""
        return date(self.year, 12, 31)


# ------------------------------------------------------------------------------------------------------- failures


@value(frozen=True)
class FailureKind:
    """Failures with one fingerprint: how many, of which jobs, and the newest of them."""

    fingerprint: str
    headline: str
    count: int
    job_ids: tuple[str, ...]
    first_at: datetime
    last_at: datetime
    last_id: str


@value(frozen=True)
class Alike(Question[tuple[FailureKind, ...]]):
    """Which failures that ended after `since` have this fingerprint? Without one: which fingerprints are there?

    Most frequent first. `fingerprint` of `domain.headlines` makes one of an error. It looks at the newest 10,000
    failures.
    """

    since: datetime
    fingerprint: str | None = None
    limit: int = 50

    def __post_init__(self) -> None:
        _aware("since", self.since)
        whole("limit", self.limit, 1, MOST_ALIKE)


# ------------------------------------------------------------------------------------------------------- coverage


@value(frozen=True)
class Covered:
    """One occurrence and the instants `(after, through]` for which it stands."""

    id: str
    after: datetime | None
    through: datetime
    status: OccurrenceStatus
    cause: Cause
    scheduled_for: datetime


@value(frozen=True)
class CoveredRuns:
    """What stands for the data of a job, oldest first. `is_cut`: ask again, after the last of them, for more."""

    runs: tuple[Covered, ...]
    is_cut: bool = False


@value(frozen=True)
class Coverage(Question[CoveredRuns]):
    """Which occurrences of a job have their instant in `(after, through]`, oldest first, and what do they stand for?"""

    job_id: str
    after: datetime
    through: datetime
    limit: int = MOST_COVERED

    def __post_init__(self) -> None:
        _in_order(self.after, self.through)
        whole("limit", self.limit, 1, MOST_COVERED)


# -------------------------------------------------------------------------------------------------------- several


@value(frozen=True)
class QuestionBatch(Question[tuple[Any, ...]]):
    """Several questions at once, answered in this order from one state of the store."""

    questions: tuple[Question[Any], ...]

    MOST = 100
    """Questions of one batch."""

    def __post_init__(self) -> None:
        whole("questions", len(self.questions), 0, self.MOST)


# --------------------------------------------------------------------------------- what all stores make answers by


def band_of(job: Job) -> str:
    """Return the band of a job: its first tag, else its owner, else its queue."""
    settings = job.settings
    return next(iter(settings.tags), "") or job.owner or settings.queue


def step_of(instant: datetime, step: timedelta) -> datetime:
    """Return the beginning of the step that an instant is in; steps are counted from 1970 in UTC."""
    return EPOCH + (instant - EPOCH) // step * step


_PLACES = {status: place for place, status in enumerate(OccurrenceStatus)}


def tally_of(counts: Iterable[tuple[OccurrenceStatus, int]], *, is_estimated: bool = False) -> Tally:
    """Return the counts of each status, in the order of the statuses; several of one are added up."""
    count_of: dict[OccurrenceStatus, int] = {}
    for status, count in counts:
        count_of[status] = count_of.get(status, 0) + count
    # Only through those that occur: most steps of time have one status or two of them.
    in_order = sorted(count_of, key=_PLACES.__getitem__)
    return Tally(tuple([(status, count_of[status]) for status in in_order if count_of[status]]), is_estimated)


def buckets_of(
    cells: Iterable[tuple[datetime, str, OccurrenceStatus, int]], step: timedelta, *, is_estimated: bool = False
) -> tuple[Bucket, ...]:
    """Return the buckets of these counts, by time and group."""
    begins: dict[datetime, datetime] = {}
    counts: dict[tuple[datetime, str], list[tuple[OccurrenceStatus, int]]] = {}
    for at, group, status, count in cells:
        # Few moments are in many cells: those of all groups and statuses.
        begin = begins.get(at) or begins.setdefault(at, step_of(at, step))
        counts.setdefault((begin, group), []).append((status, count))
    return tuple(
        Bucket(at, group, tally_of(counts[at, group], is_estimated=is_estimated)) for at, group in sorted(counts)
    )


def waits_of(lanes: Iterable[tuple[str, int, datetime]]) -> tuple[QueueWait, ...]:
    """Return the queues of these lanes. Each lane is given by its needs, how many wait in it, and since when."""
    waits: dict[str, QueueWait] = {}
    for needs, count, since in lanes:
        queue, is_cut = queue_of(needs), count >= MOST_IN_A_LANE
        known = waits.get(queue) or QueueWait(queue, 0, since)
        waits[queue] = QueueWait(queue, known.count + count, min(known.since, since), known.is_cut or is_cut)
    return tuple(waits[queue] for queue in sorted(waits))


def lengths_of(lengths: Iterable[timedelta]) -> JobLengths | None:
    """Return the percentiles of these lengths; None if there is none."""
    known = sorted(lengths)
    if not known:
        return None
    return JobLengths(len(known), *(_percentile(known, share) for share in (0.05, 0.5, 0.95)))


def _percentile(known: Sequence[timedelta], share: float) -> timedelta:
    place = share * (len(known) - 1)
    low, high = known[floor(place)], known[ceil(place)]
    return low + (high - low) * (place - floor(place))


def days_of(cells: Iterable[tuple[date, OccurrenceStatus, int, timedelta]]) -> tuple[DayTally, ...]:
    """Return the days of these counts, in order. With each count comes the time that its runs took together."""
    days: list[DayTally] = []
    for day, some in groupby(sorted(cells, key=itemgetter(0)), key=itemgetter(0)):
        own = list(some)
        well = [(count, took) for _, status, count, took in own if status is OccurrenceStatus.COMPLETED]
        count, took = sum(run[0] for run in well), sum((run[1] for run in well), timedelta(0))
        days.append(DayTally(day, tally_of((cell[1], cell[2]) for cell in own), took / count if count else None))
    return tuple(days)


def failures_of(parts: Iterable[FailureKind], limit: int) -> tuple[FailureKind, ...]:
    """Return these failures with one entry for each fingerprint, most frequent first, then newest first.

    `with_headlines` adds what they said.
    """
    by_print = sorted(parts, key=attrgetter("fingerprint"))
    failures = [_together(list(some)) for _, some in groupby(by_print, key=attrgetter("fingerprint"))]
    failures.sort(key=lambda failure: (failure.count, failure.last_at, failure.fingerprint), reverse=True)
    return tuple(failures[:limit])


def _together(parts: Sequence[FailureKind]) -> FailureKind:
    last = max(parts, key=lambda part: (part.last_at, part.last_id))
    jobs = tuple(sorted({id_ for part in parts for id_ in part.job_ids}))
    count, first_at = sum(part.count for part in parts), min(part.first_at for part in parts)
    return replace(last, count=count, job_ids=jobs, first_at=first_at)


def with_headlines(failures: Iterable[FailureKind], errors: Mapping[str, str | None]) -> tuple[FailureKind, ...]:
    """Return the failures with the headline of the newest of each; `errors` are by id of occurrence."""
    return tuple(replace(failure, headline=headline(errors.get(failure.last_id) or "")) for failure in failures)


def why_of(reason: str | None, error: str | None) -> str:
    """Return why an occurrence ended or waits: the headline of its error, else its reason."""
    return headline(error) if error else reason or ""


# --------------------------------------------------------------------------------------------------------- checks


def _aware(what: str, given: datetime) -> None:
    assert given.tzinfo is UTC or given.utcoffset() is not None, f"{what} knows no offset from UTC: {given}"


def _in_order(after: datetime, through: datetime) -> None:
    _aware("after", after)
    _aware("through", through)
    if through <= after:
        raise refused("through", through.isoformat(), f"must be later than after, {after.isoformat()}")


def _some_jobs(job_ids: tuple[str, ...] | None, most: int = MOST_JOBS) -> None:
    if job_ids is not None and len(job_ids) > most:
        raise refused("jobs", f"{len(job_ids):,} names", f"must be at most {most:,} here", "fewer jobs")
