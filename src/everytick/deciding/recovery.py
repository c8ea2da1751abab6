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
        return max((candidate.instant for candidate in self.candidates if candidate.refusal is None), default=None)


def due(snapshot: JobSnapshot, job: Job, now: datetime) -> DueInstants:
    """Return what is due after the watermark and through now, decided by filters and recovery."""
    idle = not snapshot.busy_count and not snapshot.waiting_count
    segments = segments_of(snapshot, now, idle=idle)
    instants = DueInstants(segments, {adjustment.at: adjustment for adjustment in snapshot.adjustments})
    walk = backwards(segments, instants.adjusted)
    if snapshot.adjustments or snapshot.reschedule is not None:
        by_hand = asked_by_hand(snapshot, now, segments, idle=idle)
        held = [candidate for candidate in by_hand if candidate.refusal is not None]
        free = [candidate for candidate in by_hand if candidate.refusal is None]
        _recover(instants, snapshot, job, now, merge(walk, free, key=lambda candidate: candidate.instant, reverse=True))
        _turn_away(instants, free)
        instants.candidates += held
    else:
        _recover(instants, snapshot, job, now, walk)
    if job.settings.recovery.strategy is Strategy.COMPRESSED and instants.candidates:
        _compress(instants, job.id)
    if len(instants.candidates) > 1:
        instants.candidates.sort(key=lambda candidate: candidate.instant)
    return instants


def _recover(instants: DueInstants, snapshot: JobSnapshot, job: Job, now: datetime, walk: Iterator[Candidate]) -> None:
    """Keep the instant on time and those that the strategy wants, newest first; stop at the first it does not want."""
    newest = next(walk, None)
    if newest is None:
        return
    is_new = has_never_run(snapshot, job)
    if _is_on_time(instants, snapshot, newest, now, min(job.settings.grace, MINUTE) if is_new else job.settings.grace):
        instants.on_time = newest.instant
    candidates, room, rest = instants.candidates, -1, None
    candidate: Candidate | None = newest
    while candidate is not None:
        if candidate.instant == instants.on_time:
            candidates.append(candidate)
        else:
            if rest is None:
                room, rest = (0, _NEVER_RAN) if is_new else _rule(job, now, instants.on_time is not None)
            if room > 0 and (rest.edge is None or candidate.instant > rest.edge):
                candidates.append(candidate)
                room -= 1
            else:
                instants.rest = rest
                if not candidate.by_hand:
                    return
        candidate = next(walk, None)


def _turn_away(instants: DueInstants, by_hand: list[Candidate]) -> None:
    """Add the candidates by hand that are not kept, as refused: they cannot be part of a span."""
    if instants.rest is None:
        return
    kept_instants = {candidate.named_for for candidate in instants.candidates if candidate.by_hand}
    for candidate in by_hand:
        if candidate.named_for not in kept_instants:
            instants.candidates.append(replace(candidate, refusal=instants.rest.reason(candidate.instant)))


def has_never_run(snapshot: JobSnapshot, job: Job) -> bool:
    """Whether a job that starts only within a matching minute has not run yet. It recovers nothing (S2-019).

    An occurrence that was canceled before it began does not count as a run.
    """
    if job.settings.on_create.begin is not FirstSight.IF_MATCHING_NOW or snapshot.busy_count or snapshot.waiting_count:
        return False
    last = snapshot.last_end
    return last is None or (last.started_at is None and snapshot.last_success is None)


def _is_on_time(
    instants: DueInstants, snapshot: JobSnapshot, newest: Candidate, now: datetime, grace: timedelta
) -> bool:
    """Whether its grace is not over and no later instant is due."""
    if now >= newest.instant + grace:
        return False
    if len(instants.segments) == 1 and not instants.adjusted and not newest.by_hand:
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
    # If both bounds drop an instant, the bound that was reached first is named: that needs no walk.
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


def _compress(instants: DueInstants, job_id: str) -> None:
    """Give the one run of a compressed recovery the span it stands for, and name it as the reason of the others."""
    if instants.rest is None:
        return
    run = instants.candidates[0]
    oldest, before, through = _stood_for(instants, run)
    reason = (Why.COMPRESSED, f"into {occurrence_id(job_id, run.named_for)}")
    instants.rest = Rest(reason, reason)
    instants.compressed_from = oldest
    instants.on_time = None
    covering = replace(run, before=before, covers_through=through)
    instants.candidates = [covering, *(_retold(candidate, reason) for candidate in instants.candidates[1:])]


def _retold(candidate: Candidate, reason: Refusal) -> Candidate:
    """The candidate with this reason, unless something else held it back."""
    dropped = candidate.refusal is not None and candidate.refusal[0] is Why.COMPRESSED
    return replace(candidate, refusal=reason) if dropped else candidate


def _stood_for(instants: DueInstants, run: Candidate) -> tuple[datetime, datetime, datetime]:
    """Return the oldest instant that recovery saw, and the span that all of them stand for.

    A moved one stands for the time of its original instant, which may lie before all others or behind them.
    """
    by_hand = [candidate for candidate in instants.candidates if candidate.by_hand and _recovered(candidate)]
    places = [candidate.instant for candidate in by_hand]
    befores = [candidate.before or candidate.named_for - MICROSECOND for candidate in by_hand]
    ends = [run.named_for, *(candidate.named_for for candidate in by_hand)]
    for segment in instants.segments:
        first = segment.schedule.next_after(segment.after) if segment.hold is None else None
        while first in instants.adjusted and instants.adjusted[first].vacates:
            first = segment.schedule.next_after(first)
        if first is not None and first <= segment.through:
            places.append(first)
            befores.append(segment.schedule.last_at(first - MICROSECOND) or first - MICROSECOND)
            break
    for segment in reversed(instants.segments) if run.by_hand else ():
        last = segment.schedule.last_at(segment.through) if segment.hold is None else None
        while last in instants.adjusted and instants.adjusted[last].vacates:
            last = segment.schedule.last_at(last - MICROSECOND)
        if last is not None and last > segment.after:
            ends.append(last)
            break
    return min(places), min(befores), max(ends)


def _recovered(candidate: Candidate) -> bool:
    """Whether recovery decided about it. If not, a pause or the like holds its time back."""
    return candidate.refusal is None or candidate.refusal[0] is Why.COMPRESSED
