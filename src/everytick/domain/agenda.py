"""The planned starts of all jobs together, and a proposal that spreads them: what pages show of both."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from everytick.domain.job import Job
from everytick.domain.questions import JobLengths
from everytick.domain.schedule import Schedule, bound
from everytick.domain.snapshots import PausedSpan
from everytick.domain.values import value

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
"""Time zones differ by quarters of an hour: from quarters, the hours of any zone can be summed."""


def alike(jobs: Iterable[tuple[Job, datetime | None, T]]) -> list[list[T]]:
    """Return what comes with each job and its last end, in groups of jobs that have the same instants.

    Two are in one group if their schedules have the same text and do not depend on the job.
    """
    texts: dict[int, tuple[Schedule, str]] = {}
    groups: dict[object, list[T]] = {}
    for job, last_end, given in jobs:
        rule = job.schedule
        key: object = job.id
        if bound(rule, job.id, last_end) is rule:
            # By identity, as long as the value lives: jobs share theirs, and to write ten thousand texts takes 25 ms.
            _, text = texts.get(id(rule)) or texts.setdefault(id(rule), (rule, str(rule)))
            key = text, job.settings.start, job.settings.end
        groups.setdefault(key, []).append(given)
    return list(groups.values())


@value(frozen=True)
class AgendaJob:
    """A job as the agenda sees it: how long it usually takes, and the pause that holds for it."""

    job: Job
    last_end: datetime | None = None
    lengths: JobLengths | None = None
    pause: PausedSpan | None = None

    def pauses(self, instant: datetime) -> bool:
        """Whether the pause covers an instant."""
        pause = self.pause
        return pause is not None and pause.since < instant and (pause.until is None or instant <= pause.until)


@value(frozen=True)
class AgendaGroup:
    """Jobs with the same instants. `is_cut`: they have more after the last one that is listed.

    The instants go some hours beyond the agenda: a week in which the clock goes back is longer than others.
    """

    jobs: tuple[AgendaJob, ...]
    instants: Sequence[datetime]
    is_cut: bool = False

    def between(self, after: datetime, through: datetime) -> Sequence[datetime]:
        """Return the instants in `(after, through]`."""
        return self.instants[bisect_right(self.instants, after) : bisect_right(self.instants, through)]

    def count(self, after: datetime, through: datetime) -> int:
        """Return how many instants are in `(after, through]`. Behind the last listed one they are estimated."""
        known = len(self.between(after, through))
        beyond = through - max(after, self.instants[-1])
        return known + round(beyond / self.apart) if self.is_cut and beyond > timedelta(0) else known

    def starting(self, instant: datetime) -> int:
        """Return how many of the jobs start at an instant: those that no pause holds."""
        return sum(not job.pauses(instant) for job in self.jobs)

    @property
    def apart(self) -> timedelta:
        """The mean time between two listed instants."""
        return (self.instants[-1] - self.instants[0]) / max(len(self.instants) - 1, 1)


@value(frozen=True)
class Crowd:
    """An instant that several jobs share: how many start, how many of them wait for a slot, and how long the last."""

    at: datetime
    starts: int
    jobs: tuple[str, ...]
    waiting: int
    longest: timedelta


@value(frozen=True)
class ZoneChange:
    """A change of the clock of one zone, and the jobs that it concerns: by what becomes of them, and by which rule."""

    zone: str
    at: datetime
    first: datetime
    last: datetime
    is_fold: bool
    jobs: Mapping[tuple[str, str], tuple[str, ...]]

    @property
    def job_count(self) -> int:
        """How many jobs have an instant in the hours concerned."""
        return len({name for names in self.jobs.values() for name in names})


@value(frozen=True)
class FleetAgenda:
    """The planned starts of the coming days. `uncounted` is how many jobs were left out since time was up.

    `quarters` has the number of starts until `through`, by quarters of an hour since 1970. `slots` is what the living
    nodes have.
    """

    now: datetime
    through: datetime
    slots: int
    groups: tuple[AgendaGroup, ...]
    quarters: Mapping[int, int]
    crowds: tuple[Crowd, ...]
    changes: tuple[ZoneChange, ...]
    uncounted: int = 0

    def starts(self, after: datetime, through: datetime) -> int:
        """Return how many starts are planned in `(after, through]`."""
        return sum(group.count(after, through) * len(group.jobs) for group in self.groups)


@value(frozen=True)
class ProposedOffset:
    """A job and by how much its instants are moved: before, and as proposed."""

    name: str
    before: timedelta
    after: timedelta


@value(frozen=True)
class Spreading:
    """The proposed offsets of the jobs that move, and the load of each minute from `start` on, before and after.

    `untried` is how many jobs have a window and were not looked at, since there was too much to try.
    """

    start: datetime
    moves: tuple[ProposedOffset, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    untried: int = 0

    @property
    def peak_before(self) -> int:
        """The most runs at once as it is."""
        return max(self.before, default=0)

    @property
    def peak_after(self) -> int:
        """The most runs at once as proposed."""
        return max(self.after, default=0)


# ---------------------------------------------------------------------------------------------------------- overview

MOST_NAMED = 100
"""Most jobs that an overview names of one crowd or clock change: ten thousand may start at midnight."""


@value(frozen=True)
class QuarterLoad:
    """How many starts are planned in the 15 minutes after an instant. The first quarter may have begun."""

    at: datetime
    starts: int


@value(frozen=True)
class ConcernedJobs:
    """Jobs that a change of the clock concerns in one way: what becomes of their instants, and by which rule.

    `count` is how many they are; the first 100 are named.
    """

    fate: str
    rule: str
    count: int
    jobs: tuple[str, ...]


@value(frozen=True)
class ZoneChangeOverview:
    """A change of the clock of one zone, and the jobs that it concerns.

    It skips, or repeats, the times of its own clock from `first` to `last`, which are texts without an offset.
    """

    zone: str
    at: datetime
    first: str
    last: str
    is_fold: bool
    concerned: tuple[ConcernedJobs, ...]


@value(frozen=True)
class AgendaOverview:
    """An agenda in a bounded size: the starts by quarters of an hour, the largest crowds, the changes of clocks.

    Quarters without a start are left out. A crowd names 100 of its jobs, its `starts` is how many they are.
    """

    now: datetime
    through: datetime
    slots: int
    starts: int
    quarters: tuple[QuarterLoad, ...]
    crowds: tuple[Crowd, ...]
    changes: tuple[ZoneChangeOverview, ...]
    uncounted: int = 0


def overview_of(agenda: FleetAgenda, crowds: int) -> AgendaOverview:
    """Return the overview of an agenda, with so many crowds."""
    quarters = tuple(
        QuarterLoad(EPOCH + number * QUARTER, agenda.quarters[number]) for number in sorted(agenda.quarters)
    )
    return AgendaOverview(
        agenda.now,
        agenda.through,
        agenda.slots,
        sum(agenda.quarters.values()),
        quarters,
        tuple(replace(crowd, jobs=crowd.jobs[:MOST_NAMED]) for crowd in agenda.crowds[:crowds]),
        tuple(map(_change_overview, agenda.changes)),
        agenda.uncounted,
    )


def _change_overview(change: ZoneChange) -> ZoneChangeOverview:
    concerned = tuple(
        ConcernedJobs(fate, rule, len(names), names[:MOST_NAMED]) for (fate, rule), names in sorted(change.jobs.items())
    )
    first, last = (wall.replace(tzinfo=None).isoformat() for wall in (change.first, change.last))
    return ZoneChangeOverview(change.zone, change.at, first, last, change.is_fold, concerned)
