"""The store in memory: the readable specification of every verb.

Each verb is one uninterrupted piece of code, which is what a transaction is to the other
stores. How rows are found without walking all of them is the business of `tables`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import count, islice, takewhile
from typing import Any, ClassVar

from everytick.domain import ids
from everytick.domain.config import Level, Overrides
from everytick.domain.decisions import Answer, Creation, Plan, Span
from everytick.domain.fired import Fired, FiredRun
from everytick.domain.job import Job
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.occurrence import Cause, TaskRun
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
    ENDED,
    AttemptStatus,
    OccurrenceStatus,
    RunStatus,
    may_move,
)
from everytick.domain.steps import OccurrenceSnapshot, Step, rules_of, runs_of
from everytick.errors import (
    DuplicateDefinition,
    JobDisabled,
    NotFound,
    OccurrenceExists,
    TransactionsUnsupported,
    VersionConflict,
)
from everytick.stores.base import (
    NODES_KEPT,
    REMEMBERED,
    Ahead,
    Claim,
    Commit,
    Edits,
    JobRecord,
    NodeRecord,
    Orders,
    Page,
    Stored,
    Transaction,
    Whole,
)
from everytick.stores.beginnings import (
    NOTHING_TO_KEEP,
    as_stored,
    first_watermark,
    forgettable,
    has_room,
    in_force_at,
    own_overrides,
    refuse_edit,
    refuse_purge,
    requested_id,
    under_id,
)
from everytick.stores.memory.ordered import Ordered, Place
from everytick.stores.memory.tables import AttemptRow, JobRow, OccurrenceRow, Tables

_S = OccurrenceStatus
_WELL = frozenset({_S.COMPLETED, _S.COMPLETED_WITH_ERRORS})
_KEPT_AS_SUCCESS = _WELL | {_S.SKIPPED}
_FAILURES = frozenset({AttemptStatus.FAILED, AttemptStatus.TIMEOUT})
_UNSTARTED = frozenset({_S.PENDING, _S.QUEUED, _S.AWAITING_RETRY})
_NO_OVERRIDES = Overrides(Level.OCCURRENCE)
_TICK = timedelta(microseconds=1)
_BUSY_SHOWN = 100


class MemoryStore:
    """Everything in this process, for tests and for scripts that may forget."""

    is_in_memory: ClassVar[bool] = True
    holds_due: ClassVar[bool] = False
    file: ClassVar[None] = None

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._tables = Tables()
        self._numbers = count(1)
        self._beats: dict[str, datetime] = {}
        self._facts: dict[str, NodeFacts] = {}
        self._rung = asyncio.Event()

    # ------------------------------------------------------------------------------------------------ the store

    async def migrated(self) -> int:
        """Return 0: nothing is kept that could be of another version."""
        return 0

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
        wakes = next(self._tables.wakes.since((now + _TICK,)), None)
        firsts = [row for queue in queues for row in islice(self._tables.unripe.get(queue, ()), 1)]
        ready_at = min((row.ready_at for row in firsts), default=None)
        return Ahead(now, None if wakes is None else wakes.wake_at, ready_at)

    def _now(self) -> datetime:
        now = self._clock()
        if now > self._tables.time:
            self._tables.pass_time(now)
        return self._tables.time

    def _ring(self) -> None:
        self._rung.set()

    # ----------------------------------------------------------------------------------------------- the planner

    @asynccontextmanager
    async def due(self, now: datetime, limit: int) -> AsyncIterator[Sequence[JobSnapshot]]:
        """Give up to `limit` jobs whose `wake_at` has come, longest-waiting first."""
        yield [self._snapshot(row) for row in islice(self._tables.wakes.through(now), limit)]

    async def commit_plans(self, batch: Sequence[JobSnapshot], plans: Sequence[Plan]) -> list[Commit]:
        """Write each plan whole, on the condition that its job's revision is still the snapshot's."""
        now = self._now()
        commits = [self._commit_plan(plan, now) for plan in plans]
        if Commit.COMMITTED in commits:
            self._ring()
        return commits

    def _snapshot(self, row: JobRow) -> JobSnapshot:
        busy, waiting = len(row.busy), len(row.waiting)
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
            tuple(islice(row.requests.values(), PLAN_LIMIT)) if row.requests else (),
            len(row.requests) > PLAN_LIMIT,
            tuple(map(_active, islice(row.busy, _BUSY_SHOWN))) if busy else (),
            busy,
            tuple(map(_active, self._shown(row))) if waiting else (),
            waiting,
            row.last_end,
            row.last_success,
            not busy or all(each.awaited for each in row.busy),
        )

    def _shown(self, row: JobRow) -> Sequence[OccurrenceRow]:
        """Return the oldest in line, the newest, and the newest of the schedule's own."""
        line: Ordered[OccurrenceRow] | list[OccurrenceRow] = row.waiting
        if row.pause_at(self._now()) is not None:
            # A pause holds the schedule and not people: what they asked for is in view, however long the line is.
            line = [each for each in row.waiting if each.made.cause is not Cause.SCHEDULE]
        shown = list(islice(line, PLAN_LIMIT))
        if len(line) <= PLAN_LIMIT:
            return shown
        newest = next(reversed(line))
        last = shown[-1]
        behind = takewhile(lambda each: each is not last, reversed(line))
        own = next((each for each in behind if each.made.cause is Cause.SCHEDULE), newest)
        return [*shown, newest] if own is newest else [*shown, own, newest]

    def _commit_plan(self, plan: Plan, now: datetime) -> Commit:
        row = self._tables.jobs.get(plan.job_id)
        if row is None or row.revision != plan.revision:
            return Commit.STALE
        assert plan.watermark >= row.watermark, f"{row.name}: the watermark moved back"
        if plan.cancels_before is not None:
            _ask_all_to_stop(row, plan.cancels_before)
        for creation in plan.creations:
            self._create(row, creation, now)
        # What somebody canceled or claimed meanwhile stays as it is: these writes name what they expect.
        for id_ in plan.releases:
            if self._status(id_) is _S.QUEUED:
                self._move(self._tables.occurrences[id_], _S.PENDING, now)
        for ending in plan.endings:
            if self._status(ending.id) in _UNSTARTED:
                reason = f"{ending.why} {ending.detail}".strip()
                self._end(self._tables.occurrences[ending.id], ending.status, reason, now)
        for id_ in plan.cancels:
            if self._status(id_) in ACTIVE:
                self._tables.occurrences[id_].cancel = "asked by the schedule"
        if plan.awaits_ends:
            for each in (*row.busy, *row.waiting):
                each.awaited = True
        row.spans += plan.spans
        for answer in plan.answers:
            _answer(row, answer, now)
        _settle_facts(row, plan)
        row.watermark = plan.watermark
        row.revision += 1
        # An ending, request or edit after the snapshot was read must not be slept through.
        self._tables.wake(row, plan.wake_at if row.woken == plan.woken else now)
        return Commit.COMMITTED

    def _create(self, row: JobRow, creation: Creation, now: datetime) -> None:
        """Make the occurrence if it is absent: its id is made of job and instant, so a repeat is harmless."""
        if creation.id in self._tables.occurrences:
            return
        own, overrides = row.job.settings, _NO_OVERRIDES
        if creation.overrides is not None or creation.payload is not None:
            overrides = own_overrides(creation, own)
            own = own.overridden_by(overrides)
        made = OccurrenceRow(
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
            own.queue,
            creation.ready_at,
            now,
            now if creation.status in ENDED else None,
        )
        self._tables.add(made)
        if creation.keeps and creation.status not in ENDED:
            self._keep(made, creation, now)

    def _keep(self, made: OccurrenceRow, creation: Creation, now: datetime) -> None:
        """Take the results over that a replay keeps of its original."""
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

    # ---------------------------------------------------------------------------------------------- the executor

    async def claim(self, node: str, queues: Collection[str], limit: int, unknown: Collection[str] = ()) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of these queues, by priority, then age."""
        now = self._now()
        lines = [self._tables.ready[queue] for queue in set(queues) if queue in self._tables.ready]
        rows = lines[0] if len(lines) == 1 else merge(*lines, key=_turn)
        ready = (row for row in rows if row.job.id not in unknown) if unknown else rows
        return [self._own(row, node, now) for row in list(islice(ready, limit))]

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> list[Commit]:
        """Write each step, on the condition that the claim's fence is still the occurrence's."""
        now = self._now()
        return [self._commit_step(claim, step, now) for claim, step in steps]

    async def register(self, node: str, facts: NodeFacts) -> None:
        """Keep what the node says of itself, which is a sign of life; nodes that are long gone are forgotten."""
        now = self._beats[node] = self._now()
        self._facts[node] = facts
        for gone in [each for each, heard in self._beats.items() if now - heard > NODES_KEPT]:
            if not self._tables.held.get(gone):
                del self._beats[gone]
                self._facts.pop(gone, None)

    async def beat(self, node: str, held: Collection[int]) -> Orders:
        """Say that the node lives and what it holds; the answer says what the store knows better."""
        self._beats[node] = self._now()
        known, own = set(held), self._tables.held[node]
        return Orders(
            cancel=tuple(
                (row.handle, row.cancel) for row in own.values() if row.cancel is not None and row.handle in known
            ),
            gone=tuple(sorted(known - own.keys())),
            adopt=tuple(self._claim_of(row) for row in own.values() if row.handle not in known),
        )

    async def orphans(self, node: str, limit: int, silence: timedelta) -> list[Claim]:
        """Take over what silent nodes held, with a new fence: of many reapers one gets it."""
        now = self._now()
        silent = [owner for owner in self._tables.held if self._is_silent(owner, now, silence)]
        return self._take_over([row for owner in silent for row in self._tables.held[owner].values()], node, limit, now)

    async def take(
        self, node: str, job_ids: Collection[str], limit: int, occurrence_ids: Collection[str] | None = None
    ) -> list[Claim]:
        """Take over what other nodes hold of these jobs, silent or not; with `occurrence_ids` only these."""
        busy = [row for id_ in set(job_ids) if id_ in self._tables.jobs for row in self._tables.jobs[id_].busy]
        others = [row for row in busy if row.owner not in (None, node)]
        named = [row for row in others if occurrence_ids is None or row.id in occurrence_ids]
        return self._take_over(named, node, limit, self._now())

    def _take_over(self, rows: Iterable[OccurrenceRow], node: str, limit: int, now: datetime) -> list[Claim]:
        """Fence the owners of these out, oldest first; a wait that one of them kept lost nothing and is only freed."""
        taken = list[Claim]()
        for row in sorted(rows, key=lambda row: row.handle):
            if len(taken) >= limit:
                break
            waits = row.status is _S.AWAITING_RETRY
            self._tables.change(row, owner=None if waits else node, fence=row.fence + 1, updated_at=now)
            if waits:
                self._ring()
            else:
                taken.append(self._claim_of(row))
        return taken

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> None:
        """Show people what is running: make or change the attempt's row, under the claim's fence."""
        for claim, note in notes:
            row = self._tables.handles.get(claim.handle)
            if row is not None:
                _note(row, claim.fence, note)

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[Transaction]:
        """Refuse: what a task writes lies in no transaction of this store."""
        raise TransactionsUnsupported("memory")

    def apart(self) -> None:
        """Return nothing: what lives in this process lives in one loop of it."""

    async def reports(self, limit: int, unknown: Collection[str] = ()) -> list[OccurrenceSnapshot]:
        """Return ended occurrences whose report was not delivered yet, oldest end first."""
        owed = (row for row in self._tables.owed if row.job.id not in unknown)
        return [self._claim_of(row).snapshot for row in islice(owed, limit)]

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Note that these reports were delivered; a report may come twice, but never not at all."""
        for id_ in occurrence_ids:
            if id_ in self._tables.occurrences:
                self._tables.change(self._tables.occurrences[id_], report_due=False)

    def _is_silent(self, node: str, now: datetime, silence: timedelta) -> bool:
        heard = self._beats.get(node)
        return heard is None or now - heard > silence

    def _own(self, row: OccurrenceRow, node: str, now: datetime) -> Claim:
        self._tables.own(row, node, now)
        # A claim is a sign of life: a node that was silent for long must not lose at once what it just took.
        self._beats[node] = now
        return self._claim_of(row)

    def _claim_of(self, row: OccurrenceRow) -> Claim:
        job, rules = row.job.versions[row.version]
        if row.overrides.items:
            rules = rules_of(job, row.overrides)
        made = row.made
        # By place, as everything that is made for each occurrence: it takes half as long.
        seen = OccurrenceSnapshot(
            row.id,
            made.scheduled_for,
            rules,
            runs_of(rules, row.runs),
            row.status,
            row.number,
            row.owner is not None,
            row.ready_at,
            row.started_at,
            row.claimed_at,
            row.ended_at,
            row.error,
            row.lost,
            row.cancel,
            made.late and made.cause is Cause.SCHEDULE,
            job_id=row.job.id,
        )
        return Claim(row.handle, row.fence, row.record, seen, job)

    def _commit_step(self, claim: Claim, step: Step, now: datetime) -> Commit:
        row = self._tables.handles.get(claim.handle)
        if row is None:
            return Commit.STALE
        if row.fence != claim.fence:
            # An end raises the fence and keeps the number: its repeat finds its own effect.
            again = row.status in ENDED and row.fence == claim.fence + 1 and row.number == step.number
            return Commit.COMMITTED if again else Commit.STALE
        if step.number <= row.number:
            return Commit.COMMITTED
        after = step.after
        assert after.status is row.status or may_move(row.status, after.status), (
            f"{row.id}: {row.status} cannot become {after.status}"
        )
        _write_rows(row, step)
        row.number, row.lost = step.number, after.lost
        row.superseded_by_next = step.superseded_by_next
        if after.ended_at is not None:
            row.ready_at = after.ready_at or row.ready_at
            self._tables.end(row, after.status, after.ended_at, after.error, now, report_due=after.rules.reports)
            self._note_end(row, after.ended_at)
        else:
            self._tables.change(
                row,
                status=after.status,
                owner=None if step.resume_at is not None or step.release else row.owner,
                ready_at=step.resume_at or after.ready_at or row.ready_at,
                error=after.error,
                updated_at=now,
            )
        # An end that nobody waits for is slept through; where something is ready later, a node must hear of it.
        if row.awaited and (step.end is not None or step.resume_at is not None):
            self._wake(row.job, now)
        elif step.release or step.resume_at is not None:
            self._ring()
        return Commit.COMMITTED

    # -------------------------------------------------------------------------------------------------- the jobs

    async def put(self, job: Job, *, expected_version: int | None = None, by: str = "") -> Stored:
        """Create the job or make this its next version; an equal definition changes nothing."""
        now = self._now()
        row = self._tables.names.get(job.name)
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

    async def put_all(self, jobs: Sequence[Job], *, by: str = "") -> Sequence[Stored]:
        """Do to each of these, no two of one name, what `put` does, all together or not at all."""
        return await self.apply(Edits(tuple(jobs)), by=by)

    async def apply(self, edits: Edits, *, by: str = "") -> Sequence[Stored]:
        """Do everything that the edits say in one transaction, or nothing; return what came of each put."""
        self._check(edits)
        stored = [await self.put(job, by=by) for job in edits.puts]
        for name, reason in edits.suspends.items():
            id_ = self._tables.names[name].id
            await self.pause(id_, missed=Missed.CATCH_UP, reason=reason, by=edits.held_by)
        for name in edits.resumes:
            await self.resume(self._tables.names[name].id, by=edits.held_by)
        for name, retire_after in edits.removes.items():
            await self.remove(self._tables.names[name].id, retire_after=retire_after, by=by)
        return stored

    def _check(self, edits: Edits) -> None:
        """Refuse whatever could be refused half-way through."""
        known = {name: row for name, row in self._tables.names.items() if row.removed_at is None}
        for name, expected in edits.expected.items():
            version = known[name].job.version if name in known else 0
            if version != expected:
                raise VersionConflict(name, expected, version)
        for job in edits.puts:
            row = self._tables.names.get(job.name)
            if row is not None and not _same(row.job, job):
                self._make_room(row, job)
                refuse_edit(row.name, len(row.editions), job)
        made = {job.name for job in edits.puts}
        for name in (*edits.suspends, *edits.resumes, *edits.removes):
            if name not in known and name not in made:
                raise NotFound("job", name)

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return those of the jobs that exist."""
        return {id_: self._record(self._tables.jobs[id_]) for id_ in job_ids if id_ in self._tables.jobs}

    async def list(self) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name."""
        return [self._record(row) for _, row in sorted(self._tables.names.items()) if row.removed_at is None]

    async def editions(
        self, job_id: str, versions: Collection[int] = (), *, at: datetime | None = None
    ) -> Sequence[Edition]:
        """Return these versions of a job's definition, and the one in force at a moment, in order."""
        made = [job for _, (job, _) in sorted(self._job(job_id).versions.items())]
        # A first version was there from the beginning; every other has been in force since it was made.
        known = [Edition(job, None if job.version == 1 else job.updated_at) for job in made]
        wanted = {*versions, *([] if at is None else [in_force_at(known, at).job.version])}
        return [each for each in known if each.job.version in wanted]

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return what a plan would see of those jobs that exist now, due or not, and hold nothing."""
        return {id_: self._snapshot(self._tables.jobs[id_]) for id_ in job_ids if id_ in self._tables.jobs}

    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Write down what was fired without this store; return the handle of each run, None where another is there."""
        row, now = self._job(job_id), self._now()
        handles = [self._record_run(row, run, now) for run in fired.runs]
        for ended_at, handle, _ in fired.ends(handles):
            self._note_end(self._tables.handles[handle], ended_at)
        row.spans += [span for span in fired.spans if span.after >= row.watermark]
        if row.watermark >= fired.after:
            row.watermark = max(row.watermark, fired.through)
        row.revision += 1
        self._wake(row, now)
        return handles

    def _record_run(self, job: JobRow, run: FiredRun, now: datetime) -> int | None:
        known = self._tables.occurrences.get(run.creation.id)
        if known is not None:
            return known.handle if known.reason == run.reason else None
        self._create(job, run.creation, now)
        made = self._tables.occurrences[run.creation.id]
        for row in run.rows:
            made.runs[row.task] = row.run
            if row.attempt is not None:
                tried = AttemptRow(row.attempt, row.started_at, row.ended_at, row.error)
                made.attempts[row.task, row.number] = tried
        made.number, made.lost, made.claimed_at = run.number, run.lost, run.claimed_at
        made.started_at, made.error, made.superseded_by_next = run.started_at, run.error, run.superseded_by_next
        self._tables.change(made, owner=run.owner, fence=run.fence, ended_at=run.ended_at, report_due=run.report_due)
        if run.owner is not None:
            # Like a claim it is a sign of life: others must not take its owner for dead at once.
            self._beats[run.owner] = now
        return made.handle

    async def rename(self, job_id: str, name: str, *, by: str = "") -> None:
        """Give the job another name; its id and history stay."""
        row, now = self._job(job_id), self._now()
        if name != row.name and name in self._tables.names:
            raise DuplicateDefinition(f"there is a job named '{name}' already: remove or rename it first")
        self._edit(row, replace(row.job, name=name), now)
        self._tables.rename(row, name)

    async def remove(self, job_id: str, *, retire_after: timedelta = timedelta(0), by: str = "") -> None:
        """Take the job out of service: nothing new is created, what was not claimed is canceled."""
        row, now = self._job(job_id), self._now()
        row.removed_at, row.removed_by, row.retire_at = now, by, now + retire_after
        row.revision += 1
        self._wake(row, now)

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Forget up to `limit` occurrences of a removed job for good, and the job once none is left."""
        row = self._job(job_id)
        refuse_purge(row.name, row.removed_at, sum(1 for each in row.busy if each.owner is not None))
        for each in list(islice(row.history, limit)):
            self._tables.remove(each)
        if row.history:
            return False
        self._tables.remove_job(row)
        return True

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
        running = row.pause_at(now)
        if running is not None:
            row.pauses.remove(running)
        row.pauses.append(Pause(running.since if running else now, until, missed, reason, by))
        for each in list(row.busy):
            if each.status is _S.PENDING and each.made.cause is Cause.SCHEDULE:
                self._move(each, _S.QUEUED, now)
        row.revision += 1
        self._wake(row, now)

    async def resume(self, job_id: str, *, by: str = "") -> bool:
        """End a pause now; return whether there was one."""
        row, now = self._job(job_id), self._now()
        running = row.pause_at(now)
        if running is None:
            return False
        row.pauses[row.pauses.index(running)] = replace(running, until=now, resumed_by=by)
        row.revision += 1
        self._wake(row, now)
        return True

    async def request(self, job_id: str, request: Request, *, within: Any = None) -> str:
        """Ask for an occurrence and return its id; the same key again answers with the same one."""
        if within is not None:
            raise TransactionsUnsupported("memory")
        row, now = self._job(job_id), self._now()
        if row.removed_at is not None:
            raise NotFound("job", row.name)
        if not row.job.enabled:
            raise JobDisabled(row.name)
        request = as_stored(row.job, request, now)
        id_ = requested_id(row.job, request)
        open_ = row.requests.get(request.key)
        made = self._tables.occurrences.get(id_)
        if open_ is not None or (made is not None and request.cause is not Cause.BACKFILL):
            if open_ is not None:
                before = open_.payload
            else:
                before = made.overrides.get("payload") if made and made.overrides.items else None
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
        if row.status in ENDED:
            return False
        if row.owner is None and row.status in _UNSTARTED:
            self._end(row, _S.CANCELED, reason, now)
            self._wake(row.job, now)
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
        jobs = self._tables.jobs.values() if job_id is None else filter(None, [self._tables.jobs.get(job_id)])
        bounds: list[Place] = []
        if through is not None:
            bounds.append((through + _TICK,))
        if cursor is not None:
            bounds.append(_read_cursor(cursor))
        lines = [job.history.before(min(bounds)) if bounds else reversed(job.history) for job in jobs]
        newest_first: Iterator[OccurrenceRow] = merge(*lines, key=_place, reverse=True)
        if after is not None:
            newest_first = takewhile(lambda row: row.made.scheduled_for > after, newest_first)
        found = (
            row
            for row in newest_first
            if (not statuses or row.status in statuses) and (cause is None or row.made.cause is cause)
        )
        page = list(islice(found, limit))
        more = bool(page) and next(found, None) is not None
        return Page(tuple(row.record() for row in page), _cursor(page[-1]) if more else None)

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        row = self._occurrence(occurrence_id)
        job, _ = row.job.versions[row.version]
        tasks = {task.name: task for task in job.tasks}
        runs = tuple(
            TaskRun(row.id, task.id, run.status, run.attempts, run.started_at, run.ended_at, run.error)
            for task in job.tasks
            if (run := row.runs.get(task.name)) is not None
        )
        attempts = sorted(row.attempts.items(), key=lambda item: (tasks[item[0][0]].order, item[0][1]))
        return Whole(
            row.record(),
            runs,
            tuple((task, each.record(ids.run_id(row.id, tasks[task].id), number)) for (task, number), each in attempts),
        )

    async def spans(self, job_id: str, after: datetime, through: datetime) -> Sequence[Span]:
        """Return the spans of instants that did not run and touch `(after, through]`, in order."""
        row = self._job(job_id)
        return [span for span in row.spans if span.through > after and span.after < through]

    async def last_failures(self, job_ids: Collection[str]) -> Mapping[str, datetime]:
        """Return when an attempt of each of these jobs last failed or timed out, if one ever did."""
        known = [row for id_ in job_ids if (row := self._tables.jobs.get(id_)) is not None]
        latest = {row.id: max(_failures(row.history, row.forgotten_failure), default=None) for row in known}
        return {id_: at for id_, at in latest.items() if at is not None}

    async def nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were heard of."""
        return [
            NodeRecord(node, heard, len(self._tables.held.get(node, ())), self._facts.get(node))
            for node, heard in sorted(self._beats.items())
        ]

    async def prune(self, limit: int = 1000) -> int:
        """Forget up to `limit` ended occurrences that their job's retention no longer keeps; return how many."""
        now = self._now()
        over = (row for job in self._tables.jobs.values() for row in _no_longer_kept(job, now))
        forgotten = list(islice(over, limit))
        for row in forgotten:
            row.job.forgotten_failure = max(_failures([row], row.job.forgotten_failure), default=None)
            self._tables.remove(row)
        return len(forgotten)

    # -------------------------------------------------------------------------------------------------- the parts

    def _job(self, job_id: str) -> JobRow:
        row = self._tables.jobs.get(job_id)
        if row is None:
            raise NotFound("job", job_id)
        return row

    def _occurrence(self, occurrence_id: str) -> OccurrenceRow:
        row = self._tables.occurrences.get(occurrence_id)
        if row is None:
            raise NotFound("occurrence", occurrence_id)
        return row

    def _status(self, occurrence_id: str) -> OccurrenceStatus:
        """Where an occurrence stands; one that was pruned has ended, however it did."""
        row = self._tables.occurrences.get(occurrence_id)
        return _S.CANCELED if row is None else row.status

    def _record(self, row: JobRow) -> JobRecord:
        return JobRecord(
            row.job,
            row.revision,
            row.watermark,
            row.wake_at,
            row.pause_at(self._now()),
            row.removed_at,
            row.retire_at,
            row.last_end,
            row.last_success,
            "" if row.removed_at is None else row.removed_by,
        )

    def _create_job(self, job: Job, now: datetime) -> Stored:
        nth = 1
        while (id_ := ids.job_id(job.name, nth)) in self._tables.jobs:
            nth += 1
        made = replace(under_id(job, id_), version=1, created_at=now, updated_at=now)
        row = JobRow(id_, job.name, [Edition(made)], first_watermark(made, now), now)
        row.versions[1] = made, rules_of(made)
        if job.settings.on_create.begin is FirstSight.IMMEDIATELY:
            row.requests["create"] = Request("create", Cause.CREATE, now)
        self._tables.add_job(row)
        self._wake(row, now)
        return Stored(id_, 1, changed=True)

    def _edit(self, row: JobRow, job: Job, now: datetime) -> Stored:
        """A new version, in force after now; what was not claimed takes it, what has started keeps its own."""
        self._make_room(row, job)
        refuse_edit(row.name, len(row.editions), job)
        version = row.job.version + 1
        made = replace(under_id(job, row.id), version=version, created_at=row.created_at, updated_at=now)
        row.editions.append(Edition(made, now))
        row.versions[version] = made, rules_of(made)
        row.removed_at = row.retire_at = None
        for each in [*row.busy, *row.waiting]:
            if each.status in (_S.PENDING, _S.QUEUED) and not each.runs:
                own = made.settings.overridden_by(each.overrides) if each.overrides.items else made.settings
                self._tables.change(each, version=version, priority=own.priority, queue=own.queue)
        row.revision += 1
        self._wake(row, now)
        return Stored(row.id, version, changed=True)

    def _make_room(self, row: JobRow, job: Job) -> None:
        """Forget the oldest versions that nobody needs, if there is no room for one more."""
        if not has_room(len(row.editions), job):
            del row.editions[: forgettable([each.job for each in row.editions])]

    def _forget(self, row: JobRow) -> None:
        """Let a job that was removed long ago make room for a new one of its name; its history stays."""
        self._tables.rename(row, f"{row.name} (removed {row.removed_at})")

    def _wake(self, row: JobRow, now: datetime) -> None:
        row.woken += 1
        self._tables.wake(row, now)
        self._ring()

    def _move(self, row: OccurrenceRow, to: OccurrenceStatus, now: datetime) -> None:
        assert may_move(row.status, to), f"{row.id}: {row.status} cannot become {to}"
        self._tables.change(row, status=to, updated_at=now)

    def _end(self, row: OccurrenceRow, status: OccurrenceStatus, reason: str, now: datetime) -> None:
        """End an occurrence without its owner: whoever still holds it is fenced out."""
        assert may_move(row.status, status), f"{row.id}: {row.status} cannot become {status}"
        job, _ = row.job.versions[row.version]
        self._tables.end(row, status, now, reason, now, report_due=job.reports)
        self._note_end(row, now)

    def _note_end(self, row: OccurrenceRow, at: datetime) -> None:
        job = row.job
        job.last_end = Ended(row.made.scheduled_for, row.started_at, at)
        if row.status in _WELL:
            job.last_success = job.last_end


