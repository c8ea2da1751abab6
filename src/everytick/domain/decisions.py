"""What was decided: a Plan for one job, with the reason of every instant in words people can read."""

from datetime import datetime, timedelta
from enum import StrEnum

from everytick.domain.config import Overrides
from everytick.domain.occurrence import Cause
from everytick.domain.payload import Payload
from everytick.domain.snapshots import Adjustment, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value


class Why(StrEnum):
    """Why an instant did not become a run, or what made one wait."""

    ON_TIME = "on time"
    LATE = "late, kept by recovery"
    ASKED = "asked for"
    ADJUSTED = "skipped by hand"
    MOVED = "moved"
    RESCHEDULED = "rescheduled"
    DISABLED = "disabled"
    PAUSED = "paused"
    NOT_LAST = "not last"
    MISSED = "missed"
    WINDOW = "window"
    COMPRESSED = "compressed"
    CAP = "cap"
    OVERLAP = "overlap"
    QUEUE_FULL = "queue full"
    SUPERSEDED = "superseded"
    SUCCESSFUL = "already successful"
    REMOVED = "removed"
    RECOVERY = "recovery changed"
    UNVERIFIED = "unverified"


Refusal = tuple[Why, str]
"""Why something does not run, and what more there is to say about it."""


@value
class Creation:
    """An occurrence that shall exist: pending or queued, or skipped or missed where somebody asked in vain.

    It stands for the instants in `(covers_after, covers_through]`; `overrides` are those of an
    amended occurrence. `keeps` are the tasks that are not run again: their results are those
    of the occurrence it is a replay of.
    """

    id: str
    scheduled_for: datetime
    status: OccurrenceStatus
    version: int
    cause: Cause
    line_at: datetime
    ready_at: datetime
    covers_after: datetime | None
    covers_through: datetime
    late: bool
    why: Why
    detail: str = ""
    payload: Payload | None = None
    replay_of: str | None = None
    overrides: Overrides | None = None
    keeps: tuple[str, ...] = ()


@value
class Span:
    """Instants in `(after, through]` that do not run, all for one reason; `through` is the last of them.

    `count` is exact up to 10,000 and None above.
    """

    status: OccurrenceStatus
    why: Why
    detail: str
    after: datetime
    through: datetime
    version: int
    count: int | None


@value
class Ending:
    """An occurrence that ends without having run to its end."""

    id: str
    status: OccurrenceStatus
    why: Why
    detail: str = ""


@value
class RequestAnswer:
    """A request that was dealt with; a backfill that was cut goes on after `done_through`."""

    key: str
    cause: Cause
    done_through: datetime | None = None


@value
class Plan:
    """What one look at a job decided; it is committed whole or, from an old snapshot, not at all.

    `cancels_before` asks everybody to stop who was busy before anything else of this plan is
    written and stood in line before that moment: a snapshot does not name all of very many.

    `cancels_because` names what asks those to stop that the plan cancels.

    `awaits_ends` says that somebody waits for the end of one that is active: from now on, every
    end and every park of those that are active wakes the job. Other ends make nobody look.

    `next_run` is the first time after this look at which the job will run, as far as is known.

    `narrowed` says that nothing is left that an edit of `recovery` ends.
    """

    job_id: str
    revision: int
    woken: int
    watermark: datetime
    wake_at: datetime | None
    creations: tuple[Creation, ...] = ()
    releases: tuple[str, ...] = ()
    endings: tuple[Ending, ...] = ()
    cancels: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    answers: tuple[RequestAnswer, ...] = ()
    used: tuple[Adjustment, ...] = ()
    rescheduled: bool = False
    cancels_before: datetime | None = None
    awaits_ends: bool = False
    next_run: datetime | None = None
    narrowed: bool = False
    cancels_because: str = ""


PUT_OFF_FOR = timedelta(minutes=1)
"""A job whose plan cannot be made or written is looked at again after this time: soon enough to be noticed once what is
wrong with it was mended, and seldom enough to cost nothing."""


def put_off(snapshot: JobSnapshot, now: datetime) -> Plan:
    """Return a plan that decides nothing and looks at the job again in a minute."""
    return Plan(snapshot.job_id, snapshot.revision, snapshot.woken, snapshot.watermark, now + PUT_OFF_FOR)
