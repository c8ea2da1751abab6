"""A step in the making: what an event has changed so far, run by run, and the Step that comes of it.

Nothing is decided here. `advance` says what happens to a run; a Draft makes the run's new
state, its row, and what the node is to do about it.
"""

from datetime import datetime, timedelta

from everytick.domain import steps
from everytick.domain.payload import Payload
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.steps import (
    WAITS_KEPT,
    CancelAttempt,
    OccurrenceEnd,
    OccurrenceHeader,
    OccurrenceLife,
    RunRow,
    RunState,
    Start,
    Step,
    Stop,
    Wait,
    deadline,
)

# Bound once: to look a member up in its class takes as long as to call a function.
_PENDING, _RUNNING = RunStatus.PENDING, RunStatus.RUNNING
_AWAITING_RETRY = OccurrenceStatus.AWAITING_RETRY

# A run that ends while it waits ends as its last attempt did. After any other status it is canceled.
_AS_LAST = {AttemptStatus.FAILED: RunStatus.FAILED, AttemptStatus.TIMEOUT: RunStatus.TIMEOUT}


class Draft:
    """The parts of a life that an event can change, and what was decided so far."""

    # Without slots: a field that most events do not change is read from the class and never set.
    end: tuple[OccurrenceStatus, str | None] | None = None
    resume_at: datetime | None = None
    release: bool = False
    restores: bool = False

    def __init__(self, header: OccurrenceHeader, life: OccurrenceLife, now: datetime) -> None:
        self.header, self.before, self.now, self.rules = header, life, now, header.rules
        self.runs = list(life.runs)
        self.status, self.is_owned, self.ready_at = life.status, life.is_owned, life.ready_at
        self.started_at, self.claimed_at = life.started_at, life.claimed_at
        self.lost, self.cancel, self.expired, self.stop = life.lost, life.cancel, life.expired, life.stop
        # By place, since a task has one row at most.
        self.rows: dict[int, RunRow] = {}
        self.starts: list[Start] = []
        self.cancels: list[CancelAttempt] = []
        self.waits: list[int] = []

    @property
    def deadline(self) -> datetime | None:
        """When the occurrence is out of time."""
        return deadline(self.started_at, self.rules.execution_timeout, self.before.ahead)

    def open(self, place: int, *, written: bool = False) -> None:
        """Begin the next attempt; one that does not follow from what is stored is written as a row of its own."""
        run, task, now = self.runs[place], self.rules.tasks[place], self.now
        number, first = run.attempts + 1, run.started_at or now
        self.runs[place] = opened = RunState(
            _RUNNING,
            number,
            run.retries,
            run.last,
            started_at=first,
            attempt_started_at=now,
            error=run.error,
            waits=run.waits,
        )
        self.starts.append(Start(task.name, number, None if task.timeout is None else now + task.timeout))
        if written:
            self.rows[place] = RunRow(task.name, number, AttemptStatus.RUNNING, now, None, None, opened)

    def reopen(self, place: int) -> None:
        """Let this owner wait for the end of the open attempt, which began before."""
        run, task = self.runs[place], self.rules.tasks[place]
        began = run.attempt_started_at or self.now
        until = None if task.timeout is None else began + task.timeout
        self.starts.append(Start(task.name, run.attempts, until, began))

    def open_waiting(self, through: datetime) -> None:
        """Begin, with a row each, all that waited until this moment or an earlier one."""
        for place, run in enumerate(self.runs):
            if run.resume_at is not None and run.resume_at <= through:
                self.open(place, written=True)

    def open_unwritten(self, place: int, began: datetime) -> None:
        """Note an attempt as open that a silent owner had begun without a row."""
        run = self.runs[place]
        number, first = run.attempts + 1, run.started_at or began
        self.runs[place] = RunState(_RUNNING, number, run.retries, run.last, None, first, began, waits=run.waits)

    def over(
        self,
        place: int,
        status: RunStatus,
        attempt: AttemptStatus,
        error: str | None,
        result: Payload | None = None,
        out_of_time: bool = False,
    ) -> None:
        """The open attempt has ended, and its run with it."""
        run = self.runs[place]
        now = self._no_earlier(run.attempt_started_at)
        first, waits, because_of = run.started_at, run.waits, run.because_of
        self.runs[place] = over = RunState(
            status,
            run.attempts,
            run.retries,
            attempt,
            started_at=first,
            ended_at=now,
            error=error,
            result=result,
            waits=waits,
            because_of=because_of,
            out_of_time=out_of_time,
        )
        name = self.rules.tasks[place].name
        self.rows[place] = RunRow(name, run.attempts, attempt, run.attempt_started_at, now, error, over)

    def again(
        self,
        place: int,
        attempt: AttemptStatus,
        error: str | None,
        resume_at: datetime | None = None,
        wait: timedelta | None = None,
    ) -> None:
        """The open attempt has ended, and its run will get another one; only one after a `wait` counts as a retry."""
        run = self.runs[place]
        waits = run.waits if wait is None else (*run.waits, wait)[-WAITS_KEPT:]
        retries = run.retries + (wait is not None)
        self.runs[place] = waiting = RunState(
            _PENDING,
            run.attempts,
            retries,
            attempt,
            resume_at=resume_at,
            started_at=run.started_at,
            error=error,
            waits=waits,
        )
        name, began = self.rules.tasks[place].name, run.attempt_started_at
        self.rows[place] = RunRow(name, run.attempts, attempt, began, self._no_earlier(began), error, waiting)

    def hold_back(self, place: int, until: datetime) -> None:
        """Let a run that is ready wait, so that it does not seem to have begun."""
        run, first = self.runs[place], self.runs[place].started_at
        held = RunState(_PENDING, run.attempts, run.retries, run.last, until, first, error=run.error, waits=run.waits)
        self._write(place, held)

    def reset(self, place: int) -> None:
        """Let the run begin anew; only the numbers of its attempts go on. What a replay keeps stays as it is."""
        run = self.runs[place]
        if run.is_kept:
            return
        fresh = RunState(attempts=run.attempts, started_at=run.started_at, waits=run.waits)
        if run != fresh:
            self._write(place, fresh)

    def close(self, place: int, status: RunStatus, because_of: str | None = None) -> None:
        """End a run that has no attempt open."""
        run = self.runs[place]
        out_of_time = self.expired and status in _AS_LAST.values()
        closed = RunState(
            status,
            run.attempts,
            run.retries,
            run.last,
            started_at=run.started_at,
            ended_at=self.now,
            error=run.error,
            waits=run.waits,
            because_of=because_of,
            out_of_time=out_of_time,
        )
        self._write(place, closed)

    def close_pending(self, *, as_last: bool = False) -> None:
        """End every run without an open attempt: skipped if it never began, else canceled or as its last attempt."""
        for place, run in enumerate(self.runs):
            if run.status is _PENDING:
                self.close(place, unfinished(run, as_last=as_last))

    def call_off(self, place: int, name: str) -> None:
        """Remember that a peer's failure ends the open attempt."""
        run = self.runs[place]
        first, began = run.started_at, run.attempt_started_at
        self.runs[place] = RunState(
            _RUNNING,
            run.attempts,
            run.retries,
            run.last,
            started_at=first,
            attempt_started_at=began,
            error=run.error,
            waits=run.waits,
            because_of=name,
        )

    def tell(self, place: int, reason: str) -> None:
        """Tell an open attempt to stop, unless it was told before."""
        run = self.runs[place]
        if run.because_of is None and (self.stop is None or self.stop is Stop.DRAIN):
            self.cancels.append(CancelAttempt(self.rules.tasks[place].name, run.attempts, reason))

    def tell_open(self, reason: str) -> None:
        """Tell every open attempt to stop."""
        for place, run in enumerate(self.runs):
            if run.status is _RUNNING:
                self.tell(place, reason)

    def _write(self, place: int, run: RunState) -> None:
        """Write a run that changed between two attempts; a row about its attempt stays, with the new state."""
        self.runs[place] = run
        row = self.rows.get(place)
        if row is None:
            self.rows[place] = RunRow(self.rules.tasks[place].name, 0, None, None, None, run.error, run)
        else:
            self.rows[place] = RunRow(row.task, row.number, row.attempt, row.started_at, row.ended_at, row.error, run)

    def _no_earlier(self, *moments: datetime | None) -> datetime:
        """Return now, or the latest of these: nothing ends before it began, though the clock was set back meanwhile."""
        return max([self.now, *(moment for moment in moments if moment is not None)])

    def step(self) -> Step:
        """Return the step, whole."""
        before, end, rows = self.before, self.end, self.rows
        writes = bool(rows) or end is not None or self.resume_at is not None or self.release
        number = before.number + 1
        after = OccurrenceLife(
            self.status if end is None else end[0],
            tuple(self.runs),
            number if writes else before.number,
            self.is_owned and end is None,
            self.ready_at,
            self.started_at,
            self.claimed_at,
            ended_at=None if end is None else self._no_earlier(self.started_at, *(run.ended_at for run in self.runs)),
            error=None if end is None else end[1],
            lost=self.lost,
            cancel=self.cancel,
            expired=self.expired,
            stop=self.stop if self.is_owned else None,
            ahead=before.ahead,
        )
        return Step(
            number,
            after,
            tuple(rows.values()) if rows else (),
            tuple(self.starts) if self.starts else (),
            tuple(self.cancels) if self.cancels else (),
            self._kept_waits() if self.waits and after.is_owned else (),
            end=None if end is None else OccurrenceEnd(self.header, after),
            resume_at=self.resume_at,
            release=self.release,
            superseded_by_next=after.status is _AWAITING_RETRY and self.is_superseded_by_next(),
            restores=self.restores,
        )

    def _kept_waits(self) -> tuple[Wait, ...]:
        waiting = [(self.rules.tasks[place].name, self.runs[place]) for place in self.waits]
        return tuple(Wait(name, run.attempts + 1, run.resume_at) for name, run in waiting if run.resume_at is not None)

    def is_superseded_by_next(self) -> bool:
        """Tell whether the next instant may end it: every retry it waits for says so."""
        pairs = zip(self.rules.tasks, self.runs, strict=True)
        waiting = [task.retry for task, run in pairs if run.resume_at is not None]
        return all(retry is not None and retry.superseded_by_next for retry in waiting)


def unfinished(run: RunState, *, as_last: bool = False) -> RunStatus:
    """Return what a run ends as that has no attempt open; `as_last` says that it counts as its last attempt did."""
    status = steps.unfinished(run)
    return _AS_LAST.get(run.last, status) if as_last and run.attempts and run.last is not None else status
