"""`advance`: what follows from one event in the life of one occurrence.

Everything that happens inside an occurrence is decided here and nowhere else: order,
failure, retries, deadlines, cancel, lost owners, a stopping node, the final status. The
executor and the reaper come through the same door.

What begins follows from what is stored. A run that is pending without `resume_at` begins
as soon as its turn comes, by the claim or by the step whose rows made it its turn; one
that waited begins with a row of its own, except that the claim itself begins those whose
wait was over at the `ready_at` it was claimed for. So a reaper that reads only the store
knows exactly which attempts the silent node had open.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from everytick.deciding.retry import next_wait
from everytick.domain.outcome import (
    EXECUTION_TIMEOUT,
    FAIL_FAST,
    SHUTDOWN,
    Canceled,
    Failed,
    Lost,
    Succeeded,
    TimedOut,
)
from everytick.domain.policies import Mode, OnOrphan
from everytick.domain.statuses import ENDED, AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.steps import (
    KEPT_WAIT,
    WAITS_KEPT,
    AttemptEnded,
    Cancel,
    CancelRequested,
    Claimed,
    DeadlinePassed,
    End,
    Event,
    OccurrenceSnapshot,
    Row,
    RunState,
    Start,
    Step,
    Stop,
    Stopping,
    Wait,
    WaitOver,
)

_MOMENT = timedelta(microseconds=1)

# Bound here once: looking a member up in its class takes as long as calling a function.
_IN_HAND, _AWAITING_RETRY = OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY
_SEQUENTIAL, _GRAPH = Mode.SEQUENTIAL, Mode.GRAPH
_DRAIN, _STOP, _CUT = Stop.DRAIN, Stop.CANCEL, Stop.CUT
_PENDING, _RUNNING, _SUCCESS = RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SUCCESS
_FAILED, _TIMEOUT = RunStatus.FAILED, RunStatus.TIMEOUT
_CANCELED, _SKIPPED = RunStatus.CANCELED, RunStatus.SKIPPED

_SUCCEEDED = AttemptStatus.SUCCESS
_ATTEMPT = {
    Succeeded: _SUCCEEDED,
    Failed: AttemptStatus.FAILED,
    TimedOut: AttemptStatus.TIMEOUT,
    Canceled: AttemptStatus.CANCELED,
    Lost: AttemptStatus.LOST,
}
# A run that ends while it waits ends as its last attempt did; every other attempt was cut short.
_AS_LAST = {AttemptStatus.FAILED: _FAILED, AttemptStatus.TIMEOUT: _TIMEOUT}


def advance(snapshot: OccurrenceSnapshot, event: Event, now: datetime) -> Step:
    """Return what follows from the event: rows to write, attempts to start and to cancel, waits, the end.

    An event that does not concern the occurrence as it stands (an attempt that is not
    open, a wait that is over, anything after the end) changes nothing: the answer is a
    step without content whose `after` is the snapshot itself. Whatever was asked of it
    meanwhile, an occurrence whose tasks all succeeded is completed.
    """
    draft = _Draft(snapshot, now)
    if snapshot.status in ENDED or not _EVENTS[type(event)](draft, event):
        return Step(snapshot.number + 1, snapshot)
    if draft.end is None:
        _settle(draft)
    return _step(draft)


class _Draft:
    """A step in the making: the parts of the snapshot that an event can change, and what was decided so far."""

    # Not slotted: what most events leave alone is then read from here and never set.
    end: tuple[OccurrenceStatus, str | None] | None = None
    resume_at: datetime | None = None
    release: bool = False

    def __init__(self, before: OccurrenceSnapshot, now: datetime) -> None:
        self.before, self.now, self.rules = before, now, before.rules
        self.runs = list(before.runs)
        self.status, self.held, self.ready_at = before.status, before.held, before.ready_at
        self.started_at, self.claimed_at = before.started_at, before.claimed_at
        self.lost, self.cancel, self.expired, self.stop = before.lost, before.cancel, before.expired, before.stop
        # By place, since a task has one row at most.
        self.rows: dict[int, Row] = {}
        self.starts: list[Start] = []
        self.cancels: list[Cancel] = []
        self.waits: list[int] = []


# ------------------------------------------------------------------------------------------------------ the events


def _claimed(draft: _Draft, event: Claimed) -> bool:
    """Begin what is ready and what has waited long enough; keep the waits that are left."""
    if draft.status is OccurrenceStatus.QUEUED:
        return False
    draft.status, draft.held, draft.claimed_at = _IN_HAND, True, draft.now
    draft.started_at = draft.started_at or draft.now
    if draft.cancel is not None:
        _close_pending(draft)
    elif draft.before.number and not _ran_out_of_time(draft):
        for place in _waited_for_the_claim(draft):
            _open(draft, place)
        _open_waiting(draft, draft.now)
        draft.waits = [place for place, run in enumerate(draft.runs) if run.resume_at is not None]
    return True


def _attempt_ended(draft: _Draft, event: AttemptEnded) -> bool:
    """Record the attempt, then retry it, or let its end have its effect on the peers."""
    place = draft.rules.places[event.task]
    run, outcome = draft.runs[place], event.outcome
    if run.status is not _RUNNING or run.attempts != event.number:
        return False
    if isinstance(outcome, Succeeded):
        _ended(draft, place, _SUCCESS, _SUCCEEDED, None, outcome)
    elif draft.cancel is not None or draft.expired or run.because_of is not None:
        _ended(draft, place, _CANCELED, _ATTEMPT[type(outcome)], _error(draft, run, outcome))
    elif draft.stop is _STOP or draft.stop is _CUT:
        _cut(draft, place, outcome)
    elif isinstance(outcome, (Failed, TimedOut)):
        _failed(draft, place, outcome)
    elif isinstance(outcome, Lost) and _may_be_lost(draft):
        draft.lost += 1
        _again(draft, place, AttemptStatus.LOST, outcome.error, None)
    else:
        # Canceled though nobody asked: never retried, and a failure to its peers.
        _failed_for_good(draft, place, _FAILED, _ATTEMPT[type(outcome)], _error(draft, run, outcome))
    return True


def _wait_over(draft: _Draft, event: WaitOver) -> bool:
    """Begin the attempt that waited, and every other whose wait is over by now."""
    until = draft.runs[draft.rules.places[event.task]].resume_at
    if until is None or not draft.held or draft.stop is not None:
        return False
    if not _ran_out_of_time(draft):
        draft.status = _IN_HAND
        _open_waiting(draft, max(until, draft.now))
    return True


def _lost(draft: _Draft, event: Lost) -> bool:
    """End what the silent owner had open as lost; then `on_orphan` says what becomes of the rest."""
    if draft.status is _AWAITING_RETRY and draft.held:
        # No attempt was running: nothing was lost, it only needs a new owner.
        draft.stop = _DRAIN
        return True
    if draft.status is not _IN_HAND:
        return False
    deadline = _deadline(draft)
    late = deadline is not None and draft.now >= deadline
    stale = draft.cancel is None and (late or not _may_be_lost(draft))
    _lose_open(draft, event, ended=stale or draft.cancel is not None)
    if stale:
        _close_pending(draft, as_last=True)
        draft.end = OccurrenceStatus.FAILED_STALE, EXECUTION_TIMEOUT if late else _stale_error(draft, event)
    elif draft.cancel is not None:
        _close_pending(draft)
    else:
        draft.lost += 1
        draft.stop = _CUT
    return True


def _cancel_requested(draft: _Draft, event: CancelRequested) -> bool:
    """Start nothing more and tell every open attempt to stop; what waits for a retry is canceled here."""
    if draft.cancel is not None or draft.expired:
        return False
    _tell_open(draft, event.reason)
    draft.cancel = event.reason
    _close_pending(draft)
    return True


def _deadline_passed(draft: _Draft, event: DeadlinePassed) -> bool:
    """Start nothing more and tell every open attempt to stop; what waits for a retry has failed."""
    started = draft.status is _IN_HAND or draft.status is _AWAITING_RETRY
    if not started or draft.cancel is not None or draft.expired:
        return False
    _expire(draft)
    return True


def _stopping(draft: _Draft, event: Stopping) -> bool:
    """Start nothing more on this node; when nothing is open, what is left is given back."""
    stop = _DRAIN if event.drain else _STOP
    if not draft.held or draft.stop is stop or (draft.stop is not None and draft.stop is not _DRAIN):
        return False
    if stop is _STOP:
        _tell_open(draft, SHUTDOWN)
    draft.stop = stop
    return True


_EVENTS: dict[type[Event], Callable[[_Draft, Any], bool]] = {
    Claimed: _claimed,
    AttemptEnded: _attempt_ended,
    WaitOver: _wait_over,
    Lost: _lost,
    CancelRequested: _cancel_requested,
    DeadlinePassed: _deadline_passed,
    Stopping: _stopping,
}


# ------------------------------------------------------------------------------------------------- one run's moves


def _open(draft: _Draft, place: int, *, written: bool = False) -> None:
    """Begin the next attempt; one that does not follow from what is stored is written as a row of its own."""
    run, task, now = draft.runs[place], draft.rules.tasks[place], draft.now
    number = run.attempts + 1
    opened = RunState(
        _RUNNING, number, run.retries, run.last, None, run.started_at or now, now, None, run.error, None, run.waits
    )
    draft.runs[place] = opened
    draft.starts.append(Start(task.name, number, None if task.timeout is None else now + task.timeout))
    if written:
        draft.rows[place] = Row(task.name, number, AttemptStatus.RUNNING, now, None, None, opened)


def _open_waiting(draft: _Draft, through: datetime) -> None:
    for place, run in enumerate(draft.runs):
        if run.resume_at is not None and run.resume_at <= through:
            _open(draft, place, written=True)


def _ended(
    draft: _Draft,
    place: int,
    status: RunStatus,
    attempt: AttemptStatus,
    error: str | None,
    succeeded: Succeeded | None = None,
    *,
    out_of_time: bool = False,
) -> None:
    """The open attempt has ended, and its run with it."""
    run, now = draft.runs[place], draft.now
    result = None if succeeded is None else succeeded.result
    draft.runs[place] = over = RunState(
        status,
        run.attempts,
        run.retries,
        attempt,
        None,
        run.started_at,
        None,
        now,
        error,
        result,
        run.waits,
        run.because_of,
        out_of_time,
    )
    name = draft.rules.tasks[place].name
    draft.rows[place] = Row(name, run.attempts, attempt, run.attempt_started_at, now, error, over)


def _again(
    draft: _Draft,
    place: int,
    attempt: AttemptStatus,
    error: str | None,
    resume_at: datetime | None,
    wait: timedelta | None = None,
) -> None:
    """The open attempt has ended, and its run will get another one; only one after a `wait` counts as a retry."""
    run = draft.runs[place]
    waits = run.waits if wait is None else (*run.waits, wait)[-WAITS_KEPT:]
    retries = run.retries + (wait is not None)
    draft.runs[place] = waiting = RunState(
        _PENDING, run.attempts, retries, attempt, resume_at, run.started_at, None, None, error, None, waits
    )
    name = draft.rules.tasks[place].name
    draft.rows[place] = Row(name, run.attempts, attempt, run.attempt_started_at, draft.now, error, waiting)


def _unopened(draft: _Draft, place: int, run: RunState) -> None:
    """Write a run that changed between two attempts, or without any."""
    draft.runs[place] = run
    row = draft.rows.get(place)
    if row is None:
        draft.rows[place] = Row(draft.rules.tasks[place].name, 0, None, None, None, run.error, run)
    else:
        draft.rows[place] = Row(row.task, row.number, row.attempt, row.started_at, row.ended_at, row.error, run)


def _close(draft: _Draft, place: int, status: RunStatus, because_of: str | None = None) -> None:
    """End a run that has no attempt open."""
    run = draft.runs[place]
    _unopened(
        draft,
        place,
        RunState(
            status,
            run.attempts,
            run.retries,
            run.last,
            None,
            run.started_at,
            None,
            draft.now,
            run.error,
            None,
            run.waits,
            because_of,
            draft.expired and status in _AS_LAST.values(),
        ),
    )


def _close_pending(draft: _Draft, *, as_last: bool = False) -> None:
    """End all that has no attempt open: what never began is skipped, the rest canceled or as its last attempt was."""
    for place, run in enumerate(draft.runs):
        if run.status is _PENDING:
            _close(draft, place, _unfinished(run, as_last))


def _unfinished(run: RunState, as_last: bool) -> RunStatus:
    if not run.attempts:
        return _SKIPPED
    return _AS_LAST.get(run.last, _CANCELED) if as_last and run.last is not None else _CANCELED


# ----------------------------------------------------------------------------------------------- failure and its reach


def _failed(draft: _Draft, place: int, outcome: Failed | TimedOut) -> None:
    """Plan a retry if there is one left and time for it; else the run has failed for good."""
    run, task = draft.runs[place], draft.rules.tasks[place]
    attempt, status = _ATTEMPT[type(outcome)], _TIMEOUT if isinstance(outcome, TimedOut) else _FAILED
    wait = None
    if task.retry is not None:
        wait = next_wait(task.retry, run.retries, outcome, draft.before.id, task.id, run.attempts + 1)
    if wait is None:
        _failed_for_good(draft, place, status, attempt, outcome.error)
        return
    resume_at, deadline = _behind_the_claim(draft, draft.now + wait), _deadline(draft)
    if deadline is not None and resume_at >= deadline:
        _failed_for_good(draft, place, status, attempt, outcome.error, out_of_time=True)
        return
    _again(draft, place, attempt, outcome.error, resume_at, wait)
    draft.waits.append(place)


def _behind_the_claim(draft: _Draft, moment: datetime) -> datetime:
    """Return the moment, or the first after `ready_at`: an earlier wait would seem to have ended with the claim."""
    return moment if draft.ready_at is None or moment > draft.ready_at else draft.ready_at + _MOMENT


def _failed_for_good(
    draft: _Draft,
    place: int,
    status: RunStatus,
    attempt: AttemptStatus,
    error: str | None,
    *,
    out_of_time: bool = False,
) -> None:
    """End the run; unless its own strategy is continue, so do all peers whose strategy is not."""
    _ended(draft, place, status, attempt, error, out_of_time=out_of_time)
    failed = draft.rules.tasks[place]
    if failed.continues:
        return
    text = FAIL_FAST.format(name=failed.name)
    for peer, run in enumerate(draft.runs):
        if draft.rules.tasks[peer].continues:
            continue
        if run.status is _PENDING:
            _close(draft, peer, _unfinished(run, as_last=False), failed.name)
        elif run.status is _RUNNING:
            _tell(draft, peer, text)
            draft.runs[peer] = _because_of(run, failed.name)


def _because_of(run: RunState, name: str) -> RunState:
    return RunState(
        run.status,
        run.attempts,
        run.retries,
        run.last,
        run.resume_at,
        run.started_at,
        run.attempt_started_at,
        run.ended_at,
        run.error,
        run.result,
        run.waits,
        name,
    )


def _tell(draft: _Draft, place: int, reason: str) -> None:
    """Tell an open attempt to stop, unless it was told before."""
    run = draft.runs[place]
    if run.because_of is None and draft.stop is not _STOP and draft.stop is not _CUT:
        draft.cancels.append(Cancel(draft.rules.tasks[place].name, run.attempts, reason))


def _tell_open(draft: _Draft, reason: str) -> None:
    for place, run in enumerate(draft.runs):
        if run.status is _RUNNING:
            _tell(draft, place, reason)


def _error(draft: _Draft, run: RunState, outcome: Failed | TimedOut | Canceled | Lost) -> str:
    """Return what is told of an attempt that did not succeed; a canceled one says why it was told to stop."""
    if not isinstance(outcome, Canceled):
        return outcome.error
    if run.because_of is not None:
        return FAIL_FAST.format(name=run.because_of)
    if draft.cancel is not None:
        return draft.cancel
    return EXECUTION_TIMEOUT if draft.expired else outcome.reason


# -------------------------------------------------------------------------------------------- deadline, stop and loss


def _deadline(draft: _Draft) -> datetime | None:
    timeout = draft.rules.execution_timeout
    return None if timeout is None or draft.started_at is None else draft.started_at + timeout


def _ran_out_of_time(draft: _Draft) -> bool:
    """Tell whether the deadline has passed; what is left of the occurrence is then ended."""
    timeout, started_at = draft.rules.execution_timeout, draft.started_at
    if timeout is None or started_at is None or draft.now < started_at + timeout or draft.cancel is not None:
        return draft.expired
    if not draft.expired:
        _expire(draft)
    return True


def _expire(draft: _Draft) -> None:
    _tell_open(draft, EXECUTION_TIMEOUT)
    draft.expired = True
    _close_pending(draft, as_last=True)


def _cut(draft: _Draft, place: int, outcome: Failed | TimedOut | Canceled | Lost) -> None:
    """A stopping node ended this attempt: `on_orphan` says whether another node tries again."""
    attempt = _ATTEMPT[type(outcome)]
    error = SHUTDOWN if isinstance(outcome, Canceled) else outcome.error
    if draft.rules.on_orphan is OnOrphan.FAIL:
        _ended(draft, place, _CANCELED, attempt, error)
        draft.cancel = SHUTDOWN
        _close_pending(draft)
    else:
        _again(draft, place, attempt, error, _behind_the_claim(draft, draft.now))
        draft.stop = _CUT


def _may_be_lost(draft: _Draft) -> bool:
    """Tell whether the definition wants to go on after one more loss."""
    most = draft.rules.max_lost
    return draft.rules.on_orphan is not OnOrphan.FAIL and (most is None or draft.lost < most)


def _stale_error(draft: _Draft, event: Lost) -> str:
    if draft.rules.on_orphan is OnOrphan.FAIL:
        return event.error
    return f"{event.error}, and it was lost {draft.lost} times before: max_lost allows no more"


def _lose_open(draft: _Draft, event: Lost, *, ended: bool) -> None:
    """End every open attempt as lost; its run too if `ended`, or if a peer's failure had already called it off."""
    for place in (*_ready(draft), *_waited_for_the_claim(draft)):
        run = draft.runs[place]
        began = _began(draft)
        draft.runs[place] = RunState(
            _RUNNING, run.attempts + 1, run.retries, run.last, None, run.started_at or began, began, waits=run.waits
        )
    # A restart begins anew, whatever had failed before.
    culprit = None if not ended and draft.rules.on_orphan is OnOrphan.RESTART else _culprit(draft)
    for place, run in enumerate(draft.runs):
        if run.status is not _RUNNING:
            continue
        if culprit is not None and not draft.rules.tasks[place].continues:
            draft.runs[place] = _because_of(run, culprit)
            _ended(draft, place, _CANCELED, AttemptStatus.LOST, event.error)
        elif ended:
            status = _CANCELED if draft.cancel is not None else _FAILED
            _ended(draft, place, status, AttemptStatus.LOST, event.error)
        else:
            _again(draft, place, AttemptStatus.LOST, event.error, None)


