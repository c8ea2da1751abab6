"""The newcomers of a plan: the instants that are due and the requests of people and programs, in one order."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from heapq import merge
from typing import ClassVar

from everytick.deciding.candidates import Candidate
from everytick.deciding.past import past_instants
from everytick.deciding.recovery import DueInstants, too_late
from everytick.domain import ids
from everytick.domain.decisions import Refusal
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import LateOverlap, Overlap
from everytick.domain.snapshots import JobSnapshot, Request
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value

_LATE_RULES = {
    LateOverlap.QUEUE: Overlap.QUEUE,
    LateOverlap.SKIP: Overlap.SKIP,
    LateOverlap.ALLOW: Overlap.ALLOW,
}
_COSTLY = (Overlap.SKIP, Overlap.CANCEL_RUNNING)
"""Under these rules one of two instants that meet does not run."""


@value
class Newcomer:
    """An instant that is due or a request, with its overlap rule, and a refusal if one was decided before.

    `told` is what is said of one that a backfill asks for.
    """

    status: ClassVar = OccurrenceStatus.PENDING
    superseded_by_next: ClassVar = False

    id: str
    line_at: datetime
    scheduled_for: datetime
    cause: Cause
    rule: Overlap
    covers_after: datetime | None
    covers_through: datetime
    late: bool = False
    candidate: Candidate | None = None
    request: Request | None = None
    refusal: Refusal | None = None
    told: str = ""

    @property
    def is_instant(self) -> bool:
        """Whether its own schedule names it where it stands: only such can be read back from a span."""
        return self.candidate is not None and not self.candidate.by_hand


class Newcomers:
    """All newcomers of a plan, in the order of the line.

    `asked` are those that no schedule names, in order.
    """

    __slots__ = ("asked", "instants", "job", "snapshot")

    def __init__(self, snapshot: JobSnapshot, job: Job, instants: DueInstants, now: datetime) -> None:
        self.snapshot, self.job, self.instants = snapshot, job, instants
        self.asked = [self._asked(request, now) for request in snapshot.requests]

    def in_order(self) -> Iterator[Newcomer]:
        """Give all newcomers by (line_at, id). An id is made only when its turn comes."""
        job_id, instants, rules = self.snapshot.job_id, self.instants, self._rules()
        newcomers = (_due(job_id, instants, rules, candidate) for candidate in instants.candidates)
        if not self.asked and not instants.adjusted:
            return newcomers
        line = sorted(newcomers, key=place_in_line) if instants.adjusted else newcomers
        return merge(line, sorted(self.asked, key=place_in_line), key=place_in_line)

    def _rules(self) -> tuple[Overlap, Overlap]:
        """Return the overlap rule of the instant on time, and the one of late instants.

        Late instants must not cost a live one. If the live rule would skip or cancel, the live
        instant waits behind them; with `late_overlap` skip it is skipped too.
        """
        settings = self.job.settings
        late = _LATE_RULES[settings.late_overlap]
        if settings.overlap in _COSTLY and self._catches_up():
            return (Overlap.SKIP if late is Overlap.SKIP else Overlap.QUEUE), late
        return settings.overlap, late

    def _catches_up(self) -> bool:
        """Whether late ones of the schedule are kept now, or wait in line, or what fills the past is active."""
        instants, snapshot = self.instants, self.snapshot
        return (
            any(
                candidate.refusal is None and candidate.instant != instants.on_time for candidate in instants.candidates
            )
            or any(occurrence.late and occurrence.cause is Cause.SCHEDULE for occurrence in snapshot.waiting)
            or any(occurrence.cause is Cause.BACKFILL for occurrence in (*snapshot.waiting, *snapshot.busy))
        )

    def _asked(self, request: Request, now: datetime) -> Newcomer:
        if request.cause is Cause.BACKFILL:
            return self._filling(request)
        return requested(self.snapshot.job_id, self.job, request, too_late(self.job, request, now))

    def _filling(self, request: Request) -> Newcomer:
        """What fills one past instant: it covers what the definition of its time says."""
        instant = request.scheduled_for
        assert instant is not None, "it says which instant it fills"
        past = next((past for past in self.snapshot.pasts if past.key == request.key), None)
        editions = self.snapshot.editions if past is None else (*past.editions, *self.snapshot.editions)
        named = next(past_instants(editions, instant - MICROSECOND, instant), (instant, None))
        return replace(requested(self.snapshot.job_id, self.job, request), covers_after=named[1])


def place_in_line(newcomer: Newcomer) -> tuple[datetime, str]:
    """Return what newcomers are sorted by."""
    return newcomer.line_at, newcomer.id


def _due(job_id: str, instants: DueInstants, rules: tuple[Overlap, Overlap], candidate: Candidate) -> Newcomer:
    instant, named_for = candidate.instant, candidate.named_for
    late = instant != instants.on_time
    return Newcomer(
        id=ids.occurrence_id(job_id, named_for),
        line_at=instant,
        scheduled_for=instant,
        cause=Cause.SCHEDULE,
        rule=rules[late],
        covers_after=candidate.before,
        covers_through=candidate.covers_through or named_for,
        late=late,
        candidate=candidate,
        refusal=candidate.refusal,
    )


def requested(job_id: str, job: Job, request: Request, refusal: Refusal | None = None) -> Newcomer:
    """Return what one request asks for, under the rule that was named with it."""
    line_at = request.line_at
    scheduled_for = request.scheduled_for or line_at
    return Newcomer(
        request.occurrence_id(job_id),
        line_at,
        scheduled_for,
        request.cause,
        request.overlap or asked_rule(job),
        request.covers_after,
        request.covers_through or scheduled_for,
        request=request,
        refusal=refusal,
    )


def asked_rule(job: Job) -> Overlap:
    """Return the overlap rule of a request or backfill that names none.

    It waits in line, so that it is not dropped and does not overlap; a job that may overlap may
    never be idle, so there it comes in at once.
    """
    return Overlap.ALLOW if job.settings.overlap is Overlap.ALLOW else Overlap.QUEUE


def restarting(job: Job, instant: datetime) -> Newcomer:
    """Return what an instant of the restart schedule asks for."""
    rule = asked_rule(job)
    return Newcomer(ids.restart_id(job.id, instant), instant, instant, Cause.RESTART, rule, None, instant)
