"""Which instants of a job are due, which of them are held back, and which its recovery keeps.

This is the one place that asks whether an instant is late. Nothing here walks through an
outage: what is kept is found backwards from now, the rest is one span per reason.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from everytick.domain.decisions import Span, Why
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.policies import Strategy
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Edition, JobSnapshot, Missed
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value

COUNTED = 10_000
"""So many skipped instants are counted; more are "more than 10,000"."""

_TICK = timedelta(microseconds=1)


@value
class Candidate:
    """An instant that recovery keeps: `named_for` is the instant its id is made of."""

    instant: datetime
    named_for: datetime
    schedule: Schedule
    late: bool
    adjustment: Adjustment | None = None
    rescheduled: bool = False
    covers_after: datetime | None = None


@value
class Due:
    """What is due: candidates in order, what was asked by hand and is too late, and spans of what does not run."""

    candidates: tuple[Candidate, ...]
    dropped: tuple[tuple[Candidate, Why], ...]
    spans: tuple[Span, ...]


NOTHING = Due((), (), ())


@value
class Segment:
    """A span of time under one definition, with what holds its instants back, if anything does."""

    after: datetime
    through: datetime
    version: int
    schedule: Schedule
    hold: Why | None = None
    detail: str = ""


def due(snapshot: JobSnapshot, job: Job, now: datetime) -> Due:
    """Return what is due after the watermark and through now, decided by filters and recovery."""
    segments = _segments(snapshot, now)
    by_hand = _by_hand(snapshot, now, segments)
    if not by_hand and not any(_newest(segment) for segment in segments):
        return NOTHING
    adjusted = {each.at: each for each in snapshot.adjustments}
    named = max((at for segment in segments if (at := _newest(segment))), default=None)
    open_ = [segment for segment in segments if segment.hold is None]
    walk = _backwards(open_, by_hand, adjusted)
    kept, rest, dropped = _recovered(job, now, walk, named)
    if job.settings.recovery.strategy is Strategy.COMPRESSED and kept:
        kept = _covering(kept, open_, adjusted)
        rest.detail = f"into {occurrence_id(job.id, kept[-1].named_for)}"
    spans = _spans(segments, kept, rest, adjusted)
    return Due(tuple(kept), tuple(dropped), tuple(spans))


def bound_schedule(snapshot: JobSnapshot, job: Job) -> Schedule:
    """Return the schedule as the job has it now; one that follows an end names nothing while something is active."""
    end = None if snapshot.busy_count or snapshot.waiting_count else snapshot.last_end
    return job.bound(end.ended_at if end else None)


def _segments(snapshot: JobSnapshot, now: datetime) -> list[Segment]:
    after = snapshot.watermark
    editions = snapshot.editions
    if len(editions) == 1 and not snapshot.pauses and snapshot.reschedule is None:
        job = editions[0].job
        return [Segment(after, now, job.version, bound_schedule(snapshot, job))]
    edges = {edition.in_force_after for edition in editions}
    edges |= {edge for pause in snapshot.pauses for edge in (pause.since, pause.until)}
    if snapshot.reschedule is not None:
        edges |= {snapshot.reschedule.made_at, snapshot.reschedule.to - _TICK}
    inside = sorted(edge for edge in edges if edge is not None and after < edge < now)
    ends = [*inside, now]
    starts = [after, *inside]
    return [_segment(snapshot, start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _segment(snapshot: JobSnapshot, after: datetime, through: datetime) -> Segment:
    job = in_force(snapshot.editions, after).job
    hold, detail = _hold(snapshot, job, after, through)
    return Segment(after, through, job.version, bound_schedule(snapshot, job), hold, detail)


def in_force(editions: tuple[Edition, ...], moment: datetime) -> Edition:
    """Return the definition in force right after a moment; an instant at that very moment is still the old one's."""
    found = editions[0]
    for edition in editions:
        if edition.in_force_after is None or edition.in_force_after <= moment:
            found = edition
    return found


def _hold(snapshot: JobSnapshot, job: Job, after: datetime, through: datetime) -> tuple[Why | None, str]:
    """The first reason that holds a whole segment back."""
    moved = snapshot.reschedule
    if moved is not None and moved.made_at <= after and through < moved.to:
        return Why.RESCHEDULED, f"to {moved.to.isoformat()}"
    if not job.enabled:
        return Why.DISABLED, ""
    for pause in snapshot.pauses:
        over = pause.until is not None and pause.until < through
        if pause.missed is Missed.SKIP and pause.since <= after and not over:
            return Why.PAUSED, " ".join(filter(None, (pause.by and f"by {pause.by}", pause.reason)))
    return None, ""


