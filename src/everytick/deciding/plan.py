"""plan: what becomes of every instant of one job after its watermark and through now.

First filters, then recovery, then the line. `plan_in_full` calls them in this order; they stand in
`candidates`, `recovery`, `newcomers`, `admission` and `spans`. A live tick, a restart, a week's
outage and a backfill all take this one way: an instant may be late, but no code is for late ones
alone. `plain_plans` only says the commonest plans sooner.
"""

from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from everytick.deciding.admission import Line
from everytick.deciding.candidates import Segment, segments_of
from everytick.deciding.newcomers import Newcomers, place_in_line, requested
from everytick.deciding.plain_plans import plain_plan
from everytick.deciding.plan_draft import PlanDraft, creation_of, runs_shown, still_ahead
from everytick.deciding.recovery import DueInstants, due
from everytick.deciding.rollout import ASKED_AGAIN, where_to
from everytick.deciding.spans import spans_of
from everytick.deciding.stopping import next_stop, stop_or_restart
from everytick.domain.backfills import BackfillStatus, Filling, OpenBackfill
from everytick.domain.decisions import Ending, Plan, RequestAnswer, Turned, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.schedule import waits_for_end
from everytick.domain.snapshots import PLAN_LIMIT, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.upcoming import (
    edition_in_force,
    editions_to_come,
    in_force,
    next_run,
    trial_of,
)

EDITIONS_KEPT = 8
"""Versions of a definition that may wait for the end of a pause. With more, a part of the pause is decided early."""


def plan(snapshot: JobSnapshot, now: datetime, limit: int = PLAN_LIMIT) -> Plan:
    """Decide every instant after the watermark and through `now`, and every open request.

    At most `limit` occurrences are created or released: if more are due, the watermark stops
    at the last instant decided and `wake_at` is now, so that the planner comes straight back.
    """
    return plain_plan(snapshot, now) or plan_in_full(snapshot, now, limit)


def plan_in_full(snapshot: JobSnapshot, now: datetime, limit: int = PLAN_LIMIT) -> Plan:
    """Decide with everything in view. The plan of a job on which others depend tells them, and its ends wake it."""
    decided = _decide(snapshot, now, limit)
    if not snapshot.is_needed:
        return decided
    # An occurrence that ended before it was marked as awaited did not wake the job. Plan once more.
    again = snapshot.busy_count and not snapshot.awaited
    return replace(decided, tells=True, awaits_ends=True, wake_at=now if again else decided.wake_at)


def _decide(snapshot: JobSnapshot, now: datetime, limit: int) -> Plan:
    """Return the plan, and whether a version comes into force with it."""
    if snapshot.retire_at is not None:
        return _retired(snapshot, now, snapshot.retire_at, limit)
    decided = _plan_in_service(snapshot, now, limit)
    if len(snapshot.editions) == 1:
        return decided
    turned = _with_turns(snapshot, decided, now)
    return turned if trial_of(snapshot.editions) is None else _with_trial(snapshot, turned, now)


def _with_trial(snapshot: JobSnapshot, decided: Plan, now: datetime) -> Plan:
    """Return the plan with what a rollout comes to. While it lasts, ends wake the job."""
    verdict = decided.verdict or where_to(snapshot)
    # An occurrence that ended before it was marked as awaited did not wake the job. Plan once more.
    again = bool(snapshot.busy_count) and not snapshot.awaited
    looks = [now] if again else [] if verdict is None else [now + ASKED_AGAIN]
    wake_at = min(filter(None, [decided.wake_at, *looks]), default=None)
    return replace(decided, verdict=verdict, awaits_ends=True, wake_at=wake_at)


