"""The rows of the store in memory: attempts, jobs, nodes and occurrences."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import islice, takewhile
from typing import TypeAlias

from everytick.domain.backfills import BackfillOrder, BackfillStatus
from everytick.domain.config import Overrides, Unset
from everytick.domain.decisions import Creation, Span
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Log, Progress
from everytick.domain.occurrence import Attempt, Cause, Occurrence
from everytick.domain.payload import Payload
from everytick.domain.policies import Retention
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import OwedBreach, PromiseState
from everytick.domain.questions import band_of
from everytick.domain.snapshots import PLAN_LIMIT, Adjustment, Edition, Ended, PausedSpan, Request, Rescheduled
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus
from everytick.domain.steps import Rules, RunState, deadline, rules_of
from everytick.domain.upcoming import NOTHING_COMING, Coming
from everytick.domain.values import by_name, value
from everytick.stores.memory.ordered import Ordered, Place

# Bound once: to look a member up in its class takes as long as to call a function.
_PENDING, _AWAITING_RETRY = OccurrenceStatus.PENDING, OccurrenceStatus.AWAITING_RETRY
_COMPLETED = OccurrenceStatus.COMPLETED


@dataclass(slots=True, eq=False)
class AttemptRow:
    """One try at a task. Its ids are computed in `record`."""

    status: AttemptStatus = AttemptStatus.PENDING
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    progress: Progress | None = None
    log: Log | None = None
    node: str | None = None
    handed_to: str | None = None

    def record(self, run_id: str, number: int) -> Attempt:
        """Return the record that people see."""
        return Attempt(
            run_id,
            number,
            self.status,
            self.started_at,
            self.ended_at,
            self.error,
            progress=self.progress,
            log=self.log,
            node=self.node,
            handed_to=self.handed_to,
        )


@dataclass(slots=True, eq=False)
class BackfillRow:
    """One backfill of a job. `filled` are its occurrences in order, each with the status it had when it was deleted.

    `place` counts the approvals of the job's backfills: they run in this order.
    """

    id: str
    order: BackfillOrder
    planned_at: datetime
    after: datetime
    through: datetime
    pace: int
    paced_at: datetime
    status: BackfillStatus = BackfillStatus.PLANNED
    place: int = 0
    filled_at: datetime | None = None
    approved_at: datetime | None = None
    approved_by: str = ""
    changed_by: str = ""
    ended_at: datetime | None = None
    filled: dict[str, OccurrenceStatus | None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class JobRow:
    """One job: its definitions, the state of its planning, the facts that wait for a plan, and its occurrences.

    `editions` are the versions that are in force or still to be decided by, `timeline` are all of them. `turned` is the
    number of the one that came into force last.

    `busy` and `waiting` are the occurrences that have not ended, in the order of the line; `history` are all.
    `planned_woken` is the `woken` that the last plan had read: if they differ, `wake_at` is when a verb woke the job.
    `keys` has, for each key that a caller named, how often it was used, and the newest call.
    `needs_jobs` has the id of each job on which this one depends, by the name that its definition has for it.
    `is_needed` says that another job depends on this one, or did so before the last edit.
    `requests` are the open ones, `asked` the same by the time from which a plan may see them; `places` has the place
    of each in `asked`. `backfills` are by key.
    `promises` are those that the job makes now; `breaches` are kept by kind and first instant.
    `forgotten` has, by day and status, how many occurrences were deleted and how long they took together.
    """

    id: str
    name: str
    editions: list[Edition]
    watermark: datetime
    created_at: datetime
    needs: str
    turned: int = 1
    revision: int = 1
    woken: int = 1
    planned_woken: int = 0
    wake_at: datetime | None = None
    next_run: datetime | None = None
    removed_at: datetime | None = None
    removed_by: str = ""
    retire_at: datetime | None = None
    undefined_since: datetime | None = None
    pauses: list[PausedSpan] = field(default_factory=list)
    adjustments: dict[datetime, Adjustment] = field(default_factory=dict)
    reschedule: Rescheduled | None = None
    requests: dict[tuple[Cause, str], Request] = field(default_factory=dict)
    asked: Ordered[Request] = field(default_factory=Ordered)
    places: dict[tuple[Cause, str], Place] = field(default_factory=dict)
    keys: dict[tuple[Cause, str], tuple[int, int | None]] = field(default_factory=dict)
    versions: dict[int, tuple[Job, Rules]] = field(default_factory=dict)
    timeline: dict[int, Edition] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    last_end: Ended | None = None
    last_success: Ended | None = None
    other_success: Ended | None = None
    run_count: int = 0
    last_error: str | None = None
    narrowed_at: datetime | None = None
    stopped_at: datetime | None = None
    plan_token: int | None = None
    parked_reason: str | None = None
    last_failure_at: datetime | None = None
    needs_jobs: dict[str, str] = field(default_factory=dict)
    is_needed: bool = False
    coming: Coming = NOTHING_COMING
    backfills: dict[str, BackfillRow] = field(default_factory=dict)
    busy: Ordered["OccurrenceRow"] = field(default_factory=Ordered)
    waiting: Ordered["OccurrenceRow"] = field(default_factory=Ordered)
    history: Ordered["OccurrenceRow"] = field(default_factory=Ordered)
    promises: dict[PromiseKind, PromiseState] = field(default_factory=dict)
    breaches: dict[tuple[PromiseKind, datetime], OwedBreach] = field(default_factory=dict)
    forgotten: dict[tuple[date, OccurrenceStatus], tuple[int, timedelta]] = field(default_factory=dict)

    @property
    def job(self) -> Job:
        """The newest definition. All that are in force or to come are enabled, or none is."""
        return self.editions[-1].job

    @property
    def retention(self) -> Retention:
        """How long ended occurrences are kept. A version that still waits, or is on trial, has no say in it."""
        return self.versions[self.turned][0].settings.retention

    @property
    def newest(self) -> list[Edition]:
        """The newest edition and, where it follows a window, that of the window and the first one after it."""
        newest = self.editions[-1]
        follows = newest.follows
        return [newest] if follows is None else [self.edition(follows), self.edition(follows + 1), newest]

    def add(self, edition: Edition) -> None:
        """Keep a version, for ever."""
        self.timeline[edition.job.version] = edition
        self.versions[edition.job.version] = edition.job, rules_of(edition.job)

    def edition(self, version: int) -> Edition:
        """Return a version and the moment after which it is in force; None for the first version."""
        return self.timeline[version]

    def requests_by(self, until: datetime) -> tuple[list[Request], datetime | None]:
        """Return the open requests that a plan for this moment sees, and one more, and when the next one comes.

        A job that has retired by then shows all of them.
        """
        if self.retire_at is not None and self.retire_at <= until:
            return list(islice(self.asked, PLAN_LIMIT + 1)), None
        coming = next(self.asked.since((until + MICROSECOND,)), None)
        return list(islice(self.asked.through(until), PLAN_LIMIT + 1)), None if coming is None else coming.due_at

    def scheduled_for(self, instant: datetime) -> Iterator["OccurrenceRow"]:
        """Give the occurrences that stand at this very time."""
        return takewhile(lambda run: run.creation.scheduled_for == instant, self.history.since((instant,)))

    def open_backfills(self) -> list[BackfillRow]:
        """Return the backfills that are approved and not filled, in the order in which they run."""
        running = [backfill for backfill in self.backfills.values() if backfill.status is BackfillStatus.RUNNING]
        return sorted(running, key=lambda backfill: backfill.place)

    def pause_at(self, now: datetime) -> PausedSpan | None:
        """Return the pause that holds the schedule now."""
        return next((pause for pause in self.pauses if pause.holds(now)), None)

    def was_changed_after(self, moment: datetime) -> bool:
        """Whether its newest version, a pause, a resume, a reschedule or a stop is of a later time than this."""
        changes = [self.editions[-1].job.updated_at, self.stopped_at, *(pause.told_at for pause in self.pauses)]
        if self.reschedule is not None:
            changes.append(self.reschedule.made_at)
        return any(at is not None and at > moment for at in changes)

    def is_out_of_service(self, now: datetime) -> bool:
        """Whether it is disabled or retired: none of its occurrences is retried."""
        return not self.job.enabled or (self.retire_at is not None and self.retire_at <= now)

    def holds_back(self, cause: Cause, now: datetime) -> bool:
        """Whether no occurrence of this cause may start now: a pause holds the schedule, a disabled job holds all."""
        return not self.job.enabled or (cause is Cause.SCHEDULE and self.pause_at(now) is not None)


@dataclass(slots=True, eq=False)
class NodeRow:
    """One node: its last beat, the number of its beats, and the facts it told. Its beats are 0 once it has left."""

    beat_at: datetime
    beats: int = 0
    facts: NodeFacts | None = None


IndexEntry: TypeAlias = tuple[Ordered["OccurrenceRow"], Place]
"""An index that has the occurrence, and its place there."""


@dataclass(slots=True, eq=False)
class OccurrenceRow:
    """One occurrence: its creation, its status, and what its owner needs to go on.

    `awaited` says that something follows from its end, which then wakes the job. `found` is the status before the
    last claim, `node` the last node that ran it. `holds_place`: a limit counts its last claim, and its end rings the
    bell. The last three belong to `Tables`: its place in its job's line,
    among the claimable occurrences, and among the unreported ones.
    """

    handle: int
    id: str
    job: JobRow
    creation: Creation
    overrides: Overrides
    reason: str
    created_at: datetime
    line_at: datetime
    version: int
    status: OccurrenceStatus
    priority: int
    needs: str
    ready_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    execution_timeout: timedelta | None
    owner: str | None = None
    fence: int = 0
    token: int = 0
    node: str | None = None
    found: OccurrenceStatus = _PENDING
    started_at: datetime | None = None
    error: str | None = None
    number: int = 0
    claimed_at: datetime | None = None
    lost: int = 0
    cancel: str | None = None
    superseded_by_next: bool = False
    report_due: bool = False
    awaited: bool = False
    holds_place: bool = False
    runs: dict[str, RunState] = field(default_factory=dict)
    attempts: dict[tuple[str, int], AttemptRow] = field(default_factory=dict)
    line: Ordered["OccurrenceRow"] | None = None
    is_early: bool = False
    claim_entry: IndexEntry | None = None
    report_entry: IndexEntry | None = None

    @property
    def is_unclaimed(self) -> bool:
        """Whether a node may claim it, now or at `ready_at`. A retry of a disabled job waits until it is enabled."""
        if self.status is _AWAITING_RETRY:
            return self.owner is None and self.job.job.enabled
        return self.status is _PENDING

    @property
    def deadline_at(self) -> datetime | None:
        """When its execution timeout ends. An edit after its first claim does not move it."""
        return deadline(self.started_at, self.execution_timeout)

    @property
    def own_payload(self) -> Payload | None:
        """Its payload, if that is not its job's."""
        payload = self.overrides.get("payload") if self.overrides.items else None
        return None if isinstance(payload, Unset) else payload

    @property
    def took(self) -> timedelta | None:
        """How long it took, if it completed."""
        if self.status is not _COMPLETED or self.started_at is None or self.ended_at is None:
            return None
        return self.ended_at - self.started_at

    @property
    def band(self) -> str:
        """The band of its job, by the definition it ran under."""
        return band_of(self.job.versions[self.version][0])

    @property
    def day(self) -> tuple[date, OccurrenceStatus]:
        """The UTC day of its instant, and its status."""
        return self.creation.scheduled_for.date(), self.status

    def record(self) -> Occurrence:
        """Return the record that people see."""
        creation = self.creation
        return Occurrence(
            id=self.id,
            job_id=self.job.id,
            version=self.version,
            scheduled_for=creation.scheduled_for,
            status=self.status,
            cause=creation.cause,
            late=creation.late,
            covers_after=creation.covers_after,
            covers_through=creation.covers_through,
            line_at=self.line_at,
            ready_at=self.ready_at,
            owner=self.owner,
            fence=self.fence,
            started_at=self.started_at,
            ended_at=self.ended_at,
            error=self.error,
            overrides=self.overrides,
            replay_of=creation.replay_of,
            reason=self.reason,
            created_at=self.created_at,
            updated_at=self.updated_at,
            node=self.node,
        )


# Every plan builds some: from named fields, and as fast as by place.
new_row = by_name(OccurrenceRow)


@dataclass(slots=True)
class CountedStart:
    """One claim that a limit counts: as running while the occurrence of this handle has an owner, and as a start."""

    handle: int
    fence: int
    at: datetime


@value
class UnreadableJob:
    """A job whose definition this process cannot read, and why."""

    name: str
    reason: str