def _began(draft: _Draft) -> datetime:
    """When an attempt began that no row tells of: with the claim, or when the last run before it ended."""
    claimed_at = draft.claimed_at or draft.started_at or draft.now
    return max([claimed_at, *(run.ended_at for run in draft.runs if run.ended_at is not None)])


# ------------------------------------------------------------------------------------------------------- what follows


def _settle(draft: _Draft) -> None:
    """Start what is ready; if nothing is open, wait, give back or end."""
    if draft.rules.execution_timeout is not None:
        _ran_out_of_time(draft)
    if draft.rules.mode is _GRAPH:
        _skip_hopeless(draft)
    statuses = [run.status for run in draft.runs]
    ready = _ready(draft) if _PENDING in statuses else []
    if draft.stop is None and ready:
        for place in ready:
            _open(draft, place)
    elif _RUNNING in statuses:
        for place in ready:
            _hold_back(draft, place)
    elif _PENDING not in statuses:
        draft.end = _verdict(draft, statuses)
    elif draft.stop is None:
        _wait(draft)
    else:
        _give_back(draft, ready)


def _ready(draft: _Draft) -> list[int]:
    """Return the places of the tasks whose turn has come and that wait for nothing."""
    if draft.rules.mode is _SEQUENTIAL:
        for place, run in enumerate(draft.runs):
            if run.status is _PENDING:
                return [place] if run.resume_at is None else []
            if run.status is _RUNNING:
                return []
        return []
    ready = [place for place, run in enumerate(draft.runs) if run.status is _PENDING and run.resume_at is None]
    if draft.rules.mode is _GRAPH:
        return [place for place in ready if _may_follow(draft, place)]
    return ready


