"""`advance`: what follows from one event in the life of one occurrence.

Everything that happens inside an occurrence is decided here and nowhere else: order,
failure, retries, deadlines, cancel, lost owners, a stopping node, the final status. The
owner of the occurrence and the reaper both call it.

Which attempts begin follows from what is stored. A pending run without `resume_at` begins as
soon as its turn comes: by the claim, or by the step whose rows made it its turn. A run that
waited begins with a row of its own; if its wait was over at the `ready_at` of the claim, the
claim itself begins it. So a reaper that reads only the store knows exactly which attempts the
silent node had open.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from everytick.deciding.draft import Draft, unfinished
from everytick.deciding.plain_steps import plain_step
from everytick.deciding.retry import next_wait
from everytick.domain.durations import MICROSECOND
from everytick.domain.headlines import summary
from everytick.domain.outcome import (
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
    AttemptEnded,
    CancelRequested,
    Claimed,
    DeadlinePassed,
    LifeEvent,
    OccurrenceHeader,
    OccurrenceLife,
    Reattached,
    Released,
    RunState,
    Step,
    Stop,
    Stopping,
    WaitOver,
)
from everytick.domain.texts import EXECUTION_TIMEOUT, FAIL_FAST, SHUTDOWN

# Bound once: to look a member up in its class takes as long as to call a function.
_UNDER_WAY, _AWAITING_RETRY = OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY
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


def advance(header: OccurrenceHeader, life: OccurrenceLife, event: LifeEvent, now: datetime) -> Step:
    """Return what follows from the event: rows to write, attempts to start and to cancel, waits, the end.

    An event may not concern the occurrence as it stands: an attempt that is not open, a wait
    that is over, anything after the end. Then nothing changes, and the step has no content but
    `after`, which is the life itself. An occurrence whose tasks all succeeded is completed,
    also if a request to stop it came meanwhile.
    """
    return plain_step(header, life, event, now) or advance_in_full(header, life, event, now)


def advance_in_full(header: OccurrenceHeader, life: OccurrenceLife, event: LifeEvent, now: datetime) -> Step:
    """Decide with everything in view; `plain_step` only says the commonest answers sooner."""
    draft = Draft(header, life, now)
    if life.status in ENDED or not _EVENTS[type(event)](draft, event):
        return Step(life.number + 1, life)
    if draft.end is None and not draft.release:
        _settle(draft)
    return draft.step()


# ------------------------------------------------------------------------------------------------------ the events


def _claimed(draft: Draft, event: Claimed) -> bool:
    """Begin what is ready and what has waited long enough; keep the waits that are left."""
    if draft.status is OccurrenceStatus.QUEUED:
        return False
    draft.status, draft.is_owned, draft.claimed_at = _UNDER_WAY, True, draft.now
    draft.started_at = draft.started_at or draft.now
    if draft.cancel is not None:
        draft.close_pending()
    elif draft.before.number and not _ran_out_of_time(draft):
        for place in _waited_for_the_claim(draft):
            draft.open(place)
        draft.open_waiting(draft.now)
        draft.waits = [place for place, run in enumerate(draft.runs) if run.resume_at is not None]
    return True


def _released(draft: Draft, event: Released) -> bool:
    """Give the claim back as it was found; once an attempt has begun that is no longer possible."""
    if not draft.is_owned or draft.status is not _UNDER_WAY or any(run.status is _RUNNING for run in draft.runs):
        return False
    _restore(draft)
    return True


def _restore(draft: Draft) -> None:
    """Undo the claim. Its start was the occurrence's first start unless an attempt came before it."""
    draft.status, draft.is_owned, draft.release, draft.restores = draft.header.found, False, True, True
    if not any(run.attempts for run in draft.runs):
        draft.started_at = None


