"""The verbs of the planner: due jobs, and the commit of plans."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from everytick.domain.backfills import OpenBackfill
from everytick.domain.config import Level, Overrides
from everytick.domain.decisions import Creation, Plan, put_off
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.lookups import ComingRuns, LaterRequests
from everytick.domain.needs import are_late, late_needs, needs_in, on_time_needs
from everytick.domain.occurrence import Cause
from everytick.domain.rollouts import TrialCounts
from everytick.domain.snapshots import (
    BUSY_LIMIT,
    PLAN_LIMIT,
    Active,
    AdjustmentKind,
    Dependence,
    InLine,
    JobSnapshot,
    Past,
    Request,
    Upstream,
    UpstreamRun,
)
from everytick.domain.statuses import ACTIVE, ENDED, FAILURES, WELL, OccurrenceStatus, RunStatus
from everytick.domain.steps import bounded
from everytick.domain.texts import PLAN_REFUSED
from everytick.domain.upcoming import NOTHING_COMING, Coming, is_counted
from everytick.schedules.timezones import zone_data
from everytick.stores.base import (
    Batch,
    Commit,
    CommitAnswer,
    CommitFailed,
    Committed,
    NodeScope,
    Offer,
)
from everytick.stores.each_alone import each_alone
from everytick.stores.memory.backfills import open_backfill, write_filling
from everytick.stores.memory.base import UNSTARTED, merged
from everytick.stores.memory.limiting import LimitedClaims
from everytick.stores.memory.rows import JobRow, OccurrenceRow
from everytick.stores.open_requests import PAST_LIMIT, PastAsked, past_of, pasts_asked
from everytick.stores.storing_rules import NOTHING_TO_KEEP, is_in_force, own_overrides

if TYPE_CHECKING:
    from everytick.stores.memory.ordered import Ordered

_S = OccurrenceStatus
_NO_OVERRIDES = Overrides(Level.OCCURRENCE)
_NO_REQUESTS: list[Request] = []
UNBEGUN = frozenset({_S.PENDING, _S.QUEUED})
"""The statuses of occurrences that no node has claimed. If it has no runs either, no task of it has begun."""


class Planning(LimitedClaims):
    """Snapshots and plans."""

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AsyncIterator[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first."""
        now = self._now()
        until = now if by is None else by
        rows = merged(self._tables.wakes, scope, lambda row: (row.wake_at, row.id))
        come = takewhile(lambda row: row.wake_at is not None and row.wake_at <= until, rows)
        left_out = scope.unknown | self._open_batches.of(scope.node)
        known = (row for row in come if row.id not in left_out) if left_out else come
        snapshots = [self._snapshot(row, until) for row in islice(known, limit)]
        with self._open_batches.opened(scope.node, {snapshot.job_id for snapshot in snapshots}):
            yield Batch(until, snapshots, self._tokens(), len(snapshots) == limit, now < until)

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each whole plan whose job still has the revision of the snapshot."""
        now = self._now()
        if batch.is_ahead and now < batch.now:
            return Committed([Commit.STALE] * len(plans))
        # If a job has two plans, the first one makes the snapshot of the second stale.
        firsts = {plan.job_id: plan for plan in reversed(plans)}
        seen = {snapshot.job_id: snapshot for snapshot in batch.snapshots}

        async def write(some: Sequence[Plan]) -> Sequence[Commit]:
            # Before any is written: plans that are tried together are written together, or none of them.
            for plan in some:
                self._require_progress(plan)
            answers = [
                self._commit_plan(plan, batch.token, now) if firsts[plan.job_id] is plan else Commit.STALE
                for plan in some
            ]
            self._tell_dependents(now)
            return answers

        async def set_aside(plan: Plan, reason: str) -> CommitAnswer:
            answer = self._commit_plan(put_off(seen[plan.job_id], now), self._tokens(), now)
            if answer is Commit.COMMITTED:
                self._tables.jobs[plan.job_id].parked_reason = PLAN_REFUSED.format(reason=reason)
                return CommitFailed(reason)
            return answer

        answers = await each_alone(plans, write, "plans", set_aside, self.check_writable)
        if Commit.COMMITTED in answers:
            self._ring()
        return Committed(answers, () if offer is None else tuple(self._claimed(offer.scope, offer.limit)))

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return the snapshot of each of these jobs that exists, due or not. No job is locked."""
        now = self._now()
        return {id_: self._snapshot(self._tables.jobs[id_], now) for id_ in job_ids if id_ in self._tables.jobs}

    def _later(self, asked: LaterRequests) -> Sequence[tuple[str, Request]]:
        rows = (self._tables.jobs[id_] for id_ in asked.job_ids if id_ in self._tables.jobs)
        places = sorted(
            (due_at, number, row.id, request) for row in rows for due_at, number, request in row.places.values()
        )
        return [(id_, request) for _, _, id_, request in places if request.due_at is not None][: asked.limit]

    def _coming(self, asked: ComingRuns) -> dict[str, Coming]:
        rows = (self._tables.jobs[id_] for id_ in asked.job_ids if id_ in self._tables.jobs)
        return {row.id: row.coming for row in rows if row.coming.runs}

    def _snapshot(self, row: JobRow, until: datetime) -> JobSnapshot:
        busy, waiting = len(row.busy), len(row.waiting)
        asked, next_request_at = row.requests_by(until) if row.requests else (_NO_REQUESTS, None)
        backfill, more_backfills = open_backfill(self._tables, row, until) if row.backfills else (None, False)
        return JobSnapshot(
            row.id,
            row.revision,
            row.woken,
            row.watermark,
            tuple(row.editions),
            row.wake_at,
            row.retire_at,
            tuple(row.pauses) if row.pauses else (),
            tuple(row.adjustments.values()) if row.adjustments else (),
            row.reschedule,
            tuple(asked[:PLAN_LIMIT]),
            len(asked) > PLAN_LIMIT,
            tuple(map(_active, islice(row.busy, BUSY_LIMIT))) if busy else (),
            busy,
            tuple(map(_active, self._shown(row))) if waiting else (),
            waiting,
            row.last_end,
            row.last_success,
            not busy or all(occurrence.awaited for occurrence in row.busy),
            row.other_success,
            row.narrowed_at,
            _pasts(row, asked[:PLAN_LIMIT], backfill) if asked or backfill else (),
            next_request_at,
            self._dependence(row) if row.job.settings.depends_on else None,
            row.is_needed,
            backfill,
            more_backfills,
            None if row.editions[-1].rollout is None else _trial(row),
        )

    def _dependence(self, row: JobRow) -> Dependence:
        """Return what the plan of a job must know about the jobs on which it depends."""
        shown = self._shown(row) if row.waiting else ()
        in_line = [InLine(each.id, each.created_at, each.creation.covers_through) for each in shown]
        alike = [each.job for each in row.job.settings.depends_on if each.within is None]
        instants = sorted({each.instant for each in in_line})
        return Dependence(
            tuple(
                self._upstream(name, id_, instants if name in alike else ())
                for name, id_ in sorted(row.needs_jobs.items())
            ),
            tuple(in_line),
        )

    def _upstream(self, name: str, job_id: str, instants: Sequence[datetime]) -> Upstream:
        row = self._tables.jobs.get(job_id)
        if row is None:
            return Upstream(name, job_id, state="deleted")
        runs = tuple(self._upstream_run(row, instant) for instant in instants)
        return Upstream(name, job_id, row.name, self._state(row), row.watermark, row.last_success, runs)

    def _state(self, row: JobRow) -> str:
        if row.removed_at is not None:
            return "removed"
        if not row.job.enabled:
            return "disabled"
        return "paused" if row.pause_at(self._now()) is not None else ""

    def _upstream_run(self, row: JobRow, instant: datetime) -> UpstreamRun:
        """Return what became of an instant: of its own occurrence, which may have been moved, and of its repeats."""
        own = self._tables.occurrences.get(occurrence_id(row.id, instant))
        times = {instant} if own is None else {instant, own.creation.scheduled_for}
        alike = [run for at in times for run in row.scheduled_for(at) if run.creation.covers_through == instant]
        well = [run.ended_at for run in alike if run.status in WELL and run.ended_at is not None]
        return UpstreamRun(
            instant,
            min(well, default=None),
            any(run.status in ACTIVE for run in alike),
            None if own is None else own.status,
        )

    def _shown(self, row: JobRow) -> Sequence[OccurrenceRow]:
        """Return the oldest waiting occurrences, the newest one, and the newest one of the schedule."""
        line: Ordered[OccurrenceRow] | list[OccurrenceRow] = row.waiting
        if row.pause_at(self._now()) is not None:
            # A pause holds the schedule and not people: show what they asked for, however many instants wait.
            line = [occurrence for occurrence in row.waiting if occurrence.creation.cause is not Cause.SCHEDULE]
        shown = list(islice(line, PLAN_LIMIT))
        if len(line) <= PLAN_LIMIT:
            return shown
        newest = next(reversed(line))
        last = shown[-1]
        behind = takewhile(lambda occurrence: occurrence is not last, reversed(line))
        own = next((occurrence for occurrence in behind if occurrence.creation.cause is Cause.SCHEDULE), newest)
        return [*shown, newest] if own is newest else [*shown, own, newest]

    def _require_progress(self, plan: Plan) -> None:
        row = self._tables.jobs.get(plan.job_id)
        if row is not None and row.revision == plan.revision:
            assert plan.watermark >= row.watermark, f"{row.name}: the watermark moved back"

    def _commit_plan(self, plan: Plan, token: int, now: datetime) -> Commit:
        row = self._tables.jobs.get(plan.job_id)
        if row is None:
            return Commit.STALE
        if row.revision != plan.revision:
            # The token says that this very plan was written before and its answer was lost.
            return Commit.COMMITTED if row.plan_token == token else Commit.STALE
        if plan.turned is not None:
            self._turn(row, plan.turned.job, now)
            self._promise(row, plan.turned.job, now)
        if plan.cancels_before is not None:
            self._ask_all_to_stop(row, plan.cancels_before, plan.cancels_because)
        if plan.filling is not None:
            write_filling(self._tables, row, plan.filling, now)
        for creation in plan.creations:
            self._create(row, creation, now)
        if plan.lifts:
            for occurrence in (*row.busy, *row.waiting):
                if occurrence.owner is None:
                    self._tables.change(occurrence, needs=on_time_needs(occurrence.needs))
        # An occurrence that was canceled or claimed after the snapshot stays as it is: these writes check its status.
        for id_ in plan.releases:
            if self._status(id_) is _S.QUEUED:
                self._move(self._tables.occurrences[id_], _S.PENDING, now)
        for ending in plan.endings:
            if self._status(ending.id) in UNSTARTED:
                reason = f"{ending.why} {ending.detail}".strip()
                self._end(self._tables.occurrences[ending.id], ending.status, reason, now)
        for id_ in plan.cancels:
            # A person who asked before this plan has given the reason.
            if self._status(id_) in ACTIVE and self._tables.occurrences[id_].cancel is None:
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
        if plan.tells:
            self._telling.append(row.id)
        return Commit.COMMITTED

    def _ask_all_to_stop(self, row: JobRow, before: datetime, why: str) -> None:
        for occurrence in row.busy.through(before):
            if occurrence.cancel is None and occurrence.line_at < before:
                occurrence.cancel = why
                self._tables.touch(occurrence)

    def _tell_dependents(self, now: datetime) -> None:
        """Wake the jobs that depend on these and have an occurrence in line, once all plans are written."""
        while self._telling:
            for id_ in self._tables.dependents[self._telling.pop(0)]:
                if self._tables.jobs[id_].waiting:
                    self._wake(self._tables.jobs[id_], now)

    def _create(self, row: JobRow, creation: Creation, now: datetime) -> None:
        """Create the occurrence unless it exists. Its id follows from job and instant, so a repeat changes nothing."""
        if creation.id in self._tables.occurrences:
            return
        job = row.edition(creation.version).job
        own, overrides = job.settings, _NO_OVERRIDES
        if creation.overrides is not None or creation.payload is not None:
            overrides = own_overrides(creation, own)
            own = own.overridden_by(overrides)
        needs = needs_in(job.labels, own.queue)
        created = OccurrenceRow(
            next(self._numbers),
            creation.id,
            row,
            creation,
            overrides,
            f"{creation.why}, {creation.detail}" if creation.detail else creation.why.value,
            now,
            creation.line_at,
            creation.version,
            creation.status,
            own.priority,
            needs if not creation.in_lane else late_needs(needs),
            creation.ready_at,
            now,
            now if creation.status in ENDED else None,
            execution_timeout=bounded(own.execution_timeout),
        )
        self._tables.add(created)
        if creation.keeps and creation.status not in ENDED:
            self._keep(created, creation, now)

    @abstractmethod
    def _promise(self, row: JobRow, job: Job, now: datetime) -> None:
        """Let the promises of a version that came into force hold."""

    def _turn(self, row: JobRow, job: Job, now: datetime) -> None:
        """Let a version be in force. Unclaimed occurrences take it; started ones keep their own."""
        self._tables.need(row, job.needs)
        row.turned = job.version
        if job.settings.horizon is None:
            row.coming = NOTHING_COMING
        for occurrence in [*row.busy, *row.waiting]:
            if occurrence.status in UNBEGUN and not occurrence.runs:
                own = job.settings.overridden_by(occurrence.overrides) if occurrence.overrides.items else job.settings
                timeout, needs = bounded(own.execution_timeout), needs_in(job.labels, own.queue)
                needs = late_needs(needs) if are_late(occurrence.needs) else needs
                self._tables.change(
                    occurrence, version=job.version, priority=own.priority, needs=needs, execution_timeout=timeout
                )
            if occurrence.status is _S.PENDING and not job.enabled:
                self._move(occurrence, _S.QUEUED, now)
            # The job may have been enabled or disabled: the index of claimable occurrences follows.
            self._tables.change(occurrence)

    def _keep(self, made: OccurrenceRow, creation: Creation, now: datetime) -> None:
        """Copy the results that a replay keeps from its original."""
        original = self._tables.occurrences.get(creation.replay_of or "")
        runs = {} if original is None else original.runs
        made.runs = {
            task: runs[task].kept()
            for task in creation.keeps
            if task in runs and runs[task].status is RunStatus.SUCCESS
        }
        made.number = 1
        if len(made.runs) < len(creation.keeps):
            self._end(made, _S.CANCELED, NOTHING_TO_KEEP, now)


