"""The verbs of a store. They work in batches, and each keeps one invariant.

A lost race is an answer (`Commit.STALE`), not an exception. The memory store is the readable specification of every
verb; tests hold the other stores equal to it. The values that the verbs carry are in `stores.base`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from everytick.domain.changes import Edit
from everytick.domain.decisions import Plan
from everytick.domain.deeds import DeedFilter, DeedPage
from everytick.domain.facts import Fact
from everytick.domain.fired import Fired
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.people import AccessChange, Doer, SignInFailures, Token, User, WebSession
from everytick.domain.promises import (
    DuePromises,
    Judgement,
    OwedBreach,
)
from everytick.domain.questions import Question
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.steps import OccurrenceEnd, Step
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
    NodeScope,
    Offer,
    Orders,
    Page,
    Receipt,
    StoreAddress,
    Stored,
    Whole,
)

A = TypeVar("A")


class ClaimTransaction(Protocol):
    """A transaction of the store, in which a task writes its own rows. `commit` adds the success of the attempt."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for what `execute` and `fetch` do not offer; it must not commit."""
        ...

    async def execute(self, sql: str, *arguments: object) -> None:
        """Carry out one statement, with placeholders as the driver writes them."""
        ...

    async def fetch(self, sql: str, *arguments: object) -> Sequence[tuple[Any, ...]]:
        """Return the rows of one query, which sees the rows that the transaction wrote."""
        ...

    async def commit(self, step: Step) -> Commit:
        """Write the step and commit it together with the task's rows. STALE: nothing was written."""
        ...