def _attempt_ended(draft: Draft, event: AttemptEnded) -> bool:
    """Record the end of the attempt. Then retry it, or stop and skip the peers that its end concerns."""
    place = draft.rules.places[event.task]
    run, outcome = draft.runs[place], event.outcome
    if run.status is not _RUNNING or run.attempts != event.number:
        return False
    if isinstance(outcome, Succeeded):
        draft.over(place, _SUCCESS, _SUCCEEDED, None, outcome.result)
    elif draft.expired and isinstance(outcome, TimedOut) and run.because_of is None:
        draft.over(place, _TIMEOUT, AttemptStatus.TIMEOUT, EXECUTION_TIMEOUT, out_of_time=True)
    elif draft.cancel is not None or draft.expired or run.because_of is not None:
        draft.over(place, _CANCELED, _ATTEMPT[type(outcome)], _error(draft, run, outcome))
    elif draft.stop is _STOP or draft.stop is _CUT:
        _cut(draft, place, outcome)
    elif isinstance(outcome, (Failed, TimedOut)):
        _failed(draft, place, outcome)
    elif isinstance(outcome, Lost) and _may_be_lost(draft):
        draft.lost += 1
        draft.again(place, AttemptStatus.LOST, outcome.error)
    else:
        # Lost once too often, or canceled without a request: it is not retried, and its peers count it as a failure.
        _failed_for_good(draft, place, _FAILED, _ATTEMPT[type(outcome)], _error(draft, run, outcome))
    return True


def _wait_over(draft: Draft, event: WaitOver) -> bool:
    """Begin the attempt that waited, and every other whose wait is over by now."""
    until = draft.runs[draft.rules.places[event.task]].resume_at
    if until is None or not draft.is_owned or draft.stop is not None:
        return False
    if not _ran_out_of_time(draft):
        draft.status = _UNDER_WAY
        draft.open_waiting(max(until, draft.now))
    return True


def _lost(draft: Draft, event: Lost) -> bool:
    """End the open attempts of the silent owner as lost; then `on_orphan` says what becomes of the rest."""
    if draft.status is _AWAITING_RETRY and draft.is_owned:
        # No attempt was running: nothing was lost, it only needs a new owner.
        draft.stop = _DRAIN
        return True
    if draft.status is not _UNDER_WAY:
        return False
    until = draft.deadline
    late = until is not None and draft.now >= until
    stale = draft.cancel is None and (late or not _may_be_lost(draft))
    _lose_open(draft, event, ended=stale or draft.cancel is not None)
    if stale:
        draft.close_pending(as_last=True)
        draft.end = OccurrenceStatus.FAILED_STALE, EXECUTION_TIMEOUT if late else _stale_error(draft, event)
    elif draft.cancel is not None:
        draft.close_pending()
    else:
        draft.lost += 1
        draft.stop = _CUT
    return True


def _reattached(draft: Draft, event: Reattached) -> bool:
    """Go on with the attempts that engines carry out. Every other open attempt is lost, each by itself."""
    if draft.status is not _UNDER_WAY:
        return False
    for place in (*_ready(draft), *_waited_for_the_claim(draft)):
        draft.open_unwritten(place, _began(draft))
    # The next beat brings the request to stop again. Then an attempt is open that can be told.
    draft.is_owned, draft.cancel = True, None
    running = [place for place, run in enumerate(draft.runs) if run.status is _RUNNING]
    lost = [place for place in running if draft.rules.tasks[place].name not in event.tasks]
    for place in running:
        if place not in lost:
            draft.reopen(place)
    for place in lost:
        task, number = draft.rules.tasks[place].name, draft.runs[place].attempts
        _attempt_ended(draft, AttemptEnded(task, number, Lost(event.error)))
    return True


def _cancel_requested(draft: Draft, event: CancelRequested) -> bool:
    """Start nothing more and tell every open attempt to stop; what waits for a retry is canceled here."""
    if draft.cancel is not None or draft.expired:
        return False
    draft.tell_open(event.reason)
    draft.cancel = event.reason
    draft.close_pending()
    if not _has_begun(draft):
        # No node owns it. It ends as canceled, also if runs of an earlier owner have failed.
        draft.end = OccurrenceStatus.CANCELED, event.reason
    return True


def _deadline_passed(draft: Draft, event: DeadlinePassed) -> bool:
    """Start nothing more and tell every open attempt to stop; what waits for a retry has failed."""
    if not _has_begun(draft) or draft.cancel is not None or draft.expired:
        return False
    _expire(draft)
    return True


def _has_begun(draft: Draft) -> bool:
    return draft.status is _UNDER_WAY or draft.status is _AWAITING_RETRY


