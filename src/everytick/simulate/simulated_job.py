"""One job in a simulation: its rows as a store would have them, read by `plan` and changed by its plans."""

from __future__ import annotations

from bisect import insort
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from everytick.domain.ids import occurrence_id
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import PLAN_LIMIT, Active, AdjustmentKind, Ended, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.upcoming import edition_in_force, in_force
from everytick.simulate.record import JobTally
from everytick.simulate.upstreams import dependence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from everytick.domain.decisions import Creation, Plan
    from everytick.domain.snapshots import Dependence, Request

_S = OccurrenceStatus

_AHEAD = 512
"""How many instants are asked of a schedule at once: many take little longer than one."""


class Run:
    """One occurrence from its creation to its end. Its id is computed at the first access."""

    __slots__ = (
        "_id",
        "begun_at",
        "begun_in",
        "cause",
        "created_at",
        "ends_at",
        "in_share",
        "instant",
        "is_running",
        "late",
        "line_at",
        "ready_at",
        "scheduled_for",
        "simulated",
        "started_at",
    )

    def __init__(
        self,
        simulated: SimulatedJob,
        id_: str | None,
        scheduled_for: datetime,
        line_at: datetime,
        ready_at: datetime,
        cause: Cause,
    ) -> None:
        self.simulated, self._id, self.scheduled_for, self.cause = simulated, id_, scheduled_for, cause
        self.line_at, self.ready_at = line_at, ready_at
        self.created_at = line_at
        self.instant = scheduled_for
        """The instant it stands for: a moved one stands at another time."""
        self.started_at: datetime | None = None
        self.begun_at: datetime | None = None
        self.begun_in = 0
        """The quarter of an hour in which it began."""
        self.ends_at: datetime | None = None
        self.is_running = self.late = self.in_share = False
        """`in_share` says that it only gets a share of the slots, since it is late."""

    @property
    def id(self) -> str:
        """The id of an occurrence of a schedule follows from its job and its instant."""
        if self._id is None:
            self._id = occurrence_id(self.simulated.job.id, self.scheduled_for)
        return self._id

    def __lt__(self, other: Run) -> bool:
        """The order in which stores give ready occurrences to nodes: by priority, then by age."""
        mine, theirs = self.simulated.priority, other.simulated.priority
        if mine != theirs:
            return mine < theirs
        if self.line_at != other.line_at:
            return self.line_at < other.line_at
        return self.id < other.id

    def active(self, status: OccurrenceStatus) -> Active:
        """Return it as a snapshot has it."""
        return Active(self.id, self.line_at, self.scheduled_for, status, self.cause, late=self.late)


