"""Claims, steps, beats and orphans: one owner at a time, and every write carries its fence."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from itertools import islice

from everytick.domain.decisions import Why
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import HandedAttempt, Note
from everytick.domain.occurrence import Cause
from everytick.domain.statuses import ATTEMPT_ENDED, ENDED, AttemptStatus, OccurrenceStatus, may_move
from everytick.domain.steps import OccurrenceEnd, OccurrenceHeader, OccurrenceLife, Step, rules_of, runs_of
from everytick.errors import TransactionsUnsupported
from everytick.stores.base import NAME_SETS_KEPT, NODES_KEPT, Claim, ClaimKey, Commit, CommitAnswer, NodeScope, Orders
from everytick.stores.each_alone import each_alone
from everytick.stores.memory.base import Base, merged
from everytick.stores.memory.rows import AttemptRow, OccurrenceRow
from everytick.stores.protocols import ClaimTransaction

_S = OccurrenceStatus


class Running(Base):
    """Claims, steps, beats and reports."""

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age."""
        return self._claimed(scope, limit)

    def _claimed(self, scope: NodeScope, limit: int) -> list[Claim]:
        now = self._now()
        self._tables.ripen(scope.met)
        rows = merged(self._tables.ready, scope, claim_order)
        ready = (row for row in rows if row.job.id not in scope.unknown and not waits_for_a_plan(row, now))
        taken = list(islice(ready, limit))
        if taken:
            # A claim counts as a beat, so that no reaper takes it from a node that was silent for long.
            self._hear(scope.node, now)
        token = self._tokens()
        return [self._own(row, scope.node, token, now) for row in taken]

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step whose claim still has the fence and token of the occurrence."""
        now = self._now()

        async def write(some: Sequence[tuple[Claim, Step]]) -> Sequence[Commit]:
            return [self._commit_step(claim, step, now) for claim, step in some]

        return await each_alone(steps, write, "steps")

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Record that the node lives and which claims it holds. Return the claims about which the store differs."""
        now = self._now()
        row = self._hear(node, now)
        if facts is not None:
            row.facts = facts
            self._forget_nodes(now)
        named, own = set(keys), {_key(row): row for row in self._tables.owned[node].values()}
        return Orders(
            cancel=tuple((key, row.cancel) for key, row in own.items() if row.cancel is not None and key in named),
            gone=tuple(sorted(named - own.keys())),
            adopt=tuple(self._with_handed(self._claim_of(row)) for key, row in own.items() if key not in named),
            parks=tuple(key for key, row in own.items() if key in named and row.job.is_out_of_service(now)),
        )

    def _forget_nodes(self, now: datetime) -> None:
        """Delete nodes that have been silent for NODES_KEPT, and the sets of names that only they refer to."""
        for silent in [node for node, known in self._nodes.items() if now - known.beat_at > NODES_KEPT]:
            if not self._tables.owned.get(silent):
                del self._nodes[silent]
        named = {hash_ for known in self._nodes.values() if known.facts is not None for hash_ in known.facts.defines}
        for name_set in list(self._name_sets.values()):
            if name_set.hash not in named and now - name_set.stored_at > NAME_SETS_KEPT:
                del self._name_sets[name_set.hash]

    async def leave(self, node: str) -> None:
        """Record that the node has stopped: its `beats` become 0, and its claims are orphans at once."""
        if node in self._nodes:
            self._nodes[node].beats, self._nodes[node].beat_at = 0, self._now()

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> list[Claim]:
        """Take over the claims in `keys`, and those of each silent node whose `beats` still has the value named."""
        still_silent = [node for node, beats in silent.items() if self._beats_of(node) == beats]
        orphans = {handle: row for node in still_silent for handle, row in self._tables.owned.get(node, {}).items()}
        orphans = {handle: row for handle, row in orphans.items() if not _is_handed(row)}
        for key in keys:
            row = self._tables.handles.get(key.handle)
            if row is not None and _key(row) == key and row.owner is not None:
                orphans[key.handle] = row
        return self._take_over(orphans.values(), reaper, limit, self._now())

    async def reattach(self, scope: NodeScope, limit: int, silent: Mapping[str, int]) -> list[Claim]:
        """Give the node of the scope what these silent nodes have handed over to engines."""
        still_silent = [node for node, beats in silent.items() if self._beats_of(node) == beats]
        held = [row for node in still_silent for row in self._tables.owned.get(node, {}).values()]
        wanted = [row for row in held if _is_handed(row) and row.needs in scope.met]
        known = [row for row in wanted if row.job.id not in scope.unknown]
        claims = self._take_over(known, scope.node, limit, self._now())
        for claim in claims:
            self._tables.handles[claim.handle].node = scope.node
        return [self._with_handed(claim) for claim in claims]

    def _with_handed(self, claim: Claim) -> Claim:
        return replace(claim, handed=_handed(self._tables.handles[claim.handle]))

    def _take_over(self, rows: Iterable[OccurrenceRow], node: str, limit: int, now: datetime) -> list[Claim]:
        """Fence out the owners of these, oldest first. A wait for a retry lost no attempt: it only gets no owner."""
        orphans, token = sorted(rows, key=lambda row: row.handle), self._tokens()
        for row in [row for row in orphans if row.status is _S.AWAITING_RETRY]:
            self._tables.change(row, owner=None, fence=row.fence + 1, token=token, updated_at=now)
            self._ring()
        taken = [row for row in orphans if row.status is not _S.AWAITING_RETRY][: max(limit, 0)]
        for row in taken:
            self._tables.change(row, owner=node, fence=row.fence + 1, token=token, updated_at=now)
        return [self._claim_of(row) for row in taken]

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the row of a running attempt, for people, if the claim still has its fence and token."""

        async def write(some: Sequence[tuple[Claim, Note]]) -> Sequence[Commit]:
            return [self._write_note(claim, note) for claim, note in some]

        return await each_alone(notes, write, "notes")

    def _write_note(self, claim: Claim, note: Note) -> Commit:
        row = self._tables.handles.get(claim.handle)
        if row is None or row.token != claim.key.token:
            return Commit.STALE
        return _note(row, claim.fence, note)

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Refuse: this store has no transactions."""
        raise TransactionsUnsupported("memory")

    def apart(self) -> None:
        """Return None: the rows of this store belong to one event loop."""

    async def reports(self, scope: NodeScope, limit: int) -> list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        rows = merged(self._tables.unreported, scope, lambda row: (row.ended_at, row.id))
        unreported = (row for row in rows if row.job.id not in scope.unknown)
        return [OccurrenceEnd(*self._header_and_life(row)) for row in islice(unreported, limit)]

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Record that these reports were delivered. A report may be delivered twice; it is never lost."""
        for id_ in occurrence_ids:
            if id_ in self._tables.occurrences:
                self._tables.change(self._tables.occurrences[id_], report_due=False)

    def _beats_of(self, node: str) -> int:
        return self._nodes[node].beats if node in self._nodes else 0

    def _own(self, row: OccurrenceRow, node: str, token: int, now: datetime) -> Claim:
        self._tables.own(row, node, token, now)
        return self._claim_of(row)

    def _claim_of(self, row: OccurrenceRow) -> Claim:
        header, life = self._header_and_life(row)
        return Claim(_key(row), row.record, header, life, row.job.versions[row.version][0])

    def _header_and_life(self, row: OccurrenceRow) -> tuple[OccurrenceHeader, OccurrenceLife]:
        job, rules = row.job.versions[row.version]
        if row.overrides.items:
            rules = rules_of(job, row.overrides)
        header = OccurrenceHeader(
            id=row.id,
            job_id=row.job.id,
            scheduled_for=row.creation.scheduled_for,
            rules=rules,
            is_recovery_run=row.creation.late and row.creation.cause is Cause.SCHEDULE,
            found=row.found,
            holds_place=row.holds_place,
            cause=row.creation.cause,
        )
        life = OccurrenceLife(
            status=row.status,
            runs=runs_of(rules, row.runs),
            number=row.number,
            is_owned=row.owner is not None,
            ready_at=row.ready_at,
            started_at=row.started_at,
            claimed_at=row.claimed_at,
            ended_at=row.ended_at,
            error=row.error,
            lost=row.lost,
            cancel=row.cancel,
        )
        return header, life

    def _commit_step(self, claim: Claim, step: Step, now: datetime) -> Commit:
        handle, fence, token = claim.key
        row = self._tables.handles.get(handle)
        if row is None or row.token != token:
            return Commit.STALE
        if row.fence != fence:
            # An end raises the fence and keeps the number: this tells a repeated end from a stale step.
            again = row.status in ENDED and row.fence == fence + 1 and row.number == step.number
            return Commit.COMMITTED if again else Commit.STALE
        if step.number <= row.number:
            return Commit.COMMITTED
        after = step.after
        assert after.status is row.status or may_move(row.status, after.status), (
            f"{row.id}: {row.status} cannot become {after.status}"
        )
        _write_rows(row, step)
        self._note_failure(row.job, step.rows)
        row.number, row.lost = step.number, after.lost
        row.superseded_by_next = step.superseded_by_next
        if after.ended_at is not None:
            row.ready_at = after.ready_at or row.ready_at
            self._tables.end(row, after.status, after.ended_at, after.error, now, report_due=claim.header.rules.reports)
            self._note_end(row, after.ended_at, step.failure)
        else:
            self._tables.change(
                row,
                status=after.status,
                owner=None if step.resume_at is not None or step.release else row.owner,
                ready_at=step.resume_at or after.ready_at or row.ready_at,
                error=after.error,
                updated_at=now,
            )
        # An end that is not awaited wakes no job. An occurrence that is ready later rings the bell.
        if row.awaited and (step.end is not None or step.resume_at is not None):
            self._wake(row.job, now)
        elif step.release or step.resume_at is not None or (step.end is not None and row.holds_place):
            self._ring()
        if step.release:
            self._hold_given_back(row, step, now)
        return Commit.COMMITTED

    def _hold_given_back(self, row: OccurrenceRow, step: Step, now: datetime) -> None:
        """Hold or end an occurrence that was given back, if its job was paused, disabled or removed."""
        if step.restores:
            row.started_at, row.node = step.after.started_at, _last_node(row)
        job = row.job
        if job.retire_at is not None and now >= job.retire_at:
            self._end(row, _S.CANCELED, Why.REMOVED, now)
            self._wake(job, now)
        elif row.status is _S.PENDING and job.holds_back(row.creation.cause, now):
            self._move(row, _S.QUEUED, now)


def _key(row: OccurrenceRow) -> ClaimKey:
    return ClaimKey(row.handle, row.fence, row.token)


def _is_handed(row: OccurrenceRow) -> bool:
    return row.status is _S.RUNNING and bool(_handed(row))


def _handed(row: OccurrenceRow) -> tuple[HandedAttempt, ...]:
    """Return the open attempts that were handed over to engines, by task and number."""
    tries = [(*key, attempt.handed_to) for key, attempt in row.attempts.items() if attempt.status not in ATTEMPT_ENDED]
    return tuple(sorted(HandedAttempt(task, number, engine) for task, number, engine in tries if engine is not None))


def waits_for_a_plan(row: OccurrenceRow, now: datetime) -> bool:
    """Whether the row is a retry that the next instant supersedes, and its job is due: then the plan comes first."""
    due_at = row.job.wake_at if row.superseded_by_next else None
    return due_at is not None and due_at <= now


def _last_node(row: OccurrenceRow) -> str | None:
    """Return the node of the attempt that began last, None if none began."""
    tries = [
        (attempt.started_at, key, attempt.node)
        for key, attempt in row.attempts.items()
        if attempt.started_at is not None
    ]
    return max(tries)[2] if tries else None


def claim_order(row: OccurrenceRow) -> tuple[int, datetime, str]:
    return -row.priority, row.line_at, row.id


def _write_rows(row: OccurrenceRow, step: Step) -> None:
    for written in step.rows:
        row.runs[written.task] = written.run
        if written.attempt is None:
            continue
        attempt = row.attempts.setdefault((written.task, written.number), AttemptRow(node=row.node))
        if attempt.status in ATTEMPT_ENDED:
            continue
        attempt.status, attempt.error = written.attempt, written.error
        attempt.started_at, attempt.ended_at = written.started_at, written.ended_at


def _note(row: OccurrenceRow, fence: int, note: Note) -> Commit:
    # The end raised the fence by one. A take-over before the end would have raised it by two.
    ended = row.status in ENDED and row.fence == fence + 1
    if row.fence != fence and not ended:
        return Commit.STALE
    known = row.attempts.get((note.task, note.number))
    if known is None:
        if ended:
            return Commit.STALE
        known = AttemptRow(AttemptStatus.RUNNING, note.started_at, node=row.node)
        row.attempts[note.task, note.number] = known
    known.progress, known.log = note.progress or known.progress, note.log or known.log
    known.handed_to = note.handed_to or known.handed_to
    return Commit.COMMITTED