def _stopping(draft: Draft, event: Stopping) -> bool:
    """Start nothing more on this node; when nothing is open, what is left is given back."""
    stop = _DRAIN if event.drain else _STOP
    if not draft.is_owned or draft.stop is stop or (draft.stop is not None and draft.stop is not _DRAIN):
        return False
    if stop is _STOP:
        draft.tell_open(SHUTDOWN)
    draft.stop = stop
    return True


_EVENTS: dict[type[LifeEvent], Callable[[Draft, Any], bool]] = {
    Claimed: _claimed,
    Released: _released,
    AttemptEnded: _attempt_ended,
    WaitOver: _wait_over,
    Lost: _lost,
    Reattached: _reattached,
    CancelRequested: _cancel_requested,
    DeadlinePassed: _deadline_passed,
    Stopping: _stopping,
}


# ------------------------------------------------------------------------------------------------ failures and peers


def _failed(draft: Draft, place: int, outcome: Failed | TimedOut) -> None:
    """Plan a retry if there is one left and time for it; else the run has failed for good."""
    run, task = draft.runs[place], draft.rules.tasks[place]
    attempt, status = _ATTEMPT[type(outcome)], _TIMEOUT if isinstance(outcome, TimedOut) else _FAILED
    wait = None
    if task.retry is not None:
        wait = next_wait(task.retry, run.retries, outcome, draft.header.id, task.id, run.attempts + 1)
    if wait is None:
        _failed_for_good(draft, place, status, attempt, outcome.error)
        return
    resume_at, until = _behind_the_claim(draft, draft.now + wait), draft.deadline
    if until is not None and resume_at >= until:
        _failed_for_good(draft, place, status, attempt, outcome.error, out_of_time=True)
        return
    draft.again(place, attempt, outcome.error, resume_at, wait)
    draft.waits.append(place)


def _behind_the_claim(draft: Draft, moment: datetime) -> datetime:
    """Return the moment, or the first after `ready_at`: an earlier wait would count as over at the claim."""
    return moment if draft.ready_at is None or moment > draft.ready_at else draft.ready_at + MICROSECOND


def _failed_for_good(
    draft: Draft, place: int, status: RunStatus, attempt: AttemptStatus, error: str, *, out_of_time: bool = False
) -> None:
    """End the run; unless its own strategy is continue, so do all peers whose strategy is not."""
    draft.over(place, status, attempt, error, out_of_time=out_of_time)
    failed = draft.rules.tasks[place]
    if failed.continues:
        return
    text = FAIL_FAST.format(name=failed.name)
    for peer, run in enumerate(draft.runs):
        if draft.rules.tasks[peer].continues:
            continue
        if run.status is _PENDING:
            draft.close(peer, unfinished(run), failed.name)
        elif run.status is _RUNNING:
            draft.tell(peer, text)
            draft.call_off(peer, failed.name)


def _error(draft: Draft, run: RunState, outcome: Failed | TimedOut | Canceled | Lost) -> str:
    """Return what is told of an attempt that did not succeed; a canceled one says why it was told to stop."""
    if not isinstance(outcome, Canceled):
        return outcome.error
    if run.because_of is not None:
        return FAIL_FAST.format(name=run.because_of)
    if draft.cancel is not None:
        return draft.cancel
    return EXECUTION_TIMEOUT if draft.expired else outcome.reason


# -------------------------------------------------------------------------------------------- deadline, stop and loss


def _ran_out_of_time(draft: Draft) -> bool:
    """Tell whether the deadline has passed; what is left of the occurrence is then ended."""
    until = draft.deadline
    if until is None or draft.now < until or draft.cancel is not None:
        return draft.expired
    if not draft.expired:
        _expire(draft)
    return True


def _expire(draft: Draft) -> None:
    draft.tell_open(EXECUTION_TIMEOUT)
    draft.expired = True
    draft.close_pending(as_last=True)


def _cut(draft: Draft, place: int, outcome: Failed | TimedOut | Canceled | Lost) -> None:
    """A stopping node ended this attempt: `on_orphan` says whether another node tries again."""
    attempt = _ATTEMPT[type(outcome)]
    error = SHUTDOWN if isinstance(outcome, Canceled) else outcome.error
    if draft.rules.on_orphan is OnOrphan.FAIL:
        draft.over(place, _CANCELED, attempt, error)
        draft.cancel = SHUTDOWN
        draft.close_pending()
    else:
        draft.again(place, attempt, error, _behind_the_claim(draft, draft.now))
        draft.stop = _CUT


