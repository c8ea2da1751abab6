"""The seam: what everytick asks of a store, in batches, each verb keeping one invariant.

Losing a race is an answer (`Commit.STALE`), not an exception. The memory store is the
readable specification of every verb; the others are proven equal to it. The values that
travel stand in `stores.base`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

from everytick.domain.changes import Edit
from everytick.domain.decisions import Plan, Span
from everytick.domain.definers import Undefined
from everytick.domain.facts import Fact
from everytick.domain.fired import Fired
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.snapshots import Edition, JobSnapshot
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
    NodeRecord,
    NodeScope,
    Offer,
    Orders,
    Page,
    Receipt,
    StoreAddress,
    Stored,
    Whole,
)


class ClaimTransaction(Protocol):
    """The store's own transaction, in which a task writes; `commit` puts the attempt's success into it."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for what `execute` and `fetch` do not offer; it must not commit."""
        ...

    async def execute(self, sql: str, *arguments: object) -> None:
        """Carry out one statement, with placeholders as the driver writes them."""
        ...

    async def fetch(self, sql: str, *arguments: object) -> Sequence[tuple[Any, ...]]:
        """Return the rows of one question, which sees what the transaction wrote."""
        ...

    async def commit(self, step: Step) -> Commit:
        """Write the step and commit all of it together; STALE says that nothing was written at all."""
        ...