def _may_follow(draft: _Draft, place: int) -> bool:
    """In a graph: all it comes after ended well, or at all where its own strategy is continue."""
    task, runs = draft.rules.tasks[place], draft.runs
    if task.continues:
        return all(runs[peer].status is not _PENDING and runs[peer].status is not _RUNNING for peer in task.after)
    return all(runs[peer].status is _SUCCESS for peer in task.after)


def _skip_hopeless(draft: _Draft) -> None:
    """Skip what comes after something that did not end well, and what comes after that."""
    for place in draft.rules.walk:
        run, task = draft.runs[place], draft.rules.tasks[place]
        if run.status is not _PENDING or task.continues or run.resume_at is not None:
            continue
        for peer in task.after:
            before = draft.runs[peer]
            if before.status not in (_PENDING, _RUNNING, _SUCCESS):
                _close(draft, place, _unfinished(run, as_last=False), before.because_of or draft.rules.tasks[peer].name)
                break


def _waited_for_the_claim(draft: _Draft) -> list[int]:
    """Return the places of the runs whose wait was over at `ready_at`: the claim itself begins their attempts."""
    ready_at = draft.ready_at
    waits = [(place, run.resume_at) for place, run in enumerate(draft.runs) if run.resume_at is not None]
    return [place for place, until in waits if ready_at is not None and until <= ready_at]


