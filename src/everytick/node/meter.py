"""The meter: counts what this node has committed, in plain numbers, for those who ask how the node is doing.

It is fed with whole batches after their commits and knows no format: `everytick.metrics` makes series of it. Jobs
beyond the limit are counted together, so that neither memory nor the answer grows with the number of jobs. What it
costs is part of every figure of `bench/end_to_end_sqlite.py` and `bench/end_to_end_postgres.py`: it cannot be left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from everytick.domain.occurrence import Cause
from everytick.domain.policies import Strategy
from everytick.domain.statuses import ENDED, AttemptStatus, OccurrenceStatus
from everytick.node.settings import JOB_LIMIT
from everytick.stores.base import Commit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from everytick.domain.decisions import Plan, Span
    from everytick.domain.job import Job
    from everytick.domain.snapshots import JobSnapshot
    from everytick.domain.steps import OccurrenceEnd, OccurrenceLife, RunRow, Step
    from everytick.node.occurrence import OwnedOccurrence
    from everytick.stores.base import Claim

_K = TypeVar("_K")

OTHER = "_other"
"""The name under which all further jobs are counted."""

_MANY = 10_000
"""What a span counts for that holds more instants than were counted."""

_ASKED_SECONDS = 600.0
"""Numbers that cost time are counted only for so long after they were asked for."""

_COMMITTED, _SCHEDULE, _SUCCESS = Commit.COMMITTED, Cause.SCHEDULE, AttemptStatus.SUCCESS
_PENDING, _COMPLETED = OccurrenceStatus.PENDING, OccurrenceStatus.COMPLETED
_NO_TIME = timedelta(0)

_STRATEGIES = {
    Strategy.EXECUTE_ALL: "full_backfill",
    Strategy.BOUNDED_WINDOW: "full_backfill",
    Strategy.EXECUTE_LAST: "latest_only",
    Strategy.COMPRESSED: "latest_only",
    Strategy.MARK_AS_MISSED: "skip",
}
"""The words of S0-107 for our strategies."""


def _bounds(seconds: str) -> tuple[timedelta, ...]:
    return tuple(timedelta(seconds=float(bound)) for bound in seconds.split())


LENGTHS = _bounds("0.01 0.05 0.1 0.5 1 5 10 30 60 300 900 1800 3600 7200 21600 86400")
"""The buckets of how long something runs: from a heartbeat to a job of a whole day."""

DELAYS = _bounds("0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 60 300 1800 3600 21600")
"""The buckets of how late something starts."""

ANSWERS = _bounds("0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10")
"""The buckets of how long the store takes to answer."""


class Histogram:
    """How many lengths of time were no longer than each bound, and what all of them add up to."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(
        self, bounds: tuple[timedelta, ...], counts: list[int] | None = None, total: timedelta = _NO_TIME
    ) -> None:
        self.bounds, self.counts, self.total = bounds, counts or [0] * (len(bounds) + 1), total

    def __add__(self, other: Histogram) -> Histogram:
        """Return both as one; they have the same bounds."""
        counts = [own + others for own, others in zip(self.counts, other.counts, strict=True)]
        return Histogram(self.bounds, counts, self.total + other.total)

    def observe(self, length: timedelta) -> None:
        """Count one. A clock that was set back makes no time negative."""
        if length < self.bounds[0]:
            self.counts[0] += 1
        else:
            self.counts[bisect_left(self.bounds, length)] += 1
        self.total += length


