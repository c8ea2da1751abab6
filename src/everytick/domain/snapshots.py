"""What a plan may see: a snapshot of one job, bounded in size, read in one moment, never written back.

A store reads the snapshot, `deciding` makes a plan from it, and the store commits the plan if
the snapshot still holds.
"""

from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from everytick.domain import ids
from everytick.domain.backfills import OpenBackfill
from everytick.domain.config import Overrides
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.payload import Payload
from everytick.domain.policies import Overlap
from everytick.domain.rollouts import Rollout, TrialCounts
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value

PLAN_LIMIT = 100
"""Most creations and releases in one plan. The next plan goes on."""

BUSY_LIMIT = 100
"""Most busy occurrences in a snapshot. Their count is exact; a plan needs no more of them than it can create."""


class Missed(StrEnum):
    """What becomes of the instants of a pause once it is over."""

    SKIP = "skip"
    CATCH_UP = "catch_up"
    LAST = "last"


MissedWord: TypeAlias = Literal["skip", "catch_up", "last"]
"""The same as a caller writes it."""


@value
class Edition:
    """A definition and the moment after which it is in force; None means from the beginning.

    A later version that is in force takes the place of every earlier one. `by` is who wrote it. `follows` is the
    windowed version whose window ends before this one, or the one whose rollout was rolled back: only that asked for
    it. `rollout` are the stages that are left of a version on trial, which is never in force.
    """

    job: Job
    in_force_after: datetime | None = None
    by: str = ""
    follows: int | None = None
    rollout: Rollout | None = None

    @property
    def has_waited(self) -> bool:
        """Whether it came, or comes, into force later than it was written."""
        since, written = self.in_force_after, self.job.updated_at
        return since is not None and written is not None and since > written


@value
class PausedSpan:
    """A span `(since, until]` in which the schedule is held, until a moment, or until a person resumes it.

    `resumed_by` is None until then. It says who did, in an empty text where that is not known.
    """

    since: datetime
    until: datetime | None = None
    missed: Missed = Missed.SKIP
    reason: str = ""
    by: str = ""
    resumed_by: str | None = None

    @property
    def detail(self) -> str:
        """Who held the schedule and why, and who let it go, for those who ask about its instants."""
        held = " ".join(filter(None, (self.by and f"by {self.by}", self.reason and f"({self.reason})")))
        return ", ".join(filter(None, (held, self.resumed_by and f"resumed by {self.resumed_by}")))

    @property
    def told_at(self) -> datetime:
        """When it was last spoken of, as far as that is known: a resume has set its end."""
        return self.since if self.resumed_by is None or self.until is None else max(self.since, self.until)

    def brought_back(self, now: datetime) -> "PausedSpan":
        """Return it with a beginning and a resume that are not later than now; an end that was named stays."""
        until = self.until if self.resumed_by is None or self.until is None else min(self.until, now)
        return replace(self, since=min(self.since, now), until=until)

    def holds(self, now: datetime) -> bool:
        """Tell whether the job is paused now."""
        return self.until is None or now < self.until


class AdjustmentKind(StrEnum):
    """What a person asked for one single future occurrence."""

    SKIP = "skip"
    MOVE = "move"
    AMEND = "amend"


@value
class Adjustment:
    """One instant that is skipped, moved to another time, or run with `overrides` of its own.

    What was moved is `done` once it exists at its new time; it may be amended too. One that is moved to its own
    place runs as the schedule says: that undoes what was said of it before. `told_at` is when it was last spoken of.
    """

    at: datetime
    kind: AdjustmentKind
    to: datetime | None = None
    reason: str = ""
    by: str = ""
    done: bool = False
    overrides: Overrides | None = None
    told_at: datetime | None = None

    @property
    def vacates(self) -> bool:
        """Whether nothing runs in its old place: it is skipped, or moved to another time."""
        return self.kind is not AdjustmentKind.AMEND and self.to != self.at

    @property
    def is_undone(self) -> bool:
        """Whether it runs as the schedule says, after all."""
        return self.to == self.at

    @property
    def by_whom(self) -> str:
        """Who spoke of it last, and why."""
        return " ".join(filter(None, (self.by and f"by {self.by}", self.reason and f"({self.reason})")))

    @property
    def detail(self) -> str:
        """How the planned run was changed, by whom and why."""
        if self.is_undone:
            return f"left as scheduled {self.by_whom}".rstrip()
        moved = f"moved from {self.at.isoformat()}" if self.vacates else ""
        done = " and ".join(filter(None, (moved, "amended" if self.overrides is not None else "")))
        return " ".join(filter(None, (done, self.by_whom)))


@value
class Rescheduled:
    """The next run, set by hand to `to`. The instants after `made_at` and before `to` do not run."""

    made_at: datetime
    to: datetime
    by: str = ""


ASKED_NOW = datetime.max.replace(tzinfo=UTC)
"""The `requested_at` of a request that takes the store's time when it is stored."""