def _with_turns(snapshot: JobSnapshot, decided: Plan, now: datetime) -> Plan:
    """Return the plan that looks again when a version comes into force, and tells of one that has."""
    current = edition_in_force(snapshot.editions, now)
    # What waits for other jobs by one of two versions may not by the other.
    needs = current.job.settings.depends_on
    moments = [
        edition.in_force_after
        for edition in editions_to_come(snapshot.editions, now)
        if edition.has_waited or edition.job.settings.depends_on != needs
    ]
    wake_at = min(filter(None, [decided.wake_at, *moments]), default=None)
    if current is snapshot.editions[0] or not current.has_waited:
        return decided if wake_at == decided.wake_at else replace(decided, wake_at=wake_at)
    before = in_force(snapshot.editions, (current.in_force_after or now) - MICROSECOND)
    is_narrowed = before.settings.recovery != current.job.settings.recovery and snapshot.narrowed_at is None
    narrowed_at = current.in_force_after if is_narrowed and snapshot.waiting_count else None
    turned = Turned(current.job, narrowed_at)
    return replace(decided, wake_at=wake_at if narrowed_at is None else now, turned=turned)


def _plan_in_service(snapshot: JobSnapshot, now: datetime, limit: int) -> Plan:
    """Decide about a job in service; the order of these lines is the order of a decision."""
    job = in_force(snapshot.editions, now)
    if not job.settings.enabled:
        return _disabled(snapshot, job, now)
    paused = bool(snapshot.pauses) and any(pause.holds(now) for pause in snapshot.pauses)
    # The instants of a pause become one span when it ends: until then next to nothing of the schedule is decided.
    instants = _held(snapshot, now) if paused else due(snapshot, job, now)
    line = Line(snapshot, job, paused=paused)
    newcomers = Newcomers(snapshot, job, instants, now)
    if (restart := stop_or_restart(snapshot, job, now, line)) is not None:
        newcomers.asked.append(restart)
    if snapshot.narrowed_at is not None and not paused and not line.narrow(job, snapshot.narrowed_at, limit):
        return _narrowed(snapshot, now, line)
    if restart is not None:
        # Its place is kept free: a restart that is left to the next plan would stop what this plan lets in.
        limit -= 1
    if snapshot.busy and (newest := _newest(instants, line)) is not None:
        line.supersede_retries(newest)
    if line.depends_on:
        line.ask_others(snapshot, now)
        line.release_met(limit)
    else:
        line.release(limit)
    decided = PlanDraft(snapshot, job, instants, line, now, paused)
    decided.admit(newcomers, restart, limit - len(line.releases))
    return decided.plan()


def _newest(instants: DueInstants, line: Line) -> datetime | None:
    """The newest instant that shall run: one that is due, or one that came while another ran and stands in line."""
    newest = instants.newest_kept
    waiting = [occurrence.scheduled_for for occurrence in line.waiting if occurrence.cause is Cause.SCHEDULE]
    return max(filter(None, [newest, *waiting]), default=None) if waiting else newest


def _narrowed(snapshot: JobSnapshot, now: datetime, line: Line) -> Plan:
    """End what an edit of `recovery` left no reason for. No newcomer comes in before all of it has ended."""
    return Plan(
        snapshot.job_id,
        snapshot.revision,
        snapshot.woken,
        snapshot.watermark,
        now,
        endings=tuple(line.endings),
        cancels=tuple(line.cancels),
        cancels_before=line.cancels_before,
        cancels_because=line.cancels_because,
        next_run=next_run(snapshot, now),
        coming=runs_shown(snapshot, now),
    )


def _disabled(snapshot: JobSnapshot, job: Job, now: datetime) -> Plan:
    """Decide next to nothing. The job wakes when another definition is in force, or when something is to stop."""
    line = Line(snapshot, job, paused=False)
    stop_or_restart(snapshot, job, now, line)
    moments = [edition.in_force_after for edition in editions_to_come(snapshot.editions, now)]
    stop = next_stop(snapshot, job, now) if line.busy_count else None
    wake_at = min(filter(None, [stop, *moments]), default=None)
    held = _held(snapshot, now)
    watermark = held.segments[-1].through if held.segments else snapshot.watermark
    spans = tuple(spans_of(held, watermark))
    return Plan(
        snapshot.job_id,
        snapshot.revision,
        snapshot.woken,
        watermark,
        wake_at,
        cancels=tuple(line.cancels),
        spans=spans,
        cancels_before=line.cancels_before,
        cancels_because=line.cancels_because,
        next_run=next_run(snapshot, now),
        coming=runs_shown(snapshot, now),
        stopped_at=still_ahead(watermark, line.stopped_at),
    )