def _active(row: OccurrenceRow) -> Active:
    made = row.made
    return Active(row.id, row.line_at, made.scheduled_for, row.status, made.cause, row.superseded_by_next)


def _place(row: OccurrenceRow) -> tuple[datetime, str]:
    return row.made.scheduled_for, row.id


def _turn(row: OccurrenceRow) -> tuple[int, datetime, str]:
    return -row.priority, row.line_at, row.id


def _ask_all_to_stop(row: JobRow, before: datetime) -> None:
    for each in row.busy.through(before):
        if each.cancel is None and each.line_at < before:
            each.cancel = "asked by the schedule"


def _settle_facts(row: JobRow, plan: Plan) -> None:
    """Forget the facts that are decided: nothing at or before the watermark is asked about again."""
    for used in plan.used:
        row.adjustments[used.at] = replace(row.adjustments[used.at], done=True)
    if row.adjustments:
        row.adjustments = {
            at: each
            for at, each in row.adjustments.items()
            if at > plan.watermark or (each.kind is AdjustmentKind.MOVE and each.vacates and not each.done)
        }
    if plan.rescheduled:
        row.reschedule = None
    if row.pauses:
        row.pauses = [pause for pause in row.pauses if pause.until is None or pause.until > plan.watermark]
    if len(row.editions) > 1:
        later = [each for each in row.editions if each.in_force_after and each.in_force_after > plan.watermark]
        row.editions = [*row.editions[: len(row.editions) - len(later)][-1:], *later]


