"""What `advance` sees and what it returns: an OccurrenceHeader, an OccurrenceLife, an event, and the Step that follows.

A Step carries the next life. The owner of an occurrence keeps the life in memory. A store
writes the rows of a Step, and builds the life from these rows for the next claim.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from everytick.domain.config import Level, Overrides
from everytick.domain.durations import LONGEST_DURATION
from everytick.domain.job import Job, Task
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.outcome import Lost, Outcome
from everytick.domain.payload import Payload
from everytick.domain.policies import Failure, Mode, OnOrphan
from everytick.domain.report import AttemptReport, AttemptReports, Report, TaskReport
from everytick.domain.retry import Retry
from everytick.domain.statuses import ENDED, AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.texts import SILENT
from everytick.domain.values import by_name, value

KEPT_WAIT = timedelta(seconds=5)
"""The owner keeps a retry that is at most so far away. One further away is parked, which frees the slot."""

WAITS_KEPT = 100
"""The newest waits of a run that its report tells. Retries may have no limit."""

_NOTHING = Overrides(Level.OCCURRENCE)
_NO_TIME = timedelta(0)
_COMPLETED = OccurrenceStatus.COMPLETED
_FAILURES = frozenset({OccurrenceStatus.FAILED, OccurrenceStatus.FAILED_STALE, OccurrenceStatus.COMPLETED_WITH_ERRORS})
_FAILED_RUNS = frozenset({RunStatus.FAILED, RunStatus.TIMEOUT})
_FAILED_ATTEMPTS = frozenset({AttemptStatus.FAILED, AttemptStatus.TIMEOUT})


def failure_of(status: OccurrenceStatus, runs: "Iterable[RunState]", error: str | None) -> str | None:
    """Return what went wrong, in the words of the first task that failed; None where the end is not a failure."""
    if status not in _FAILURES:
        return None
    return next((run.error for run in runs if run.error and run.status in _FAILED_RUNS), error)


def bounded(timeout: timedelta | None) -> timedelta | None:
    """Return the timeout; None if it is the longest that counts."""
    return None if timeout is None or timeout >= LONGEST_DURATION else timeout


def deadline(started_at: datetime | None, timeout: timedelta | None, ahead: timedelta = _NO_TIME) -> datetime | None:
    """Return when an occurrence is out of time: its first start plus execution_timeout; None where there is none.

    `ahead` is how far the store's clock was set ahead since the claim: no more time has passed by that.
    """
    return None if started_at is None or timeout is None else started_at + timeout + ahead


# ------------------------------------------------------------------------------------------------------- the rules


@value
class TaskRules:
    """What `advance` needs to know of one task; `after` are the places of the tasks it comes after."""

    id: str
    name: str
    continues: bool
    retry: Retry | None
    timeout: timedelta | None
    after: tuple[int, ...]


@value
class Rules:
    """What `advance` needs to know of a definition, merged once for all occurrences of a version.

    Tasks stand in their order number; `walk` names their places so that each comes behind
    all that it comes `after`. `not_started` are the runs of an occurrence that has not begun.
    Each end owes a report if it `reports`: to a hook of the application if it `has_hook`, to
    those who get notices if it `notifies`, and of every success if it `tells_success`.
    """

    mode: Mode
    failure: Failure
    execution_timeout: timedelta | None
    on_orphan: OnOrphan
    max_lost: int | None
    tasks: tuple[TaskRules, ...]
    walk: tuple[int, ...]
    reports: bool
    has_hook: bool
    notifies: bool
    tells_success: bool
    places: Mapping[str, int] = field(repr=False, compare=False)
    not_started: "tuple[RunState, ...]" = field(repr=False, compare=False)


def rules_of(job: Job, overrides: Overrides = _NOTHING) -> Rules:
    """Return the rules an occurrence with these overrides runs under; without any, one value serves all of them."""
    settings = job.settings.overridden_by(overrides) if overrides.items else job.settings
    tasks = sorted(job.tasks, key=lambda task: task.order)
    places = {task.name: place for place, task in enumerate(tasks)}
    ruled = tuple(_task_rules(task, overrides, places if settings.mode is Mode.GRAPH else {}) for task in tasks)
    return Rules(
        mode=settings.mode,
        failure=settings.failure,
        execution_timeout=bounded(settings.execution_timeout),
        on_orphan=settings.on_orphan,
        max_lost=settings.max_lost,
        tasks=ruled,
        walk=_walk(ruled),
        reports=job.owes_reports,
        has_hook=job.reports,
        notifies=job.notifies,
        tells_success=job.settings.on_success is not None,
        places=places,
        not_started=_none_begun(len(ruled)),
    )


@lru_cache
def _none_begun(count: int) -> "tuple[RunState, ...]":
    return (NOT_STARTED,) * count


def _task_rules(task: Task, overrides: Overrides, places: Mapping[str, int]) -> TaskRules:
    settings = task.settings.overridden_by(overrides) if overrides.items else task.settings
    return TaskRules(
        id=task.id,
        name=task.name,
        continues=settings.failure is Failure.CONTINUE,
        retry=settings.retry,
        timeout=bounded(settings.task_timeout),
        after=tuple(places[peer] for peer in task.after if peer in places),
    )


_ALONE = (0,)


def _walk(tasks: Sequence[TaskRules]) -> tuple[int, ...]:
    """Circles were refused at definition, so every round places at least one task."""
    if len(tasks) == 1:
        return _ALONE
    walk: list[int] = []
    left = list(range(len(tasks)))
    while left:
        placed = [place for place in left if not any(peer in left for peer in tasks[place].after)]
        assert placed, f"tasks wait for each other: {[tasks[place].name for place in left]}"
        walk += placed
        left = [place for place in left if place not in placed]
    return tuple(walk)


# ---------------------------------------------------------------------------------------------------- header and life


class Stop(StrEnum):
    """How far the stop of the owner's node has come for this occurrence. No store writes it."""

    DRAIN = "drain"
    CANCEL = "cancel"
    CUT = "cut"