class Store(Protocol):
    """A place with a clock of its own: the store's clock is the clock."""

    @property
    def address(self) -> StoreAddress:
        """Where the store is."""
        ...

    async def open(self) -> None:
        """Make the store ready: migrate it, or refuse it with a reason."""
        ...

    async def close(self) -> None:
        """Give back what `open` took; closing twice is harmless."""
        ...

    async def now(self) -> datetime:
        """Return the store's time; it follows a clock that is set right, back too."""
        ...

    async def settle_clock(self) -> Sequence[tuple[str, datetime]]:
        """Let everything go on that was written while the clock was ahead; asked at a start, and after a step back.

        A parked retry that is further away than its own wait is brought back to it, and jobs are
        looked at that would be only once the clock is there again. Returns the jobs whose
        watermark lies more than a minute ahead, by name: what was decided is not decided again,
        and `rewind` sets them right.
        """
        ...

    async def check_writable(self) -> None:
        """Return if every table is there and takes writes; nothing is changed.

        Raises `StoreUnavailable` where the store is away, `StoreBroken` where a table is missing or damaged. This
        tells a store that takes nothing from one that only refuses some items.
        """
        ...

    async def bell(self, seconds: float) -> bool:
        """Wait for a hint that something changed, at most so many seconds; return whether one came."""
        ...

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return what is next in this scope, so that a node sleeps until then and not longer."""
        ...


class PlanStore(Protocol):
    """What the planner asks."""

    async def now(self) -> datetime:
        """Return the store's time: the verb of `Store`, which a planner that sees only this part asks too."""
        ...

    def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AbstractAsyncContextManager[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first.

        With `by` those whose `wake_at` has come by this moment, past or future. No two batches that
        one node has open at the same time share a job. Another node may see the same job: the
        revision check in `commit_plans` settles it.
        """
        ...

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each plan whole, on the condition that its job's revision is still the snapshot's.

        A store may give the node at once what it offers to take, if `claim` in the next moment
        would give it. Nothing of a batch whose `now` is still to come is written.
        """
        ...


class RunStore(Protocol):
    """What the executor and the reaper ask."""

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age.

        The claim is the durable start.
        """
        ...

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step, on the condition that the claim's fence and token are still the occurrence's.

        Of a refused step nothing is written, and no other step waits for it.
        """
        ...

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Say that the node lives and what it holds; the answer says what the store knows better.

        It raises the node's `beats` by one. `facts` are what the node says of itself from now on; with
        them, nodes that are long gone are forgotten.
        """
        ...

    async def leave(self, node: str) -> None:
        """Say that the node beats no more: its beats are 0, and what it still holds is an orphan at once.

        This is no beat: a beat raises `beats`, and only a goodbye says that no process has this name.
        """
        ...

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> list[Claim]:
        """Take over what each silent node holds if its `beats` is still the number named, and each claim named.

        Owner, fence and token change in one statement: of many reapers one gets it, and the old
        owner is fenced out before anything is decided. A wait that an owner kept lost nothing: it
        is only freed. At most `limit` that ran are given, the oldest first.
        """
        ...

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Show people what is running: make or change the attempt's row, under the claim's fence and token.

        A note that comes after its own attempt's end adds to the row and changes no status; one whose
        fence is gone is stale. Of a refused note nothing is written, and no other note waits for it.
        """
        ...

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Begin a transaction for a task of the claim; leaving it without a commit takes everything back.

        A store without transactions of its own refuses with `TransactionsUnsupported`.
        """
        ...

    async def reports(self, scope: NodeScope, limit: int) -> list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        ...

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Note that these reports were delivered; a report may come twice, but never not at all."""
        ...

    def apart(self) -> "AbstractAsyncContextManager[RunStore] | None":
        """Give the same store for another thread's loop, with a connection of its own; None if it lives in one loop.

        It is a context, since a connection is closed on the loop that opened it.
        """
        ...


class JobStore(Protocol):
    """What people and definitions ask of jobs."""

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Do every change in one transaction, or nothing; return what came of each.

        A job that is at another version than was expected refuses all of it with `VersionConflict`. At most
        some thousand changes go together: while they are written, these jobs take no plan.
        """
        ...

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return those of the jobs that exist."""
        ...

    async def list(self, *, removed: bool = False) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name; with `removed` those that are as well."""
        ...

    async def parked(self) -> Mapping[str, str]:
        """Return why each job in service is parked that is, by name: `JobRecord.parked_reason` says what that is.

        A job whose definition this process cannot read is among them, though `list` leaves it out.
        """
        ...

    async def editions(
        self, job_id: str, versions: Collection[int] = (), *, at: datetime | None = None
    ) -> Sequence[Edition]:
        """Return these versions of a job's definition, and the one in force at a moment, in order.

        A version never changes and is kept as long as its job; one that cannot be read here is
        left out.
        """
        ...

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return what a plan would see of those jobs that exist now, due or not, and hold nothing."""
        ...

    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Write down what was fired without this store; return the handle of each run, None where another is there.

        A run becomes an occurrence that stands where the run stands, unless there is one of its
        id already: the same told again has the same handle, and what somebody else has begun of
        the instant stays. A run with an owner is that node's, as if it had claimed it. The job is
        decided as far as it was there if it was decided here up to where that began, and no further.
        """
        ...

    async def define(self, names: Collection[str], left_out: Collection[str] = ()) -> None:
        """Keep the names that a start defines, once under their hash, and mark the jobs that it leaves out.

        A job that is defined is no longer marked, and a mark that is there stays as it is. Both sides are
        names; names without a job in service are passed over. An edit of a job takes its mark away.
        """
        ...

    async def undefined(self) -> Undefined:
        """Return every job in service that is marked, by name, and every set of names if there is any."""
        ...

    async def retire(self, marks: Mapping[str, datetime], *, after: timedelta, by: str = "") -> frozenset[str]:
        """Remove each of these jobs, by id, if it still has the mark that was seen; return those that were removed.

        They retire that long after now.
        """
        ...

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Forget up to `limit` occurrences of a removed job for good, and the job once none is left.

        Return whether it is gone. Refused while a node holds one of them, and if the job is in
        service again.
        """
        ...

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job, or about an occurrence, and let its job be looked at; a plan decides.

        The receipt names the occurrence where the fact is about one. The same key again answers with the
        same one. `within` is a connection of the caller's own to the same database, for a `Trigger`, a
        `Replay` or a `StartBackfill`: it is asked in the transaction that is open there, and nothing of ours is
        locked until that commits.
        """
        ...


class HistoryStore(Protocol):
    """What people ask of the past."""

    async def history(self, filter: HistoryFilter) -> Page:
        """Return a page of occurrences, newest first."""
        ...

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        ...

    async def existing(self, occurrence_ids: Collection[str]) -> frozenset[str]:
        """Return those of these ids that an occurrence has, whatever became of it.

        A page of the history cannot tell: an instant that was moved keeps its id, and not its time.
        """
        ...

    async def spans(self, job_id: str, after: datetime, through: datetime) -> Sequence[Span]:
        """Return the spans of instants that did not run and touch `(after, through]`, in order."""
        ...

    async def nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were heard of and every other owner of anything, by id."""
        ...

    async def prune(self, limit: int = 1000) -> int:
        """Forget up to `limit` ended occurrences that their job's retention no longer keeps; return how many."""
        ...
