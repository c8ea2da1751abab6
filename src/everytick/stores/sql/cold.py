"""The verbs that both SQL stores carry out by the same steps."""

import builtins
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar, TypeVar

from everytick.domain.changes import Edit
from everytick.domain.facts import Fact
from everytick.domain.fired import Fired
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.promises import (
    DuePromises,
    Judgement,
    OwedBreach,
)
from everytick.domain.questions import Question
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.steps import OccurrenceEnd
from everytick.stores.base import (
    Ahead,
    Claim,
    ClaimKey,
    Commit,
    CommitAnswer,
    HistoryFilter,
    JobRecord,
    NodeScope,
    Orders,
    Page,
    Receipt,
    Stored,
    Whole,
    new_token,
)
from everytick.stores.each_alone import each_alone
from everytick.stores.sql.commands import Make
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs import (
    clock,
    definers,
    editing,
    facts,
    history,
    job_records,
    limiting,
    nodes,
    notes_and_reports,
    promises,
    purging,
    questions,
    recording,
    rollups,
)

A = TypeVar("A")
T = TypeVar("T")


class ColdVerbs(ABC):
    """The shared verbs. A store defines how it carries a verb out, and has its own hot verbs."""

    _q: ColdQueries
    _are_limits_held = False
    folds_at_once: ClassVar[int]

    @abstractmethod
    async def _transact(self, make: Make[T]) -> T:
        """Carry the verb out in one transaction and return its answer once that is committed."""

    @abstractmethod
    async def _one_by_one(self, make: Make[T]) -> T:
        """Carry the verb out. Each statement is committed by itself, where the store can do that.

        So a node that freezes between two statements holds no lock, and other nodes can take over its claims.
        """

    @abstractmethod
    async def _question(self, make: Make[T]) -> T:
        """Carry out a verb that only reads, and return its answer. It is the state of one moment."""

    async def settle_clock(self) -> list[tuple[str, datetime]]:
        """Correct the times that were written while the clock was ahead. Return the jobs whose watermark lies ahead."""
        return await self._transact(partial(clock.settle_clock, self._q))

    # ---------------------------------------------------------------------------------------------------- the jobs

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Make every change in one transaction, or none. Return the result of each."""
        return await self._transact(partial(editing.apply, self._q, changes, by))

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job or an occurrence, and make its job due."""
        return await self._transact(partial(facts.request, self._q, subject, fact))

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return the jobs with these ids that exist. A job with an unreadable definition is among `parked` instead."""
        return await self._question(partial(job_records.get, self._q, job_ids))

    async def list(self, *, removed: bool = False, after: str = "", limit: int | None = None) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name, or all. An unreadable one is among `ParkedJobs` instead."""
        asked = partial(job_records.in_service, self._q, removed=removed, after=after, limit=limit)
        return await self._question(asked)

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return the snapshot of each of these jobs that exists, due or not. No job is locked."""
        return await self._question(partial(job_records.look, job_ids))

    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Record the runs that a node fired while this store was away. Return the handle of each run, or None."""
        return await self._transact(partial(recording.record, self._q, job_id, fired))

    async def define(self, names: Collection[str], left_out: Collection[str] = ()) -> None:
        """Store the names that a starting process defines, once under their hash, and mark the jobs in `left_out`."""
        await self._transact(partial(definers.define, self._q, names, left_out))

    async def retire(self, marks: Mapping[str, datetime], *, after: timedelta, by: str = "") -> frozenset[str]:
        """Remove each of these jobs, by id, if it still has this mark. Return those that were removed."""
        return await self._transact(partial(definers.retire, self._q, marks, after, by))

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Delete up to `limit` occurrences of a removed job, and the job with the last of them."""
        return await self._transact(partial(purging.purge, self._q, job_id, limit))

    async def _claim_by(
        self, plain: Callable[[], Awaitable[builtins.list[Claim] | None]], scope: NodeScope, limit: int
    ) -> builtins.list[Claim]:
        """Claim by `plain`, which returns None where a limit or brake holds, or else within the limits.

        If one held at the last claim, `plain` is not tried first.
        """
        while True:
            claims = None if self._are_limits_held else await plain()
            if claims is None:
                claims = await self._transact(partial(limiting.claim, self._q, scope, limit, new_token()))
                self._are_limits_held = claims is not None
            if claims is not None:
                return claims

    async def _ahead_within_limits(self, ahead: Ahead) -> Ahead:
        """Return the same with the moment at which a limit or brake lets something start, if that comes sooner."""
        opens_at = await self._question(partial(limiting.opens_at, self._q))
        moments = [at for at in (ahead.ready_at, opens_at) if at is not None]
        return replace(ahead, ready_at=min(moments, default=None))

    # ------------------------------------------------------------------------------------------------- the history

    async def history(self, filter: HistoryFilter) -> Page:
        """Return a page of occurrences, newest first."""
        return await self._question(partial(history.history, self._q, filter))

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts, in the order of its job's tasks."""
        return await self._question(partial(history.whole, self._q, occurrence_id))

    # ------------------------------------------------------------------------------------------------ the promises

    async def promises(self, scope: NodeScope, limit: int) -> DuePromises:
        """Return up to `limit` promises that may be broken now, and breaches that were not told for a while."""
        return await self._question(partial(promises.promises, self._q, scope, limit))

    async def commit_promises(
        self, judgements: Sequence[Judgement], told: Sequence[OwedBreach] = ()
    ) -> Sequence[Commit]:
        """Write each judgement whose promise still stands as it was judged, and what the receivers were told."""
        return await self._transact(partial(promises.commit_promises, self._q, judgements, told))

    # ----------------------------------------------------------------------------------------------- the questions

    async def fold(self, limit: int = 1000) -> int:
        """Add what has ended to the rollups, up to `limit` occurrences, and measure the lengths of some jobs."""
        is_behind, is_stale = await self._question(partial(rollups.lags, self._q))
        folded = await self._transact(partial(rollups.fold, self._q, limit)) if is_behind else 0
        if is_stale and folded < limit:
            await self._transact(partial(rollups.measure, self._q))
        return folded

    async def ask(self, question: Question[A]) -> A:
        """Answer one of the questions in `domain.questions` and `domain.lookups`."""
        return await self._question(partial(questions.ask, self._q, question))

    # --------------------------------------------------------------------------------------------------- the nodes

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Record that the node lives and which claims it holds. Return the claims about which the store differs."""
        return await self._one_by_one(partial(nodes.beat, self._q, node, keys, facts))

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> builtins.list[Claim]:
        """Take over the claims in `keys`, and those of each silent node whose `beats` still has the value named."""
        take = partial(nodes.orphans, self._q, reaper, limit, silent, keys, new_token())
        return await self._one_by_one(take)

    async def reattach(self, scope: NodeScope, limit: int, silent: Mapping[str, int]) -> builtins.list[Claim]:
        """Give the node of the scope what these silent nodes have handed over to engines."""
        return await self._one_by_one(partial(nodes.reattach, self._q, scope, limit, silent, new_token()))

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the row of a running attempt, for people, if the claim still has its fence and token."""

        async def write(some: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
            return await self._one_by_one(partial(notes_and_reports.note, self._q, some))

        return await each_alone(notes, write, "notes") if notes else ()

    async def reports(self, scope: NodeScope, limit: int) -> builtins.list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        return await self._question(partial(notes_and_reports.reports, self._q, scope, limit))

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Record that these reports were delivered. A report may be delivered twice; it is never lost."""
        await self._one_by_one(partial(notes_and_reports.reported, self._q, occurrence_ids))

    async def leave(self, node: str) -> None:
        """Record that the node has stopped: its `beats` become 0, and its claims are orphans at once."""
        await self._transact(partial(nodes.leave, self._q, node))