def _wait(draft: _Draft) -> None:
    """Only retries are left: the owner keeps a short wait and gives up its place for a long one."""
    until = _earliest(draft)
    draft.status, draft.ready_at = _AWAITING_RETRY, until
    if until - draft.now > KEPT_WAIT:
        draft.held, draft.resume_at = False, until


def _hold_back(draft: _Draft, place: int) -> None:
    """While a stopping node still has attempts open, what has become ready must not seem to have begun."""
    run, until = draft.runs[place], _behind_the_claim(draft, draft.now)
    held = RunState(
        _PENDING, run.attempts, run.retries, run.last, until, run.started_at, error=run.error, waits=run.waits
    )
    _unopened(draft, place, held)


def _give_back(draft: _Draft, ready: list[int]) -> None:
    """Nothing is open and this node does no more: whoever is next goes on, at once or when a wait is over."""
    if draft.stop is _CUT and draft.rules.on_orphan is OnOrphan.RESTART:
        for place, run in enumerate(draft.runs):
            fresh = RunState(attempts=run.attempts, started_at=run.started_at, waits=run.waits)
            if run != fresh:
                _unopened(draft, place, fresh)
    draft.held = False
    due = [run.resume_at for run in draft.runs if run.resume_at is not None and run.resume_at <= draft.now + _MOMENT]
    # What an owner merely waited for stays parked: it was never this node's to hold back.
    if draft.stop is _CUT or ready or (due and draft.before.status is _IN_HAND):
        draft.status, draft.ready_at, draft.release = OccurrenceStatus.PENDING, max([draft.now, *due]), True
    else:
        draft.status, draft.ready_at = _AWAITING_RETRY, _earliest(draft)
        draft.resume_at = draft.ready_at