class SimulatedJob:
    """The state of one job at a virtual moment."""

    __slots__ = (
        "_coming", "_ended", "_succeeded", "_succeeded_before", "adjustments", "allowed", "awaits_ends", "busy",
        "dependence", "dependents", "editions", "is_too_long", "job", "narrowed_at", "needs", "pauses", "priority",
        "requests", "reschedule", "retire_at", "stopped_at", "succeeded_for", "tally", "upcoming", "waiting", "wake_at",
        "watermark",
    )  # fmt: skip

    def __init__(
        self,
        snapshot: JobSnapshot,
        length: timedelta,
        limit: timedelta | None = None,
        later: Iterable[Request] = (),
    ) -> None:
        self.job = in_force(snapshot.editions, snapshot.watermark)
        self.tally = JobTally(self.job.name, length)
        self.is_too_long = limit is not None and length > limit
        self.allowed = length if limit is None else min(length, limit)
        self.priority = -self.job.settings.priority
        self.watermark, self.wake_at, self.retire_at = snapshot.watermark, snapshot.wake_at, snapshot.retire_at
        self.editions, self.pauses, self.reschedule = snapshot.editions, snapshot.pauses, snapshot.reschedule
        self.adjustments = {adjustment.at: adjustment for adjustment in snapshot.adjustments}
        self.requests = {(request.cause, request.key): request for request in (*snapshot.requests, *later)}
        self.narrowed_at, self.stopped_at = snapshot.narrowed_at, snapshot.stopped_at
        self._ended: Ended | Run | None = snapshot.last_end
        self._succeeded: Ended | Run | None = snapshot.last_success
        self._succeeded_before: Ended | Run | None = snapshot.other_success
        self.busy: dict[Run, None] = {self._known(occurrence): None for occurrence in snapshot.busy}
        self.waiting = sorted(self._known(occurrence) for occurrence in snapshot.waiting)
        self.awaits_ends = True
        self.dependence: Dependence | None = None
        self.needs: dict[str, SimulatedJob] = {}
        self.dependents: list[SimulatedJob] = []
        self.succeeded_for: dict[datetime, datetime] = {}
        """When the run of each instant succeeded, where other jobs depend on it."""
        self._coming: list[datetime] = []
        self.upcoming: datetime | None = None
        """The instant whose plan is known in advance, if nothing runs or waits then."""

    def _known(self, active: Active) -> Run:
        run = Run(self, active.id, active.scheduled_for, active.line_at, active.line_at, active.cause)
        run.is_running, run.late = active.status in (_S.RUNNING, _S.AWAITING_RETRY), active.late
        return run

    def snapshot(self, now: datetime) -> JobSnapshot:
        """Return the snapshot for a plan."""
        busy, waiting = self.busy, self.waiting
        come = [request for request in self.requests.values() if request.has_come(now)]
        to_come = (request.line_at for request in self.requests.values() if not request.has_come(now))
        return JobSnapshot(
            job_id=self.job.id,
            revision=0,
            woken=0,
            watermark=self.watermark,
            editions=self.editions,
            wake_at=self.wake_at,
            retire_at=self.retire_at,
            pauses=self.pauses,
            adjustments=tuple(self.adjustments.values()) if self.adjustments else (),
            reschedule=self.reschedule,
            requests=tuple(come[:PLAN_LIMIT]),
            more_requests=len(come) > PLAN_LIMIT,
            busy=tuple(run.active(_S.RUNNING if run.is_running else _S.PENDING) for run in islice(busy, PLAN_LIMIT))
            if busy
            else (),
            busy_count=len(busy),
            waiting=self._shown() if waiting else (),
            waiting_count=len(waiting),
            last_end=_ended(self._ended),
            last_success=_ended(self._succeeded),
            other_success=_ended(self._succeeded_before),
            narrowed_at=self.narrowed_at,
            next_request_at=min(to_come, default=None),
            dependence=None if self.dependence is None else dependence(self, self.dependence, self._in_view()),
            is_needed=bool(self.dependents),
            stopped_at=self.stopped_at,
        )

    @property
    def last_success(self) -> Ended | None:
        """The last success as a plan sees it."""
        return _ended(self._succeeded)

    def _shown(self) -> tuple[Active, ...]:
        return tuple(run.active(_S.QUEUED) for run in self._in_view())

    def _in_view(self) -> list[Run]:
        """Return the oldest waiting occurrences, the newest one, and the newest one of the schedule."""
        shown = self.waiting[:PLAN_LIMIT]
        if len(self.waiting) > PLAN_LIMIT:
            own = (run for run in reversed(self.waiting[PLAN_LIMIT:]) if run.cause is Cause.SCHEDULE)
            last = {self.waiting[-1], *islice(own, 1)}
            shown += sorted(last)
        return shown

    def settle(self, plan: Plan, now: datetime) -> None:
        """Apply the plan's changes of the job itself."""
        self.watermark, self.wake_at, self.awaits_ends = plan.watermark, plan.wake_at, plan.awaits_ends
        for answer in plan.answers:
            del self.requests[answer.cause, answer.key]
        if self.adjustments:
            self._forget_adjustments(plan)
        if plan.rescheduled:
            self.reschedule = None
        if plan.narrowed:
            self.narrowed_at = None
        if plan.stopped_at is not None:
            self.stopped_at = plan.stopped_at
        if self.pauses:
            self.pauses = tuple(pause for pause in self.pauses if pause.until is None or pause.until > plan.watermark)
        if len(self.editions) > 1:
            current = edition_in_force(self.editions, plan.watermark)
            self.editions = self.editions[self.editions.index(current) :]
            self.job = in_force(self.editions, now)
            self.priority = -self.job.settings.priority

    def lift(self) -> None:
        """Let what has not begun start like what is on time: an instant on time waits behind it."""
        for run in (*self.busy, *self.waiting):
            run.in_share = run.in_share and run.is_running

    def _forget_adjustments(self, plan: Plan) -> None:
        for used in plan.used:
            self.adjustments[used.at] = replace(self.adjustments[used.at], done=True)
        self.adjustments = {
            at: adjustment
            for at, adjustment in self.adjustments.items()
            if at > plan.watermark
            or (adjustment.kind is AdjustmentKind.MOVE and adjustment.vacates and not adjustment.done)
        }

    def look_ahead(self, through: datetime) -> None:
        """Find the next instant whose plan is as plain as the last one, up to `through`."""
        coming, watermark = self._coming, self.watermark
        while coming and coming[-1] <= watermark:
            coming.pop()
        if not coming:
            bound = self.job.bound(self.job.created_at)
            self._coming = coming = list(bound.instants(watermark, through, _AHEAD))[::-1]
        self.upcoming = coming[-1] if coming else None

    def tick(self, through: datetime) -> Run:
        """Add the upcoming occurrence, as its plan would."""
        instant = self.upcoming
        assert instant is not None, f"{self.job.name} has nothing upcoming"
        run = Run(self, None, instant, instant, instant, Cause.SCHEDULE)
        self.busy[run] = None
        self.watermark, self.awaits_ends = instant, False
        self.look_ahead(through)
        self.wake_at = self.upcoming
        return run

    def enter(self, creation: Creation, now: datetime) -> Run:
        """Add a created occurrence to the busy or to the waiting ones."""
        run = Run(self, creation.id, creation.scheduled_for, creation.line_at, creation.ready_at, creation.cause)
        run.late, run.created_at, run.instant = creation.late, now, creation.covers_through
        run.in_share = creation.in_lane
        if creation.status is _S.QUEUED:
            insort(self.waiting, run)
        else:
            self.busy[run] = None
        return run

    def release(self, id_: str) -> Run | None:
        """Move a waiting occurrence to the busy ones, if it still waits."""
        for position, run in enumerate(self.waiting):
            if run.id == id_:
                del self.waiting[position]
                self.busy[run] = None
                return run
        return None

    def drop(self, id_: str) -> Run | None:
        """Remove an occurrence that has not begun."""
        run = next((run for run in self.busy if run.id == id_), None)
        if run is not None and run.is_running:
            return None
        if (run := run or self.release(id_)) is not None:
            del self.busy[run]
        return run

    def end(self, run: Run, now: datetime, *, well: bool) -> None:
        """Remove an occurrence that has ended, and record its end."""
        self.busy.pop(run, None)
        run.ends_at = now
        self._ended = run
        if well:
            self._succeeded, self._succeeded_before = run, self._succeeded
            if self.dependents:
                self.succeeded_for.setdefault(run.instant, now)


def _ended(last: Ended | Run | None) -> Ended | None:
    """The last end as a plan sees it."""
    if not isinstance(last, Run):
        return last
    assert last.ends_at is not None, f"{last.id} has ended at no time"
    return Ended(last.scheduled_for, last.started_at, last.ends_at, last.id)