def _answer(row: JobRow, answer: Answer, now: datetime) -> None:
    """Forget a request that was dealt with; a backfill that was cut goes on behind the others."""
    request = row.requests.pop(answer.key)
    if answer.done_through is not None:
        row.requests[answer.key] = replace(request, after=answer.done_through, requested_at=now)


def _write_rows(row: OccurrenceRow, step: Step) -> None:
    for written in step.rows:
        row.runs[written.task] = written.run
        if written.attempt is None:
            continue
        attempt = row.attempts.setdefault((written.task, written.number), AttemptRow())
        if attempt.status in ATTEMPT_ENDED:
            continue
        attempt.status, attempt.error = written.attempt, written.error
        attempt.started_at, attempt.ended_at = written.started_at, written.ended_at


def _note(row: OccurrenceRow, fence: int, note: Note) -> None:
    # An end raises the fence once more; had anybody taken over before it, twice.
    ended = row.status in ENDED and row.fence == fence + 1
    if row.fence != fence and not ended:
        return
    known = row.attempts.get((note.task, note.number))
    if known is None:
        if ended:
            return
        known = AttemptRow(AttemptStatus.RUNNING, note.started_at)
        row.attempts[note.task, note.number] = known
    known.progress, known.log = note.progress or known.progress, note.log or known.log


