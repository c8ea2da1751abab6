"""Promises: by when a job has started, finished or succeeded, and what is stored about a promise that was broken.

`start_by` and `finish_by` are about each instant of the schedule, `success_within` about the job as a whole. A breach
is one row of instants that were not kept, or one stretch of time without a success. It ends with the first instant
that is kept again, or the next success.
"""

from datetime import datetime, timedelta

from everytick.domain.config import Settings
from everytick.domain.decisions import Span
from everytick.domain.limits import BrakeRecord
from everytick.domain.occurrence import Cause
from everytick.domain.promise_policies import Promised, PromiseKind
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value

READ_AT_ONCE = 200
"""Most runs, and most spans, that are read to judge one promise. The next round goes on after them."""

JUDGED_BY_ANY_AFTER = timedelta(seconds=10)
"""How long a promise is left to the nodes that may run its job, which have what its receivers need. Then any node
judges it."""

BREACHES_KEPT = timedelta(days=400)
"""How long a breach is kept after its end."""


def promises_of(settings: Settings) -> dict[PromiseKind, Promised]:
    """Return what a job promises; most jobs promise nothing."""
    promised: dict[PromiseKind, Promised] = {}
    if settings.success_within is not None:
        promised[PromiseKind.SUCCESS_WITHIN] = settings.success_within
    if settings.start_by is not None:
        promised[PromiseKind.START_BY] = settings.start_by
    if settings.finish_by is not None:
        promised[PromiseKind.FINISH_BY] = settings.finish_by
    return promised


@value(frozen=True)
class Breach:
    """A promise that was broken, from the first instant that was not kept to the end of it.

    `broken_for` is that instant; for `success_within` it is the last success, or the moment from which one is awaited.
    `due_at` is by when it was promised, `found_at` when a node saw it. `last_for` is the newest instant that was not
    kept, and `count` how many there are. `ended_at` is when it was kept again, or when the promise or its job was
    taken back: then `is_withdrawn`.
    """

    kind: PromiseKind
    broken_for: datetime
    due_at: datetime
    found_at: datetime
    last_for: datetime
    count: int = 1
    reason: str = ""
    occurrence_id: str | None = None
    ended_at: datetime | None = None
    is_withdrawn: bool = False

    def __str__(self) -> str:
        more = f", the first of {self.count} that were not kept" if self.count > 1 else ""
        what = {
            PromiseKind.SUCCESS_WITHIN: "a success",
            PromiseKind.START_BY: f"the start for {self.broken_for.isoformat()}",
            PromiseKind.FINISH_BY: f"the end for {self.broken_for.isoformat()}",
        }[self.kind]
        return f"{self.kind}: {what} was promised by {self.due_at.isoformat()}{more}: {self.reason}"


@value(frozen=True)
class PromiseState:
    """Where one promise of a job stands.

    Instants through `judged_through` are judged; of `success_within` it is the moment from which a success is awaited.
    What lies in `(held_after, held_through]` is excused: the job was paused, disabled or not active. `held_through` is
    None while its end is not known. `check_at` is when the next breach could be there; it may be too early,
    and never too late. None: nothing is to come. `breach` is the one that goes on. `revision` counts the changes of all
    this.
    """

    kind: PromiseKind
    judged_through: datetime
    check_at: datetime | None
    held_after: datetime | None = None
    held_through: datetime | None = None
    breach: Breach | None = None
    revision: int = 1


@value
class PromisedRun:
    """One occurrence, as much of it as a promise needs."""

    id: str
    scheduled_for: datetime
    status: OccurrenceStatus
    cause: Cause = Cause.SCHEDULE
    started_at: datetime | None = None
    ended_at: datetime | None = None
    covers_after: datetime | None = None
    covers_through: datetime | None = None
    reason: str | None = None


@value
class PromiseSnapshot:
    """Everything that a judgement of one promise may see.

    `seen` was read before `runs` and `spans`: what a plan decided since is among them. Both begin after
    `state.judged_through` and are in order; of each at most READ_AT_ONCE. `brake` holds the starts of the job now.
    """

    job_id: str
    state: PromiseState
    seen: JobSnapshot
    runs: tuple[PromisedRun, ...] = ()
    spans: tuple[Span, ...] = ()
    brake: BrakeRecord | None = None


@value
class Judgement:
    """What was decided about one promise. A store writes it whole, or not at all if the state has changed since.

    `breaches` are those that began, went on or ended, in order; `state.breach` is the one of them that goes on.
    """

    job_id: str
    state: PromiseState
    breaches: tuple[Breach, ...] = ()


@value
class OwedBreach:
    """A breach whose beginning or end the receivers have to be told of."""

    job_id: str
    breach: Breach
    is_begin_owed: bool
    is_end_owed: bool


@value
class DuePromises:
    """Promises that may be broken now, and breaches that were found a while ago and not told to the receivers."""

    now: datetime
    snapshots: tuple[PromiseSnapshot, ...] = ()
    owed: tuple[OwedBreach, ...] = ()


@value(frozen=True)
class PromiseRecord:
    """Where one promise of a job stands, for people."""

    job_id: str
    job: str
    state: PromiseState


@value(frozen=True)
class BreachRecord:
    """A breach with its job, for people."""

    job_id: str
    job: str
    breach: Breach
