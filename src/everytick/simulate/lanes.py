"""One job in a simulation: what a store would keep of it, shown to `plan` and changed as its plan says."""

from __future__ import annotations

from bisect import insort
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from everytick.domain.snapshots import PLAN_LIMIT, Active, AdjustmentKind, Ended, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from everytick.domain.decisions import Creation, Plan
    from everytick.domain.occurrence import Cause

_S = OccurrenceStatus


class Run:
    """One occurrence on its way from its creation to its end."""

    __slots__ = (
        "begun_at", "cause", "ends_at", "id", "is_running", "lane", "line_at", "ready_at", "scheduled_for",
        "started_at", "turn",
    )  # fmt: skip

    def __init__(
        self, lane: Lane, id_: str, scheduled_for: datetime, line_at: datetime, ready_at: datetime, cause: Cause
    ) -> None:
        self.lane, self.id, self.scheduled_for, self.cause = lane, id_, scheduled_for, cause
        self.line_at, self.ready_at = line_at, ready_at
        self.started_at: datetime | None = None
        self.begun_at: datetime | None = None
        self.ends_at: datetime | None = None
        self.is_running = False
        # As stores give out what is ready: by priority, then by age.
        self.turn = (lane.priority, line_at, id_)

    def __lt__(self, other: Run) -> bool:
        return self.turn < other.turn

    def active(self, status: OccurrenceStatus) -> Active:
        """Return it as a plan sees it."""
        return Active(self.id, self.line_at, self.scheduled_for, status, self.cause)


class Lane:
    """What is known of one job at a virtual moment."""

    __slots__ = (
        "adjustments", "awaits_ends", "busy", "editions", "job", "last_end", "last_success", "length", "limit",
        "pauses", "priority", "requests", "reschedule", "retire_at", "waiting", "wake_at", "watermark",
    )  # fmt: skip

    def __init__(self, snapshot: JobSnapshot, length: timedelta, limit: timedelta | None = None) -> None:
        self.job = snapshot.editions[-1].job
        self.length, self.limit, self.priority = length, limit, -self.job.settings.priority
        self.watermark, self.wake_at, self.retire_at = snapshot.watermark, snapshot.wake_at, snapshot.retire_at
        self.editions, self.pauses, self.reschedule = snapshot.editions, snapshot.pauses, snapshot.reschedule
        self.adjustments = {each.at: each for each in snapshot.adjustments}
        self.requests = {each.key: each for each in snapshot.requests}
        self.last_end, self.last_success = snapshot.last_end, snapshot.last_success
        self.busy = {each.id: self._known(each) for each in snapshot.busy}
        self.waiting = sorted(self._known(each) for each in snapshot.waiting)
        self.awaits_ends = True

    def _known(self, active: Active) -> Run:
        found = Run(self, active.id, active.scheduled_for, active.line_at, active.line_at, active.cause)
        found.is_running = active.status in (_S.RUNNING, _S.AWAITING_RETRY)
        return found

    def snapshot(self) -> JobSnapshot:
        """Return what a plan may see."""
        busy, waiting = self.busy, self.waiting
        return JobSnapshot(
            self.job.id,
            0,
            0,
            self.watermark,
            self.editions,
            self.wake_at,
            self.retire_at,
            self.pauses,
            tuple(self.adjustments.values()) if self.adjustments else (),
            self.reschedule,
            tuple(islice(self.requests.values(), PLAN_LIMIT)) if self.requests else (),
            len(self.requests) > PLAN_LIMIT,
            tuple(
                each.active(_S.RUNNING if each.is_running else _S.PENDING) for each in islice(busy.values(), PLAN_LIMIT)
            )
            if busy
            else (),
            len(busy),
            self._shown() if waiting else (),
            len(waiting),
            self.last_end,
            self.last_success,
            True,
        )

    def _shown(self) -> tuple[Active, ...]:
        """The oldest in line, and the newest."""
        shown = self.waiting[:PLAN_LIMIT]
        if len(self.waiting) > PLAN_LIMIT:
            shown.append(self.waiting[-1])
        return tuple(each.active(_S.QUEUED) for each in shown)

    def settle(self, plan: Plan, now: datetime) -> None:
        """Keep what the plan decided about the job itself."""
        self.watermark, self.wake_at, self.awaits_ends = plan.watermark, plan.wake_at, plan.awaits_ends
        for answer in plan.answers:
            request = self.requests.pop(answer.key)
            if answer.done_through is not None:
                self.requests[answer.key] = replace(request, after=answer.done_through, requested_at=now)
        if self.adjustments:
            self._forget_adjustments(plan)
        if plan.rescheduled:
            self.reschedule = None
        if self.pauses:
            self.pauses = tuple(each for each in self.pauses if each.until is None or each.until > plan.watermark)
        if len(self.editions) > 1:
            later = [each for each in self.editions if each.in_force_after and each.in_force_after > plan.watermark]
            self.editions = (*self.editions[: len(self.editions) - len(later)][-1:], *later)

    def _forget_adjustments(self, plan: Plan) -> None:
        for used in plan.used:
            self.adjustments[used.at] = replace(self.adjustments[used.at], done=True)
        self.adjustments = {
            at: each
            for at, each in self.adjustments.items()
            if at > plan.watermark or (each.kind is AdjustmentKind.MOVE and each.vacates and not each.done)
        }

    def enter(self, creation: Creation) -> Run:
        """Take in an occurrence that was created, among the busy or in the line."""
        found = Run(self, creation.id, creation.scheduled_for, creation.line_at, creation.ready_at, creation.cause)
        if creation.status is _S.QUEUED:
            insort(self.waiting, found)
        else:
            self.busy[found.id] = found
        return found

    def release(self, id_: str) -> Run | None:
        """Let one in line go, if it is still there."""
        for position, each in enumerate(self.waiting):
            if each.id == id_:
                del self.waiting[position]
                self.busy[id_] = each
                return each
        return None

    def drop(self, id_: str) -> Run | None:
        """Forget one that has not begun."""
        found = self.busy.get(id_)
        if found is not None and not found.is_running:
            return self.busy.pop(id_)
        return None if found is not None or self.release(id_) is None else self.busy.pop(id_)

    def end(self, run: Run, now: datetime, *, well: bool) -> None:
        """Forget one that has ended, and remember that it did."""
        self.busy.pop(run.id, None)
        self.last_end = Ended(run.scheduled_for, run.started_at, now)
        if well:
            self.last_success = self.last_end
