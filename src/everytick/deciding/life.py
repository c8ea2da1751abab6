"""The plain life of an occurrence: tasks in order, each begun once and ended well, which is most of what a node does.

It decides nothing of its own: `plain_step` says sooner what the long way of `advance` says, or
nothing where anything is not plain. Every life in the tests holds it to that.
"""

from datetime import datetime

from everytick.domain.outcome import Succeeded
from everytick.domain.policies import Mode
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.steps import (
    AttemptEnded,
    Claimed,
    End,
    Event,
    OccurrenceSnapshot,
    Row,
    RunState,
    Start,
    Step,
    TaskRules,
)

# Bound here once: looking a member up in its class takes as long as calling a function.
_PENDING, _RUNNING, _SUCCESS = RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SUCCESS
_WAITS, _IN_HAND, _COMPLETED = OccurrenceStatus.PENDING, OccurrenceStatus.RUNNING, OccurrenceStatus.COMPLETED
_SUCCEEDED, _SEQUENTIAL = AttemptStatus.SUCCESS, Mode.SEQUENTIAL


def plain_step(before: OccurrenceSnapshot, event: Event, now: datetime) -> Step | None:
    """Return the step if this is the first claim of an occurrence, or the success of the one task that is open."""
    rules, runs = before.rules, before.runs
    if (
        before.cancel is not None
        or before.stop is not None
        or before.expired
        or before.ahead
        or not runs
        or (len(runs) > 1 and rules.mode is not _SEQUENTIAL)
    ):
        return None
    if rules.execution_timeout is not None and (until := before.deadline) is not None and now >= until:
        return None
    if type(event) is AttemptEnded:
        return _succeeded(before, event, now) if type(event.outcome) is Succeeded else None
    return _begun(before, now) if type(event) is Claimed else None


def _begun(before: OccurrenceSnapshot, now: datetime) -> Step | None:
    runs, task, status = before.runs, before.rules.tasks[0], before.status
    first = runs[0]
    if (
        before.number
        or (status is not _WAITS and status is not _IN_HAND)
        or first.status is not _PENDING
        or first.resume_at is not None
    ):
        return None
    opened = _opened(first, now)
    after = OccurrenceSnapshot(
        before.id,
        before.scheduled_for,
        before.rules,
        (opened, *runs[1:]) if len(runs) > 1 else (opened,),
        _IN_HAND,
        0,
        True,
        before.ready_at,
        before.started_at or now,
        now,
        None,
        None,
        before.lost,
        None,
        before.is_recovery_run,
        False,
        None,
        before.job_id,
    )
    return Step(1, after, (), (_start(task, opened, now),))


def _opened(run: RunState, now: datetime) -> RunState:
    return RunState(
        _RUNNING,
        run.attempts + 1,
        run.retries,
        run.last,
        None,
        run.started_at or now,
        now,
        None,
        run.error,
        None,
        run.waits,
    )


def _start(task: TaskRules, opened: RunState, now: datetime) -> Start:
    return Start(task.name, opened.attempts, None if task.timeout is None else now + task.timeout)


def _succeeded(before: OccurrenceSnapshot, event: AttemptEnded, now: datetime) -> Step | None:
    """The task is over; the next one begins, or behind the last the occurrence is completed."""
    rules, runs = before.rules, before.runs
    place = rules.places[event.task]
    run = runs[place]
    if before.status is not _IN_HAND or run.status is not _RUNNING or run.attempts != event.number:
        return None
    if run.attempt_started_at is None or now < run.attempt_started_at:
        return None
    for earlier in runs[:place]:
        if earlier.status is not _SUCCESS:
            return None
    result = event.outcome.result if type(event.outcome) is Succeeded else None
    over = RunState(
        _SUCCESS,
        run.attempts,
        run.retries,
        _SUCCEEDED,
        None,
        run.started_at,
        None,
        now,
        None,
        result,
        run.waits,
        run.because_of,
    )
    rows = (Row(event.task, run.attempts, _SUCCEEDED, run.attempt_started_at, now, None, over),)
    number, follows = before.number + 1, place + 1 < len(runs)
    states: tuple[RunState, ...] = (over,)
    starts: tuple[Start, ...] = ()
    if follows:
        coming = runs[place + 1]
        if coming.status is not _PENDING or coming.resume_at is not None:
            return None
        opened = _opened(coming, now)
        states = (*runs[:place], over, opened, *runs[place + 2 :])
        starts = (_start(rules.tasks[place + 1], opened, now),)
    elif place:
        states = (*runs[:place], over)
    after = OccurrenceSnapshot(
        before.id,
        before.scheduled_for,
        rules,
        states,
        _IN_HAND if follows else _COMPLETED,
        number,
        before.held and follows,
        before.ready_at,
        before.started_at,
        before.claimed_at,
        None if follows else now,
        None,
        before.lost,
        None,
        before.is_recovery_run,
        False,
        None,
        before.job_id,
    )
    return Step(number, after, rows, starts, (), (), None if follows else End(_COMPLETED, None, after))
