"""The values that travel between everytick and a store. The verbs that carry them stand in `stores.protocols`."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from random import SystemRandom
from typing import Any, Literal, NamedTuple, TypeAlias

from everytick.domain.job import Job
from everytick.domain.nodes import NodeFacts
from everytick.domain.occurrence import Attempt, Cause, Occurrence, TaskRun
from everytick.domain.snapshots import Ended, JobSnapshot, PausedSpan
from everytick.domain.statuses import OccurrenceStatus, RunStatus
from everytick.domain.steps import OccurrenceHeader, OccurrenceLife, RunState
from everytick.domain.values import value

MAX_EDITIONS = 16
"""So many versions of a definition may wait to be decided; more edits are refused until a node has looked."""

AHEAD = timedelta(minutes=1)
"""A watermark further ahead of the store's time than this was written while a clock was wrong."""

STEP = timedelta(seconds=1)
"""What was written further ahead than this was written before the clock was set back."""

REMEMBERED = timedelta(minutes=10)
"""A removed job that comes back within this time keeps its watermark."""

NODES_KEPT = timedelta(days=7)
"""A node that was not heard of for so long, and holds nothing, is forgotten."""

NAME_SETS_KEPT = timedelta(days=1)
"""A set of job names that no node names is forgotten after this time."""


class Commit(Enum):
    """Whether a plan or step was written, or came from a snapshot that no longer holds."""

    COMMITTED = "committed"
    STALE = "stale"


@value
class CommitAway:
    """The item was not written and may be later: its home does not answer, or another session is in its way."""

    reason: str


@value
class CommitFailed:
    """The store tried the item alone and refused it. A refused plan is set aside: its job is looked at in a minute."""

    reason: str


CommitAnswer: TypeAlias = Commit | CommitAway | CommitFailed
"""What became of one plan, step or note; never of a batch."""

_random = SystemRandom()


def new_token() -> int:
    """Return the token of a claim or batch. The system draws it: a forked process shares its parent's generator."""
    return _random.getrandbits(63)


class ClaimKey(NamedTuple):
    """What an owner proves in every write: `handle` is the store's own key for the occurrence.

    `fence` rises with every claim, take-over and end. `token` is drawn at random by the claim: a copy of the
    store that was restored from an older one hands out the same handles and fences again, to other occurrences.
    """

    handle: int
    fence: int
    token: int


@value
class Claim:
    """An occurrence that a node owns, by its key.

    `record` may be what makes the occurrence's record: most tasks never ask for it.
    """

    key: ClaimKey
    record: Occurrence | Callable[[], Occurrence] = field(compare=False, repr=False)
    header: OccurrenceHeader
    life: OccurrenceLife
    job: Job

    @property
    def handle(self) -> int:
        """The store's own key for the occurrence."""
        return self.key[0]

    @property
    def fence(self) -> int:
        """The fence of this claim, which tasks may pass on to what they write to."""
        return self.key[1]

    @property
    def occurrence(self) -> Occurrence:
        """The occurrence as people see it."""
        return self.record if isinstance(self.record, Occurrence) else self.record()


@value
class Orders:
    """What a beat tells a node: what to stop, what is no longer its own, and what it holds without knowing.

    Of `parks` it keeps no wait for a retry, however short: their jobs are disabled, or removed for good.
    """

    cancel: tuple[tuple[ClaimKey, str], ...] = ()
    gone: tuple[ClaimKey, ...] = ()
    adopt: tuple[Claim, ...] = ()
    parks: tuple[ClaimKey, ...] = ()


@value
class NodeScope:
    """What a node asks about: jobs and occurrences whose needs are one of the texts it has `met`.

    `unknown` are ids of jobs that meet this and cannot be run here all the same, at most 1,000.
    `seen` says how many texts of needs the node has heard of: `ahead` tells it all where there are more.
    """

    node: str
    met: tuple[str, ...] = ("",)
    unknown: frozenset[str] = frozenset()
    seen: int = 0


@value
class Ahead:
    """What is next for a scope, read in one moment: the store's time, the earliest `wake_at` and `ready_at` after it.

    What is due already is not ahead: `due` and `claim` answer for it. `needs` are all texts of
    needs that the store has, in order; none where there are as many as the scope has seen.
    `alone` says that no other node plans for this scope; a store that cannot know it says False.
    """

    now: datetime
    wake_at: datetime | None = None
    ready_at: datetime | None = None
    needs: tuple[str, ...] = ()
    alone: bool = field(default=False, compare=False)


@value
class StoreAddress:
    """Where a store is: in this process, in a file, or in one schema of a server.

    `url` is the server's, with the password if it has one, and is never shown.
    """

    kind: Literal["memory", "sqlite", "postgres"]
    file: Path | None = None
    driver: Literal["sqlite3", "apsw"] = "sqlite3"
    url: str = field(default="", repr=False)
    schema: str = ""
    is_pooled: bool = False

    @property
    def is_in_memory(self) -> bool:
        """Whether everything is forgotten with the process."""
        return self.kind == "memory"

    @property
    def is_remote(self) -> bool:
        """Whether it is reached by connections, which belong to the loop that opened them."""
        return self.kind == "postgres"