def _failures(rows: Iterable[OccurrenceRow], known: datetime | None) -> Iterator[datetime]:
    """Give when attempts of these failed or timed out, and what was known before."""
    if known is not None:
        yield known
    for row in rows:
        for attempt in row.attempts.values():
            if attempt.status in _FAILURES and attempt.ended_at is not None:
                yield attempt.ended_at


def _no_longer_kept(job: JobRow, now: datetime) -> Iterator[OccurrenceRow]:
    """Give what the job's retention forgets, oldest first; a report that is due is delivered before."""
    keep = job.job.settings.retention
    ended = [row for row in job.history if row.status in ENDED]
    for row in ended[: max(len(ended) - keep.keep_last, 0)]:
        age = keep.success if row.status in _KEPT_AS_SUCCESS else keep.failure
        if age is not None and row.ended_at is not None and now - row.ended_at > age and not row.report_due:
            yield row


def _cursor(row: OccurrenceRow) -> str:
    return f"{row.made.scheduled_for.isoformat()} {row.id}"


def _read_cursor(cursor: str) -> Place:
    at, _, id_ = cursor.partition(" ")
    return datetime.fromisoformat(at), id_


def _same(one: Job, other: Job) -> bool:
    """Whether two definitions say the same, whatever their version and times."""
    return _content(one) == _content(other)


def _content(job: Job) -> tuple[object, ...]:
    tasks = tuple((task.name, task.target, task.after, task.overrides) for task in job.tasks)
    return job.name, job.schedule, job.owner, job.overrides, job.application, tasks, job.reports
