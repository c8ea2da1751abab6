"""The store in memory: the readable specification of every verb.

Each verb runs without an await between its reads and its writes, which replaces a transaction. The store is made of
parts, one for each group of verbs; all of them work on the same rows (`tables`), under one clock and with one bell
(`Shared` in `base`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from everytick.domain.changes import Edit
from everytick.domain.decisions import Plan
from everytick.domain.facts import Fact
from everytick.domain.fired import Fired
from everytick.domain.lookups import (
    Breaches,
    ComingRuns,
    Editions,
    ExistingIds,
    IdRange,
    LaterRequests,
    LimitsAndBrakes,
    MissedSpans,
    NewestBackfills,
    OccurrenceStatuses,
    ParkedJobs,
    Promises,
    Spans,
    SpansOfJobs,
    UndefinedJobs,
)
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.promises import DuePromises, Judgement, OwedBreach
from everytick.domain.questions import Question
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.steps import OccurrenceEnd, Step
from everytick.errors import TransactionsUnsupported
from everytick.stores.base import (
    Ahead,
    Batch,
    Claim,
    ClaimKey,
    Commit,
    CommitAnswer,
    Committed,
    HistoryFilter,
    JobRecord,
    Nodes,
    NodeScope,
    Offer,
    Orders,
    Page,
    Receipt,
    StoreAddress,
    Stored,
    Whole,
    WholeRuns,
    new_token,
)
from everytick.stores.memory.access import MemoryAccess
from everytick.stores.memory.base import Shared
from everytick.stores.memory.bell import Bell
from everytick.stores.memory.clock import ClockSteps
from everytick.stores.memory.definers import DefinerVerbs
from everytick.stores.memory.depending import Dependencies
from everytick.stores.memory.due import DueJobs
from everytick.stores.memory.facts import FactVerbs
from everytick.stores.memory.history import HistoryVerbs
from everytick.stores.memory.jobs import JobVerbs
from everytick.stores.memory.limiting import LimitVerbs
from everytick.stores.memory.nodes import NodeVerbs
from everytick.stores.memory.occurrences import Occurrences
from everytick.stores.memory.planning import PlanCommits, PlanRows
from everytick.stores.memory.promises import PromiseVerbs
from everytick.stores.memory.questions import QuestionVerbs
from everytick.stores.memory.recording import Recording
from everytick.stores.memory.revising import Revisions
from everytick.stores.memory.running import Execution
from everytick.stores.memory.tables import Tables
from everytick.stores.memory.versions import VersionRows
from everytick.stores.open_batches import OpenBatches
from everytick.stores.open_requests import refuse_within
from everytick.stores.protocols import ClaimTransaction

A = TypeVar("A")


class MemoryStore:
    """A store whose data end with the process, for tests and for scripts.

    `tokens` draws the token of each claim. `tables`, `bell` and `open_batches` are new ones unless others are given.
    """

    address: ClassVar[StoreAddress] = StoreAddress("memory")
    folds_at_once: ClassVar[int] = 1

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        tokens: Callable[[], int] = new_token,
        tables: Tables | None = None,
        bell: Bell | None = None,
        open_batches: OpenBatches[str] | None = None,
    ) -> None:
        self._shared = shared = Shared(tables or Tables(), clock, tokens, bell or Bell())
        occurrences, self._limits = Occurrences(shared), LimitVerbs(shared)
        self._due = DueJobs(shared, self._limits, open_batches or OpenBatches[str]())
        self._execution = Execution(shared, occurrences, self._limits)
        self._plans = PlanCommits(shared, PlanRows(shared, occurrences), self._execution, self.check_writable)
        self._nodes, self._recording = NodeVerbs(shared), Recording(shared, occurrences)
        revisions = Revisions(shared, self._due)
        self._clock_steps = ClockSteps(shared, revisions)
        self._facts = FactVerbs(shared, occurrences, self._limits, revisions)
        versions = VersionRows(shared, occurrences, self._due, revisions)
        self._jobs = JobVerbs(shared, self._facts, versions, Dependencies(shared), revisions)
        self._definers = DefinerVerbs(shared, self._jobs)
        self._promises, self._history = PromiseVerbs(shared, self._due), HistoryVerbs(shared)
        self._questions = QuestionVerbs(
            shared,
            {
                ParkedJobs: self._jobs.parked,
                Editions: self._jobs.editions,
                LaterRequests: self._due.later,
                ComingRuns: self._due.coming,
                NewestBackfills: self._facts.newest_backfills,
                Spans: self._history.spans,
                SpansOfJobs: self._history.spans_of_jobs,
                MissedSpans: self._history.missed_spans,
                OccurrenceStatuses: self._history.statuses,
                ExistingIds: self._history.existing,
                IdRange: self._history.existing_between,
                Nodes: self._nodes.records,
                WholeRuns: self._history.wholes,
                Promises: self._promises.promised,
                Breaches: self._promises.breaches,
                LimitsAndBrakes: self._limits.records,
                UndefinedJobs: self._definers.undefined,
            },
        )
        self._access = MemoryAccess(shared, self._facts, self._jobs)

    @property
    def access(self) -> MemoryAccess:
        """The part of the store that is about people."""
        return self._access

    async def open(self) -> None:
        """Return: there is nothing to open."""

    async def close(self) -> None:
        """Return: there is nothing to release."""

    async def now(self) -> datetime:
        """Return the store's time. It follows its host's clock, also when that is set back."""
        return self._shared.now()

    async def settle_clock(self) -> Sequence[tuple[str, datetime]]:
        """Correct the times that were written while the clock was ahead. Return the jobs whose watermark lies ahead."""
        return self._clock_steps.settle()

    async def check_writable(self) -> None:
        """Return: memory can always be written."""

    async def bell(self, seconds: float) -> bool:
        """Wait up to `seconds` for a hint that something changed. Return whether one came."""
        return await self._shared.bell.wait(seconds)

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return when the next job or occurrence of this scope comes, so that a node can sleep until then."""
        return self._due.ahead(scope)

    # ------------------------------------------------------------------------------------------------- the planner

    def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AbstractAsyncContextManager[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first."""
        return self._due.due(scope, limit, by)

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each whole plan whose job still has the revision of the snapshot."""
        return await self._plans.commit_plans(batch, plans, offer)

    # -------------------------------------------------------------------------------------------------- the runner

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age."""
        return self._execution.claim(scope, limit)

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step whose claim still has the fence and token of the occurrence."""
        return await self._execution.commit_steps(steps)

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the row of a running attempt, for people, if the claim still has its fence and token."""
        return await self._execution.note(notes)

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Refuse: this store has no transactions."""
        raise TransactionsUnsupported("memory")

    async def reports(self, scope: NodeScope, limit: int) -> list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        return self._execution.reports(scope, limit)

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Record that these reports were delivered. A report may be delivered twice; it is never lost."""
        self._execution.reported(occurrence_ids)

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Record that the node lives and which claims it holds. Return the claims about which the store differs."""
        return self._nodes.beat(node, keys, facts)

    async def orders(self, node: str, keys: Collection[ClaimKey]) -> Orders:
        """Return the claims about which the store differs, without a beat."""
        return self._nodes.orders(node, keys)

    async def leave(self, node: str) -> None:
        """Record that the node has stopped: its `beats` become 0, and its claims are orphans at once."""
        self._nodes.leave(node)

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> list[Claim]:
        """Take over the claims in `keys`, and those of each silent node whose `beats` still has the value named."""
        return self._nodes.orphans(reaper, limit, silent, keys)

    async def reattach(self, scope: NodeScope, limit: int, silent: Mapping[str, int]) -> list[Claim]:
        """Give the node of the scope what these silent nodes have handed over to engines."""
        return self._nodes.reattach(scope, limit, silent)

    def apart(self) -> None:
        """Return None: the rows of this store belong to one event loop."""

    # -------------------------------------------------------------------------------------------------------- jobs

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Make every change in one transaction, or none. Return the result of each."""
        return self._jobs.apply(changes, by)

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job or an occurrence, and make its job due."""
        if within is not None:
            refuse_within(fact)
            raise TransactionsUnsupported("memory")
        return self._facts.request(subject, fact)

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return the jobs with these ids that exist, by id."""
        return self._jobs.get(job_ids)

    async def list(self, *, removed: bool = False, after: str = "", limit: int | None = None) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name. With `removed`, return removed jobs too."""
        return self._jobs.list(removed=removed, after=after, limit=limit)

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return the snapshot of each of these jobs that exists, due or not. No job is locked."""
        return self._due.look(job_ids)

    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Record the runs that a node fired while this store was away. Return the handle of each run, or None."""
        return self._recording.record(job_id, fired)

    async def define(self, names: Collection[str], left_out: Collection[str] = ()) -> None:
        """Store the names that a starting process defines, once under their hash, and mark the jobs in `left_out`."""
        self._definers.define(names, left_out)

    async def retire(self, marks: Mapping[str, datetime], *, after: timedelta, by: str = "") -> frozenset[str]:
        """Remove each of these jobs, by id, if it still has this mark. Return those that were removed."""
        return self._definers.retire(marks, after=after, by=by)

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Delete up to `limit` occurrences of a removed job, and the job with the last of them."""
        return self._jobs.purge(job_id, limit)

    # --------------------------------------------------------------------------- history, promises and questions

    async def history(self, filter: HistoryFilter) -> Page:
        """Return a page of occurrences, newest first."""
        return self._history.page(filter)

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        return self._history.whole(occurrence_id)

    async def prune(self, limit: int = 1000) -> int:
        """Delete up to `limit` ended occurrences that the retention of their job no longer keeps. Return how many."""
        return self._history.prune(limit)

    async def promises(self, scope: NodeScope, limit: int) -> DuePromises:
        """Return up to `limit` promises that may be broken now, and breaches that were not told for a while."""
        return self._promises.promises(scope, limit)

    async def commit_promises(
        self, judgements: Sequence[Judgement], told: Sequence[OwedBreach] = ()
    ) -> Sequence[Commit]:
        """Write each whole judgement whose promise still has the revision that was read, and what was told."""
        return self._promises.commit_promises(judgements, told)

    async def ask(self, question: Question[A]) -> A:
        """Answer one of the questions in `domain.questions` and `domain.lookups`."""
        return self._questions.ask(question)

    async def fold(self, limit: int = 1000) -> int:
        """Return 0: every answer is read from the rows."""
        return 0