def _newest(segment: Segment) -> datetime | None:
    found = segment.schedule.last_at(segment.through)
    return found if found is not None and found > segment.after else None


def _by_hand(snapshot: JobSnapshot, now: datetime, segments: list[Segment]) -> list[Candidate]:
    """The targets of moves and of a reschedule that have come, newest first."""
    schedule = segments[-1].schedule if segments else None
    if schedule is None:
        return []
    found = [
        Candidate(each.to, each.at, schedule, late=False, adjustment=each)
        for each in snapshot.adjustments
        if each.to is not None and each.to <= now and not each.done
    ]
    if snapshot.reschedule is not None and snapshot.reschedule.to <= now:
        to = snapshot.reschedule.to
        found.append(Candidate(to, to, schedule, late=False, rescheduled=True))
    return sorted(found, key=lambda each: each.instant, reverse=True)


def _backwards(
    segments: list[Segment], by_hand: list[Candidate], adjusted: dict[datetime, Adjustment]
) -> Iterator[Candidate]:
    """Give the candidates from the newest to the oldest, without what was skipped or moved by hand."""
    waiting = list(by_hand)
    for segment in reversed(segments):
        instant = _newest(segment)
        while instant is not None and instant > segment.after:
            while waiting and waiting[0].instant >= instant:
                extra = waiting.pop(0)
                if extra.instant == instant and extra.rescheduled:
                    continue
                yield extra
            if instant not in adjusted:
                yield Candidate(instant, instant, segment.schedule, late=False)
            instant = segment.schedule.last_at(instant - _TICK)
    yield from waiting


class _Rest:
    """What becomes of the due instants that are not kept."""

    __slots__ = ("detail", "status", "why", "window_from", "within")

    def __init__(
        self,
        why: Why,
        status: OccurrenceStatus = OccurrenceStatus.SKIPPED,
        window_from: datetime | None = None,
        within: Why | None = None,
    ) -> None:
        self.why, self.status, self.window_from, self.within = why, status, window_from, within or why
        self.detail = ""


def _recovered(
    job: Job, now: datetime, walk: Iterator[Candidate], named: datetime | None
) -> tuple[list[Candidate], _Rest, list[tuple[Candidate, Why]]]:
    """The candidates that are kept, oldest first; what becomes of the rest; and what was asked by hand but dropped."""
    settings = job.settings
    kept: list[Candidate] = []
    dropped: list[tuple[Candidate, Why]] = []
    room, rest = 0, _Rest(Why.NOT_LAST)
    first = True
    for candidate in walk:
        if first:
            first = False
            on_time = _is_on_time(candidate, now, settings.grace, named)
            room, rest = _rule(job, now, on_time)
            if on_time:
                kept.append(candidate)
                continue
        inside = rest.window_from is None or candidate.instant > rest.window_from
        if room > 0 and inside:
            kept.append(_late(candidate))
            room -= 1
        elif candidate.adjustment is None and not candidate.rescheduled:
            break
        else:
            dropped.append((_late(candidate), rest.within if inside else rest.why))
    kept.reverse()
    return kept, rest, dropped


def _is_on_time(candidate: Candidate, now: datetime, grace: timedelta, named: datetime | None) -> bool:
    """Whether its grace is not over and no later instant is due."""
    return now < candidate.instant + grace and (named is None or named <= candidate.instant)


def _late(candidate: Candidate) -> Candidate:
    return Candidate(
        candidate.instant,
        candidate.named_for,
        candidate.schedule,
        True,
        candidate.adjustment,
        candidate.rescheduled,
        candidate.covers_after,
    )


def _rule(job: Job, now: datetime, on_time: bool) -> tuple[int, _Rest]:
    """How many late instants are kept, and what the others are recorded as."""
    recovery, cap = job.settings.recovery, job.settings.late_cap
    match recovery.strategy:
        case Strategy.EXECUTE_ALL:
            return cap, _Rest(Why.CAP)
        case Strategy.EXECUTE_LAST:
            return 0 if on_time else 1, _Rest(Why.NOT_LAST)
        case Strategy.MARK_AS_MISSED:
            return 0, _Rest(Why.MISSED, OccurrenceStatus.MISSED)
        case Strategy.COMPRESSED:
            return 0 if on_time else 1, _Rest(Why.COMPRESSED)
        case Strategy.BOUNDED_WINDOW:
            if recovery.max_duration is None and recovery.max_occurrences is None:
                return cap, _Rest(Why.CAP)
            most = cap if recovery.max_occurrences is None else recovery.max_occurrences
            since = None if recovery.max_duration is None else now - recovery.max_duration
            return min(most, cap), _Rest(Why.WINDOW, window_from=since, within=Why.WINDOW if most <= cap else Why.CAP)