@value
class RunState:
    """The state of one task of an occurrence.

    A pending run with `resume_at` waits: for a retry, or to be given back. One without it starts
    as soon as its turn comes. `attempts` is the number of the last attempt that began, `retries`
    counts what `Retry.max` bounds, and `last` is the status of the last attempt that ended.
    `out_of_time` says that retries were left, but no time before the deadline.
    """

    status: RunStatus = RunStatus.PENDING
    attempts: int = 0
    retries: int = 0
    last: AttemptStatus | None = None
    resume_at: datetime | None = None
    started_at: datetime | None = None
    attempt_started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    result: Payload | None = None
    waits: tuple[timedelta, ...] = ()
    because_of: str | None = None
    out_of_time: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether its result comes from the occurrence that this one is a replay of: it never runs here."""
        return self.status is RunStatus.SUCCESS and self.attempts == 0

    @property
    def tells_attempts(self) -> bool:
        """Whether the report needs no record of its attempts: there was none, or one that succeeded."""
        return self.attempts == 0 or (self.attempts == 1 and self.status is RunStatus.SUCCESS)

    def kept(self) -> "RunState":
        """Return a run that takes this one's result over."""
        assert self.status is RunStatus.SUCCESS, "only a run that succeeded has a result to keep"
        return RunState(self.status, started_at=self.started_at, ended_at=self.ended_at, result=self.result)


NOT_STARTED = RunState()
"""The state of every run before the first claim."""


@value
class OccurrenceHeader:
    """What stays the same about an occurrence from its claim to its end; all steps of a claim share it.

    `found` is the status in which the last claim found it: pending or awaiting_retry. `holds_place`: a limit counts
    this claim.
    """

    id: str
    job_id: str
    scheduled_for: datetime
    rules: Rules
    is_recovery_run: bool = False
    found: OccurrenceStatus = OccurrenceStatus.PENDING
    holds_place: bool = False
    cause: Cause = Cause.SCHEDULE


@value
class OccurrenceLife:
    """What changes about an occurrence; `advance` takes one and returns the next in `Step.after`.

    `runs` stand in the order of `rules.tasks`. `number` is the number of the last step that was
    written. `is_owned` says that a node owns the occurrence. `claimed_at` is the time of that
    node's claim. It is None for a first claim, whose time is `started_at`. `lost` counts how often
    another node took it over. `cancel` is the reason of a request to stop it.

    A store never sees `expired`, `stop` and `ahead`: only the owner knows them. `ahead` is how
    far the store's clock was set ahead since the claim, since the owner counts a deadline on
    its monotonic clock.
    """

    status: OccurrenceStatus
    runs: tuple[RunState, ...]
    number: int
    is_owned: bool
    ready_at: datetime | None
    started_at: datetime | None
    claimed_at: datetime | None
    ended_at: datetime | None = None
    error: str | None = None
    lost: int = 0
    cancel: str | None = None
    expired: bool = False
    stop: Stop | None = None
    ahead: timedelta = _NO_TIME