def _pasts(row: JobRow, requests: Sequence[Request], backfill: OpenBackfill | None) -> tuple[Past, ...]:
    """Return the old definitions that requests and the open backfill need beside the editions."""
    return tuple(_past(row, asked) for asked in pasts_asked(requests, backfill, row.editions))


def _past(row: JobRow, asked: PastAsked) -> Past:
    older = [row.edition(version) for version in sorted(row.versions) if version < row.editions[0].job.version]
    begun = [place for place, past in enumerate(older) if is_in_force(past, asked.after)]
    needed = older[max(begun, default=0) :]
    if asked.newest_first:
        needed = [past for past in needed if past.in_force_after is None or past.in_force_after < asked.through][::-1]
    return past_of(asked, [(past.in_force_after, past) for past in needed[: PAST_LIMIT + 1]])


def _trial(row: JobRow) -> TrialCounts:
    """Return what became of the occurrences of the version on trial."""
    trial = row.editions[-1]
    counted = [run for run in row.history if is_counted(trial, run.creation.cause, run.creation.scheduled_for)]
    tried = [run.status for run in counted if run.version == trial.job.version]
    failed = sum(1 for status in tried if status in FAILURES)
    return TrialCounts(tried.count(_S.COMPLETED), failed, len(counted))


def _active(row: OccurrenceRow) -> Active:
    creation = row.creation
    return Active(
        row.id, row.line_at, creation.scheduled_for, row.status, creation.cause, row.superseded_by_next, creation.late
    )


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
