"""The store that a node falls back to: jobs as another store had them, and what was fired of them since.

It is a store in memory, so instants are decided and run here as in any store. When the other
store, its home, is back, every occurrence is handed over to it: an ended one as it ended, a pending
one for any node to claim, a running one to the node that runs it. From then on that node writes
about it at home, under its fence, as about anything it owns.
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
from everytick.domain.steps import Row, Step, rules_of
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
from everytick.stores.memory.store import MemoryStore
from everytick.stores.memory.tables import JobRow, OccurrenceRow
from everytick.stores.protocols import ClaimTransaction

AT_ONCE = 100
"""Largest number of runs of one job that are handed over together: one answer that is lost repeats no more."""

_BEING_HANDED_OVER = CommitAway("the occurrence is being handed over to its store")


@dataclass(slots=True)
class Part:
    """What is handed over at once: some of what was fired of one job, with the rows it was made of."""

    job_id: str
    fired: Fired
    rows: Sequence[OccurrenceRow]


class HomeStore(Protocol):
    """What is asked of the store that decides about occurrences which were handed over to it."""

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step, as `RunStore` says."""
        ...

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Show people what is running."""
        ...

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Note that these reports were delivered."""
        ...

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with everything known about it."""
        ...

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Begin a transaction in which a task writes."""
        ...