# A tick builds several of each: from named fields, and as fast as by place.
new_run, new_header, new_life = by_name(RunState), by_name(OccurrenceHeader), by_name(OccurrenceLife)


def deadline_of(header: OccurrenceHeader, life: OccurrenceLife) -> datetime | None:
    """Return when the occurrence is out of time; None without an execution_timeout or before its first start."""
    return deadline(life.started_at, header.rules.execution_timeout, life.ahead)


@value
class OccurrenceEnd:
    """An occurrence that has ended, with everything that its report tells."""

    header: OccurrenceHeader
    life: OccurrenceLife

    @property
    def id(self) -> str:
        """The occurrence's id."""
        return self.header.id

    @property
    def job_id(self) -> str:
        """The id of its job."""
        return self.header.job_id

    @property
    def status(self) -> OccurrenceStatus:
        """How it ended."""
        return self.life.status

    @property
    def error(self) -> str | None:
        """Why it ended so."""
        return self.life.error

    @property
    def tells_attempts(self) -> bool:
        """Whether the report needs no record of the attempts."""
        return all(run.tells_attempts for run in self.life.runs)

    def report(self, attempts: AttemptReports = MappingProxyType({})) -> Report:
        """Return the Execution Report. Every task is in it, also one that never started.

        Some runs do not tell their attempts themselves. The report takes these from `attempts`.
        """
        header, life = self.header, self.life
        pairs = zip(header.rules.tasks, life.runs, strict=True)
        return Report(
            occurrence_id=header.id,
            scheduled_for=header.scheduled_for,
            status=life.status,
            failure=header.rules.failure,
            started_at=life.started_at,
            ended_at=life.ended_at,
            error=life.error,
            is_recovery_run=header.is_recovery_run,
            tasks=tuple(_task_report(task, run, life.status, attempts.get(task.name, ())) for task, run in pairs),
        )


def _task_report(
    task: TaskRules, run: RunState, status: OccurrenceStatus, attempts: tuple[AttemptReport, ...]
) -> TaskReport:
    if run.attempts == 1 and run.tells_attempts:
        attempts = (AttemptReport(1, AttemptStatus.SUCCESS, run.started_at, run.ended_at),)
    return TaskReport(
        id=task.id,
        name=task.name,
        # No run was written of an occurrence that ended before it began.
        status=unfinished(run) if run.status is RunStatus.PENDING and status in ENDED else run.status,
        attempts=run.attempts,
        started_at=run.started_at,
        ended_at=run.ended_at,
        error=run.error,
        waits=run.waits,
        because_of=run.because_of,
        attempt_reports=attempts,
        returned=run.result,
    )


def header_of(occurrence: Occurrence, rules: Rules) -> OccurrenceHeader:
    """Return the header of a stored occurrence."""
    return OccurrenceHeader(
        id=occurrence.id,
        job_id=occurrence.job_id,
        scheduled_for=occurrence.scheduled_for,
        rules=rules,
        is_recovery_run=occurrence.is_recovery_run,
        cause=occurrence.cause,
    )


def life_of(
    occurrence: Occurrence, rules: Rules, runs: Mapping[str, RunState] = MappingProxyType({})
) -> OccurrenceLife:
    """Return the life of a stored occurrence of which no step was written; a task without a run has not begun."""
    return OccurrenceLife(
        status=occurrence.status,
        runs=runs_of(rules, runs),
        number=0,
        is_owned=occurrence.owner is not None,
        ready_at=occurrence.ready_at,
        started_at=occurrence.started_at,
        claimed_at=None,
        ended_at=occurrence.ended_at,
        error=occurrence.error,
    )


def runs_of(rules: Rules, runs: Mapping[str, RunState]) -> tuple[RunState, ...]:
    """Return where every task stands, in the order of the rules; one without a run has not begun."""
    return tuple([runs.get(task.name, NOT_STARTED) for task in rules.tasks]) if runs else rules.not_started


def unfinished(run: RunState) -> RunStatus:
    """Return what a run ends as that has no attempt open: canceled, or skipped if it never began."""
    return RunStatus.CANCELED if run.attempts else RunStatus.SKIPPED