@value
class Request:
    """Something a person or program asked for; `overlap` is the rule named with it, else it waits in line.

    It is never stored as asked for later than at that moment.

    Every request asks for one occurrence, of cause backfill for the past instant `scheduled_for`, which the
    definition of its time names. `keeps` are the tasks whose results a replay takes over from its original.

    `call` is drawn at random by each call that names a key: a repeat of the same call finds its
    own occurrence, whatever became of it. Without it the key itself was drawn by the call.
    `nth` counts the occurrences that were asked for by the key; the store sets it. For a
    definition that is run at once it is the version.

    `due_at` is the time the run was asked for. No plan sees the request before it. Without it the
    run was asked for at once.
    """

    key: str
    cause: Cause
    requested_at: datetime
    payload: Payload | None = None
    overlap: Overlap | None = None
    reason: str = ""
    by: str = ""
    replay_of: str | None = None
    scheduled_for: datetime | None = None
    covers_after: datetime | None = None
    covers_through: datetime | None = None
    keeps: tuple[str, ...] = ()
    call: int | None = None
    nth: int = 1
    due_at: datetime | None = None

    @property
    def line_at(self) -> datetime:
        """Its place in line: the time it was asked for, if that was still to come, else the time of the request."""
        return self.requested_at if self.due_at is None else max(self.due_at, self.requested_at)

    def has_come(self, now: datetime) -> bool:
        """Whether a plan may see it. One that was asked for at once may, also after the clock was set back."""
        return self.due_at is None or self.due_at <= now

    @property
    def detail(self) -> str:
        """Who asked and for what reason."""
        return ", ".join(filter(None, (self.by and f"by {self.by}", self.reason)))

    def occurrence_id(self, job_id: str) -> str:
        """Return the id of what it asks for."""
        match self.cause:
            case Cause.REPLAY:
                return ids.replay_id(job_id, self.key, self.nth)
            case Cause.CREATE:
                return ids.create_id(job_id, self.nth)
            case Cause.BACKFILL:
                assert self.scheduled_for is not None, "it says which instant it fills"
                return ids.occurrence_id(job_id, self.scheduled_for)
            case _:
                return ids.trigger_id(job_id, self.key, self.nth)


@value
class Past:
    """The definitions of the time that a backfill or request of this key asks for, before those of the snapshot.

    They are all there are, or those for the time through this moment, or since it where the newest instants
    come first: the rest comes with a later snapshot.
    """

    key: str
    editions: tuple[Edition, ...]
    through: datetime | None = None
    since: datetime | None = None


@value
class Active:
    """An occurrence that has not ended, as much of it as a plan needs."""

    id: str
    line_at: datetime
    scheduled_for: datetime
    status: OccurrenceStatus
    cause: Cause = Cause.SCHEDULE
    superseded_by_next: bool = False
    late: bool = False


@value
class Ended:
    """The last occurrence that ended, or that ended well."""

    scheduled_for: datetime
    started_at: datetime | None
    ended_at: datetime
    id: str = ""


@value
class UpstreamRun:
    """What is known of a job's runs for one instant.

    `succeeded_at` is the end of the first that succeeded. `is_active` says that one is not over,
    and `status` is that of the schedule's own, if it exists.
    """

    instant: datetime
    succeeded_at: datetime | None = None
    is_active: bool = False
    status: OccurrenceStatus | None = None


@value
class Upstream:
    """A job on which this one depends, under the name that the definition has for it, as it stands now.

    `called` is its name now. `state` is a word for why nothing of it may come: paused, disabled, removed or
    deleted. `runs` are those for the instants that wait, where the same instant counts.
    """

    name: str
    job_id: str
    called: str = ""
    state: str = ""
    watermark: datetime | None = None
    last_success: Ended | None = None
    runs: tuple[UpstreamRun, ...] = ()


@value
class InLine:
    """One that waits in line: when it was created, and the instant it stands for."""

    id: str
    created_at: datetime
    instant: datetime


@value
class Dependence:
    """What a plan knows where `depends_on` is set: the other jobs, and the times of those in line that are shown."""

    upstreams: tuple[Upstream, ...] = ()
    in_line: tuple[InLine, ...] = ()


@value
class JobSnapshot:
    """Everything `plan` may see of one job.

    `editions` are in order, the last one being the newest; `busy` holds at most 100 and
    `waiting` the oldest PLAN_LIMIT in line, the newest, and the newest of the schedule's own,
    while the counts are whole.
    `awaited` says that the end of every busy one wakes the job. `other_success` is the success
    before the last one. `narrowed_at` is when an edit changed `recovery`, until a plan has ended
    what waited without a reason since.
    `pasts` are the definitions that open backfills need and `editions` no longer holds.
    `requests` are those that have come, of a retired job all; `next_request_at` is when the next one comes.
    `dependence` is there where a definition says `depends_on`. `is_needed` says that another job depends on this one.
    `backfill` is the first one that is approved and not filled; `more_backfills` says that others wait behind it.
    `trial` is what became of the occurrences of a version on trial; it is there where the newest edition is one.
    `stopped_at` is the newest instant of a stop or restart schedule that was obeyed while the watermark was before it.
    """

    job_id: str
    revision: int
    woken: int
    watermark: datetime
    editions: tuple[Edition, ...]
    wake_at: datetime | None = None
    retire_at: datetime | None = None
    pauses: tuple[PausedSpan, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    reschedule: Rescheduled | None = None
    requests: tuple[Request, ...] = ()
    more_requests: bool = False
    busy: tuple[Active, ...] = ()
    busy_count: int = 0
    waiting: tuple[Active, ...] = ()
    waiting_count: int = 0
    last_end: Ended | None = None
    last_success: Ended | None = None
    awaited: bool = True
    other_success: Ended | None = None
    narrowed_at: datetime | None = None
    pasts: tuple[Past, ...] = ()
    next_request_at: datetime | None = None
    dependence: Dependence | None = None
    is_needed: bool = False
    backfill: OpenBackfill | None = None
    more_backfills: bool = False
    trial: TrialCounts | None = None
    stopped_at: datetime | None = None