class Store(Protocol):
    """What all parts of everytick need of a store. The store's clock is the clock."""

    @property
    def address(self) -> StoreAddress:
        """Where the store is."""
        ...

    @property
    def access(self) -> "AccessStore":
        """The part of the store that is about people."""
        ...

    async def open(self) -> None:
        """Make the store ready: migrate it, or refuse it with a reason."""
        ...

    async def close(self) -> None:
        """Release what `open` took. A second call does nothing."""
        ...

    async def now(self) -> datetime:
        """Return the store's time. It follows its host's clock, also when that is set back."""
        ...

    async def settle_clock(self) -> Sequence[tuple[str, datetime]]:
        """Correct the times that were written while the clock was ahead; called at a start and after a step back.

        A parked retry that is further away than its own wait is set to that wait. A stop that was obeyed ahead counts
        as obeyed now. Jobs whose `wake_at` lies ahead for this reason are due now. Returns the names and watermarks of
        jobs whose watermark lies more than a minute ahead: their instants up to it are not planned again until
        `rewind` sets the watermark back.
        """
        ...

    async def check_writable(self) -> None:
        """Return if every table exists and takes writes. This changes nothing.

        Raises `StoreUnavailable` if the store is away, `StoreBroken` if a table is missing or damaged. This
        distinguishes a store that refuses every write from one that refuses some items.
        """
        ...

    async def bell(self, seconds: float) -> bool:
        """Wait up to `seconds` for a hint that something changed. Return whether one came."""
        ...

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return when the next job or occurrence of this scope comes, so that a node can sleep until then."""
        ...


class PlanStore(Protocol):
    """The verbs of the planner."""

    async def now(self) -> datetime:
        """Return the store's time, as `Store.now` does."""
        ...

    def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AbstractAsyncContextManager[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first.

        `by` takes the place of the store's time: past or future. Two open batches of one node never share a job.
        Another node may get the same job; the revision check in `commit_plans` then accepts one of the plans.
        """
        ...

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each whole plan whose job still has the revision of the snapshot.

        A store may also claim for the node, up to its offer, occurrences that `claim` would give it next. Nothing is
        written of a batch whose `now` has not come yet.
        """
        ...


class BeatVerb(Protocol):
    """The verb of a node's beat."""

    async def beat(self, node: str, keys: Collection[ClaimKey]) -> Orders:
        """Record that the node lives, as `RunStore.beat` does.

        The orders may be left out while the node's loop stands still: it could not carry them out.
        """
        ...


class RunStore(Protocol):
    """The verbs of claims, steps, beats and the reaper."""

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age.

        The claim is the durable start. If a reach is limited or braked, at most as many as may start now; other
        occurrences are given as usual.
        """
        ...

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step whose claim still has the fence and token of the occurrence.

        Nothing of a refused step is written, and the other steps are written without it.
        """
        ...

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Record that the node lives and which claims it holds. Return the claims about which the store differs.

        It raises the node's `beats` by one. `facts` replace the facts that the node told before; a beat with facts
        also deletes nodes that have been silent for `NODES_KEPT`.
        """
        ...

    async def leave(self, node: str) -> None:
        """Record that the node has stopped: its `beats` become 0, and its claims are orphans at once.

        A beat cannot say this, since it raises `beats`.
        """
        ...

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> list[Claim]:
        """Take over the claims in `keys`, and those of each silent node whose `beats` still has the value named.

        Owner, fence and token change in one statement: one of many reapers gets the claim, and the old owner is
        fenced out before anything is decided. An occurrence that waited for a retry lost no attempt: it only becomes
        claimable again. Returns at most `limit` occurrences that ran, the oldest first.

        An occurrence with an open attempt that was handed over is not lost with its node: of silent nodes it is left
        to `reattach`.
        """
        ...

    async def reattach(self, scope: NodeScope, limit: int, silent: Mapping[str, int]) -> list[Claim]:
        """Give the node of the scope what these silent nodes have handed over to engines, as `orphans` takes the rest.

        Those are the occurrences of the scope with an open attempt that has `handed_to`, the oldest first. Others are
        left to a node that can ask their engine.
        """
        ...

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the row of a running attempt, for people, if the claim still has its fence and token.

        A note that arrives after the end of its attempt adds to the row and changes no status. A note with an old
        fence is stale. Nothing of a refused note is written, and the other notes are written without it.
        """
        ...

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Begin a transaction for a task of the claim. Leaving it without a commit rolls it back.

        A store without transactions raises `TransactionsUnsupported`.
        """
        ...

    async def reports(self, scope: NodeScope, limit: int) -> list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        ...

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Record that these reports were delivered. A report may be delivered twice; it is never lost."""
        ...

    def apart(self) -> AbstractAsyncContextManager[BeatVerb] | None:
        """Give what beats on the event loop of another thread, for the node whose loop calls this.

        None if the store serves one loop only. It is a context manager, since a connection must be closed on the loop
        that opened it.
        """
        ...


class JobStore(Protocol):
    """The verbs of definitions and of people's requests."""

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Make every change in one transaction, or none. Return the result of each.

        If one job has another version than expected, nothing changes and `VersionConflict` is raised. Send at most
        some thousand changes: while they are written, no plan of these jobs can commit.
        """
        ...

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return the jobs with these ids that exist, by id."""
        ...

    async def list(self, *, removed: bool = False, after: str = "", limit: int | None = None) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name. With `removed`, return removed jobs too.

        With `limit`, return up to so many behind the name `after`. Fewer than that are the last ones.
        """
        ...

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return the snapshot of each of these jobs that exists, due or not. No job is locked."""
        ...

    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Record the runs that a node fired while this store was away. Return the handle of each run, or None.

        A run becomes an occurrence with the run's status. If the id has an occurrence that another node has begun,
        that one stays and the handle is None. A repeated call returns the same handles. A run with an owner belongs
        to that node, as if it had claimed it. The watermark becomes the node's, if it had reached the point
        where the node began.
        """
        ...

    async def define(self, names: Collection[str], left_out: Collection[str] = ()) -> None:
        """Store the names that a starting process defines, once under their hash, and mark the jobs in `left_out`.

        A job that is defined loses its mark. A mark that exists keeps its time. Both arguments are names; names
        without a job in service are ignored. An edit of a job removes its mark.
        """
        ...

    async def retire(self, marks: Mapping[str, datetime], *, after: timedelta, by: str = "") -> frozenset[str]:
        """Remove each of these jobs, by id, if it still has this mark. Return those that were removed.

        They retire `after` from now.
        """
        ...

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Delete up to `limit` occurrences of a removed job, and the job with the last of them.

        Return whether the job is deleted. Raises `Conflict` while a node owns one of them, and if the job is in
        service again.
        """
        ...

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job or an occurrence, and make its job due. The next plan decides about the fact.

        A fact about a limit or brake names its reach instead, and the next claim obeys it.
        The receipt has the id of the occurrence if the fact asks for one. A repeated key returns the same id.
        `within` is a connection of the caller's own to the same database, for a `Trigger`, a `Replay` or a
        `Fill`: the fact is written in the transaction that is open there, and locks no other row until that commits.
        """
        ...


class HistoryStore(Protocol):
    """The verbs of history."""

    async def history(self, filter: HistoryFilter) -> Page:
        """Return a page of occurrences, newest first."""
        ...

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        ...

    async def prune(self, limit: int = 1000) -> int:
        """Delete up to `limit` ended occurrences that the retention of their job no longer keeps. Return how many."""
        ...


class AccessStore(Protocol):
    """The verbs about people. Each change that a person makes is written together with its deed, or not at all."""

    async def request(self, subject: str, fact: Fact, doer: Doer) -> Receipt:
        """Write one fact, as `JobStore.request` does, and its deed in the same transaction."""
        ...

    async def apply(self, changes: Sequence[Edit], by: str, doer: Doer) -> list[Stored]:
        """Make every change, as `JobStore.apply` does, and its deed in the same transaction."""
        ...

    async def purge(self, job_id: str, limit: int, doer: Doer) -> bool:
        """Delete a removed job, as `JobStore.purge` does, and tell the deed with the last of it."""
        ...

    async def change(self, change: AccessChange, doer: Doer | None = None) -> bool:
        """Change what is known of people, and tell the deed. Return whether anything changed.

        The last admin can be neither removed nor given another role: that raises `Conflict`.
        """
        ...

    async def users(self, names: Collection[str] | None = None) -> Sequence[User]:
        """Return these users, or all, by name."""
        ...

    async def tokens(self, ids: Collection[str] | None = None) -> Sequence[Token]:
        """Return these tokens, or all, newest first, revoked and expired ones too."""
        ...

    async def session(self, hash: str) -> WebSession | None:
        """Return the session that has not ended, with its user as they are now."""
        ...

    async def sessions(self) -> Sequence[WebSession]:
        """Return the sessions of browsers that have not ended, the last used first, at most 1000. Links are no such."""
        ...

    async def failures(self, name: str) -> SignInFailures:
        """Return how often signing in with this name went wrong, whether there is such a user or not."""
        ...

    async def deeds(self, filter: DeedFilter) -> DeedPage:
        """Return a page of deeds, newest first. No verb changes or deletes one."""
        ...


class PromiseStore(Protocol):
    """The verbs of promises: what is due by when."""

    async def promises(self, scope: NodeScope, limit: int) -> DuePromises:
        """Return up to `limit` promises that may be broken now, longest-waiting first, and breaches not told for long.

        Promises of jobs whose needs the scope does not meet are among them once they have waited for
        `JUDGED_BY_ANY_AFTER`: the nodes that could run the job come first. A job whose definition this process cannot
        read is left to others.
        """
        ...

    async def commit_promises(
        self, judgements: Sequence[Judgement], told: Sequence[OwedBreach] = ()
    ) -> Sequence[Commit]:
        """Write each whole judgement whose promise still has the revision that was read; of several nodes one does.

        A breach that begins, or ends because the promise is kept again, is owed to the receivers until `told` names it.
        """
        ...


class QuestionStore(Protocol):
    """What nodes, pages and people ask, and what keeps the answers cheap."""

    @property
    def folds_at_once(self) -> int:
        """How many occurrences a node folds by one call: the more, the less each costs, and the longer others wait."""
        ...

    async def ask(self, question: Question[A]) -> A:
        """Answer one of the questions in `domain.questions` and `domain.lookups`. None locks or writes anything.

        Those about occurrences are bounded when they are built.
        """
        ...

    async def fold(self, limit: int = 1000) -> int:
        """Count up to `limit` ended occurrences in the rollups. Return how many it looked at.

        Answers do not depend on when this is done; how fast they are found does. Only the lengths of the runs of very
        many jobs are as old as the last call. Several nodes may do it at once.
        """
        ...