def _may_be_lost(draft: Draft) -> bool:
    """Whether the definition allows one more loss."""
    most = draft.rules.max_lost
    return draft.rules.on_orphan is not OnOrphan.FAIL and (most is None or draft.lost < most)


def _stale_error(draft: Draft, event: Lost) -> str:
    if draft.rules.on_orphan is OnOrphan.FAIL:
        return event.error
    return f"{event.error}, and it was lost {draft.lost} times before: max_lost allows no more"


def _lose_open(draft: Draft, event: Lost, *, ended: bool) -> None:
    """End every open attempt as lost; its run too if `ended`, or if a peer's failure had already called it off."""
    for place in (*_ready(draft), *_waited_for_the_claim(draft)):
        draft.open_unwritten(place, _began(draft))
    # A restart runs every task again, also after a failure.
    culprit = None if not ended and draft.rules.on_orphan is OnOrphan.RESTART else _culprit(draft)
    for place, run in enumerate(draft.runs):
        if run.status is not _RUNNING:
            continue
        if culprit is not None and not draft.rules.tasks[place].continues:
            draft.call_off(place, culprit)
            draft.over(place, _CANCELED, AttemptStatus.LOST, event.error)
        elif ended:
            status = _CANCELED if draft.cancel is not None else _FAILED
            draft.over(place, status, AttemptStatus.LOST, event.error)
        else:
            draft.again(place, AttemptStatus.LOST, event.error)


def _began(draft: Draft) -> datetime:
    """When an attempt began that no row tells of: with the claim, or when the last run before it ended."""
    claimed_at = draft.claimed_at or draft.started_at or draft.now
    return max([claimed_at, *(run.ended_at for run in draft.runs if run.ended_at is not None)])


# ------------------------------------------------------------------------------------------------------- what follows


def _settle(draft: Draft) -> None:
    """Start what is ready; if nothing is open, wait, give back or end."""
    if draft.rules.execution_timeout is not None:
        _ran_out_of_time(draft)
    if draft.rules.mode is _GRAPH:
        _skip_hopeless(draft)
    statuses = [run.status for run in draft.runs]
    ready = _ready(draft) if _PENDING in statuses else []
    if draft.stop is None and ready:
        for place in ready:
            draft.open(place)
    elif _RUNNING in statuses:
        # A task is ready here only on a stopping node. Without a wait a reaper would take it as begun.
        for place in ready:
            draft.hold_back(place, _behind_the_claim(draft, draft.now))
    elif _PENDING not in statuses:
        draft.end = _verdict(draft, statuses)
    elif draft.stop is None:
        _wait(draft)
    else:
        _give_back(draft, ready)


def _ready(draft: Draft) -> list[int]:
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


def _may_follow(draft: Draft, place: int) -> bool:
    """Whether a task of a graph may start: all it comes after succeeded, or ended if its own strategy is continue."""
    task, runs = draft.rules.tasks[place], draft.runs
    if task.continues:
        return all(runs[peer].status is not _PENDING and runs[peer].status is not _RUNNING for peer in task.after)
    return all(runs[peer].status is _SUCCESS for peer in task.after)


def _skip_hopeless(draft: Draft) -> None:
    """Skip every task that comes after one that did not end well, directly or not."""
    for place in draft.rules.walk:
        run, task = draft.runs[place], draft.rules.tasks[place]
        if run.status is not _PENDING or task.continues or run.resume_at is not None:
            continue
        for peer in task.after:
            before = draft.runs[peer]
            if before.status not in (_PENDING, _RUNNING, _SUCCESS):
                draft.close(place, _SKIPPED, before.because_of or draft.rules.tasks[peer].name)
                break


def _waited_for_the_claim(draft: Draft) -> list[int]:
    """Return the places of the runs whose wait was over at `ready_at`: the claim itself begins their attempts."""
    ready_at = draft.ready_at
    waits = [(place, run.resume_at) for place, run in enumerate(draft.runs) if run.resume_at is not None]
    return [place for place, until in waits if ready_at is not None and until <= ready_at]


