"""What the executor and the reaper ask: one owner at a time, and nothing written without its fence."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from itertools import islice

from everytick.domain.decisions import Why
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.occurrence import Cause
from everytick.domain.statuses import ATTEMPT_ENDED, ENDED, AttemptStatus, OccurrenceStatus, may_move
from everytick.domain.steps import OccurrenceEnd, OccurrenceHeader, OccurrenceLife, Step, rules_of, runs_of
from everytick.errors import TransactionsUnsupported
from everytick.stores.base import NAME_SETS_KEPT, NODES_KEPT, Claim, ClaimKey, Commit, CommitAnswer, NodeScope, Orders
from everytick.stores.each_alone import each_alone
from everytick.stores.memory.base import Base, together
from everytick.stores.memory.tables import AttemptRow, OccurrenceRow
from everytick.stores.protocols import ClaimTransaction

_S = OccurrenceStatus


class Running(Base):
    """Claims, steps, beats and reports."""

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age."""
        return self._claimed(scope, limit)

    def _claimed(self, scope: NodeScope, limit: int) -> list[Claim]:
        now = self._now()
        rows = together(self._tables.ready, scope, _turn)
        ready = (row for row in rows if row.job.id not in scope.unknown and not _waits_for_a_plan(row, now))
        taken = list(islice(ready, limit))
        if taken:
            # A claim is a sign of life: a node that was silent for long must not lose at once what it just took.
            self._hear(scope.node, now)
        token = self._tokens()
        return [self._own(row, scope.node, token, now) for row in taken]

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step, on the condition that the claim's fence and token are still the occurrence's."""
        now = self._now()

        async def write(some: Sequence[tuple[Claim, Step]]) -> Sequence[Commit]:
            return [self._commit_step(claim, step, now) for claim, step in some]

        return await each_alone(steps, write, "steps")

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Say that the node lives and what it holds; the answer says what the store knows better."""
        now = self._now()
        row = self._hear(node, now)
        if facts is not None:
            row.facts = facts
            self._forget_nodes(now)
        named, own = set(keys), {_key(row): row for row in self._tables.held[node].values()}
        return Orders(
            cancel=tuple((key, row.cancel) for key, row in own.items() if row.cancel is not None and key in named),
            gone=tuple(sorted(named - own.keys())),
            adopt=tuple(self._claim_of(row) for key, row in own.items() if key not in named),
            parks=tuple(key for key, row in own.items() if key in named and row.job.is_out_of_service(now)),
        )

    def _forget_nodes(self, now: datetime) -> None:
        """Forget nodes that are long gone, and the sets of names that only they told of."""
        for gone in [node for node, known in self._nodes.items() if now - known.beat_at > NODES_KEPT]:
            if not self._tables.held.get(gone):
                del self._nodes[gone]
        named = {hash_ for known in self._nodes.values() if known.facts is not None for hash_ in known.facts.defines}
        for name_set in list(self._name_sets.values()):
            if name_set.hash not in named and now - name_set.stored_at > NAME_SETS_KEPT:
                del self._name_sets[name_set.hash]

    async def leave(self, node: str) -> None:
        """Say that the node beats no more: its beats are 0, and what it still holds is an orphan at once."""
        if node in self._nodes:
            self._nodes[node].beats, self._nodes[node].beat_at = 0, self._now()

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> list[Claim]:
        """Take over what each silent node holds if its `beats` is still the number named, and each claim named."""
        gone = [node for node, beats in silent.items() if self._beats_of(node) == beats]
        found = {handle: row for node in gone for handle, row in self._tables.held.get(node, {}).items()}
        for key in keys:
            row = self._tables.handles.get(key.handle)
            if row is not None and _key(row) == key and row.owner is not None:
                found[key.handle] = row
        return self._take_over(found.values(), reaper, limit, self._now())

    def _take_over(self, rows: Iterable[OccurrenceRow], node: str, limit: int, now: datetime) -> list[Claim]:
        """Fence the owners of these out, oldest first; a wait that one of them kept lost nothing and is only freed."""
        found, token = sorted(rows, key=lambda row: row.handle), self._tokens()
        for row in [row for row in found if row.status is _S.AWAITING_RETRY]:
            self._tables.change(row, owner=None, fence=row.fence + 1, token=token, updated_at=now)
            self._ring()
        taken = [row for row in found if row.status is not _S.AWAITING_RETRY][: max(limit, 0)]
        for row in taken:
            self._tables.change(row, owner=node, fence=row.fence + 1, token=token, updated_at=now)
        return [self._claim_of(row) for row in taken]

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Show people what is running: make or change the attempt's row, under the claim's fence and token."""

        async def write(some: Sequence[tuple[Claim, Note]]) -> Sequence[Commit]:
            return [self._write_note(claim, note) for claim, note in some]

        return await each_alone(notes, write, "notes")

    def _write_note(self, claim: Claim, note: Note) -> Commit:
        row = self._tables.handles.get(claim.handle)
        if row is None or row.token != claim.key.token:
            return Commit.STALE
        return _note(row, claim.fence, note)

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Refuse: what a task writes lies in no transaction of this store."""
        raise TransactionsUnsupported("memory")

    def apart(self) -> None:
        """Return nothing: what lives in this process lives in one loop of it."""

    async def reports(self, scope: NodeScope, limit: int) -> list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        rows = together(self._tables.owed, scope, lambda row: (row.ended_at, row.id))
        owed = (row for row in rows if row.job.id not in scope.unknown)
        return [OccurrenceEnd(*self._header_and_life(row)) for row in islice(owed, limit)]

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Note that these reports were delivered; a report may come twice, but never not at all."""
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
            scheduled_for=row.made.scheduled_for,
            rules=rules,
            is_recovery_run=row.made.late and row.made.cause is Cause.SCHEDULE,
            found=row.found,
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
        row = self._tables.handles.get(claim.handle)
        if row is None or row.token != claim.key.token:
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
        # An end that nobody waits for is slept through; where something is ready later, a node must hear of it.
        if row.awaited and (step.end is not None or step.resume_at is not None):
            self._wake(row.job, now)
        elif step.release or step.resume_at is not None:
            self._ring()
        if step.release:
            self._hold_given_back(row, step, now)
        return Commit.COMMITTED

    def _hold_given_back(self, row: OccurrenceRow, step: Step, now: datetime) -> None:
        """Let what was given back stand where its job wants it: a pause, disable or removal holds what is unclaimed."""
        if step.restores:
            row.started_at, row.node = step.after.started_at, _last_node(row)
        job = row.job
        if job.retire_at is not None and now >= job.retire_at:
            self._end(row, _S.CANCELED, Why.REMOVED, now)
            self._wake(job, now)
        elif row.status is _S.PENDING and job.holds_back(row.made.cause, now):
            self._move(row, _S.QUEUED, now)


def _key(row: OccurrenceRow) -> ClaimKey:
    return ClaimKey(row.handle, row.fence, row.token)


def _waits_for_a_plan(row: OccurrenceRow, now: datetime) -> bool:
    """Whether it is a retry that the next instant supersedes, and its job is due: the plan comes before the retry."""
    due_at = row.job.wake_at if row.superseded_by_next else None
    return due_at is not None and due_at <= now


def _last_node(row: OccurrenceRow) -> str | None:
    """Return the node of the attempt that began last, if any attempt ever did."""
    tries = [
        (attempt.started_at, key, attempt.node)
        for key, attempt in row.attempts.items()
        if attempt.started_at is not None
    ]
    return max(tries)[2] if tries else None


def _turn(row: OccurrenceRow) -> tuple[int, datetime, str]:
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
    # An end raises the fence once more; had anybody taken over before it, twice.
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
    return Commit.COMMITTED
