"""The store that a node uses while its own store, the home, is away: copies of jobs, and the runs fired of them.

It is a store in memory, so instants are planned and run as in any store. When the home is back, every occurrence is
handed over to it: an ended one as it ended, a pending one for any node to claim, a running one to the node that runs
it. From then on that node commits its steps to the home, with its fence, as for any other claim.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from everytick.domain.decisions import Plan, Why
from everytick.domain.fired import Fired, FiredRun
from everytick.domain.needs import RETIRED
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import ENDED
from everytick.domain.steps import RunRow, Step
from everytick.domain.upcoming import in_force
from everytick.errors import StoreGone, StoreUnavailable
from everytick.stores.base import (
    Batch,
    Claim,
    ClaimKey,
    Commit,
    CommitAnswer,
    CommitAway,
    CommitFailed,
    Committed,
    NodeScope,
    Offer,
    Orders,
    Whole,
)
from everytick.stores.memory.claims import claim_of
from everytick.stores.memory.rows import JobRow, OccurrenceRow
from everytick.stores.memory.store import MemoryStore
from everytick.stores.protocols import ClaimTransaction

RUNS_AT_ONCE = 100
"""Most runs of one job that are handed over in one call. If the answer is lost, only these are sent again."""

_BEING_HANDED_OVER = CommitAway("the occurrence is being handed over to its store")


@dataclass(slots=True)
class Part:
    """Some of the fired runs of one job, handed over in one call, and the rows they were made of.

    After it all runs of the job up to `through` have been handed over, whatever the home counts as decided by it.
    """

    job_id: str
    fired: Fired
    rows: Sequence[OccurrenceRow]
    through: datetime


class HomeStore(Protocol):
    """The verbs that a local store calls on its home."""

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step, as `RunStore` says."""
        ...

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the rows of running attempts, for people."""
        ...

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Record that these reports were delivered."""
        ...

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        ...

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Begin a transaction in which a task writes."""
        ...


class LocalStore(MemoryStore):
    """Jobs that run while their store is away.

    By job, `_after` is where its decisions in this store begin, and `_recorded_through` how far the home has recorded
    them. By handle in this store, `_keys` has the home's key of each occurrence that was handed over. While the part
    in `_sent` has no answer, its owner is unknown: no step of its occurrences is written, and their handles are in
    `_in_doubt`. `_resting` has the `wake_at` of each job that is not planned for now. `_refused` are the jobs of which
    the home has refused a part: it plans all their instants again.
    """

    def __init__(self, clock: Callable[[], datetime], home: HomeStore) -> None:
        super().__init__(clock)
        self._tables, self._bell, self._home = self._shared.tables, self._shared.bell, home
        self._after: dict[str, datetime] = {}
        self._recorded_through: dict[str, datetime] = {}
        self._resting: dict[str, datetime | None] = {}
        self._keys: dict[int, ClaimKey] = {}
        self._sent: Part | None = None
        self._in_doubt: set[int] = set()
        self._refused: set[str] = set()
        self._is_handing_over = False

    # ------------------------------------------------------------------------------------------------- firing

    def adopt(self, snapshot: JobSnapshot, heard_at: datetime) -> None:
        """Copy a job from the newest snapshot of it, and plan it from there.

        An instant that was due before `heard_at`, the home's last answer, has been planned by the home. A request
        waits for the home.
        """
        newest = snapshot.editions[-1].job
        row = self._tables.jobs.get(snapshot.job_id)
        if row is None:
            created_at = newest.created_at or snapshot.watermark
            row = JobRow(newest.id, newest.name, [], snapshot.watermark, created_at, newest.needs)
            self._tables.add_job(row)
        elif row.name != newest.name:
            self._tables.rename(row, newest.name)
        current = in_force(snapshot.editions, heard_at)
        self._tables.need(row, current.needs if snapshot.retire_at is None else RETIRED)
        row.editions, row.turned = list(snapshot.editions), current.version
        for edition in snapshot.editions:
            row.add(edition)
        after = _decided_through(snapshot, heard_at)
        row.watermark = self._after[row.id] = self._recorded_through[row.id] = max(row.watermark, after)
        row.retire_at, row.pauses = snapshot.retire_at, list(snapshot.pauses)
        row.adjustments = {adjustment.at: adjustment for adjustment in snapshot.adjustments}
        row.reschedule, row.last_end = snapshot.reschedule, snapshot.last_end
        row.last_success, row.other_success = snapshot.last_success, snapshot.other_success
        # A stop or restart that the home has obeyed is not obeyed here too.
        row.stopped_at = snapshot.stopped_at
        row.revision += 1
        self._resting.pop(row.id, None)
        self._refused.discard(row.id)
        self._tables.wake(row, snapshot.wake_at)
        self._bell.ring()

    def rest(self) -> None:
        """Plan nothing more. Occurrences that exist run to their end."""
        for row in self._tables.jobs.values():
            self._resting.setdefault(row.id, row.wake_at)
            self._tables.wake(row, None)
            # A plan that is being made now becomes stale.
            row.revision += 1

    def go_on(self) -> None:
        """Plan again, from where `rest` stopped."""
        for id_, wake_at in self._resting.items():
            self._tables.wake(self._tables.jobs[id_], wake_at)
        self._resting.clear()
        self._bell.ring()

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each plan, except while occurrences are handed over."""
        if self._is_handing_over:
            return Committed([Commit.STALE] * len(plans))
        return await super().commit_plans(batch, plans, offer)

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node ready occurrences, except while they are handed over."""
        return [] if self._is_handing_over else await super().claim(scope, limit)

    # ------------------------------------------------------------------------------------------- handing over

    @property
    def unrecorded(self) -> int:
        """How many occurrences the home has not recorded."""
        return len(self._tables.occurrences) - len(self._keys)

    @property
    def has_news(self) -> bool:
        """Whether the home has not recorded all occurrences and watermarks."""
        return self._sent is not None or any(map(self._is_news, self._tables.jobs.values()))

    def _is_news(self, row: JobRow) -> bool:
        return row.watermark > self._recorded_through[row.id] or any(
            occurrence.handle not in self._keys for occurrence in row.history
        )

    def hand_over(self, node: str) -> Part | None:
        """Return the next part for the home, None if it has recorded everything. It stays in doubt until `settle`.

        The answer may get lost. The same part is returned until `settle` has its answer, and no step of its
        occurrences is written in this store meanwhile.
        """
        self._is_handing_over = True
        if self._sent is None:
            self._sent = next((self._part(row, node) for row in self._tables.jobs.values() if self._is_news(row)), None)
        return self._sent

    def keep(self) -> None:
        """Stop handing over. Occurrences that were not sent stay in this store."""
        self._is_handing_over = False

    def settle(self, handles: Sequence[int | None], *, is_refused: bool = False) -> None:
        """Record the home's answer. Runs with a handle belong to the home; the others are dropped here.

        If the home has refused the part, no later part of the job moves the home's watermark: it would pass over
        instants of which the home knows nothing.
        """
        part = self._sent
        assert part is not None, "an answer follows a part that was sent"
        if is_refused:
            self._refused.add(part.job_id)
        for row, handle in zip(part.rows, handles, strict=True):
            if row.owner is not None and handle is not None:
                self._keys[row.handle] = ClaimKey(handle, row.fence, row.token)
            elif row.handle in self._tables.handles:
                self._drop(row)
        job = self._tables.jobs[part.job_id]
        job.spans = [span for span in job.spans if span not in part.fired.spans]
        self._recorded_through[job.id] = max(self._recorded_through[job.id], part.through)
        self._sent = None
        self._in_doubt.clear()

    def _part(self, job: JobRow, node: str) -> Part:
        """Return the next part of the job. Only the last one moves the home's watermark: a crash loses none."""
        left = [occurrence for occurrence in job.history if occurrence.handle not in self._keys]
        rows, is_last, after = left[:RUNS_AT_ONCE], len(left) <= RUNS_AT_ONCE, self._after[job.id]
        runs = tuple(_fired(row, node) for row in rows)
        is_whole = is_last and job.id not in self._refused
        fired = Fired(after, job.watermark, runs, tuple(job.spans)) if is_whole else Fired(after, after, runs)
        for row in rows:
            if row.owner is not None:
                self._in_doubt.add(row.handle)
            elif row.status not in ENDED:
                # Any node may claim it at the home from now on.
                self._tables.remove(row)
        return Part(job.id, fired, rows, job.watermark if is_last else after)

    def _drop(self, row: OccurrenceRow) -> None:
        """Delete the occurrence. The next beat tells its owner."""
        self._tables.change(row, owner=None)
        self._tables.remove(row)
        self._keys.pop(row.handle, None)

    # ------------------------------------------------------------------------------- occurrences of the home

    def __contains__(self, occurrence_id: str) -> bool:
        return occurrence_id in self._tables.occurrences

    @property
    def keys(self) -> dict[ClaimKey, ClaimKey]:
        """The home's key, by the key in this store, of each occurrence that was handed over and runs here.

        Safe to read in any thread.
        """
        return {key._replace(handle=handle): key for handle, key in list(self._keys.items())}

    @property
    def handed_over(self) -> Mapping[int, ClaimKey]:
        """The home's keys by handle in this store. The mapping changes with the store."""
        return self._keys

    def knows(self, key: ClaimKey) -> bool:
        """Whether an occurrence in this store has this key."""
        row = self._tables.handles.get(key.handle)
        return row is not None and (row.fence, row.token) == (key.fence, key.token)

    def is_home(self, handle: int) -> bool:
        """Whether the occurrence belongs to the home, or is being handed over."""
        return handle in self._keys or handle in self._in_doubt

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step, to this store or to the home. AWAY: the home does not answer, or the hand-over is open.

        The steps of this store are written first: nothing can be handed over before the await on the home.
        """
        here = {claim.handle for claim, _ in steps if not self.is_home(claim.handle)}
        there = {claim.handle for claim, _ in steps if claim.handle in self._keys}
        written = iter(await super().commit_steps([step for step in steps if step[0].handle in here]))
        at_home = iter(await self._commit_at_home([step for step in steps if step[0].handle in there]))
        return [
            next(written) if claim.handle in here else next(at_home) if claim.handle in there else _BEING_HANDED_OVER
            for claim, _ in steps
        ]

    async def _commit_at_home(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        if not steps:
            return ()
        try:
            return await self._home.commit_steps([(self.at_home(claim), step) for claim, step in steps])
        except StoreGone as error:
            return [CommitFailed(str(error))] * len(steps)
        except StoreUnavailable as error:
            return [CommitAway(str(error))] * len(steps)

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Record a beat. Delete the home's occurrences that the node no longer owns."""
        held = {key.handle for key in keys}
        for handle in [owned for owned in self._keys if owned not in held]:
            self._drop(self._tables.handles[handle])
        return await super().beat(node, keys, facts)

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the notes to this store and, unless it is away, to the home, where people look."""
        answers = await super().note(notes)
        theirs = [(self.at_home(claim), note) for claim, note in notes if claim.handle in self._keys]
        if theirs:
            with suppress(StoreUnavailable):
                await self._home.note(theirs)
        return answers

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Record that these reports were delivered. Occurrences that were handed over were recorded as unreported."""
        await super().reported(occurrence_ids)
        rows = {id_: self._tables.occurrences.get(id_) for id_ in occurrence_ids}
        theirs = [id_ for id_, row in rows.items() if row is None or self.is_home(row.handle)]
        if theirs:
            await self._home.reported(theirs)

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence, from the home if it was handed over."""
        row = self._tables.occurrences.get(occurrence_id)
        is_theirs = row is not None and row.handle in self._keys
        return await self._home.whole(occurrence_id) if is_theirs else await super().whole(occurrence_id)

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Begin a transaction at the home. Before the occurrence is handed over there is none."""
        if claim.handle not in self._keys:
            raise StoreUnavailable("the store", "this was fired while it was away, and is not recorded yet")
        return self._home.transaction(self.at_home(claim))

    def notes(self, part: Part, handles: Sequence[int | None]) -> list[tuple[Claim, Note]]:
        """Return the progress and logs of the attempts in this part, as notes for the home."""
        notes: list[tuple[Claim, Note]] = []
        for row, handle in zip(part.rows, handles, strict=True):
            if handle is None:
                continue
            for (task, number), attempt in row.attempts.items():
                if attempt.started_at is not None and (attempt.log or attempt.progress or attempt.handed_to):
                    fence = row.fence - 1 if row.status in ENDED else row.fence
                    claim = replace(claim_of(row), key=ClaimKey(handle, fence, row.token))
                    told = attempt.progress, attempt.log, attempt.handed_to
                    notes.append((claim, Note(task, number, attempt.started_at, *told)))
        return notes

    def at_home(self, claim: Claim) -> Claim:
        """Return the claim with the home's key."""
        return replace(claim, key=claim.key._replace(handle=self._keys[claim.handle].handle))


