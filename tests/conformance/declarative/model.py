"""The model of docs/declarative-theory.md as a program: what one task does, told from its inputs alone.

Tasks do not influence each other (statement T6 of the theory), so the model knows one. It
is given the expression, the delay, what each call of the callback does, and when the
scheduler is up; it answers with the trace of the task and with its timestamps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from tests.conformance.declarative.cron_model import MINUTE, occurrences

Entry = tuple[str, datetime]


class End(Enum):
    """How a life of the scheduler ends."""

    STOP = "stop"
    CRASH = "crash"


@dataclass(frozen=True)
class Life:
    """One instance: it is up for so long, ends so, and nothing runs for so long afterwards."""

    up: timedelta
    end: End
    down: timedelta
    cron: str | None = None
    """Another expression from this life on."""

    delay: timedelta | None = None
    """Another delay from this life on."""

    is_absent: bool = False
    """The task is not registered in this life."""


@dataclass(frozen=True)
class Call:
    """What one call of the callback does."""

    takes: timedelta = timedelta(0)
    fails: bool = False


@dataclass
class Task:
    """What is persisted of one task: the state of the model between two lives."""

    decided_through: datetime
    """Every minute of the expression up to here is decided."""

    is_behind: bool = False
    """A minute came that could not be run in its turn: the task owes one run, never two."""

    is_running: bool = False
    last_attempt: datetime | None = None
    last_success: datetime | None = None
    last_failure: datetime | None = None
    pending_retry: datetime | None = None


class Tie(Exception):
    """Two things happen at the same moment, and the specification leaves their order open."""


@dataclass
class Model:
    """One task under a scheduler; `live` is called once for each life, in order."""

    cron: str
    delay: timedelta
    calls: Sequence[Call]
    zone: str = "UTC"
    trace: list[Entry] = field(default_factory=list)
    task: Task | None = None
    _called: int = 0
    _ends_at: datetime | None = None

    def live(self, begin: datetime, life: Life) -> datetime:
        """Add what happens in the life to the trace; return when the next one begins."""
        until = begin + life.up
        if life.is_absent:
            return until + life.down
        self.delay = self.delay if life.delay is None else life.delay
        self._start(begin, life.cron or self.cron)
        while (at := self._next(until)) is not None:
            self._happens(at)
        over = until
        task = self._task
        if life.end is End.STOP and self._ends_at is not None:
            over = self._ends_at
            self._end_run(over)
        elif self._ends_at is not None:
            task.is_running, self._ends_at = True, None
            self._called += 1
        return over + life.down

    @property
    def _task(self) -> Task:
        assert self.task is not None, "no life has begun"
        return self.task

    # ---------------------------------------------------------------------------------------------------------- a start

    def _start(self, now: datetime, cron: str) -> None:
        old, self.cron = self.cron, cron
        if self.task is None:
            self.task = Task(now)
            if self._names_minute_of(now):
                self._run(now, "TaskRunStarted")
            return
        task = self.task
        missed = self._decide_through(now, old)
        if task.is_running:
            task.is_running = task.is_behind = False
            self._run(now, "TaskRunStarted")
        elif task.is_behind or self._is_owed(missed, now):
            self._take_turn(now)
        elif task.pending_retry is not None and now >= task.pending_retry:
            self._retry(now)

    def _is_owed(self, missed: list[datetime], now: datetime) -> bool:
        """Case A: the minute that is now. Case B: any, unless the task never ran."""
        if self._task.last_attempt is not None:
            return bool(missed)
        return self._minute(now) in missed

    def _decide_through(self, now: datetime, old: str) -> list[datetime]:
        """Return what came since: by the old expression before this minute, by the new one in it."""
        missed = occurrences(old, self.zone, self._task.decided_through, now)
        self._task.decided_through = now
        minute = self._minute(now)
        if old != self.cron:
            if minute in missed and not self._names_minute_of(now):
                raise Tie
            ran = self._task.last_attempt is not None and self._task.last_attempt >= minute
            missed = [each for each in missed if each < minute]
            missed += [minute] if self._names_minute_of(now) and not ran else []
        return missed

    def _names_minute_of(self, now: datetime) -> bool:
        minute = self._minute(now)
        return bool(occurrences(self.cron, self.zone, minute - MINUTE, minute))

    @staticmethod
    def _minute(now: datetime) -> datetime:
        return now.replace(second=0, microsecond=0)

    # --------------------------------------------------------------------------------------------------- while it is up

    def _next(self, until: datetime) -> datetime | None:
        """Return when the next thing happens, if that is before the end of the life."""
        coming = [at for at in (self._ends_at, self._task.pending_retry, self._next_minute(until)) if at is not None]
        # A retry and a minute that are due at once are no tie: the minute supersedes the retry (S2-023).
        if coming.count(self._ends_at or until) > 1 or until in coming:
            raise Tie
        at = min(coming, default=until)
        return at if at < until else None

    def _next_minute(self, until: datetime) -> datetime | None:
        return next(iter(occurrences(self.cron, self.zone, self._task.decided_through, until)), None)

    def _happens(self, at: datetime) -> None:
        task = self._task
        if at == self._ends_at:
            self._end_run(at)
            if task.is_behind:
                self._take_turn(at)
            elif task.pending_retry == at:
                self._retry(at)
        elif at == task.pending_retry and at != self._next_minute(at):
            self._retry(at)
        else:
            task.decided_through = at
            if self._ends_at is not None:
                task.is_behind = True
            else:
                self._take_turn(at)

    def _take_turn(self, at: datetime) -> None:
        """A minute of the expression is run; a retry that waits gives way to it."""
        if self._task.pending_retry is not None:
            self.trace.append(("TaskRetryPreempted", at))
        self._task.is_behind = False
        self._run(at, "TaskRunStarted")

    def _retry(self, at: datetime) -> None:
        self._run(at, "TaskRetryStarted")

    def _run(self, at: datetime, event: str) -> None:
        self._task.pending_retry, self._task.last_attempt = None, at
        self.trace.append((event, at))
        self._ends_at = at + self._call.takes
        if not self._call.takes:
            self._end_run(at)
            if self._task.pending_retry == at:
                self._retry(at)

    @property
    def _call(self) -> Call:
        return self.calls[self._called] if self._called < len(self.calls) else Call()

    def _end_run(self, at: datetime) -> None:
        task, call = self._task, self._call
        self._called += 1
        self._ends_at = None
        if call.fails:
            task.last_failure, task.pending_retry = at, at + self.delay
            self.trace.append(("TaskRunFailed", at))
        else:
            task.last_success = at
            self.trace.append(("TaskRunCompleted", at))