def closed(rules: Rules | None, runs: Mapping[str, RunState], now: datetime) -> dict[str, RunState]:
    """Return the runs that end together with their occurrence, of which no attempt is open.

    An occurrence of which no run was written had not begun, and none has to be written now.
    Without the rules only runs that were written are known.
    """
    names = (task.name for task in rules.tasks) if rules is not None and runs else runs
    open_ = [(name, runs.get(name, NOT_STARTED)) for name in names]
    return {
        name: replace(run, status=unfinished(run), resume_at=None, ended_at=now)
        for name, run in open_
        if run.status is RunStatus.PENDING
    }


# ------------------------------------------------------------------------------------------------------ the events


@value
class Claimed:
    """A node has become the owner; the claim is the durable start of the attempts that follow from it."""


@value
class Released:
    """The owner gives the claim back before any attempt of it has begun."""


@value
class AttemptEnded:
    """An attempt is over."""

    task: str
    number: int
    outcome: Outcome


@value
class WaitOver:
    """A wait that the owner kept has ended."""

    task: str


@value
class CancelRequested:
    """A request to stop the occurrence, whatever the strategies of its tasks."""

    reason: str = "canceled"


@value
class DeadlinePassed:
    """The occurrence has used up its execution_timeout."""


@value
class Stopping:
    """The owner's node stops: nothing further starts on it. Unless it drains, open attempts are canceled."""

    drain: bool = False


@value
class Reattached:
    """Another node goes on with the occurrence of a silent one: engines carry out the open attempts of these tasks.

    Its other open attempts are lost.
    """

    tasks: frozenset[str]
    error: str = SILENT


LifeEvent: TypeAlias = (
    Claimed | Released | AttemptEnded | WaitOver | Lost | CancelRequested | DeadlinePassed | Stopping | Reattached
)


# -------------------------------------------------------------------------------------------------------- the step


@value
class RunRow:
    """What a store writes about one task: where its run stands now, and the attempt this is about, if any.

    `attempt` is running for one that is about to begin after a wait, else how the attempt
    `number` ended; None says that only the run changed. A step has one row for a task at
    most, so that a store can write all of them in one statement.
    """

    task: str
    number: int
    attempt: AttemptStatus | None
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    run: RunState


def failed_at(rows: "Iterable[RunRow]") -> datetime | None:
    """Return when the last of these attempts failed or timed out; None where none did."""
    last = None
    for row in rows:
        if row.attempt in _FAILED_ATTEMPTS and row.ended_at is not None and (last is None or row.ended_at > last):
            last = row.ended_at
    return last


@value
class Start:
    """An attempt that the node begins once the step is committed; past its deadline it is `TimedOut`.

    One that an engine carries out for an earlier owner began then, at `began_at`.
    """

    task: str
    number: int
    deadline: datetime | None
    began_at: datetime | None = None


@value
class CancelAttempt:
    """An open attempt that the node tells to stop; it stays open until its outcome is reported."""

    task: str
    number: int
    reason: str


@value
class Wait:
    """A wait the owner keeps from now on; when it is over, `WaitOver` says so."""

    task: str
    number: int
    until: datetime


@value
class Step:
    """What follows from one event.

    At most one of `end`, `resume_at` (parked: awaiting_retry without an owner) and
    `release` (without an owner again) is set. `restores` goes with a release that no attempt
    came before: `started_at` and the node are again what the claim found. Status, `ready_at`
    and the counts of the occurrence are those of `after`. `waits` are the new ones; once the
    occurrence is parked, released or ended, its owner forgets all of them.
    `superseded_by_next` is for the store to keep beside an awaiting_retry.
    """

    number: int
    after: OccurrenceLife
    rows: tuple[RunRow, ...] = ()
    starts: tuple[Start, ...] = ()
    cancels: tuple[CancelAttempt, ...] = ()
    waits: tuple[Wait, ...] = ()
    end: OccurrenceEnd | None = None
    resume_at: datetime | None = None
    release: bool = False
    superseded_by_next: bool = False
    restores: bool = False

    @property
    def failure(self) -> str | None:
        """What the job remembers as its last error; None where this is not its end, or a good one."""
        after = self.after
        if self.end is None or after.status is _COMPLETED:
            return None
        return failure_of(after.status, after.runs, after.error)

    @property
    def commits(self) -> bool:
        """Whether there is anything to write; a claim that only starts attempts has been written already."""
        return bool(self.rows) or self.end is not None or self.resume_at is not None or self.release
