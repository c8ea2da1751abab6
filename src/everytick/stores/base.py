"""The values that travel between everytick and a store. The verbs that carry them stand in `stores.protocols`."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from random import SystemRandom
from typing import Any, Literal, NamedTuple, TypeAlias

from everytick.domain.job import Job
from everytick.domain.needs import LATE
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import HandedAttempt
from everytick.domain.occurrence import Attempt, Cause, Occurrence, TaskRun
from everytick.domain.questions import Question
from everytick.domain.snapshots import Ended, JobSnapshot, PausedSpan
from everytick.domain.statuses import OccurrenceStatus, RunStatus
from everytick.domain.steps import OccurrenceHeader, OccurrenceLife, RunState
from everytick.domain.values import value

MAX_EDITIONS = 16
"""How many versions of one definition may wait for a plan. Further edits are refused until a node has planned.

A plan reads all of them: 16 keeps it small, and no person edits a job that often between two looks.
"""

FARTHEST_AHEAD = timedelta(minutes=1)
"""A watermark further ahead of the store's time than this was written while a clock was wrong."""

STEP = timedelta(seconds=1)
"""A row that lies further ahead of the store's time than this was written before the clock was set back."""

REMEMBERED = timedelta(minutes=10)
"""A removed job that comes back within this time keeps its watermark."""

NODES_KEPT = timedelta(days=7)
"""A node that has not beaten for this long and owns nothing is deleted."""

NAME_SETS_KEPT = timedelta(days=1)
"""A set of job names that no node refers to is deleted after this time."""


class Commit(Enum):
    """Whether a plan or step was written, or came from a snapshot that no longer holds."""

    COMMITTED = "committed"
    STALE = "stale"


@value
class CommitAway:
    """The item was not written, and a later try may succeed: its store does not answer, or another session locks it."""

    reason: str


@value
class CommitFailed:
    """The store tried the item alone and refused it. The job of a refused plan is planned again in a minute."""

    reason: str


CommitAnswer: TypeAlias = Commit | CommitAway | CommitFailed
"""The answer to one plan, step or note, never to a batch."""

_random = SystemRandom()


def new_token() -> int:
    """Return the token of a claim or batch. The system draws it: a forked process shares its parent's generator."""
    return _random.getrandbits(63)


class ClaimKey(NamedTuple):
    """The proof of ownership that every write carries. `handle` is the store's own key for the occurrence.

    `fence` rises with every claim, take-over and end. `token` is drawn at random by the claim: a copy of the
    store that was restored from an older one hands out the same handles and fences again, to other occurrences.
    """

    handle: int
    fence: int
    token: int


@value
class Claim:
    """An occurrence that a node owns, by its key.

    `record` is the occurrence or a function that makes it: most tasks never ask for it. `handed` are its open
    attempts that an earlier owner handed over to engines; only `reattach` and the orders of a beat tell them.
    """

    key: ClaimKey
    record: Occurrence | Callable[[], Occurrence] = field(compare=False, repr=False)
    header: OccurrenceHeader
    life: OccurrenceLife
    job: Job
    handed: tuple[HandedAttempt, ...] = ()

    @property
    def handle(self) -> int:
        """The store's own key for the occurrence."""
        return self.key[0]

    @property
    def fence(self) -> int:
        """The fence of this claim. Tasks may pass it on to the systems they write to."""
        return self.key[1]

    @property
    def occurrence(self) -> Occurrence:
        """The occurrence as people see it."""
        return self.record if isinstance(self.record, Occurrence) else self.record()


@value
class Orders:
    """The answer to a beat.

    `cancel` are claims to stop, with the reason. `gone` are claims that belong to another owner now. `adopt` are
    claims that the node owns without knowing it. `parks` are claims of jobs that are disabled or removed: the node
    gives their retries back, however short the wait is.
    """

    cancel: tuple[tuple[ClaimKey, str], ...] = ()
    gone: tuple[ClaimKey, ...] = ()
    adopt: tuple[Claim, ...] = ()
    parks: tuple[ClaimKey, ...] = ()


@value
class NodeScope:
    """The jobs and occurrences that a node may take: those whose needs are one of the texts in `met`.

    `unknown` are the ids of jobs whose needs are met and that this node cannot run all the same, at most 1,000.
    `seen` is the number of texts of needs that the node knows. `ahead` returns all of them if there are more.
    """

    node: str
    met: tuple[str, ...] = ("", LATE)
    unknown: frozenset[str] = frozenset()
    seen: int = 0


@value
class Ahead:
    """The store's time and the earliest `wake_at` and `ready_at` after it, for one scope.

    A job that is due already is not ahead: `due` and `claim` give it. `needs` are all texts of needs that the store
    has, sorted; it is empty if there are as many as `NodeScope.seen`. `alone` says that no other node plans for this
    scope; a store that cannot know it says False. `limit_changes` is the number of the newest change of a limit or
    brake.
    """

    now: datetime
    wake_at: datetime | None = None
    ready_at: datetime | None = None
    needs: tuple[str, ...] = ()
    alone: bool = field(default=False, compare=False)
    limit_changes: int = field(default=0, compare=False)


