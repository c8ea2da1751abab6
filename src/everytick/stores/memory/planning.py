"""The commit of plans: each is written whole, if its job still has the revision of the snapshot."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from everytick.domain.decisions import Plan, put_off
from everytick.domain.needs import on_time_needs
from everytick.domain.snapshots import AdjustmentKind
from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.domain.texts import PLAN_REFUSED
from everytick.domain.upcoming import NOTHING_COMING, Coming
from everytick.schedules.timezones import zone_data
from everytick.stores.base import Batch, Commit, CommitAnswer, CommitFailed, Committed, Offer
from everytick.stores.each_alone import each_alone
from everytick.stores.memory.backfills import write_filling
from everytick.stores.memory.base import Shared
from everytick.stores.memory.occurrences import UNSTARTED, Occurrences
from everytick.stores.memory.promises import keep_promises, recheck_promises
from everytick.stores.memory.rows import JobRow
from everytick.stores.memory.running import Execution
from everytick.stores.storing_rules import is_in_force

# Bound once: to look a member up in its class takes as long as to call a function.
_S = OccurrenceStatus
_COMMITTED, _STALE = Commit.COMMITTED, Commit.STALE


class PlanCommits:
    """Batches of plans, and the claims that come with them.

    If a plan is refused, `check_writable` tells whether the store refuses everything.
    """

    def __init__(
        self, shared: Shared, rows: "PlanRows", execution: Execution, check_writable: Callable[[], Awaitable[None]]
    ) -> None:
        self._shared, self._tables = shared, shared.tables
        self._rows, self._execution, self._check_writable = rows, execution, check_writable

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None) -> Committed:
        """Write each whole plan whose job still has the revision of the snapshot."""
        now = self._shared.now()
        if batch.is_ahead and now < batch.now:
            return Committed([Commit.STALE] * len(plans))
        # If a job has two plans, the first one makes the snapshot of the second stale.
        firsts = {plan.job_id: plan for plan in reversed(plans)}
        telling: list[str] = []

        async def write(some: Sequence[Plan]) -> Sequence[Commit]:
            # Before any is written: plans that are tried together are written together, or none of them.
            for plan in some:
                self._require_progress(plan)
            answers = [
                self._commit(plan, batch.token, now, telling) if firsts[plan.job_id] is plan else _STALE
                for plan in some
            ]
            while telling:
                self._wake_dependents(telling.pop(0), now)
            return answers

        async def set_aside(plan: Plan, reason: str) -> CommitAnswer:
            snapshot = next(seen for seen in batch.snapshots if seen.job_id == plan.job_id)
            answer = self._commit(put_off(snapshot, now), self._shared.tokens(), now, telling)
            if answer is Commit.COMMITTED:
                self._tables.jobs[plan.job_id].parked_reason = PLAN_REFUSED.format(reason=reason)
                return CommitFailed(reason)
            return answer

        answers = await each_alone(plans, write, "plans", set_aside, self._check_writable)
        if Commit.COMMITTED in answers:
            self._shared.bell.ring()
        return Committed(answers, () if offer is None else tuple(self._execution.claim(offer.scope, offer.limit)))

    def _commit(self, plan: Plan, token: int, now: datetime, telling: list[str]) -> Commit:
        """Write the plan unless its job has moved on. Add the job to `telling` if others wait for this plan."""
        row = self._tables.jobs.get(plan.job_id)
        if row is None:
            return _STALE
        if row.revision != plan.revision:
            # The token says that this very plan was written before and its answer was lost.
            return _COMMITTED if row.plan_token == token else _STALE
        self._rows.write(row, plan, token, now)
        if plan.tells:
            telling.append(row.id)
        return _COMMITTED

    def _require_progress(self, plan: Plan) -> None:
        row = self._tables.jobs.get(plan.job_id)
        if row is not None and row.revision == plan.revision:
            assert plan.watermark >= row.watermark, f"{row.name}: the watermark moved back"

    def _wake_dependents(self, job_id: str, now: datetime) -> None:
        """Wake the jobs that depend on this one and have an occurrence in line."""
        for id_ in self._tables.dependents[job_id]:
            if self._tables.jobs[id_].waiting:
                self._shared.wake(self._tables.jobs[id_], now)


class PlanRows:
    """One plan at a time, as rows."""

    def __init__(self, shared: Shared, occurrences: Occurrences) -> None:
        self._tables, self._occurrences = shared.tables, occurrences

    def write(self, row: JobRow, plan: Plan, token: int, now: datetime) -> None:
        """Write the plan of this job."""
        if plan.turned is not None:
            self._occurrences.turn(row, plan.turned.job, now)
            recheck_promises(row, now)
            keep_promises(self._tables, row, plan.turned.job, now)
        if plan.cancels_before is not None:
            self._ask_all_to_stop(row, plan.cancels_before, plan.cancels_because)
        if plan.filling is not None:
            write_filling(self._tables, row, plan.filling, now)
        for creation in plan.creations:
            self._occurrences.create(row, creation, now)
        if plan.lifts:
            for occurrence in (*row.busy, *row.waiting):
                if occurrence.owner is None:
                    self._tables.change(occurrence, needs=on_time_needs(occurrence.needs))
        # An occurrence that was canceled or claimed after the snapshot stays as it is: these writes check its status.
        for id_ in plan.releases:
            if self._occurrences.status(id_) is _S.QUEUED:
                self._occurrences.move(self._tables.occurrences[id_], _S.PENDING, now)
        for ending in plan.endings:
            if self._occurrences.status(ending.id) in UNSTARTED:
                reason = f"{ending.why} {ending.detail}".strip()
                self._occurrences.end(self._tables.occurrences[ending.id], ending.status, reason, now)
        for id_ in plan.cancels:
            # A person who asked before this plan has given the reason.
            if self._occurrences.status(id_) in ACTIVE and self._tables.occurrences[id_].cancel is None:
                self._tables.occurrences[id_].cancel = plan.cancels_because
        if plan.awaits_ends:
            for occurrence in (*row.busy, *row.waiting):
                occurrence.awaited = True
                self._tables.touch(occurrence)
        row.spans += plan.spans
        for answer in plan.answers:
            self._tables.answer(row, answer.cause, answer.key)
        _settle_facts(row, plan)
        row.watermark = plan.watermark
        row.next_run = plan.next_run
        if plan.coming is not None:
            row.coming = Coming(plan.coming, zone_data().version) if plan.coming else NOTHING_COMING
        row.revision, row.plan_token, row.parked_reason = row.revision + 1, token, None
        row.planned_woken = plan.woken
        # An end, request or edit after the snapshot makes the job due again at once.
        self._tables.wake(row, plan.wake_at if row.woken == plan.woken else now)

    def _ask_all_to_stop(self, row: JobRow, before: datetime, why: str) -> None:
        for occurrence in row.busy.through(before):
            if occurrence.cancel is None and occurrence.line_at < before:
                occurrence.cancel = why
                self._tables.touch(occurrence)


def _settle_facts(row: JobRow, plan: Plan) -> None:
    """Delete the facts that the plan has used up: no instant at or before the watermark is planned again."""
    for used in plan.used:
        row.adjustments[used.at] = replace(row.adjustments[used.at], done=True)
    if row.adjustments:
        row.adjustments = {
            at: adjustment
            for at, adjustment in row.adjustments.items()
            if at > plan.watermark
            or (adjustment.kind is AdjustmentKind.MOVE and adjustment.vacates and not adjustment.done)
        }
    if plan.rescheduled:
        row.reschedule = None
    if plan.stopped_at is not None:
        row.stopped_at = plan.stopped_at
    if plan.narrowed:
        row.narrowed_at = None
    if plan.turned is not None and plan.turned.narrowed_at is not None:
        row.narrowed_at = plan.turned.narrowed_at
    if row.pauses:
        row.pauses = [pause for pause in row.pauses if pause.until is None or pause.until > plan.watermark]
    if len(row.editions) > 1:
        # A clock that was set back leaves them unsorted. The last edition in force replaces all before it.
        begun = [place for place, edition in enumerate(row.editions) if is_in_force(edition, plan.watermark)]
        row.editions = row.editions[max(begun, default=0) :]
