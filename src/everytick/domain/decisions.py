"""What a plan decides about one job, with a reason that people can read for every instant."""

from datetime import datetime, timedelta
from enum import StrEnum

from everytick.domain.backfills import Filling
from everytick.domain.config import Overrides
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.payload import Payload
from everytick.domain.rollouts import RolloutVerdict
from everytick.domain.snapshots import Adjustment, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.upcoming import ComingRun
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
    DEPENDENCY = "dependency"


Refusal = tuple[Why, str]
"""Why something does not run, and what more there is to say about it."""


@value
class Creation:
    """An occurrence that the plan creates: pending or queued; skipped or missed if it was asked for and must not run.

    It stands for the instants in `(covers_after, covers_through]`. `overrides` belong to an
    amended occurrence. A replay does not run the tasks in `keeps` again: it takes over their results.
    What is `in_lane` only gets a share of the slots of each node.
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
    in_lane: bool = False


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
    """An occurrence that the plan ends before it has run to its end."""

    id: str
    status: OccurrenceStatus
    why: Why
    detail: str = ""


@value
class RequestAnswer:
    """A request that the plan has answered."""

    key: str
    cause: Cause


@value
class Turned:
    """A definition that has waited until its moment; `narrowed_at` is that moment where `recovery` changed with it."""

    job: Job
    narrowed_at: datetime | None = None


@value
class Plan:
    """What a planner decided about one job. A store commits it whole, or not at all if the snapshot is old.

    `cancels` names occurrences to stop. `cancels_before` stops, besides, all that were busy before
    this plan is written and whose place in line is before that moment, since a snapshot does not
    name all of very many. `cancels_because` is the reason for both.

    `awaits_ends` says that something follows from the end of an active occurrence. From now on
    every end and every park of an active one wakes the job. Without it, ends wake no planner.

    `next_run` is the first time after this plan at which the job will run, as far as is known.

    `narrowed` says that all is ended that an edit of `recovery` left without a reason.

    `tells` wakes each job that depends on this one and has an occurrence in line.
    `filling` is what the plan did for the job's open backfill. `lifts` lets what is unclaimed of the job out of the
    lane for what is late, since an instant on time waits behind it.

    `coming` are the runs to come that the job's horizon shows. It is None for a job without one.

    `turned` is a version that has waited and came into force: what no node has claimed takes it.
    `verdict` is what the outcomes of a rollout have decided: the node asks for that edit once the plan is committed.
    `stopped_at` is the instant of a stop or restart schedule that the plan obeys, where the watermark stays before it:
    no later plan obeys it again.
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
    tells: bool = False
    coming: tuple[ComingRun, ...] | None = None
    filling: Filling | None = None
    turned: Turned | None = None
    lifts: bool = False
    verdict: RolloutVerdict | None = None
    stopped_at: datetime | None = None


PUT_OFF_FOR = timedelta(minutes=1)
"""A job whose plan cannot be made or written is planned again after this time. A minute after the mistake is mended the
job runs again, and one try a minute costs nothing."""


def put_off(snapshot: JobSnapshot, now: datetime) -> Plan:
    """Return a plan that decides nothing, so that the job is planned again in a minute."""
    return Plan(snapshot.job_id, snapshot.revision, snapshot.woken, snapshot.watermark, now + PUT_OFF_FOR)
