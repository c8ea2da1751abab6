"""The store in memory: the readable specification of every verb.

One dictionary per table and no cleverness: each verb is one uninterrupted piece of code,
which is what a transaction is to the other stores.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import ClassVar

from everytick.domain import ids
from everytick.domain.decisions import Answer, Creation, Plan, Span
from everytick.domain.job import Job
from everytick.domain.notes import Note
from everytick.domain.occurrence import Attempt, Cause, Occurrence, TaskRun
from everytick.domain.policies import FirstSight
from everytick.domain.snapshots import (
    PLAN_LIMIT,
    Active,
    Adjustment,
    AdjustmentKind,
    Edition,
    Ended,
    JobSnapshot,
    Missed,
    Pause,
    Request,
    Reschedule,
)
from everytick.domain.statuses import (
    ACTIVE,
    ATTEMPT_ENDED,
    BUSY,
    ENDED,
    AttemptStatus,
    OccurrenceStatus,
    may_move,
)
from everytick.domain.steps import OccurrenceSnapshot, RunState, Step, rules_of, snapshot_of
from everytick.errors import (
    DuplicateDefinition,
    JobDisabled,
    NotFound,
    OccurrenceExists,
    TooManyEditions,
    TransactionsUnsupported,
    VersionConflict,
)
from everytick.stores.base import (
    MAX_EDITIONS,
    REMEMBERED,
    Ahead,
    Claim,
    Commit,
    JobRecord,
    NodeRecord,
    Orders,
    Page,
    Stored,
    Transaction,
    Whole,
)
from everytick.stores.beginnings import as_stored, first_watermark, own_overrides, requested_id, under_id

_S = OccurrenceStatus
_WELL = frozenset({_S.COMPLETED, _S.COMPLETED_WITH_ERRORS})
_UNSTARTED = frozenset({_S.PENDING, _S.QUEUED, _S.AWAITING_RETRY})
_BUSY_SHOWN = 100


@dataclass(slots=True)
class _JobRow:
    """One job: its definitions, where its planning stands, and the facts that wait for a plan."""

    id: str
    name: str
    editions: list[Edition]
    watermark: datetime
    created_at: datetime
    revision: int = 1
    woken: int = 1
    wake_at: datetime | None = None
    removed_at: datetime | None = None
    retire_at: datetime | None = None
    pauses: list[Pause] = field(default_factory=list)
    adjustments: dict[datetime, Adjustment] = field(default_factory=dict)
    reschedule: Reschedule | None = None
    requests: dict[str, Request] = field(default_factory=dict)
    versions: dict[int, Job] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    last_end: Ended | None = None
    last_success: Ended | None = None

    @property
    def job(self) -> Job:
        return self.editions[-1].job


@dataclass(slots=True)
class _OccurrenceRow:
    """One occurrence: the record people see, and what its owner needs to go on."""

    handle: int
    record: Occurrence
    priority: int
    queue: str
    number: int = 0
    claimed_at: datetime | None = None
    lost: int = 0
    cancel: str | None = None
    superseded_by_next: bool = False
    report_due: bool = False
    runs: dict[str, RunState] = field(default_factory=dict)
    attempts: dict[tuple[str, int], Attempt] = field(default_factory=dict)


class MemoryStore:
    """Everything in this process, for tests and for scripts that may forget."""

    is_in_memory: ClassVar[bool] = True
    file: ClassVar[None] = None

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._latest: datetime | None = None
        self._jobs: dict[str, _JobRow] = {}
        self._occurrences: dict[str, _OccurrenceRow] = {}
        self._handles: dict[int, _OccurrenceRow] = {}
        self._numbers = count(1)
        self._beats: dict[str, datetime] = {}
        self._rung = asyncio.Event()

    # ------------------------------------------------------------------------------------------------ the store

    async def open(self) -> None:
        """Return: there is nothing to make ready."""

    async def close(self) -> None:
        """Return: there is nothing to give back."""

    async def now(self) -> datetime:
        """Return the store's time; a clock that was set back stands still until it has caught up."""
        return self._now()

    async def bell(self, seconds: float) -> bool:
        """Wait for a hint that something changed, at most so many seconds; return whether one came."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def ahead(self, queues: Collection[str]) -> Ahead:
        """Return what is next for a node of these queues, so that it sleeps until then and not longer."""
        now = self._now()
        wakes = (row.wake_at for row in self._jobs.values())
        readies = (
            row.record.ready_at for row in self._occurrences.values() if _is_unclaimed(row) and row.queue in queues
        )
        return Ahead(now, _first_after(now, wakes), _first_after(now, readies))

    def _now(self) -> datetime:
        now = self._clock()
        if self._latest is None or now > self._latest:
            self._latest = now
        return self._latest

    def _ring(self) -> None:
        self._rung.set()

    # ----------------------------------------------------------------------------------------------- the planner

    @asynccontextmanager
    async def due(self, now: datetime, limit: int) -> AsyncIterator[Sequence[JobSnapshot]]:
        """Give up to `limit` jobs whose `wake_at` has come, longest-waiting first."""
        waiting = [row for row in self._jobs.values() if row.wake_at is not None and row.wake_at <= now]
        waiting.sort(key=lambda row: (row.wake_at, row.id))
        yield [self._snapshot(row) for row in waiting[:limit]]

    async def commit_plans(self, batch: Sequence[JobSnapshot], plans: Sequence[Plan]) -> list[Commit]:
        """Write each plan whole, on the condition that its job's revision is still the snapshot's."""
        return [self._commit_plan(plan) for plan in plans]

    def _snapshot(self, row: _JobRow) -> JobSnapshot:
        active = sorted(self._active(row.id), key=lambda each: (each.record.line_at, each.record.id))
        busy = [_active(each) for each in active if each.record.status in BUSY]
        waiting = [_active(each) for each in active if each.record.status is _S.QUEUED]
        paused = self._pause_of(row, self._now()) is not None
        # A pause holds the schedule and not people: what they asked for must be in view, however long the line is.
        shown = [each for each in waiting if each.cause is not Cause.SCHEDULE] if paused else waiting
        requests = list(row.requests.values())
        return JobSnapshot(
            job_id=row.id,
            revision=row.revision,
            woken=row.woken,
            watermark=row.watermark,
            editions=tuple(row.editions),
            wake_at=row.wake_at,
            retire_at=row.retire_at,
            pauses=tuple(row.pauses),
            adjustments=tuple(row.adjustments.values()),
            reschedule=row.reschedule,
            requests=tuple(requests[:PLAN_LIMIT]),
            more_requests=len(requests) > PLAN_LIMIT,
            busy=tuple(busy[:_BUSY_SHOWN]),
            busy_count=len(busy),
            waiting=tuple(shown[:PLAN_LIMIT] + shown[PLAN_LIMIT:][-1:]),
            waiting_count=len(waiting),
            last_end=row.last_end,
            last_success=row.last_success,
        )

    def _commit_plan(self, plan: Plan) -> Commit:
        row = self._jobs.get(plan.job_id)
        if row is None or row.revision != plan.revision:
            return Commit.STALE
        assert plan.watermark >= row.watermark, f"{row.name}: the watermark moved back"
        now = self._now()
        if plan.cancels_before is not None:
            self._ask_all_to_stop(row, plan.cancels_before)
        for creation in plan.creations:
            self._create(row, creation, now)
        # What somebody canceled or claimed meanwhile stays as it is: these writes name what they expect.
        for id_ in plan.releases:
            if self._status(id_) is _S.QUEUED:
                self._move(self._occurrences[id_], _S.PENDING)
        for ending in plan.endings:
            if self._status(ending.id) in _UNSTARTED:
                self._end(self._occurrences[ending.id], ending.status, f"{ending.why} {ending.detail}".strip(), now)
        for id_ in plan.cancels:
            if self._status(id_) in ACTIVE:
                self._occurrences[id_].cancel = "asked by the schedule"
        row.spans += plan.spans
        for answer in plan.answers:
            _answer(row, answer, now)
        self._settle_facts(row, plan)
        row.watermark = plan.watermark
        row.revision += 1
        # An ending, request or edit after the snapshot was read must not be slept through.
        row.wake_at = plan.wake_at if row.woken == plan.woken else now
        self._ring()
        return Commit.COMMITTED

    def _ask_all_to_stop(self, row: _JobRow, before: datetime) -> None:
        for each in self._active(row.id):
            line_at = each.record.line_at
            if each.record.status in BUSY and each.cancel is None and line_at is not None and line_at < before:
                each.cancel = "asked by the schedule"

    def _settle_facts(self, row: _JobRow, plan: Plan) -> None:
        """Forget the facts that are decided: nothing at or before the watermark is asked about again."""
        for used in plan.used:
            row.adjustments[used.at] = replace(row.adjustments[used.at], done=True)
        row.adjustments = {
            at: each
            for at, each in row.adjustments.items()
            if at > plan.watermark or (each.kind is AdjustmentKind.MOVE and each.vacates and not each.done)
        }
        if plan.rescheduled:
            row.reschedule = None
        row.pauses = [pause for pause in row.pauses if pause.until is None or pause.until > plan.watermark]
        later = [each for each in row.editions if each.in_force_after and each.in_force_after > plan.watermark]
        row.editions = [*row.editions[: len(row.editions) - len(later)][-1:], *later]

    def _create(self, row: _JobRow, creation: Creation, now: datetime) -> None:
        """Make the occurrence if it is absent: its id is made of job and instant, so a repeat is harmless."""
        if creation.id in self._occurrences:
            return
        settings = row.job.settings
        overrides = own_overrides(creation, settings)
        own = settings.overridden_by(overrides)
        record = Occurrence(
            id=creation.id,
            job_id=row.id,
            version=creation.version,
            scheduled_for=creation.scheduled_for,
            status=creation.status,
            cause=creation.cause,
            late=creation.late,
            covers_after=creation.covers_after,
            covers_through=creation.covers_through,
            line_at=creation.line_at,
            ready_at=creation.ready_at,
            ended_at=now if creation.status in ENDED else None,
            overrides=overrides,
            replay_of=creation.replay_of,
            reason=f"{creation.why}, {creation.detail}" if creation.detail else str(creation.why),
            created_at=now,
            updated_at=now,
        )
        made = _OccurrenceRow(next(self._numbers), record, own.priority, own.queue)
        self._occurrences[creation.id] = self._handles[made.handle] = made

    # ---------------------------------------------------------------------------------------------- the executor

    async def claim(self, node: str, queues: Collection[str], limit: int, unknown: Collection[str] = ()) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of these queues, by priority, then age."""
        now = self._now()
        ready = [
            row
            for row in self._occurrences.values()
            if _is_claimable(row, now) and row.queue in queues and row.record.job_id not in unknown
        ]
        ready.sort(key=lambda row: (-row.priority, row.record.line_at, row.record.id))
        return [self._own(row, node, now) for row in ready[:limit]]

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> list[Commit]:
        """Write each step, on the condition that the claim's fence is still the occurrence's."""
        return [self._commit_step(claim, step) for claim, step in steps]

    async def beat(self, node: str, held: Collection[int]) -> Orders:
        """Say that the node lives and what it holds; the answer says what the store knows better."""
        self._beats[node] = self._now()
        own = [row for row in self._occurrences.values() if row.record.owner == node]
        kept = {row.handle for row in own}
        return Orders(
            cancel=tuple((row.handle, row.cancel) for row in own if row.cancel is not None and row.handle in held),
            gone=tuple(sorted(set(held) - kept)),
            adopt=tuple(self._claim_of(row) for row in own if row.handle not in held),
        )

    async def orphans(self, node: str, limit: int, silence: timedelta) -> list[Claim]:
        """Take over what silent nodes held, with a new fence: of many reapers one gets it."""
        now = self._now()
        owned = [row for row in self._occurrences.values() if row.record.owner is not None]
        return self._take_over(
            [row for row in owned if self._is_silent(str(row.record.owner), now, silence)], node, limit
        )

    async def take(
        self, node: str, job_ids: Collection[str], limit: int, occurrence_ids: Collection[str] | None = None
    ) -> list[Claim]:
        """Take over what other nodes hold of these jobs, silent or not; with `occurrence_ids` only these."""
        others = [row for row in self._occurrences.values() if row.record.owner not in (None, node)]
        meant = [row for row in others if row.record.job_id in job_ids]
        if occurrence_ids is not None:
            meant = [row for row in meant if row.record.id in occurrence_ids]
        return self._take_over(meant, node, limit)

    def _take_over(self, rows: Sequence[_OccurrenceRow], node: str, limit: int) -> list[Claim]:
        """Fence the owners of these out, oldest first; a wait that one of them kept lost nothing and is only freed."""
        now, taken = self._now(), list[Claim]()
        for row in rows:
            if len(taken) >= limit:
                break
            waits = row.record.status is _S.AWAITING_RETRY
            row.record = replace(row.record, owner=None if waits else node, fence=row.record.fence + 1, updated_at=now)
            if waits:
                self._ring()
            else:
                taken.append(self._claim_of(row))
        return taken

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> None:
        """Show people what is running: make or change the attempt's row, under the claim's fence."""
        for claim, note in notes:
            row = self._handles.get(claim.handle)
            if row is not None:
                self._note(row, claim.fence, note)

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[Transaction]:
        """Refuse: what a task writes lies in no transaction of this store."""
        raise TransactionsUnsupported("memory")

    def apart(self) -> None:
        """Return nothing: what lives in this process lives in one loop of it."""

    async def reports(self, limit: int, unknown: Collection[str] = ()) -> list[OccurrenceSnapshot]:
        """Return ended occurrences whose report was not delivered yet, oldest end first."""
        owed = [row for row in self._occurrences.values() if row.report_due and row.record.job_id not in unknown]
        owed.sort(key=lambda row: (row.record.ended_at, row.record.id))
        return [self._claim_of(row).snapshot for row in owed[:limit]]

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Note that these reports were delivered; a report may come twice, but never not at all."""
        for id_ in occurrence_ids:
            if id_ in self._occurrences:
                self._occurrences[id_].report_due = False

    def _is_silent(self, node: str, now: datetime, silence: timedelta) -> bool:
        heard = self._beats.get(node)
        return heard is None or now - heard > silence

    def _own(self, row: _OccurrenceRow, node: str, now: datetime) -> Claim:
        row.claimed_at = now
        row.record = replace(
            row.record,
            status=_S.RUNNING,
            owner=node,
            fence=row.record.fence + 1,
            started_at=row.record.started_at or now,
            updated_at=now,
        )
        # A claim is a sign of life: a node that was silent for long must not lose at once what it just took.
        self._beats[node] = now
        return self._claim_of(row)

    def _claim_of(self, row: _OccurrenceRow) -> Claim:
        job = self._jobs[row.record.job_id].versions[row.record.version]
        seen = snapshot_of(
            row.record,
            rules_of(job, row.record.overrides),
            row.runs,
            number=row.number,
            claimed_at=row.claimed_at,
            lost=row.lost,
            cancel=row.cancel,
        )
        return Claim(row.handle, row.record.fence, row.record, seen, job)

    def _commit_step(self, claim: Claim, step: Step) -> Commit:
        row = self._handles.get(claim.handle)
        if row is None:
            return Commit.STALE
        if row.record.fence != claim.fence:
            # An end raises the fence and keeps the number: its repeat finds its own effect.
            again = row.record.status in ENDED and row.record.fence == claim.fence + 1 and row.number == step.number
            return Commit.COMMITTED if again else Commit.STALE
        if step.number <= row.number:
            return Commit.COMMITTED
        now = self._now()
        self._write_rows(row, step)
        after = step.after
        free = step.end is not None or step.resume_at is not None or step.release
        assert after.status is row.record.status or may_move(row.record.status, after.status), (
            f"{row.record.id}: {row.record.status} cannot become {after.status}"
        )
        row.number, row.lost = step.number, after.lost
        row.superseded_by_next = step.superseded_by_next
        row.record = replace(
            row.record,
            status=after.status,
            owner=None if free else row.record.owner,
            ready_at=step.resume_at or after.ready_at or row.record.ready_at,
            fence=row.record.fence + (1 if step.end is not None else 0),
            ended_at=after.ended_at,
            error=after.error,
            updated_at=now,
        )
        if step.end is not None:
            row.report_due = after.rules.reports
            self._note_end(row)
        if step.end is not None or step.resume_at is not None:
            self._wake(self._jobs[row.record.job_id], now)
        elif step.release:
            self._ring()
        return Commit.COMMITTED

    def _write_rows(self, row: _OccurrenceRow, step: Step) -> None:
        for written in step.rows:
            row.runs[written.task] = written.run
            if written.attempt is None:
                continue
            key = (written.task, written.number)
            known = row.attempts.get(key)
            if known is not None and known.status in ATTEMPT_ENDED:
                continue
            row.attempts[key] = replace(
                known or self._attempt(row, *key),
                status=AttemptStatus(written.attempt),
                started_at=written.started_at,
                ended_at=written.ended_at,
                error=written.error,
            )

    def _note(self, row: _OccurrenceRow, fence: int, note: Note) -> None:
        # An end raises the fence once more; had anybody taken over before it, twice.
        ended = row.record.status in ENDED and row.record.fence == fence + 1
        if row.record.fence != fence and not ended:
            return
        key = (note.task, note.number)
        known = row.attempts.get(key)
        if known is None:
            if ended:
                return
            known = replace(self._attempt(row, *key), status=AttemptStatus.RUNNING, started_at=note.started_at)
        row.attempts[key] = replace(known, progress=note.progress or known.progress, log=note.log or known.log)

    def _attempt(self, row: _OccurrenceRow, task: str, number: int) -> Attempt:
        job = self._jobs[row.record.job_id].versions[row.record.version]
        [task_id] = [each.id for each in job.tasks if each.name == task]
        return Attempt(ids.run_id(row.record.id, task_id), number)

    # -------------------------------------------------------------------------------------------------- the jobs

    async def put(self, job: Job, *, expected_version: int | None = None, by: str = "") -> Stored:
        """Create the job or make this its next version; an equal definition changes nothing."""
        now = self._now()
        row = self._by_name(job.name)
        gone = row is not None and row.removed_at is not None and now - row.removed_at > REMEMBERED
        if row is None or gone:
            if expected_version not in (None, 0):
                raise NotFound("job", job.name)
            if row is not None:
                self._forget(row)
            return self._create_job(job, now)
        if expected_version is not None and expected_version != row.job.version:
            raise VersionConflict(job.name, expected_version, row.job.version)
        if row.removed_at is None and _same(row.job, job):
            return Stored(row.id, row.job.version, changed=False)
        return self._edit(row, job, now)

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return those of the jobs that exist."""
        return {id_: self._record(self._jobs[id_]) for id_ in job_ids if id_ in self._jobs}

    async def list(self) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name."""
        rows = sorted((row for row in self._jobs.values() if row.removed_at is None), key=lambda row: row.name)
        return [self._record(row) for row in rows]

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return what a plan would see of those jobs that exist now, due or not, and hold nothing."""
        return {id_: self._snapshot(self._jobs[id_]) for id_ in job_ids if id_ in self._jobs}

    async def rename(self, job_id: str, name: str, *, by: str = "") -> None:
        """Give the job another name; its id and history stay."""
        row, now = self._job(job_id), self._now()
        if name != row.name and self._by_name(name) is not None:
            raise DuplicateDefinition(f"there is a job named '{name}' already: remove or rename it first")
        self._edit(row, replace(row.job, name=name), now)
        row.name = name

    async def remove(self, job_id: str, *, retire_after: timedelta = timedelta(0), by: str = "") -> None:
        """Take the job out of service: nothing new is created, what was not claimed is canceled."""
        row, now = self._job(job_id), self._now()
        row.removed_at, row.retire_at = now, now + retire_after
        row.revision += 1
        self._wake(row, now)

    async def pause(
        self,
        job_id: str,
        *,
        until: datetime | None = None,
        missed: Missed = Missed.SKIP,
        reason: str = "",
        by: str = "",
    ) -> None:
        """Hold the schedule from now on; what was not claimed waits."""
        row, now = self._job(job_id), self._now()
        running = self._pause_of(row, now)
        if running is not None:
            row.pauses.remove(running)
        row.pauses.append(Pause(running.since if running else now, until, missed, reason, by))
        for each in list(self._active(row.id)):
            if each.record.status is _S.PENDING and each.record.cause is Cause.SCHEDULE:
                self._move(each, _S.QUEUED)
        row.revision += 1
        row.woken += 1
        row.wake_at = now

    async def resume(self, job_id: str, *, by: str = "") -> bool:
        """End a pause now; return whether there was one."""
        row, now = self._job(job_id), self._now()
        running = self._pause_of(row, now)
        if running is None:
            return False
        row.pauses[row.pauses.index(running)] = replace(running, until=now)
        row.revision += 1
        self._wake(row, now)
        return True

    async def request(self, job_id: str, request: Request) -> str:
        """Ask for an occurrence and return its id; the same key again answers with the same one."""
        row, now = self._job(job_id), self._now()
        if row.removed_at is not None:
            raise NotFound("job", row.name)
        if not row.job.enabled:
            raise JobDisabled(row.name)
        request = as_stored(row.job, request)
        id_ = requested_id(row.job, request)
        open_ = row.requests.get(request.key)
        made = self._occurrences.get(id_)
        if open_ is not None or (made is not None and request.cause is not Cause.BACKFILL):
            if open_ is not None:
                before = open_.payload
            else:
                before = made.record.overrides.get("payload") if made and made.record.overrides.items else None
            if before != request.payload:
                raise OccurrenceExists(id_)
            return id_
        row.requests[request.key] = request
        self._wake(row, now)
        return id_

    async def adjust(self, job_id: str, adjustment: Adjustment) -> None:
        """Skip or move one single future instant; what was said of it before is replaced."""
        row, now = self._job(job_id), self._now()
        row.adjustments[adjustment.at] = adjustment
        row.revision += 1
        self._wake(row, now)

    async def reschedule(self, job_id: str, to: datetime, *, by: str = "") -> None:
        """Set the next run; the instants before it give way."""
        row, now = self._job(job_id), self._now()
        row.reschedule = Reschedule(now, to, by)
        row.revision += 1
        self._wake(row, now)

    async def cancel(self, occurrence_id: str, reason: str = "canceled") -> bool:
        """End what nobody has claimed, or ask its owner to stop; return whether it was still active."""
        row, now = self._occurrence(occurrence_id), self._now()
        if row.record.status in ENDED:
            return False
        if row.record.owner is None and row.record.status in (_S.PENDING, _S.QUEUED, _S.AWAITING_RETRY):
            self._end(row, _S.CANCELED, reason, now)
            self._wake(self._jobs[row.record.job_id], now)
        else:
            row.cancel = reason
            self._ring()
        return True

    # ------------------------------------------------------------------------------------------------ the history

    async def history(
        self,
        *,
        job_id: str | None = None,
        statuses: Collection[OccurrenceStatus] = (),
        cause: Cause | None = None,
        after: datetime | None = None,
        through: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Return a page of occurrences, newest first."""
        found = [
            row.record
            for row in self._occurrences.values()
            if (job_id is None or row.record.job_id == job_id)
            and (not statuses or row.record.status in statuses)
            and (cause is None or row.record.cause is cause)
            and (after is None or row.record.scheduled_for > after)
            and (through is None or row.record.scheduled_for <= through)
        ]
        found.sort(key=_place, reverse=True)
        if cursor is not None:
            found = [record for record in found if _place(record) < _read_cursor(cursor)]
        page = found[:limit]
        more = len(found) > limit and bool(page)
        return Page(tuple(page), "{} {}".format(*_place(page[-1])) if more else None)

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        row = self._occurrence(occurrence_id)
        job = self._jobs[row.record.job_id].versions[row.record.version]
        runs = tuple(
            TaskRun(row.record.id, task.id, run.status, run.attempts, run.started_at, run.ended_at, run.error)
            for task in job.tasks
            if (run := row.runs.get(task.name)) is not None
        )
        order = {task.name: task.order for task in job.tasks}
        attempts = sorted(row.attempts.items(), key=lambda item: (order[item[0][0]], item[0][1]))
        return Whole(row.record, runs, tuple((task, attempt) for (task, _), attempt in attempts))

    async def spans(self, job_id: str, after: datetime, through: datetime) -> Sequence[Span]:
        """Return the spans of instants that did not run and touch `(after, through]`, in order."""
        row = self._job(job_id)
        return [span for span in row.spans if span.through > after and span.after < through]

    async def nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were heard of."""
        return [
            NodeRecord(node, heard, sum(row.record.owner == node for row in self._occurrences.values()))
            for node, heard in sorted(self._beats.items())
        ]

    async def prune(self, limit: int = 1000) -> int:
        """Forget up to `limit` ended occurrences that their job's retention no longer keeps; return how many."""
        now, forgotten = self._now(), 0
        for job in self._jobs.values():
            ended = sorted(
                (row for row in self._of(job.id) if row.record.status in ENDED), key=lambda row: _place(row.record)
            )
            keep = job.job.settings.retention
            for row in ended[: max(len(ended) - keep.keep_last, 0)]:
                age = keep.success if row.record.status in _WELL | {_S.SKIPPED} else keep.failure
                over = row.record.ended_at
                if (
                    forgotten < limit
                    and age is not None
                    and over is not None
                    and now - over > age
                    and not row.report_due
                ):
                    del self._occurrences[row.record.id], self._handles[row.handle]
                    forgotten += 1
        return forgotten

    # -------------------------------------------------------------------------------------------------- the parts

    def _job(self, job_id: str) -> _JobRow:
        row = self._jobs.get(job_id)
        if row is None:
            raise NotFound("job", job_id)
        return row

    def _by_name(self, name: str) -> _JobRow | None:
        return next((row for row in self._jobs.values() if row.name == name), None)

    def _occurrence(self, occurrence_id: str) -> _OccurrenceRow:
        row = self._occurrences.get(occurrence_id)
        if row is None:
            raise NotFound("occurrence", occurrence_id)
        return row

    def _status(self, occurrence_id: str) -> OccurrenceStatus:
        """Where an occurrence stands; one that was pruned has ended, however it did."""
        row = self._occurrences.get(occurrence_id)
        return _S.CANCELED if row is None else row.record.status

    def _of(self, job_id: str) -> Iterator[_OccurrenceRow]:
        return (row for row in self._occurrences.values() if row.record.job_id == job_id)

    def _active(self, job_id: str) -> Iterator[_OccurrenceRow]:
        return (row for row in self._of(job_id) if row.record.status in ACTIVE)

    def _pause_of(self, row: _JobRow, now: datetime) -> Pause | None:
        return next((pause for pause in row.pauses if pause.holds(now)), None)

    def _record(self, row: _JobRow) -> JobRecord:
        return JobRecord(
            row.job,
            row.revision,
            row.watermark,
            row.wake_at,
            self._pause_of(row, self._now()),
            row.removed_at,
            row.retire_at,
            row.last_end,
            row.last_success,
        )

    def _create_job(self, job: Job, now: datetime) -> Stored:
        nth = 1
        while (id_ := ids.job_id(job.name, nth)) in self._jobs:
            nth += 1
        made = replace(under_id(job, id_), version=1, created_at=now, updated_at=now)
        row = _JobRow(id_, job.name, [Edition(made)], first_watermark(made, now), now, versions={1: made})
        self._jobs[id_] = row
        if job.settings.on_create.begin is FirstSight.IMMEDIATELY:
            row.requests["create"] = Request("create", Cause.CREATE, now)
        self._wake(row, now)
        return Stored(id_, 1, changed=True)

    def _edit(self, row: _JobRow, job: Job, now: datetime) -> Stored:
        """A new version, in force after now; what was not claimed takes it, what has started keeps its own."""
        if len(row.editions) >= MAX_EDITIONS:
            raise TooManyEditions(row.name, MAX_EDITIONS)
        version = row.job.version + 1
        made = replace(under_id(job, row.id), version=version, created_at=row.created_at, updated_at=now)
        row.editions.append(Edition(made, now))
        row.versions[version] = made
        row.removed_at = row.retire_at = None
        for each in self._active(row.id):
            if each.record.status in (_S.PENDING, _S.QUEUED) and not each.runs:
                each.record = replace(each.record, version=version)
                each.priority, each.queue = made.settings.priority, made.settings.queue
        row.revision += 1
        self._wake(row, now)
        return Stored(row.id, version, changed=True)

    def _forget(self, row: _JobRow) -> None:
        """Let a job that was removed long ago make room for a new one of its name; its history stays."""
        row.name = f"{row.name} (removed {row.removed_at})"

    def _wake(self, row: _JobRow, now: datetime) -> None:
        row.woken += 1
        row.wake_at = now
        self._ring()

    def _move(self, row: _OccurrenceRow, to: OccurrenceStatus) -> None:
        assert may_move(row.record.status, to), f"{row.record.id}: {row.record.status} cannot become {to}"
        row.record = replace(row.record, status=to, updated_at=self._now())

    def _end(self, row: _OccurrenceRow, status: OccurrenceStatus, reason: str, now: datetime) -> None:
        """End an occurrence without its owner: whoever still holds it is fenced out."""
        if row.record.status in ENDED:
            return
        self._move(row, status)
        row.report_due = self._jobs[row.record.job_id].versions[row.record.version].reports
        row.record = replace(row.record, owner=None, fence=row.record.fence + 1, ended_at=now, error=reason)
        self._note_end(row)

    def _note_end(self, row: _OccurrenceRow) -> None:
        record, job = row.record, self._jobs[row.record.job_id]
        if record.ended_at is None:
            return
        ended = Ended(record.scheduled_for, record.started_at, record.ended_at)
        job.last_end = ended
        if record.status in _WELL:
            job.last_success = ended


def _active(row: _OccurrenceRow) -> Active:
    record = row.record
    assert record.line_at is not None, f"{record.id} stands in no line"
    return Active(record.id, record.line_at, record.scheduled_for, record.status, record.cause, row.superseded_by_next)


def _is_unclaimed(row: _OccurrenceRow) -> bool:
    """Whether it needs a node and nothing but time."""
    return row.record.status is _S.PENDING or (row.record.status is _S.AWAITING_RETRY and row.record.owner is None)


def _is_claimable(row: _OccurrenceRow, now: datetime) -> bool:
    return _is_unclaimed(row) and (row.record.ready_at is None or row.record.ready_at <= now)


def _first_after(now: datetime, times: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in times if at is not None and at > now), default=None)


def _place(record: Occurrence) -> tuple[str, str]:
    return record.scheduled_for.isoformat(timespec="microseconds"), record.id


def _read_cursor(cursor: str) -> tuple[str, str]:
    at, _, id_ = cursor.partition(" ")
    return at, id_


def _answer(row: _JobRow, answer: Answer, now: datetime) -> None:
    """Forget a request that was dealt with; a backfill that was cut goes on behind the others."""
    request = row.requests.pop(answer.key)
    if answer.done_through is not None:
        row.requests[answer.key] = replace(request, after=answer.done_through, requested_at=now)


def _same(one: Job, other: Job) -> bool:
    """Whether two definitions say the same, whatever their version and times."""
    return _content(one) == _content(other)


def _content(job: Job) -> tuple[object, ...]:
    tasks = tuple((task.name, task.target, task.after, task.overrides) for task in job.tasks)
    return job.name, job.schedule, job.owner, job.overrides, job.application, tasks, job.reports
