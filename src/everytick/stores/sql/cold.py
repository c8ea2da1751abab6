"""The verbs that both SQL stores carry out by the same steps."""

import builtins
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from everytick.domain.changes import Edit
from everytick.domain.decisions import Span
from everytick.domain.definers import Undefined
from everytick.domain.facts import Fact
from everytick.domain.fired import Fired
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.snapshots import Edition, JobSnapshot, Request
from everytick.domain.steps import OccurrenceEnd
from everytick.stores.base import (
    Claim,
    ClaimKey,
    CommitAnswer,
    HistoryFilter,
    JobRecord,
    NodeRecord,
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
    nodes,
    purging,
    recording,
    telling,
)

T = TypeVar("T")


class ColdVerbs(ABC):
    """What people, definitions and reapers ask. A store says how it carries a verb out, and keeps its hot verbs."""

    _q: ColdQueries

    @abstractmethod
    async def _transact(self, make: Make[T]) -> T:
        """Carry the verb out in one transaction and return its answer once that is committed."""

    @abstractmethod
    async def _one_by_one(self, make: Make[T]) -> T:
        """Carry the verb out, each statement committed by itself where the store can: a node that freezes between two
        of them holds no lock, which would keep others from taking over what it holds."""

    @abstractmethod
    async def _question(self, make: Make[T]) -> T:
        """Carry out a verb that only reads, and return its answer: all of it is of one moment."""

    async def settle_clock(self) -> list[tuple[str, datetime]]:
        """Let everything go on that was written while the clock was ahead; return the jobs that lie ahead."""
        return await self._transact(partial(clock.settle_clock, self._q))

    # ---------------------------------------------------------------------------------------------------- the jobs

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Do every change in one transaction, or nothing; return what came of each."""
        return await self._transact(partial(editing.apply, self._q, changes, by))

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job, or about an occurrence, and let its job be looked at."""
        return await self._transact(partial(facts.request, self._q, subject, fact))

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return those of the jobs that exist; one whose definition cannot be read is among `parked`."""
        return await self._question(partial(job_records.get, self._q, job_ids))

    async def list(self, *, removed: bool = False) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name, or all; one that cannot be read is among `parked`."""
        return await self._question(partial(job_records.in_service, self._q, removed=removed))

    async def parked(self) -> Mapping[str, str]:
        """Return why each job in service is parked that is, by name."""
        return await self._question(partial(job_records.parked, self._q))

    async def editions(
        self, job_id: str, versions: Collection[int] = (), *, at: datetime | None = None
    ) -> Sequence[Edition]:
        """Return these versions of a job's definition, and the one in force at a moment, in order."""
        return await self._question(partial(job_records.editions, self._q, job_id, versions, at))

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return what a plan would see of those jobs that exist now, due or not, and hold nothing."""
        return await self._question(partial(job_records.look, job_ids))

    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Write down what was fired without this store; return the handle of each run, None where another is there."""
        return await self._transact(partial(recording.record, self._q, job_id, fired))

    async def later(self, job_ids: Collection[str], limit: int) -> Sequence[tuple[str, Request]]:
        """Return up to `limit` open requests of these jobs that were asked for at a time, soonest first."""
        return await self._question(partial(job_records.later, self._q, job_ids, limit))

    async def define(self, names: Collection[str], left_out: Collection[str] = ()) -> None:
        """Keep the names that a start defines, once under their hash, and mark the jobs that it leaves out."""
        await self._transact(partial(definers.define, self._q, names, left_out))

    async def undefined(self) -> Undefined:
        """Return every job in service that is marked, by name, and every set of names if there is any."""
        return await self._question(partial(definers.undefined, self._q))

    async def retire(self, marks: Mapping[str, datetime], *, after: timedelta, by: str = "") -> frozenset[str]:
        """Remove each of these jobs, by id, if it still has the mark that was seen; return those that were removed."""
        return await self._transact(partial(definers.retire, self._q, marks, after, by))

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Forget up to `limit` occurrences of a removed job for good, and the job once none is left."""
        return await self._transact(partial(purging.purge, self._q, job_id, limit))

    # ------------------------------------------------------------------------------------------------- the history

    async def history(self, filter: HistoryFilter) -> Page:
        """Return a page of occurrences, newest first."""
        return await self._question(partial(history.history, self._q, filter))

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts, in the order of its job's tasks."""
        return await self._question(partial(history.whole, self._q, occurrence_id))

    async def existing(self, occurrence_ids: Collection[str]) -> frozenset[str]:
        """Return those of these ids that an occurrence has."""
        return await self._question(partial(history.existing, self._q, occurrence_ids))

    async def spans(self, job_id: str, after: datetime, through: datetime) -> Sequence[Span]:
        """Return the spans of instants that did not run and touch `(after, through]`, in order."""
        return await self._question(partial(history.spans, self._q, job_id, after, through))

    # --------------------------------------------------------------------------------------------------- the nodes

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Say that the node lives and what it holds; the answer says what the store knows better."""
        return await self._one_by_one(partial(nodes.beat, self._q, node, keys, facts))

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> builtins.list[Claim]:
        """Take over what each silent node holds if its `beats` is still the number named, and each claim named."""
        take = partial(nodes.orphans, self._q, reaper, limit, silent, keys, new_token())
        return await self._one_by_one(take)

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Show people what is running: make or change the attempt's row, under the claim's fence and token."""

        async def write(some: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
            return await self._one_by_one(partial(telling.note, self._q, some))

        return await each_alone(notes, write, "notes") if notes else ()

    async def reports(self, scope: NodeScope, limit: int) -> builtins.list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        return await self._question(partial(telling.reports, self._q, scope, limit))

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Note that these reports were delivered; a report may come twice, but never not at all."""
        await self._one_by_one(partial(telling.reported, self._q, occurrence_ids))

    async def leave(self, node: str) -> None:
        """Say that the node beats no more: its beats are 0, and what it still holds is an orphan at once."""
        await self._transact(partial(nodes.leave, self._q, node))

    async def nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were heard of and every other owner of an occurrence, by id."""
        return await self._question(partial(nodes.nodes, self._q))