class LocalStore(MemoryStore):
    """Jobs that do not wait for their store.

    Of each, `_after` is where its decisions here begin, and `_told` how far the home knows of
    them. `_keys` says by our handle which are the home's now: their key there. While `_asked`
    has no answer it is not known whose its rows are: nothing is written about them.
    """

    def __init__(self, clock: Callable[[], datetime], home: HomeStore) -> None:
        super().__init__(clock)
        self._home = home
        self._after: dict[str, datetime] = {}
        self._told: dict[str, datetime] = {}
        self._resting: dict[str, datetime | None] = {}
        self._keys: dict[int, ClaimKey] = {}
        self._asked: Part | None = None
        self._in_doubt: set[int] = set()
        self._is_handing_over = False

    # ------------------------------------------------------------------------------------------------- firing

    def adopt(self, snapshot: JobSnapshot, heard_at: datetime) -> None:
        """Go on with a job from where it was last seen to stand.

        An instant that was due before the store was last heard of has been planned there since. A
        request waits for the store that has it.
        """
        newest = snapshot.editions[-1].job
        row = self._tables.jobs.get(snapshot.job_id)
        if row is None:
            created_at = newest.created_at or snapshot.watermark
            row = JobRow(newest.id, newest.name, [], snapshot.watermark, created_at, newest.needs)
            self._tables.add_job(row)
        elif row.name != newest.name:
            self._tables.rename(row, newest.name)
        self._tables.need(row, newest.needs if snapshot.retire_at is None else RETIRED)
        row.editions = list(snapshot.editions)
        row.versions |= {edition.job.version: (edition.job, rules_of(edition.job)) for edition in snapshot.editions}
        after = _decided_through(snapshot, heard_at)
        row.watermark = self._after[row.id] = self._told[row.id] = max(row.watermark, after)
        row.retire_at, row.pauses = snapshot.retire_at, list(snapshot.pauses)
        row.adjustments = {adjustment.at: adjustment for adjustment in snapshot.adjustments}
        row.reschedule, row.last_end = snapshot.reschedule, snapshot.last_end
        row.last_success, row.other_success = snapshot.last_success, snapshot.other_success
        row.revision += 1
        self._resting.pop(row.id, None)
        self._tables.wake(row, snapshot.wake_at)
        self._ring()

    def rest(self) -> None:
        """Decide nothing more; what was created goes on to its end."""
        for row in self._tables.jobs.values():
            self._resting.setdefault(row.id, row.wake_at)
            self._tables.wake(row, None)
            # A plan that is being made now is not committed.
            row.revision += 1

    def go_on(self) -> None:
        """Decide again, from where it rested."""
        for id_, wake_at in self._resting.items():
            self._tables.wake(self._tables.jobs[id_], wake_at)
        self._resting.clear()
        self._ring()

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each plan, unless everything is just being handed over."""
        if self._is_handing_over:
            return Committed([Commit.STALE] * len(plans))
        return await super().commit_plans(batch, plans, offer)

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node what is ready, unless it is just being handed over."""
        return [] if self._is_handing_over else await super().claim(scope, limit)

    # ------------------------------------------------------------------------------------------- handing over

    @property
    def unrecorded(self) -> int:
        """How many occurrences the home does not know."""
        return len(self._tables.occurrences) - len(self._keys)

    @property
    def has_news(self) -> bool:
        """Whether anything was decided that the home does not know."""
        return self._asked is not None or any(map(self._is_news, self._tables.jobs.values()))

    def _is_news(self, row: JobRow) -> bool:
        return row.watermark > self._told[row.id] or any(
            occurrence.handle not in self._keys for occurrence in row.history
        )

    def hand_over(self, node: str) -> Part | None:
        """Return what to tell the home next, None where it knows everything; it stays in doubt until `settle`.

        The answer may get lost, so the same is told again until there is one, and whatever has
        been told once goes no way of its own here any more.
        """
        self._is_handing_over = True
        if self._asked is None:
            self._asked = next(
                (self._part(row, node) for row in self._tables.jobs.values() if self._is_news(row)), None
            )
        return self._asked

    def keep(self) -> None:
        """Hand nothing more over: what was not told is this store's own."""
        self._is_handing_over = False

    def settle(self, handles: Sequence[int | None]) -> None:
        """Let the home have what it gave a handle; what it did not take is another's, and is over here."""
        part = self._asked
        assert part is not None, "only what was told is answered"
        for row, handle in zip(part.rows, handles, strict=True):
            if row.owner is not None and handle is not None:
                self._keys[row.handle] = ClaimKey(handle, row.fence, row.token)
            elif row.handle in self._tables.handles:
                self._drop(row)
        job = self._tables.jobs[part.job_id]
        job.spans = [span for span in job.spans if span not in part.fired.spans]
        self._told[job.id] = max(self._told[job.id], part.fired.through)
        self._asked = None
        self._in_doubt.clear()

    def _part(self, job: JobRow, node: str) -> Part:
        """Take what is next of the job; only the last part says how far it is decided, so that a crash loses none."""
        left = [occurrence for occurrence in job.history if occurrence.handle not in self._keys]
        rows, is_last, after = left[:AT_ONCE], len(left) <= AT_ONCE, self._after[job.id]
        runs = tuple(_fired(row, node) for row in rows)
        fired = Fired(after, job.watermark, runs, tuple(job.spans)) if is_last else Fired(after, after, runs)
        for row in rows:
            if row.owner is not None:
                self._in_doubt.add(row.handle)
            elif row.status not in ENDED:
                # It may be claimed there from now on.
                self._tables.remove(row)
        return Part(job.id, fired, rows)

    def _drop(self, row: OccurrenceRow) -> None:
        """Forget the occurrence: the next beat tells its owner."""
        self._tables.change(row, owner=None)
        self._tables.remove(row)
        self._keys.pop(row.handle, None)

    # ------------------------------------------------------------------------------------------ what is the home's

    def __contains__(self, occurrence_id: str) -> bool:
        return occurrence_id in self._tables.occurrences

    @property
    def keys(self) -> dict[ClaimKey, ClaimKey]:
        """By our key the home's key of what runs here and is its own; for any thread."""
        return {key._replace(handle=handle): key for handle, key in list(self._keys.items())}

    @property
    def handed_over(self) -> Mapping[int, ClaimKey]:
        """The home's keys of what runs here and is its own, as they are whenever this is read."""
        return self._keys

    def knows(self, key: ClaimKey) -> bool:
        """Whether this is the key of an occurrence here."""
        row = self._tables.handles.get(key.handle)
        return row is not None and (row.fence, row.token) == (key.fence, key.token)

    def is_home(self, handle: int) -> bool:
        """Whether the home decides about this one, or is being asked to."""
        return handle in self._keys or handle in self._in_doubt

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step, here or at home. AWAY: its home does not answer, or is being asked to take the occurrence.

        Those of this store come first: nothing of it can be handed over while the home is asked.
        """
        here = {claim.handle for claim, _ in steps if not self.is_home(claim.handle)}
        there = {claim.handle for claim, _ in steps if claim.handle in self._keys}
        written = iter(await super().commit_steps([step for step in steps if step[0].handle in here]))
        told = iter(await self._commit_at_home([step for step in steps if step[0].handle in there]))
        return [
            next(written) if claim.handle in here else next(told) if claim.handle in there else _BEING_HANDED_OVER
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
        """Say that the node lives; what is the home's and the node has let go of is forgotten."""
        held = {key.handle for key in keys}
        for handle in [owned for owned in self._keys if owned not in held]:
            self._drop(self._tables.handles[handle])
        return await super().beat(node, keys, facts)

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Show people what is running, where they look for it: at home, unless that is away."""
        answers = await super().note(notes)
        theirs = [(self.at_home(claim), note) for claim, note in notes if claim.handle in self._keys]
        if theirs:
            with suppress(StoreUnavailable):
                await self._home.note(theirs)
        return answers

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Note that these reports were delivered; what is not ours any more was recorded as due."""
        await super().reported(occurrence_ids)
        found = {id_: self._tables.occurrences.get(id_) for id_ in occurrence_ids}
        theirs = [id_ for id_, row in found.items() if row is None or self.is_home(row.handle)]
        if theirs:
            await self._home.reported(theirs)

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence, as the home has it where it is the home's."""
        row = self._tables.occurrences.get(occurrence_id)
        is_theirs = row is not None and row.handle in self._keys
        return await self._home.whole(occurrence_id) if is_theirs else await super().whole(occurrence_id)

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Begin a transaction at home; as long as the home does not know of the claim there is none."""
        if claim.handle not in self._keys:
            raise StoreUnavailable("the store", "this was fired while it was away, and is not recorded yet")
        return self._home.transaction(self.at_home(claim))

    def notes(self, part: Part, handles: Sequence[int | None]) -> list[tuple[Claim, Note]]:
        """Return what people may want to see of the attempts that were handed over, for the home."""
        found: list[tuple[Claim, Note]] = []
        for row, handle in zip(part.rows, handles, strict=True):
            if handle is None:
                continue
            for (task, number), attempt in row.attempts.items():
                if attempt.started_at is not None and (attempt.log or attempt.progress):
                    fence = row.fence - 1 if row.status in ENDED else row.fence
                    claim = replace(self._claim_of(row), key=ClaimKey(handle, fence, row.token))
                    found.append((claim, Note(task, number, attempt.started_at, attempt.progress, attempt.log)))
        return found

    def at_home(self, claim: Claim) -> Claim:
        """Return the claim as the home knows it."""
        return replace(claim, key=claim.key._replace(handle=self._keys[claim.handle].handle))


def _decided_through(snapshot: JobSnapshot, heard_at: datetime) -> datetime:
    """Return up to where the job is decided by the store it comes from, as far as anybody can know here."""
    if snapshot.wake_at is None or snapshot.wake_at > heard_at:
        return snapshot.watermark
    last = snapshot.editions[-1].job.bound(None).last_at(heard_at)
    return snapshot.watermark if last is None else max(snapshot.watermark, last)


def _fired(row: OccurrenceRow, node: str) -> FiredRun:
    """What was begun here says so; what was not is as any other."""
    creation = replace(row.made, status=row.status, version=row.version, ready_at=row.ready_at)
    if row.started_at is not None or row.status in ENDED:
        creation = replace(creation, why=Why.UNVERIFIED, detail=f"fired by {node} while the store was away")
    return FiredRun(
        creation,
        row.started_at,
        row.ended_at,
        row.error,
        _rows(row),
        row.owner,
        row.fence,
        row.number,
        row.claimed_at,
        row.lost,
        row.superseded_by_next,
        row.report_due,
        row.token,
        row.node,
    )


def _rows(row: OccurrenceRow) -> tuple[Row, ...]:
    rows = [
        Row(task, number, attempt.status, attempt.started_at, attempt.ended_at, attempt.error, row.runs[task])
        for (task, number), attempt in sorted(row.attempts.items())
        if task in row.runs
    ]
    tried = {attempt.task for attempt in rows}
    return (*rows, *(Row(task, 0, None, None, None, None, run) for task, run in row.runs.items() if task not in tried))