def _covering(kept: list[Candidate], segments: list[Segment], adjusted: dict[datetime, Adjustment]) -> list[Candidate]:
    """The one run of a compressed recovery, told the whole span that it stands for."""
    newest = kept[-1]
    oldest = next((at for segment in segments if (at := _oldest(segment, adjusted)) is not None), newest.instant)
    if oldest >= newest.instant:
        return kept
    before = newest.schedule.last_at(oldest - _TICK)
    newest = Candidate(
        newest.instant,
        newest.named_for,
        newest.schedule,
        True,
        newest.adjustment,
        newest.rescheduled,
        before or oldest - _TICK,
    )
    return [*kept[:-1], newest]


def _oldest(segment: Segment, adjusted: dict[datetime, Adjustment]) -> datetime | None:
    found = segment.schedule.next_after(segment.after)
    while found in adjusted:
        found = segment.schedule.next_after(found)
    return found if found is not None and found <= segment.through else None


def _spans(
    segments: list[Segment], kept: list[Candidate], rest: _Rest, adjusted: dict[datetime, Adjustment]
) -> list[Span]:
    """The instants that do not run, as spans in order: held back, adjusted by hand, or not kept."""
    plain = [each.instant for each in kept if each.adjustment is None and not each.rescheduled]
    first_kept = plain[0] if plain else None
    spans: list[Span] = []
    for segment in segments:
        if segment.hold is not None:
            _add(spans, segment, segment.after, segment.through, OccurrenceStatus.SKIPPED, segment.hold, segment.detail)
            continue
        at = segment.after
        touched = sorted(each for each in adjusted if segment.after < each <= segment.through)
        for instant in touched:
            _add_rest(spans, segment, at, instant - _TICK, rest, first_kept)
            if segment.schedule.last_at(instant) == instant:
                _add(spans, segment, instant - _TICK, instant, OccurrenceStatus.SKIPPED, *_adjusted(adjusted[instant]))
            at = instant
        _add_rest(spans, segment, at, segment.through, rest, first_kept)
    return spans


def _adjusted(adjustment: Adjustment) -> tuple[Why, str]:
    if adjustment.kind is AdjustmentKind.MOVE and adjustment.to is not None:
        return Why.MOVED, f"to {adjustment.to.isoformat()}"
    return Why.ADJUSTED, " ".join(filter(None, (adjustment.by and f"by {adjustment.by}", adjustment.reason)))


def _add_rest(
    spans: list[Span], segment: Segment, after: datetime, through: datetime, rest: _Rest, first_kept: datetime | None
) -> None:
    """Add the instants of a stretch that recovery did not keep: those before the first it kept."""
    if first_kept is not None:
        through = min(through, first_kept - _TICK)
    edge = rest.window_from
    if edge is not None and after < edge:
        _add(spans, segment, after, min(edge, through), rest.status, rest.why, rest.detail)
        after = edge
    _add(spans, segment, after, through, rest.status, rest.within if edge is not None else rest.why, rest.detail)


def _add(
    spans: list[Span],
    segment: Segment,
    after: datetime,
    through: datetime,
    status: OccurrenceStatus,
    why: Why,
    detail: str,
) -> None:
    """Add a span if it holds an instant; one that goes on where an equal one ended is part of it."""
    if after >= through:
        return
    last = segment.schedule.last_at(through)
    if last is None or last <= after:
        return
    found = len(segment.schedule.instants(after, last, COUNTED + 1))
    span = Span(status, why, detail, after, last, segment.version, found if found <= COUNTED else None)
    append(spans, span, segment.schedule)


def append(spans: list[Span], span: Span, schedule: Schedule) -> None:
    """Add a span, joined to the one before it where nothing differs but the time and no instant lies between."""
    before = spans[-1] if spans else None
    if before is not None and _alike(before, span):
        between = schedule.next_after(before.through)
        if between is None or between > span.after:
            count = None if before.count is None or span.count is None else before.count + span.count
            total = None if count is None or count > COUNTED else count
            spans[-1] = Span(span.status, span.why, span.detail, before.after, span.through, span.version, total)
            return
    spans.append(span)


def _alike(one: Span, other: Span) -> bool:
    return (one.status, one.why, one.detail, one.version) == (other.status, other.why, other.detail, other.version)
