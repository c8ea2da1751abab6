"""Which instants of a job are due, and what holds some of them back.

Time since the watermark is cut into segments, each under one definition and held back as a
whole or not at all. Nothing here walks through an outage: instants come from the newest to the
oldest, and the caller stops when it has enough.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from everytick.domain.decisions import Refusal, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import Adjustment, AdjustmentKind, JobSnapshot, Missed
from everytick.domain.upcoming import bound_schedule, in_force, rescheduled_to
from everytick.domain.values import value


@value
class Segment:
    """A span of time under one definition, with what holds its instants back, if anything does."""

    after: datetime
    through: datetime
    version: int
    schedule: Schedule
    hold: Refusal | None = None


@value
class Candidate:
    """An instant that may become an occurrence.

    `named_for` is the instant its id is made of and `before` the one before that: they differ
    from `instant` if it was moved. A candidate `by_hand` is no instant of the schedule. One with
    a `refusal` does not run. One that others were compressed into stands for `(before, covers_through]`.
    """

    instant: datetime
    named_for: datetime
    before: datetime | None
    version: int
    adjustment: Adjustment | None = None
    by_hand: bool = False
    refusal: Refusal | None = None
    covers_through: datetime | None = None


def segments_of(snapshot: JobSnapshot, now: datetime, *, idle: bool) -> list[Segment]:
    """Cut the time since the watermark wherever a definition, a pause or a reschedule begins or ends."""
    after, editions = snapshot.watermark, snapshot.editions
    if after >= now:
        return []
    if len(editions) == 1 and not snapshot.pauses and snapshot.reschedule is None:
        job = editions[0].job
        return [Segment(after, now, job.version, bound_schedule(snapshot, job, after, idle=idle))]
    edges = {edition.in_force_after for edition in editions}
    edges |= {edge for pause in snapshot.pauses for edge in (pause.since, pause.until)}
    newest = _newest_held(snapshot, now, idle)
    edges |= {edge - MICROSECOND for edge in newest.values()}
    if snapshot.reschedule is not None:
        edges |= {snapshot.reschedule.made_at, snapshot.reschedule.to - MICROSECOND}
    inside = sorted(edge for edge in edges if edge is not None and after < edge < now)
    cuts = zip([after, *inside], [*inside, now], strict=True)
    return [_segment(snapshot, newest, start, end, idle) for start, end in cuts]


def _segment(
    snapshot: JobSnapshot, newest: Mapping[datetime, datetime], after: datetime, through: datetime, idle: bool
) -> Segment:
    job = in_force(snapshot.editions, after)
    schedule = bound_schedule(snapshot, job, snapshot.watermark, idle=idle)
    hold = _hold(snapshot, job, after, through) or _left_over(snapshot, newest, after, through)
    return Segment(after, through, job.version, schedule, hold)


def _newest_held(snapshot: JobSnapshot, now: datetime, idle: bool) -> dict[datetime, datetime]:
    """Return the newest instant that each past pause held, by the pause's end, where only the last one runs."""
    newest_held = {}
    for pause in snapshot.pauses:
        if pause.missed is Missed.LAST and not pause.holds(now):
            assert pause.until is not None, "a pause that is over has an end"
            newest = _newest_between(snapshot, max(pause.since, snapshot.watermark), pause.until, idle)
            if newest is not None:
                newest_held[pause.until] = newest
    return newest_held


def _newest_between(snapshot: JobSnapshot, after: datetime, through: datetime, idle: bool) -> datetime | None:
    """Return the newest time in `(after, through]` at which the job would run without a pause."""
    moved, away = snapshot.reschedule, {adjustment.at for adjustment in snapshot.adjustments if adjustment.vacates}
    targets = [
        adjustment.to
        for adjustment in snapshot.adjustments
        if adjustment.to is not None and adjustment.vacates and not adjustment.done
    ]
    targets += rescheduled_to(snapshot)
    newest = max((target for target in targets if after < target <= through), default=None)
    edges = [edition.in_force_after for edition in snapshot.editions]
    edges += [] if moved is None else [moved.made_at, moved.to - MICROSECOND]
    while through > after:
        begin = max((edge for edge in edges if edge is not None and after < edge < through), default=after)
        job = in_force(snapshot.editions, begin)
        schedule = bound_schedule(snapshot, job, snapshot.watermark, idle=idle)
        gives_way = not job.enabled or (moved is not None and moved.made_at <= begin and through < moved.to)
        instant = None if gives_way else schedule.last_at(through)
        while instant is not None and instant > begin and instant in away:
            instant = schedule.last_at(instant - MICROSECOND)
        if instant is not None and instant > begin:
            return instant if newest is None else max(instant, newest)
        through = begin
    return newest


