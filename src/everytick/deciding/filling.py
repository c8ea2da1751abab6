"""Which instants of the past the open backfill of a job gets now, and when it is looked at again.

A backfill is outside its job's line. It takes a place only if no other occurrence waits for one, so it holds back no
instant of the schedule by more than one run. If others always wait, one of its occurrences stands in line with them, so
that the backfill goes on too.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from everytick.deciding.admission import Line
from everytick.deciding.newcomers import Newcomer, asked_rule
from everytick.deciding.pace import allowance, looked_again, next_at, paced
from everytick.deciding.past import past_instants, past_instants_back
from everytick.domain import ids
from everytick.domain.backfills import BackfillStatus, Filling, OpenBackfill
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import Overlap
from everytick.domain.snapshots import AdjustmentKind, Edition, JobSnapshot

_WALKED = 2_000
"""Most instants that one plan walks past because they have an occurrence. The next plan goes on."""

_LOOKED_AGAIN = timedelta(seconds=2)
"""When a backfill is planned again that waits for a start: a start does not wake its job."""

Named = tuple[datetime, datetime | None]


class Fills:
    """What the open backfill gets in one plan: `newcomers` in its order, and what is written of it.

    `wake_at` is when to plan it again; None if an end of the job decides, which `awaits_ends` says.
    """

    __slots__ = ("awaits_ends", "filling", "newcomers", "wake_at")

    def __init__(self, snapshot: JobSnapshot, job: Job, line: Line, now: datetime, limit: int) -> None:
        backfill = snapshot.backfill
        assert backfill is not None, "one is open"
        pace, paced_at = paced(backfill, now)
        allowed, room = allowance(backfill, pace, now), _room(job, backfill, line)
        may = max(allowed if room is None else min(allowed, room), 0)
        most = max(min(may, limit), 0)
        # What this plan creates has an occurrence too.
        existing = backfill.existing | (line.newcomers - line.displaced.keys())
        walk = _Walk(snapshot, job, replace(backfill, existing=existing), most)
        filled_at = now if walk.found else backfill.filled_at
        status = BackfillStatus.FILLED if walk.is_at_end else BackfillStatus.RUNNING
        self.newcomers = [
            _filling(snapshot.job_id, job, backfill, now, place, at) for place, at in enumerate(walk.found, 1)
        ]
        self.filling = Filling(
            backfill.order.key,
            walk.after,
            walk.through,
            pace,
            paced_at,
            filled_at,
            tuple(newcomer.id for newcomer in self.newcomers),
            status,
        )
        self.awaits_ends = not walk.is_at_end and room is not None and room <= len(walk.found)
        self.wake_at = self._wake_at(backfill, pace, now, walk, snapshot.more_backfills)
        if self.awaits_ends and allowed > 0 and not walk.is_cut:
            self.wake_at = None
        elif most < may and not walk.is_at_end:
            # Only the limit of this plan was reached: the next plan goes on at once.
            self.wake_at = now

    def written(self, created: set[str], cut: set[str], backfill: OpenBackfill) -> Filling:
        """Return the backfill's new state after these creations; instants cut from the line remain."""
        ids_ = tuple(id_ for id_ in self.filling.ids if id_ in created)
        left = next((newcomer.scheduled_for for newcomer in self.newcomers if newcomer.id in cut), None)
        if left is None:
            return replace(self.filling, ids=ids_)
        after, through = (
            (backfill.after, left) if backfill.order.newest_first else (left - MICROSECOND, backfill.through)
        )
        status, filled_at = BackfillStatus.RUNNING, self.filling.filled_at if ids_ else backfill.filled_at
        return replace(self.filling, after=after, through=through, ids=ids_, status=status, filled_at=filled_at)

    def _wake_at(self, backfill: OpenBackfill, pace: int, now: datetime, walk: "_Walk", more: bool) -> datetime | None:
        if walk.is_at_end:
            return now if more else None
        if walk.is_cut:
            return now
        if walk.found:
            return now + looked_again(pace)
        due = next_at(backfill, pace, now)
        return due if due > now else now + _LOOKED_AGAIN


