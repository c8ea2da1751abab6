"""Which of the due instants are kept: the one on time, and those of the late ones that the recovery strategy keeps.

This is the one place that asks whether an instant is late.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import merge

from everytick.deciding.candidates import Candidate, Segment, asked_by_hand, backwards, segments_of
from everytick.domain.decisions import Refusal, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.policies import FirstSight, Strategy
from everytick.domain.snapshots import Adjustment, JobSnapshot, Request
from everytick.domain.upcoming import next_instant
from everytick.domain.values import value

MINUTE = timedelta(minutes=1)


@value
class Rest:
    """Why the due instants that are not kept do not run; those before a window have a reason of their own."""

    inside: Refusal
    before: Refusal
    edge: datetime | None = None

    def reason(self, instant: datetime) -> Refusal:
        """Return the reason for one instant."""
        return self.before if self.edge is not None and instant <= self.edge else self.inside


_NEVER_RAN = Rest((Why.MISSED, "before its first run"), (Why.MISSED, "before its first run"))


class DueInstants:
    """What is due, after filters and recovery.

    `candidates` are those to admit, in order, with those that were asked by hand and shall not
    run. `on_time` is the instant that is not late; `rest` is None where recovery kept everything;
    `compressed_from` is the oldest instant that one run stands for.
    """

    __slots__ = ("adjusted", "candidates", "compressed_from", "on_time", "rest", "segments")

    def __init__(self, segments: list[Segment], adjusted: dict[datetime, Adjustment]) -> None:
        self.segments, self.adjusted = segments, adjusted
        self.candidates: list[Candidate] = []
        self.on_time: datetime | None = None
        self.rest: Rest | None = None
        self.compressed_from: datetime | None = None

    @property
    def newest_kept(self) -> datetime | None:
        """The newest instant that shall run."""
        return max((each.instant for each in self.candidates if each.refusal is None), default=None)


def due(snapshot: JobSnapshot, job: Job, now: datetime) -> DueInstants:
    """Return what is due after the watermark and through now, decided by filters and recovery."""
    idle = not snapshot.busy_count and not snapshot.waiting_count
    segments = segments_of(snapshot, now, idle=idle)
    found = DueInstants(segments, {each.at: each for each in snapshot.adjustments})
    walk = backwards(segments, found.adjusted)
    if snapshot.adjustments or snapshot.reschedule is not None:
        by_hand = asked_by_hand(snapshot, now, segments, idle=idle)
        held = [each for each in by_hand if each.refusal is not None]
        free = [each for each in by_hand if each.refusal is None]
        _recover(found, snapshot, job, now, merge(walk, free, key=lambda each: each.instant, reverse=True))
        _turn_away(found, free)
        found.candidates += held
    else:
        _recover(found, snapshot, job, now, walk)
    if job.settings.recovery.strategy is Strategy.COMPRESSED and found.candidates:
        _compress(found, job.id)
    if len(found.candidates) > 1:
        found.candidates.sort(key=lambda each: each.instant)
    return found


def _recover(found: DueInstants, snapshot: JobSnapshot, job: Job, now: datetime, walk: Iterator[Candidate]) -> None:
    """Keep what is on time and what the strategy wants, from the newest on; stop at the first it does not want."""
    newest = next(walk, None)
    if newest is None:
        return
    is_new = has_never_run(snapshot, job)
    if _is_on_time(found, snapshot, newest, now, min(job.settings.grace, MINUTE) if is_new else job.settings.grace):
        found.on_time = newest.instant
    kept, room, rest = found.candidates, -1, None
    candidate: Candidate | None = newest
    while candidate is not None:
        if candidate.instant == found.on_time:
            kept.append(candidate)
        else:
            if rest is None:
                room, rest = (0, _NEVER_RAN) if is_new else _rule(job, now, found.on_time is not None)
            if room > 0 and (rest.edge is None or candidate.instant > rest.edge):
                kept.append(candidate)
                room -= 1
            else:
                found.rest = rest
                if not candidate.by_hand:
                    return
        candidate = next(walk, None)


def _turn_away(found: DueInstants, by_hand: list[Candidate]) -> None:
    """Return the candidates that were set by hand and are not kept, refused: they cannot be part of a span."""
    if found.rest is None:
        return
    kept = {each.named_for for each in found.candidates if each.by_hand}
    for each in by_hand:
        if each.named_for not in kept:
            found.candidates.append(replace(each, refusal=found.rest.reason(each.instant)))


def has_never_run(snapshot: JobSnapshot, job: Job) -> bool:
    """Whether a job that begins only in a matching minute still waits for its first: it makes up for nothing (S2-019).

    What was canceled before it began has not run either.
    """
    if job.settings.on_create.begin is not FirstSight.IF_MATCHING_NOW or snapshot.busy_count or snapshot.waiting_count:
        return False
    last = snapshot.last_end
    return last is None or (last.started_at is None and snapshot.last_success is None)


def _is_on_time(found: DueInstants, snapshot: JobSnapshot, newest: Candidate, now: datetime, grace: timedelta) -> bool:
    """Whether its grace is not over and no later instant is due."""
    if now >= newest.instant + grace:
        return False
    if len(found.segments) == 1 and not found.adjusted and not newest.by_hand:
        return True  # The newest of the only segment: nothing that is due comes after it.
    idle = not snapshot.busy_count and not snapshot.waiting_count
    following = next_instant(snapshot, newest.instant, idle=idle)
    return following is None or now < following


def _rule(job: Job, now: datetime, on_time: bool) -> tuple[int, Rest]:
    """How many late instants are kept, and why the others are not."""
    recovery, cap = job.settings.recovery, job.settings.late_cap
    match recovery.strategy:
        case Strategy.EXECUTE_ALL:
            return cap, _all(Why.CAP)
        case Strategy.EXECUTE_LAST:
            return 0 if on_time else 1, _all(Why.NOT_LAST)
        case Strategy.MARK_AS_MISSED:
            return 0, _all(Why.MISSED)
        case Strategy.COMPRESSED:
            return 0 if on_time else 1, _all(Why.COMPRESSED)
    assert recovery.strategy is Strategy.BOUNDED_WINDOW, f"{recovery.strategy} is a strategy without a rule"
    most = cap if recovery.max_occurrences is None else min(recovery.max_occurrences, cap)
    # What both bounds would drop is told apart only where that needs no walk: by the one that cut.
    inside = Why.WINDOW if most == recovery.max_occurrences else Why.CAP
    edge = None if recovery.max_duration is None else now - recovery.max_duration
    return most, Rest((inside, ""), (Why.WINDOW, ""), edge)


def too_late(job: Job, request: Request, now: datetime) -> Refusal | None:
    """Return why a run that was asked for at a time does not run after it, or None if it does.

    Only the strategies that let nothing late run refuse it. The others choose among the instants of a
    schedule, and each request is one of its own.
    """
    if request.due_at is None or now < request.line_at + job.settings.grace:
        return None
    recovery = job.settings.recovery
    if recovery.strategy is Strategy.MARK_AS_MISSED:
        return Why.MISSED, ""
    if recovery.strategy is Strategy.BOUNDED_WINDOW and recovery.max_duration is not None:
        return (Why.WINDOW, "") if request.line_at <= now - recovery.max_duration else None
    return None


def _all(why: Why) -> Rest:
    return Rest((why, ""), (why, ""))


def _compress(found: DueInstants, job_id: str) -> None:
    """Give the one run of a compressed recovery the span it stands for, and name it as the reason of the others."""
    if found.rest is None:
        return
    run = found.candidates[0]
    oldest, before = _oldest(found)
    reason = (Why.COMPRESSED, f"into {occurrence_id(job_id, run.named_for)}")
    found.rest = Rest(reason, reason)
    found.compressed_from = oldest
    found.on_time = None
    covering = replace(run, before=before if before is not None else oldest - MICROSECOND)
    found.candidates = [covering, *(_retold(each, reason) for each in found.candidates[1:])]


def _retold(candidate: Candidate, reason: Refusal) -> Candidate:
    """The same, told into which run it went, unless something else held it back."""
    dropped = candidate.refusal is not None and candidate.refusal[0] is Why.COMPRESSED
    return replace(candidate, refusal=reason) if dropped else candidate


def _oldest(found: DueInstants) -> tuple[datetime, datetime | None]:
    """The oldest instant that recovery saw and the one before that."""
    oldest = [(each.instant, each.before) for each in found.candidates if each.by_hand and _recovered(each)]
    for segment in found.segments:
        first = segment.schedule.next_after(segment.after) if segment.hold is None else None
        while first in found.adjusted and found.adjusted[first].vacates:
            first = segment.schedule.next_after(first)
        if first is not None and first <= segment.through:
            oldest.append((first, segment.schedule.last_at(first - MICROSECOND)))
            break
    return min(oldest, key=lambda pair: pair[0])


def _recovered(candidate: Candidate) -> bool:
    """Whether recovery decided about it. If not, a pause or the like holds its time back."""
    return candidate.refusal is None or candidate.refusal[0] is Why.COMPRESSED