@value(frozen=True)
class JobRecord:
    """A job as the store holds it: the newest definition and what has happened to it.

    `next_run` is what the last plan or verb said; one that has passed is due and waits for a node.
    `run_count` is how many occurrences have begun and ended, `last_error` what the last failure
    said, `last_failure_at` when an attempt last failed or timed out, also one that was tried again:
    retention takes none of them away. `parked_reason` says why nothing of the job is planned now: a
    node cannot read its definition, or the store refused its last plan.
    """

    job: Job
    revision: int
    watermark: datetime
    wake_at: datetime | None
    pause: PausedSpan | None = None
    removed_at: datetime | None = None
    retire_at: datetime | None = None
    last_end: Ended | None = None
    last_success: Ended | None = None
    removed_by: str = ""
    next_run: datetime | None = None
    run_count: int = 0
    last_error: str | None = None
    needs: str = ""
    parked_reason: str | None = None
    last_failure_at: datetime | None = None


@value
class Stored:
    """What came of a change: the job's version then, and whether anything changed."""

    job_id: str
    version: int
    changed: bool


@value
class Receipt:
    """What came of a request: the id of the occurrence, else of the job, and whether anything changed."""

    id: str
    changed: bool


@value(frozen=True)
class Whole:
    """One occurrence with its runs and attempts, in order."""

    occurrence: Occurrence
    runs: tuple[TaskRun, ...]
    attempts: tuple[tuple[str, Attempt], ...]

    @property
    def results(self) -> dict[str, Any]:
        """What the tasks returned, by task name, in their order; a task that did not succeed is absent."""
        return {run.task: run.result for run in self.runs if run.status is RunStatus.SUCCESS}

    @property
    def result(self) -> Any:
        """What the last task returned; None where it returned nothing or did not succeed."""
        return self.runs[-1].result if self.runs else None


def task_run(occurrence_id: str, task_id: str, task: str, run: RunState) -> TaskRun:
    """Return what is known of one task of an occurrence."""
    return TaskRun(
        occurrence_id,
        task_id,
        run.status,
        run.attempts,
        run.started_at,
        run.ended_at,
        run.error,
        task=task,
        returned=run.result,
    )


def whole_of(occurrence: Occurrence, runs: Sequence[TaskRun], attempts: Sequence[tuple[str, Attempt]]) -> Whole:
    """Return the occurrence with its runs and attempts, each with the times that follow from the others.

    A run is there from its occurrence on, and changed when one of its attempts began or ended. An
    attempt after the first is there from the end of the one before it.
    """
    ends = {(attempt.run_id, attempt.number): attempt.ended_at for _, attempt in attempts}
    dated = [
        (task, replace(attempt, created_at=ends.get((attempt.run_id, attempt.number - 1)) or attempt.started_at))
        for task, attempt in attempts
    ]
    moments: dict[str, list[datetime | None]] = {}
    for _, attempt in attempts:
        moments.setdefault(attempt.run_id, []).extend((attempt.started_at, attempt.ended_at))
    made = occurrence.created_at
    changed = [max(filter(None, (made, run.started_at, run.ended_at, *moments.get(run.id, ())))) for run in runs]
    told = [replace(run, created_at=made, updated_at=at) for run, at in zip(runs, changed, strict=True)]
    return Whole(occurrence, tuple(told), tuple(dated))


@value
class HistoryFilter:
    """Which occurrences a page of the history holds: those of `(after, through]` by the time they are scheduled for.

    `cursor` is that of the page before; it holds whatever is inserted meanwhile.
    """

    job_id: str | None = None
    statuses: Collection[OccurrenceStatus] = ()
    cause: Cause | None = None
    after: datetime | None = None
    through: datetime | None = None
    limit: int = 100
    cursor: str | None = None


@value
class Page:
    """A part of the history, newest first; `cursor` asks for what follows, None says that nothing does."""

    occurrences: tuple[Occurrence, ...]
    cursor: str | None = None


@value(frozen=True)
class NodeRecord:
    """A node, when it was last heard of, how many occurrences it holds, and what it said of itself.

    `beats` counts its signs of life; 0 says that no process beats under this name: it said
    goodbye, or never beat at all, and then `beat_at` is when it came to own what it holds.
    `overdue` is what it holds past its deadline, by the store's clock.
    """

    id: str
    beat_at: datetime
    holds: int
    facts: NodeFacts | None = None
    beats: int = 1
    overdue: tuple[ClaimKey, ...] = ()

    def is_alive(self, now: datetime, silence: timedelta) -> bool:
        """Whether it beats and was heard of within so long, by the store's clock: for people, never for a take-over."""
        return self.beats > 0 and now - self.beat_at <= silence


@value
class Batch:
    """Jobs that are due, as a plan may see them, and the time by which they are due and are to be planned.

    `now` is the store's own time, or the moment that was asked for; `is_ahead` says that this moment was still to
    come. `token` names the batch in what is written: a commit that is repeated is known by it. `more` says that
    the store may have more of the scope that is due by `now`.
    """

    now: datetime
    snapshots: Sequence[JobSnapshot]
    token: int
    more: bool = False
    is_ahead: bool = False


@value
class Offer:
    """What a node would claim at once of what its plans make: up to `limit` of its scope."""

    scope: NodeScope
    limit: int


@value
class Committed:
    """What became of each plan, and what the node owns now of what it offered to take."""

    answers: Sequence[CommitAnswer]
    claims: Sequence[Claim] = ()