def _held(snapshot: JobSnapshot, now: datetime) -> DueInstants:
    """Return the past instants that cannot run, if the job has too many editions to keep.

    It begins at the watermark and ends before the first stretch of time whose instants may
    still run, as those of a pause that is caught up. Where something was asked by hand, or an
    instant may follow an end, nothing is decided early.
    """
    if len(snapshot.editions) < EDITIONS_KEPT or snapshot.reschedule is not None:
        return DueInstants([], {})
    idle = not snapshot.busy_count and not snapshot.waiting_count
    if any(min(adjustment.at, adjustment.to or adjustment.at) <= now for adjustment in snapshot.adjustments) or (
        not idle and any(waits_for_end(edition.job.schedule) for edition in snapshot.editions)
    ):
        return DueInstants([], {})
    return DueInstants(list(takewhile(_cannot_run, segments_of(snapshot, now, idle=idle))), {})


def _cannot_run(segment: Segment) -> bool:
    """Whether no instant of the segment can ever run."""
    last = segment.schedule.last_at(segment.through) if segment.hold is None else None
    return last is None or last <= segment.after


def _retired(snapshot: JobSnapshot, now: datetime, retire_at: datetime, limit: int) -> Plan:
    """Create nothing for a removed job. Once its time is over, cancel what no node runs, waits for a retry included.

    Runs that were asked for at a time are refused then too. Until then the job may be put back into service.
    A running occurrence finishes. If it comes to wait for a retry, its job is planned again.
    """
    is_over = now >= retire_at
    # Requests without a time come first: where one with a time is shown, no other is left out.
    answerable = [request for request in snapshot.requests if is_over or request.due_at is None]
    more_asked = len(answerable) > limit or (snapshot.more_requests and len(answerable) == len(snapshot.requests))
    job, answered = snapshot.editions[-1].job, answerable[:limit]
    refused = sorted(
        (requested(snapshot.job_id, job, request, (Why.REMOVED, "")) for request in answered), key=place_in_line
    )
    idle = [occurrence for occurrence in snapshot.busy if occurrence.status is not OccurrenceStatus.RUNNING]
    unclaimed = [*snapshot.waiting, *idle]
    ended = unclaimed[:limit] if is_over else []
    unseen = snapshot.busy_count + snapshot.waiting_count - len(snapshot.busy) - len(snapshot.waiting)
    more = (ended and len(unclaimed) + unseen > limit) or more_asked
    awaits_ends = is_over and snapshot.busy_count > len(idle)
    more = more or (awaits_ends and not snapshot.awaited) or (is_over and snapshot.more_backfills)
    return Plan(
        snapshot.job_id,
        snapshot.revision,
        snapshot.woken,
        snapshot.watermark,
        now if more else None if is_over else retire_at,
        creations=tuple(creation_of(job, newcomer, OccurrenceStatus.SKIPPED, now, Why.REMOVED) for newcomer in refused),
        endings=tuple(Ending(occurrence.id, OccurrenceStatus.CANCELED, Why.REMOVED) for occurrence in ended),
        answers=tuple(RequestAnswer(request.key, request.cause) for request in answered),
        awaits_ends=awaits_ends,
        coming=runs_shown(snapshot, now),
        filling=_given_up(snapshot.backfill) if snapshot.backfill is not None and is_over else None,
    )


def _given_up(backfill: OpenBackfill) -> Filling:
    """End the backfill of a removed job: it gets no more occurrences."""
    return Filling(
        backfill.order.key,
        backfill.after,
        backfill.through,
        backfill.pace,
        backfill.paced_at,
        backfill.filled_at,
        status=BackfillStatus.CANCELED,
    )
