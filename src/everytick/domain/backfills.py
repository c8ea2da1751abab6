"""Backfills: what one asks for, where it stands, and what a plan sees of it.

A backfill asks for the past instants of one job that have no occurrence. It is planned, approved, and
then makes a few occurrences at a time: as many as its pace, its job and the slots of the lane allow.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from everytick.domain.policies import Overlap
from everytick.domain.values import value

RATE = 60
"""Starts a minute, unless the backfill names another rate: one a second."""

FASTEST_RATE = 6_000
"""Most starts a minute: a plan makes 100 occurrences, and a backfill is planned once a second."""

OPEN_LIMIT = 10
"""Most backfills of one job that are approved and not filled yet. A plan reads all of them."""

WINDOW = timedelta(minutes=1)
"""The time that a rate is about."""


class BackfillStatus(StrEnum):
    """Where a backfill stands. `filled` says that all its occurrences exist, and some may still run."""

    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"
    FILLED = "filled"
    COMPLETED = "completed"
    CANCELED = "canceled"


LEADS_TO = {
    BackfillStatus.RUNNING: (BackfillStatus.PLANNED, BackfillStatus.PAUSED),
    BackfillStatus.PAUSED: (BackfillStatus.RUNNING,),
    BackfillStatus.CANCELED: (BackfillStatus.PLANNED, BackfillStatus.RUNNING, BackfillStatus.PAUSED),
}
"""The statuses that people may set, each with those that it may follow."""


@value
class BackfillOrder:
    """What a backfill asks for: the instants in `(after, through]`, with `again` also those that have an occurrence.

    The definitions of their time name them, with `as_of_now` the newest one. `rate` is how many may start
    in a minute, `count` how many there were when it was planned; None if they were too many to count.
    """

    key: str
    after: datetime
    through: datetime
    again: bool = False
    as_of_now: bool = False
    newest_first: bool = False
    overlap: Overlap | None = None
    rate: int = RATE
    count: int | None = None
    reason: str = ""
    by: str = ""


@value
class Recent:
    """What became lately of the occurrences of a backfill.

    `unstarted` have not begun, `started` began within the last minute. `ended` ended since the pace was
    last judged, `failed` of them did not end well.
    """

    unstarted: int = 0
    started: int = 0
    ended: int = 0
    failed: int = 0


@value
class OpenBackfill:
    """What a plan sees of a backfill that is approved: what is left in `(after, through]`, and how it went so far.

    `pace` is how many may start in a minute now, judged at `paced_at`; `filled_at` is when it last made an
    occurrence. `existing` are the ids of occurrences that exist already, whole for `(known_after, known_through]`.
    `latency` is how long the store took to answer the planner, if that was measured.
    """

    id: str
    order: BackfillOrder
    after: datetime
    through: datetime
    created: int
    pace: int
    paced_at: datetime
    filled_at: datetime | None = None
    recent: Recent = Recent()
    existing: frozenset[str] = frozenset()
    known_after: datetime | None = None
    known_through: datetime | None = None
    latency: timedelta | None = None


@value
class Filling:
    """What a plan did for a backfill: the occurrences that it makes for it, what is left, and the pace from now on.

    `status` is FILLED once nothing is left, and CANCELED if its job is removed for good.
    """

    key: str
    after: datetime
    through: datetime
    pace: int
    paced_at: datetime
    filled_at: datetime | None
    ids: tuple[str, ...] = ()
    status: BackfillStatus = BackfillStatus.RUNNING


@value(frozen=True)
class BackfillRecord:
    """A backfill as people see it: what it asks for, where it stands, and what became of its occurrences.

    `created` have an occurrence by now: `done` ended well, `failed` did not, `canceled` were canceled or skipped,
    `running` have begun and `waiting` have not. `pace` is how many start in a minute at most, now. `behind` is the
    id of the backfill of the same job that goes first.
    """

    id: str
    job_id: str
    job: str
    order: BackfillOrder
    status: BackfillStatus
    planned_at: datetime
    after: datetime
    through: datetime
    pace: int
    created: int = 0
    done: int = 0
    failed: int = 0
    canceled: int = 0
    running: int = 0
    waiting: int = 0
    approved_at: datetime | None = None
    approved_by: str = ""
    changed_by: str = ""
    ended_at: datetime | None = None
    behind: str | None = None

    @property
    def left(self) -> int | None:
        """How many instants still get an occurrence; None if they were too many to count."""
        if self.status not in (BackfillStatus.PLANNED, BackfillStatus.RUNNING, BackfillStatus.PAUSED):
            return 0
        if self.is_filled:
            return 0
        return None if self.order.count is None else max(self.order.count - self.created, 0)

    @property
    def is_filled(self) -> bool:
        """Whether every instant has its occurrence, or never will have."""
        return self.ended_at is not None

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left to do."""
        return self.status is BackfillStatus.COMPLETED or (
            self.status is BackfillStatus.CANCELED and not self.running and not self.waiting
        )

    @property
    def time_left(self) -> timedelta | None:
        """How long it takes at least until the last one starts, at its present pace; None if that is not known."""
        return None if self.left is None else self.left * WINDOW / self.pace


def shown_status(stored: BackfillStatus, active: int) -> BackfillStatus:
    """Return the status that people see: one that is filled runs until its last occurrence has ended."""
    if stored is not BackfillStatus.FILLED:
        return stored
    return BackfillStatus.RUNNING if active else BackfillStatus.COMPLETED