def _hold(snapshot: JobSnapshot, job: Job, after: datetime, through: datetime) -> Refusal | None:
    """The first reason that holds a whole segment back. `_left_over` is for pauses that keep the last instant."""
    moved = snapshot.reschedule
    if moved is not None and moved.made_at <= after and through < moved.to:
        return Why.RESCHEDULED, f"to {moved.to.isoformat()}"
    if not job.enabled:
        return Why.DISABLED, ""
    for pause in snapshot.pauses:
        over = pause.until is not None and pause.until < through
        if pause.missed is Missed.SKIP and pause.since <= after and not over:
            return Why.PAUSED, pause.detail
    return None


def _left_over(
    snapshot: JobSnapshot, newest: Mapping[datetime, datetime], after: datetime, through: datetime
) -> Refusal | None:
    """Why a pause that is over runs nothing of this time: a later one of its instants is the last."""
    for pause in snapshot.pauses:
        last = None if pause.until is None or pause.missed is not Missed.LAST else newest.get(pause.until)
        if last is not None and pause.since <= after and through < last:
            return Why.PAUSED, ", ".join(filter(None, (pause.detail, "only the newest is run")))
    return None


def asked_by_hand(snapshot: JobSnapshot, now: datetime, segments: list[Segment], *, idle: bool) -> list[Candidate]:
    """Return the targets of moves and of a reschedule that have come, the newest first.

    An instant that was moved and then skipped, after its old time was decided, is among them, as skipped.
    """
    newest = _newest_held(snapshot, now, idle)
    candidates = [
        _by_hand(snapshot, newest, adjustment.to, adjustment.at, adjustment, idle)
        for adjustment in snapshot.adjustments
        if adjustment.to is not None and adjustment.to <= now and not adjustment.done and adjustment.vacates
    ]
    candidates += [
        replace(
            _by_hand(snapshot, newest, adjustment.at, adjustment.at, adjustment, idle), refusal=skipped_by(adjustment)
        )
        for adjustment in snapshot.adjustments
        if adjustment.kind is AdjustmentKind.SKIP and adjustment.at <= snapshot.watermark and not adjustment.done
    ]
    candidates += [
        _by_hand(snapshot, newest, to, to, None, idle)
        for to in rescheduled_to(snapshot)
        if to <= now and not _names(segments, to)
    ]
    return sorted(candidates, key=lambda candidate: candidate.instant, reverse=True)


def _by_hand(
    snapshot: JobSnapshot,
    newest: Mapping[datetime, datetime],
    to: datetime,
    named_for: datetime,
    adjustment: Adjustment | None,
    idle: bool,
) -> Candidate:
    """A moved occurrence stands for the time of its original instant; what holds its new time holds it too."""
    named_by = in_force(snapshot.editions, named_for - MICROSECOND)
    before = bound_schedule(snapshot, named_by, snapshot.watermark, idle=idle).last_at(named_for - MICROSECOND)
    hold = _hold(snapshot, in_force(snapshot.editions, to - MICROSECOND), to - MICROSECOND, to)
    hold = hold or _left_over(snapshot, newest, to - MICROSECOND, to)
    return Candidate(to, named_for, before, named_by.version, adjustment, True, hold)


def skipped_by(adjustment: Adjustment) -> Refusal:
    """Return who skipped the instant by hand, and why."""
    return Why.ADJUSTED, adjustment.by_whom


def _names(segments: list[Segment], instant: datetime) -> bool:
    """Whether the schedule names this instant anyway."""
    return any(
        segment.after < instant <= segment.through and segment.schedule.last_at(instant) == instant
        for segment in segments
    )


def backwards(segments: list[Segment], adjusted: Mapping[datetime, Adjustment]) -> Iterator[Candidate]:
    """Give the instants that nothing holds back from the newest to the oldest, without what is skipped or moved."""
    for segment in reversed(segments):
        if segment.hold is not None:
            continue
        after, version, last_at = segment.after, segment.version, segment.schedule.last_at
        instant = last_at(segment.through)
        while instant is not None and instant > after:
            before = last_at(instant - MICROSECOND)
            adjustment = adjusted.get(instant)
            if adjustment is None or not adjustment.vacates:
                yield Candidate(instant, instant, before, version, adjustment)
            instant = before