def _earliest(draft: _Draft) -> datetime:
    return min(run.resume_at for run in draft.runs if run.resume_at is not None)


def _culprit(draft: _Draft) -> str | None:
    """Return the task whose failure for good called the others off; one that only ran out of time comes last."""
    failed = [
        (run.out_of_time, place)
        for place, run in enumerate(draft.runs)
        if (run.status is _FAILED or run.status is _TIMEOUT) and not draft.rules.tasks[place].continues
    ]
    return draft.rules.tasks[min(failed)[1]].name if failed else None


def _verdict(draft: _Draft, statuses: list[RunStatus]) -> tuple[OccurrenceStatus, str | None]:
    """Return the final status and why: every run has ended."""
    if statuses.count(_SUCCESS) == len(statuses):
        return OccurrenceStatus.COMPLETED, None
    culprit = _culprit(draft)
    if culprit is not None and not draft.runs[draft.rules.places[culprit]].out_of_time:
        return OccurrenceStatus.FAILED, FAIL_FAST.format(name=culprit)
    if draft.expired or any(run.out_of_time for run in draft.runs):
        return OccurrenceStatus.FAILED, EXECUTION_TIMEOUT
    if draft.cancel is not None:
        return OccurrenceStatus.CANCELED, draft.cancel
    failed = statuses.count(_FAILED) + statuses.count(_TIMEOUT)
    if failed:
        return OccurrenceStatus.COMPLETED_WITH_ERRORS, f"{failed} of {len(statuses)} tasks failed"
    return OccurrenceStatus.COMPLETED, None