@value
class StoreAddress:
    """Where a store is: in this process, in a file, in one schema of a server, or under one prefix of its keys.

    `url` is the server's, with the password if it has one, and is never shown.
    """

    kind: Literal["memory", "sqlite", "postgres", "redis"]
    file: Path | None = None
    driver: Literal["sqlite3", "apsw"] = "sqlite3"
    url: str = field(default="", repr=False)
    schema: str = ""
    is_pooled: bool = False

    @property
    def is_in_memory(self) -> bool:
        """Whether the data end with the process."""
        return self.kind == "memory"

    @property
    def is_remote(self) -> bool:
        """Whether it is reached by connections, which belong to the loop that opened them."""
        return self.kind in ("postgres", "redis")


@value(frozen=True)
class JobRecord:
    """A job as the store holds it: the newest definition and the state of the job.

    `next_run` is as of the last plan or change. If it has passed, the job is due and waits for a node.
    `run_count` counts the occurrences that have begun and ended. `last_error` is the text of the last failure.
    `last_failure_at` is when an attempt last failed or timed out, also one that was retried. Retention deletes none
    of the three. `parked_reason` says why the job is not planned now: a node cannot read its definition, or the
    store refused its last plan. `job` is the version that was asked for last, which may still be to come; while a
    window is open it is that of the window. `lapsed` is what a window that is over was for.
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
    lapsed: Job | None = None

    @property
    def ended_badly(self) -> bool:
        """Whether the last occurrence that ended did not complete: it failed, or was canceled."""
        end, success = self.last_end, self.last_success
        return end is not None and (success is None or success.ended_at < end.ended_at)


@value
class Stored:
    """The result of one change: the job's version after it, and whether anything changed."""

    job_id: str
    version: int
    changed: bool


@value
class Receipt:
    """The result of a request: the id of the occurrence, else of the job, and whether anything changed."""

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


@value
class WholeRuns(Question[tuple[Whole, ...]]):
    """What became of these occurrences, with their runs and attempts? One that is no longer there is left out."""

    occurrence_ids: Collection[str]


def task_run(occurrence_id: str, task_id: str, task: str, run: RunState) -> TaskRun:
    """Return the record of one task of an occurrence."""
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
    """Return the occurrence with its runs and attempts, and set their `created_at` and `updated_at`.

    A run was created with its occurrence, and was updated when one of its attempts began or ended. An attempt
    after the first was created when the one before it ended.
    """
    ends = {(attempt.run_id, attempt.number): attempt.ended_at for _, attempt in attempts}
    dated = [
        (task, replace(attempt, created_at=ends.get((attempt.run_id, attempt.number - 1)) or attempt.started_at))
        for task, attempt in attempts
    ]
    moments: dict[str, list[datetime | None]] = {}
    for _, attempt in attempts:
        moments.setdefault(attempt.run_id, []).extend((attempt.started_at, attempt.ended_at))
    created_at = occurrence.created_at
    changed = [max(filter(None, (created_at, run.started_at, run.ended_at, *moments.get(run.id, ())))) for run in runs]
    dated_runs = [replace(run, created_at=created_at, updated_at=at) for run, at in zip(runs, changed, strict=True)]
    return Whole(occurrence, tuple(dated_runs), tuple(dated))


@value
class HistoryFilter:
    """Which occurrences a page of the history holds: those with `scheduled_for` in `(after, through]`.

    `cursor` is that of the page before. It stays valid when rows are inserted between two pages.
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
    """A part of the history, newest first. `cursor` asks for the next page; it is None on the last one."""

    occurrences: tuple[Occurrence, ...]
    cursor: str | None = None


@value(frozen=True)
class NodeRecord:
    """A node: its last beat, how many occurrences it owns, and the facts it told.

    `beats` counts its beats. It is 0 if no process beats under this name: the node left, or never beat. A node that
    never beat has the time of its first claim as `beat_at`. `overdue` are its claims past their deadline, by the
    store's clock.
    """

    id: str
    beat_at: datetime
    holds: int
    facts: NodeFacts | None = None
    beats: int = 1
    overdue: tuple[ClaimKey, ...] = ()

    def is_alive(self, now: datetime, silence: timedelta) -> bool:
        """Whether its last beat is at most `silence` old, by the store's clock. For people, never for a take-over."""
        return self.beats > 0 and now - self.beat_at <= silence


@value
class Nodes(Question[Sequence[NodeRecord]]):
    """Which nodes have beaten, and which other names own an occurrence? By id."""


@value
class Batch:
    """Snapshots of jobs that are due, and the time to plan them for.

    `now` is the store's own time, or the moment that the caller named. `is_ahead` says that this moment had not come
    yet. The store writes `token` with the plans, so that it recognises a repeated commit. `more` says that more jobs
    of the scope may be due by `now`.
    """

    now: datetime
    snapshots: Sequence[JobSnapshot]
    token: int
    more: bool = False
    is_ahead: bool = False


@value
class Offer:
    """A node's offer to claim at once up to `limit` of the occurrences that its plans create in its scope."""

    scope: NodeScope
    limit: int


@value
class Committed:
    """The answer to each plan, and the claims that the node got for its offer."""

    answers: Sequence[CommitAnswer]
    claims: Sequence[Claim] = ()