class JobCounts:
    """What was counted of one job, or of all jobs beyond the limit.

    `plain` are the ends of the commonest kind: a scheduled run of one task that succeeded at its first attempt. They
    are in no other number. `plain_lengths` are the lengths of such runs, which are those of their tasks too, and
    `plain_delays` how late they started, which is how long they were ready: they are in no other histogram.
    """

    __slots__ = (
        "attempts",
        "delays",
        "duplicates",
        "ends",
        "id",
        "last_run",
        "lengths",
        "lost",
        "name",
        "plain",
        "plain_delays",
        "plain_lengths",
        "recovered",
        "skipped",
        "stale",
        "task",
        "task_lengths",
    )

    def __init__(self, id: str, name: str, task: str) -> None:
        self.id, self.name, self.task = id, name, task
        self.plain = self.stale = self.duplicates = self.lost = 0
        self.ends: defaultdict[tuple[OccurrenceStatus, Cause | None], int] = defaultdict(int)
        self.attempts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.skipped: defaultdict[str, int] = defaultdict(int)
        self.recovered: defaultdict[str, int] = defaultdict(int)
        self.lengths, self.delays = Histogram(LENGTHS), Histogram(DELAYS)
        self.plain_lengths, self.plain_delays = Histogram(LENGTHS), Histogram(DELAYS)
        self.task_lengths = {task: Histogram(LENGTHS)}
        self.last_run: datetime | None = None

    def all_ends(self) -> dict[tuple[OccurrenceStatus, Cause | None], int]:
        """Return how often the job ended how, by cause; None where the cause is not known."""
        return _with(self.ends, (_COMPLETED, _SCHEDULE), self.plain)

    def all_attempts(self) -> dict[tuple[str, str], int]:
        """Return how often each task ended how."""
        return _with(self.attempts, (self.task, _SUCCESS), self.plain)

    def all_lengths(self) -> Histogram:
        """Return how long the runs of the job took."""
        return self.lengths + self.plain_lengths

    def all_delays(self) -> Histogram:
        """Return how late its scheduled runs started."""
        return self.delays + self.plain_delays

    def all_task_lengths(self) -> dict[str, Histogram]:
        """Return how long the attempts of each task took."""
        return {**self.task_lengths, self.task: self.task_lengths[self.task] + self.plain_lengths}


def _with(counted: dict[_K, int], key: _K, more: int) -> dict[_K, int]:
    counts = dict(counted)
    if more:
        counts[key] = counts.get(key, 0) + more
    return counts