class _Walk:
    """The next instants without an occurrence, at most `most`, and what is left behind them.

    `is_cut` says that the rest is not known: more of what exists, or of the definitions, comes with a later snapshot.
    """

    __slots__ = ("after", "found", "is_at_end", "is_cut", "through")

    def __init__(self, snapshot: JobSnapshot, job: Job, backfill: OpenBackfill, most: int) -> None:
        self.found: list[Named] = []
        self.after, self.through = backfill.after, backfill.through
        self.is_at_end = self.is_cut = False
        if most == 0:
            return
        editions, since, until = _of_their_time(snapshot, job, backfill)
        for walked, named in enumerate(_named(backfill, editions, since, until)):
            is_missing = _is_missing(snapshot, backfill, named[0])
            if (is_missing and len(self.found) == most) or walked == _WALKED:
                self.is_cut = not is_missing
                return
            if is_missing:
                self.found.append(named)
            self._pass(backfill, named[0])
        if (since, until) == (backfill.after, backfill.through):
            self.is_at_end = True
        else:
            self.is_cut = True
            self._pass(backfill, since + MICROSECOND if backfill.order.newest_first else until)

    def _pass(self, backfill: OpenBackfill, instant: datetime) -> None:
        if backfill.order.newest_first:
            self.through = instant - MICROSECOND
        else:
            self.after = instant


def _named(backfill: OpenBackfill, editions: tuple[Edition, ...], since: datetime, until: datetime) -> Iterator[Named]:
    walk = past_instants_back if backfill.order.newest_first else past_instants
    return walk(editions, since, until)


def _of_their_time(
    snapshot: JobSnapshot, job: Job, backfill: OpenBackfill
) -> tuple[tuple[Edition, ...], datetime, datetime]:
    """The definitions that name the instants, and the part of what is left that is known."""
    since, until = backfill.after, backfill.through
    if backfill.known_after is not None:
        since = min(max(since, backfill.known_after), until)
    if backfill.known_through is not None:
        until = max(min(until, backfill.known_through), since)
    if backfill.order.as_of_now:
        return (Edition(job),), since, until
    past = next((past for past in snapshot.pasts if past.key == backfill.order.key), None)
    if past is None:
        return snapshot.editions, since, until
    if past.since is not None:
        since = min(max(since, past.since), until)
    if past.through is not None:
        until = max(min(until, past.through), since)
    return (*past.editions, *snapshot.editions), since, until


def _is_missing(snapshot: JobSnapshot, backfill: OpenBackfill, instant: datetime) -> bool:
    """Whether it has no occurrence. One that was moved or rescheduled has another, which may be still to come."""
    if backfill.order.again:
        return True
    if ids.occurrence_id(snapshot.job_id, instant) in backfill.existing:
        return False
    return not any(
        adjustment.at == instant and adjustment.kind is AdjustmentKind.MOVE and adjustment.vacates
        for adjustment in snapshot.adjustments
    )


def _room(job: Job, backfill: OpenBackfill, line: Line) -> int | None:
    """How many of its occurrences the job has a place for, behind all that are in line; None if any."""
    rule, most = backfill.order.overlap or asked_rule(job), job.settings.max_concurrent
    if rule is Overlap.ALLOW and most is None:
        return None
    places = (most or 1) - line.busy_count - line.freed - max(line.in_the_way, 0)
    if places > 0:
        return places
    is_first = all(occurrence.cause is not Cause.BACKFILL for occurrence in (*line.busy, *line.waiting))
    return 1 if is_first and line.waiting_count < job.settings.max_queued else 0


def _filling(job_id: str, job: Job, backfill: OpenBackfill, now: datetime, place: int, named: Named) -> Newcomer:
    instant, before = named
    order, nth = backfill.order, backfill.created + place
    id_ = ids.backfill_again_id(job_id, order.key, instant) if order.again else ids.occurrence_id(job_id, instant)
    count = "many" if order.count is None else max(order.count, nth)
    told = f"by backfill {backfill.id.removeprefix('backfill_')[:8]}{order.by and f' of {order.by}'}, {nth} of {count}"
    return Newcomer(
        id_,
        # After all other newcomers, in the backfill's own order.
        now + place * MICROSECOND,
        instant,
        Cause.BACKFILL,
        order.overlap or asked_rule(job),
        before,
        instant,
        told=", ".join(filter(None, (told, order.reason))),
    )
