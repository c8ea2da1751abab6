"""The newcomers of a plan: the instants that are due and the requests of people and programs, in one order."""

from collections.abc import Iterator
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import ClassVar

from everytick.deciding.candidates import Candidate
from everytick.deciding.past import past_instants
from everytick.deciding.recovery import DueInstants, too_late
from everytick.domain import ids
from everytick.domain.decisions import Refusal
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import LateOverlap, Overlap
from everytick.domain.snapshots import AdjustmentKind, Edition, JobSnapshot, Request
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
    """An instant that is due or a request, with its overlap rule, and a refusal if one was decided before."""

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

    @property
    def is_instant(self) -> bool:
        """Whether its own schedule names it where it stands: only such can be read back from a span."""
        return self.candidate is not None and not self.candidate.by_hand


class Newcomers:
    """All newcomers of a plan, in the order of the line.

    `asked` are those whom no schedule names, in order. `more` names the backfills that ask for
    more than fits into a plan, each with the last instant that stands in this line, or None
    where it has no place in it at all.
    """

    __slots__ = ("asked", "found", "job", "more", "snapshot")

    def __init__(self, snapshot: JobSnapshot, job: Job, found: DueInstants, now: datetime, limit: int) -> None:
        self.snapshot, self.job, self.found = snapshot, job, found
        self.asked: list[Newcomer] = []
        self.more: dict[str, datetime | None] = {}
        if snapshot.requests:
            self._ask(now, limit)

    def in_order(self) -> Iterator[Newcomer]:
        """Give all newcomers by (line_at, id). An id is made only when its turn comes."""
        job_id, found, rules = self.snapshot.job_id, self.found, self._rules()
        instants = (_due(job_id, found, rules, each) for each in found.candidates)
        if not self.asked and not found.adjusted:
            return instants
        line = sorted(instants, key=_place) if found.adjusted else instants
        return merge(line, sorted(self.asked, key=_place), key=_place)

    def _rules(self) -> tuple[Overlap, Overlap]:
        """Return the overlap rule of the instant on time, and the one of late instants.

        A catch-up costs no live instant: what would be refused, or would cancel, because of it stands
        behind it; where late ones are skipped it is skipped as they are.
        """
        settings = self.job.settings
        late = _LATE_RULES[settings.late_overlap]
        if settings.overlap in _COSTLY and self._catches_up():
            return (Overlap.SKIP if late is Overlap.SKIP else Overlap.QUEUE), late
        return settings.overlap, late

    def _catches_up(self) -> bool:
        """Whether late ones of the schedule are kept now, or wait in line."""
        kept, on_time = self.found.candidates, self.found.on_time
        return any(each.refusal is None and each.instant != on_time for each in kept) or any(
            each.late and each.cause is Cause.SCHEDULE for each in self.snapshot.waiting
        )

    def _ask(self, now: datetime, limit: int) -> None:
        taken: set[str] = set()
        for request in self.snapshot.requests:
            if request.cause is Cause.BACKFILL:
                asked = [each for each in self._backfill(request, limit - len(taken)) if each.id not in taken]
                self.asked += asked
                taken |= {each.id for each in asked}
            else:
                refusal = too_late(self.job, request, now)
                self.asked.append(requested(self.snapshot.job_id, self.job, request, refusal))

    def _backfill(self, request: Request, room: int) -> list[Newcomer]:
        """The instants that a backfill asks for, as many as fit."""
        assert request.after is not None, "a backfill says where it begins"
        editions, through = self._of_its_time(request)
        named = past_instants(editions, request.after, through)
        found = list(islice((each for each in named if not self._is_moved(request, each[0])), room + 1))
        if len(found) > room:
            del found[room:]
            self.more[request.key] = found[-1][0] if found else None
        elif through < _end_of(request):
            self.more[request.key] = through
        return [_filling(self.snapshot.job_id, self.job, request, instant, before) for instant, before in found]

    def _of_its_time(self, request: Request) -> tuple[tuple[Edition, ...], datetime]:
        """The definitions that name the instants of a backfill, and how far they are known."""
        if request.as_of_now:
            return (Edition(self.job),), _end_of(request)
        past = next((each for each in self.snapshot.pasts if each.key == request.key), None)
        if past is None:
            return self.snapshot.editions, _end_of(request)
        return (*past.editions, *self.snapshot.editions), min(_end_of(request), past.through or _end_of(request))

    def _is_moved(self, request: Request, instant: datetime) -> bool:
        """Whether the instant was moved or rescheduled: then it has another occurrence, which may be still to come."""
        return not request.again and any(
            each.at == instant and each.kind is AdjustmentKind.MOVE and each.vacates
            for each in self.snapshot.adjustments
        )


def _place(newcomer: Newcomer) -> tuple[datetime, str]:
    return newcomer.line_at, newcomer.id


def _due(job_id: str, found: DueInstants, rules: tuple[Overlap, Overlap], candidate: Candidate) -> Newcomer:
    instant, named_for = candidate.instant, candidate.named_for
    late = instant != found.on_time
    return Newcomer(
        ids.occurrence_id(job_id, named_for),
        instant,
        instant,
        Cause.SCHEDULE,
        rules[late],
        candidate.before,
        named_for,
        late,
        candidate,
        None,
        candidate.refusal,
    )


def requested(job_id: str, job: Job, request: Request, refusal: Refusal | None = None) -> Newcomer:
    """Return what one request asks for, under the rule that was named with it."""
    asked = request.line_at
    scheduled_for = request.scheduled_for or asked
    return Newcomer(
        request.occurrence_id(job_id),
        asked,
        scheduled_for,
        request.cause,
        request.overlap or _asked_rule(job),
        request.covers_after,
        request.covers_through or scheduled_for,
        request=request,
        refusal=refusal,
    )


def _asked_rule(job: Job) -> Overlap:
    """Return the overlap rule of a request that names none.

    It waits in line, so that it is not dropped and does not overlap; a job that may overlap may
    never be idle, so there it comes in at once.
    """
    return Overlap.ALLOW if job.settings.overlap is Overlap.ALLOW else Overlap.QUEUE


def _filling(job_id: str, job: Job, request: Request, instant: datetime, before: datetime | None) -> Newcomer:
    id_ = request.filling_id(job_id, instant)
    # With equal times in line their ids would decide, which are in no order; a microsecond for each
    # second keeps the order of time, and says the same however often the backfill is cut.
    line_at = request.requested_at - (_end_of(request) - instant) // 1_000_000
    rule = request.overlap or _asked_rule(job)
    return Newcomer(id_, line_at, instant, Cause.BACKFILL, rule, before, instant, request=request)


def _end_of(request: Request) -> datetime:
    """Return the end of a backfill: the schedule itself runs what was still to come when the backfill was asked for."""
    assert request.through is not None, "a backfill says where it ends"
    return min(request.through, request.requested_at)


def restarting(job: Job, instant: datetime) -> Newcomer:
    """Return what an instant of the restart schedule asks for."""
    rule = _asked_rule(job)
    return Newcomer(ids.restart_id(job.id, instant), instant, instant, Cause.RESTART, rule, None, instant)
