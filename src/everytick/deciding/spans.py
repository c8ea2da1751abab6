"""Spans: instants that do not run. Neighbours with one reason are one span, however many they are."""

from collections.abc import Iterable
from datetime import datetime

from everytick.deciding.candidates import Candidate, Segment, skipped_by
from everytick.deciding.recovery import DueInstants
from everytick.domain.decisions import Refusal, Span, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import Adjustment
from everytick.domain.statuses import OccurrenceStatus

COUNTED = 10_000
"""Skipped instants are counted up to this number; above it the count is None, shown as "more than 10,000"."""


def status_of(why: Why) -> OccurrenceStatus:
    """Return the status of what does not run for this reason."""
    return OccurrenceStatus.MISSED if why is Why.MISSED else OccurrenceStatus.SKIPPED


def spans_of(instants: DueInstants, through: datetime) -> list[Span]:
    """Return the due instants up to a moment that are not candidates, as spans in order of time."""
    if instants.rest is None and not instants.adjusted and all(segment.hold is None for segment in instants.segments):
        return []
    first_kept = min((candidate.instant for candidate in instants.candidates if not candidate.by_hand), default=None)
    spans: list[Span] = []
    for segment in instants.segments:
        if segment.after >= through:
            break
        at, end = segment.after, min(segment.through, through)
        for instant in _taken_away(instants.adjusted, at, end):
            _add_untouched(spans, segment, instants, at, instant - MICROSECOND, first_kept)
            _add(spans, segment, instant - MICROSECOND, instant, _by_whom(instants.adjusted[instant]))
            at = instant
        _add_untouched(spans, segment, instants, at, end, first_kept)
    return spans


def _taken_away(adjusted: dict[datetime, Adjustment], after: datetime, through: datetime) -> list[datetime]:
    return sorted(at for at, adjustment in adjusted.items() if after < at <= through and adjustment.vacates)


def _by_whom(adjustment: Adjustment) -> Refusal:
    if adjustment.to is not None:
        return Why.MOVED, f"to {adjustment.to.isoformat()}"
    return skipped_by(adjustment)


def _add_untouched(
    spans: list[Span],
    segment: Segment,
    due: DueInstants,
    after: datetime,
    through: datetime,
    first_kept: datetime | None,
) -> None:
    """Add the instants of a stretch that are held back, or that recovery did not keep: all before the first it kept."""
    rest = due.rest
    if segment.hold is not None:
        _add(spans, segment, after, through, segment.hold)
    elif rest is not None:
        end = through if first_kept is None else min(through, first_kept - MICROSECOND)
        if rest.edge is not None and after < rest.edge:
            _add(spans, segment, after, min(rest.edge, end), rest.before)
            after = rest.edge
        _add(spans, segment, after, end, rest.inside)


def _add(spans: list[Span], segment: Segment, after: datetime, through: datetime, reason: Refusal) -> None:
    """Add a span if it holds an instant; one that goes on where an equal one ended is part of it."""
    last = segment.schedule.last_at(through) if after < through else None
    if last is None or last <= after:
        return
    count = len(segment.schedule.instants(after, last, COUNTED + 1))
    why, detail = reason
    span = Span(status_of(why), why, detail, after, last, segment.version, count if count <= COUNTED else None)
    if spans and _alike(spans[-1], span) and not _between(segment.schedule, spans[-1].through, after):
        spans[-1] = _joined(spans[-1], span)
    else:
        spans.append(span)


def skips_of(refused: Iterable[tuple[Candidate, Refusal]]) -> list[Span]:
    """Return instants of the schedule that were turned away, as spans in order of time."""
    spans: list[Span] = []
    for candidate, (why, detail) in refused:
        at = candidate.instant
        span = Span(status_of(why), why, detail, at - MICROSECOND, at, candidate.version, 1)
        if spans and _alike(spans[-1], span) and spans[-1].through == candidate.before:
            spans[-1] = _joined(spans[-1], span)
        else:
            spans.append(span)
    return spans


def _between(schedule: Schedule, after: datetime, through: datetime) -> bool:
    """Whether an instant lies between two spans."""
    instant = schedule.next_after(after)
    return instant is not None and instant <= through


def _alike(one: Span, other: Span) -> bool:
    return (one.status, one.why, one.detail, one.version) == (other.status, other.why, other.detail, other.version)


def _joined(one: Span, other: Span) -> Span:
    count = None if one.count is None or other.count is None else one.count + other.count
    known = None if count is None or count > COUNTED else count
    return Span(one.status, one.why, one.detail, one.after, other.through, one.version, known)