def _wait(draft: Draft) -> None:
    """Wait for retries: the owner keeps a short wait, and gives the occurrence up for a long one.

    It keeps no wait that the next instant may end, since a newer occurrence is planned first. Nor does it keep one that
    holds a place of a limit: another occurrence may take that place.
    """
    until = _earliest(draft)
    draft.status, draft.ready_at = _AWAITING_RETRY, until
    if until - draft.now > KEPT_WAIT or draft.header.holds_place or draft.is_superseded_by_next():
        draft.is_owned, draft.resume_at = False, until


def _give_back(draft: Draft, ready: list[int]) -> None:
    """Give the occurrence back, since nothing is open: another node goes on, at once or when a wait is over."""
    if not any(run.attempts for run in draft.runs):
        _restore(draft)
        return
    if draft.stop is _CUT and draft.rules.on_orphan is OnOrphan.RESTART:
        for place in range(len(draft.runs)):
            draft.reset(place)
    draft.is_owned = False
    due = [
        run.resume_at for run in draft.runs if run.resume_at is not None and run.resume_at <= draft.now + MICROSECOND
    ]
    # A retry that this node only waited for keeps its time; another node claims it then.
    if draft.stop is _CUT or ready or (due and draft.before.status is _UNDER_WAY):
        draft.status, draft.ready_at, draft.release = OccurrenceStatus.PENDING, max([draft.now, *due]), True
    else:
        draft.status, draft.ready_at = _AWAITING_RETRY, _earliest(draft)
        draft.resume_at = draft.ready_at


def _earliest(draft: Draft) -> datetime:
    return min(run.resume_at for run in draft.runs if run.resume_at is not None)


def _culprit(draft: Draft) -> str | None:
    """Return the task whose failure for good called the others off; one that only ran out of time comes last."""
    failed = [
        (run.out_of_time, place)
        for place, run in enumerate(draft.runs)
        if (run.status is _FAILED or run.status is _TIMEOUT) and not draft.rules.tasks[place].continues
    ]
    return draft.rules.tasks[min(failed)[1]].name if failed else None


def _verdict(draft: Draft, statuses: list[RunStatus]) -> tuple[OccurrenceStatus, str | None]:
    """Return the final status and why: every run has ended."""
    if statuses.count(_SUCCESS) == len(statuses):
        return OccurrenceStatus.COMPLETED, None
    culprit = _culprit(draft)
    if culprit is not None and not draft.runs[draft.rules.places[culprit]].out_of_time:
        return OccurrenceStatus.FAILED, _failure(draft, culprit)
    if draft.expired or any(run.out_of_time for run in draft.runs):
        return OccurrenceStatus.FAILED, EXECUTION_TIMEOUT
    if draft.cancel is not None:
        return OccurrenceStatus.CANCELED, draft.cancel
    if _FAILED in statuses or _TIMEOUT in statuses:
        return OccurrenceStatus.COMPLETED_WITH_ERRORS, _failures(draft)
    return OccurrenceStatus.COMPLETED, None


def _failure(draft: Draft, culprit: str) -> str:
    """Return the error of the task that failed the occurrence, and whether its failure stopped other tasks."""
    place = draft.rules.places[culprit]
    run = draft.runs[place]
    error = summary(run.error, run.attempts, draft.rules.tasks[place].timeout)
    if any(peer.because_of == culprit for peer in draft.runs):
        return f"{FAIL_FAST.format(name=culprit)}: {error}"
    return error if len(draft.runs) == 1 else f"task {culprit} failed: {error}"


def _failures(draft: Draft) -> str:
    """Return how many tasks failed, and the error of the first."""
    pairs = zip(draft.rules.tasks, draft.runs, strict=True)
    failed = [(task, run) for task, run in pairs if run.status is _FAILED or run.status is _TIMEOUT]
    task, first = failed[0]
    error = summary(first.error, first.attempts, task.timeout)
    if len(draft.runs) == 1:
        return error
    which = "" if len(failed) == 1 else "the first was "
    return f"{len(failed)} of {len(draft.runs)} tasks failed: {which}{task.name}: {error}"