def _step(draft: _Draft) -> Step:
    before, end = draft.before, draft.end
    writes = bool(draft.rows) or end is not None or draft.resume_at is not None or draft.release
    number = before.number + 1
    after = OccurrenceSnapshot(
        before.id,
        before.scheduled_for,
        draft.rules,
        tuple(draft.runs),
        draft.status if end is None else end[0],
        number if writes else before.number,
        draft.held and end is None,
        draft.ready_at,
        draft.started_at,
        draft.claimed_at,
        None if end is None else draft.now,
        None if end is None else end[1],
        draft.lost,
        draft.cancel,
        before.is_recovery_run,
        draft.expired,
        draft.stop if draft.held else None,
    )
    awaits = draft.status is _AWAITING_RETRY and end is None
    return Step(
        number,
        after,
        tuple(draft.rows.values()) if draft.rows else (),
        tuple(draft.starts) if draft.starts else (),
        tuple(draft.cancels) if draft.cancels else (),
        _kept_waits(draft) if draft.waits and after.held else (),
        None if end is None else End(end[0], end[1], after),
        draft.resume_at,
        draft.release,
        awaits and _is_superseded_by_next(draft),
    )


def _kept_waits(draft: _Draft) -> tuple[Wait, ...]:
    waiting = [(draft.rules.tasks[place].name, draft.runs[place]) for place in draft.waits]
    return tuple(Wait(name, run.attempts + 1, run.resume_at) for name, run in waiting if run.resume_at is not None)


def _is_superseded_by_next(draft: _Draft) -> bool:
    """Tell whether the next instant may end it: every retry it waits for says so."""
    waiting = [task.retry for task, run in zip(draft.rules.tasks, draft.runs, strict=True) if run.resume_at is not None]
    return all(retry is not None and retry.superseded_by_next for retry in waiting)