def _decided_through(snapshot: JobSnapshot, heard_at: datetime) -> datetime:
    """Return up to where the home has planned the job, as far as its last answer tells."""
    if snapshot.wake_at is None or snapshot.wake_at > heard_at:
        return snapshot.watermark
    last = in_force(snapshot.editions, heard_at).bound(None).last_at(heard_at)
    return snapshot.watermark if last is None else max(snapshot.watermark, last)


def _fired(row: OccurrenceRow, node: str) -> FiredRun:
    """Return the run for the home. The reason of a run that began here says so."""
    creation = replace(row.creation, status=row.status, version=row.version, ready_at=row.ready_at)
    if row.started_at is not None or row.status in ENDED:
        creation = replace(creation, why=Why.UNVERIFIED, detail=f"fired by {node} while the store was away")
    return FiredRun(
        creation=creation,
        started_at=row.started_at,
        ended_at=row.ended_at,
        error=row.error,
        rows=_rows(row),
        owner=row.owner,
        fence=row.fence,
        number=row.number,
        claimed_at=row.claimed_at,
        lost=row.lost,
        superseded_by_next=row.superseded_by_next,
        report_due=row.report_due,
        token=row.token,
        node=row.node,
    )


def _rows(row: OccurrenceRow) -> tuple[RunRow, ...]:
    rows = [
        RunRow(task, number, attempt.status, attempt.started_at, attempt.ended_at, attempt.error, row.runs[task])
        for (task, number), attempt in sorted(row.attempts.items())
        if task in row.runs
    ]
    tried = {attempt.task for attempt in rows}
    return (
        *rows,
        *(RunRow(task, 0, None, None, None, None, run) for task, run in row.runs.items() if task not in tried),
    )