class Meter:
    """Counts for one application in one process, over all starts of its node.

    Lengths of time are measured while the meter is asked at least every ten minutes, and in the first ten; all other
    numbers always.
    """

    def __init__(self, job_limit: int = JOB_LIMIT) -> None:
        self.limit = job_limit
        """How many jobs are counted one by one."""
        self._counts_of: dict[str, JobCounts] = {}
        self.jobs: list[JobCounts] = []
        """What was counted of each job that has a label of its own, and last of the others together."""
        self._other: JobCounts | None = None
        self.claims = Histogram(DELAYS)
        """How long occurrences that are not plain were ready before a node claimed them."""
        self.operations: dict[str, Histogram] = {}
        """How long the store took to answer, by verb."""
        self.failures: defaultdict[str, int] = defaultdict(int)
        """How often it did not answer, or refused the question, by verb."""
        self._asked_at = monotonic()

    def asked(self) -> None:
        """Measure lengths for the next ten minutes."""
        self._asked_at = monotonic()

    @property
    def _is_measuring(self) -> bool:
        return monotonic() - self._asked_at < _ASKED_SECONDS

    def labels(self, jobs: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return the label of each of these jobs, given by id and name: its name, or the one that all others share."""
        label_of = {counts.id: counts.name for counts in self.jobs if counts is not self._other}
        left = self.limit - len(label_of)
        for id_, name in jobs:
            if id_ in label_of:
                label_of[id_] = name
            elif left > 0:
                label_of[id_], left = name, left - 1
            else:
                label_of[id_] = OTHER
        return label_of

    def all_claims(self) -> Histogram:
        """Return how long occurrences were ready before a node claimed them."""
        return sum((counts.plain_delays for counts in list(self.jobs)), self.claims)

    # ----------------------------------------------------------------------------------------------------- what is told

    def steps(self, written: Iterable[tuple[OwnedOccurrence, Step, Commit | None]]) -> None:
        """Count the ends and attempts of steps that were committed."""
        counts_of, is_measuring = self._counts_of, self._is_measuring
        for occurrence, step, answer in written:
            end, rows = step.end, step.rows
            if end is not None and len(rows) == 1 and answer is _COMMITTED:
                header, life = end.header, end.life
                if life.status is _COMPLETED and header.cause is _SCHEDULE and life.number == 1:
                    counts = counts_of.get(header.job_id) or self._counts(occurrence.claim.job)
                    if counts.task == rows[0].task or counts is self._other:
                        counts.plain += 1
                        if is_measuring:
                            self._measure(counts, life, header.scheduled_for, rows[0])
                        continue
            if answer is _COMMITTED:
                self.step(occurrence.claim, step)

    def _measure(self, counts: JobCounts, life: OccurrenceLife, scheduled_for: datetime, row: RunRow) -> None:
        """Measure a plain end."""
        started_at, ended_at = life.started_at, life.ended_at
        if started_at is None or ended_at is None or row.started_at is None or life.ready_at is None:
            return
        counts.last_run = started_at
        if row.started_at == started_at:
            counts.plain_lengths.observe(ended_at - started_at)
        else:
            counts.lengths.observe(ended_at - started_at)
            counts.task_lengths[counts.task].observe(ended_at - row.started_at)
        if life.ready_at == scheduled_for:
            counts.plain_delays.observe(started_at - scheduled_for)
        else:
            counts.delays.observe(started_at - scheduled_for)
            self.claims.observe(started_at - life.ready_at)

    def step(self, claim: Claim, step: Step) -> None:
        """Count one step that was committed."""
        counts, is_measuring = self._counts(claim.job), self._is_measuring
        if step.end is not None:
            counts.ends[step.end.status, claim.header.cause] += 1
            if is_measuring:
                self._measure_end(counts, step.end)
        for row in step.rows:
            if row.ended_at is not None and row.attempt is not None:
                task = OTHER if counts is self._other else row.task
                counts.attempts[task, row.attempt] += 1
                if is_measuring and row.started_at is not None:
                    lengths = counts.task_lengths.setdefault(task, Histogram(LENGTHS))
                    lengths.observe(row.ended_at - row.started_at)

    def _measure_end(self, counts: JobCounts, end: OccurrenceEnd) -> None:
        header, life = end.header, end.life
        if life.started_at is None or life.ended_at is None:
            return
        counts.last_run = life.started_at
        counts.lengths.observe(life.ended_at - life.started_at)
        if header.cause is _SCHEDULE:
            counts.delays.observe(life.started_at - header.scheduled_for)
        if header.found is _PENDING and not life.lost and life.ready_at is not None:
            self.claims.observe(life.started_at - life.ready_at)

    def plan(self, snapshot: JobSnapshot, plan: Plan) -> None:
        """Count what a committed plan made of late instants, and what it decided not to run."""
        job = snapshot.editions[-1].job
        counts, strategy = self._counts(job), _STRATEGIES[job.settings.recovery.strategy]
        for creation in plan.creations:
            if creation.status in ENDED:
                counts.skipped[creation.why] += 1
                counts.ends[creation.status, creation.cause] += 1
            elif creation.late and creation.cause is _SCHEDULE:
                counts.recovered[strategy] += 1
        for ending in plan.endings:
            counts.skipped[ending.why] += ending.status is not OccurrenceStatus.CANCELED
            counts.ends[ending.status, None] += 1
        for span in plan.spans:
            self._span(counts, span, strategy)

    def _span(self, counts: JobCounts, span: Span, strategy: str) -> None:
        count = _MANY if span.count is None else span.count
        counts.skipped[span.why] += count
        if span.status is OccurrenceStatus.MISSED and strategy == "skip":
            counts.recovered[strategy] += count

    def stale(self, snapshot: JobSnapshot) -> None:
        """Count a plan that came too late: another node, or a person, was faster."""
        counts = self._counts(snapshot.editions[-1].job)
        counts.stale += 1

    def answered(self, verb: str, seconds: float) -> None:
        """Count a question that the store has answered."""
        histogram = self.operations.get(verb)
        if histogram is None:
            histogram = self.operations[verb] = Histogram(ANSWERS)
        histogram.observe(timedelta(seconds=seconds))

    def duplicate(self, job_id: str) -> None:
        """Count a run that another node has recorded too."""
        counts = self._counts_of.get(job_id) or self._shared()
        counts.duplicates += 1

    def lost(self, job: Job) -> None:
        """Count an occurrence whose node fell silent."""
        counts = self._counts(job)
        counts.lost += 1

    def _counts(self, job: Job) -> JobCounts:
        counts = self._counts_of.get(job.id)
        if counts is None:
            if len(self.jobs) - (self._other is not None) < self.limit:
                counts = JobCounts(job.id, job.name, job.tasks[0].name if len(job.tasks) == 1 else "")
                self.jobs.insert(len(self.jobs) - (self._other is not None), counts)
            else:
                counts = self._shared()
            self._counts_of[job.id] = counts
        return counts

    def _shared(self) -> JobCounts:
        """Return the counts of all jobs beyond the limit as one; their tasks are one too."""
        if self._other is None:
            self._other = JobCounts("", OTHER, OTHER)
            self.jobs.append(self._other)
        return self._other
