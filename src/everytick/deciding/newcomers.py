"""Who wants to come in: the instants that are due, and what people and programs asked for, as one line."""

from datetime import datetime

from everytick.deciding.candidates import TICK, Candidate, bound_schedule
from everytick.deciding.recovery import Due
from everytick.domain import ids
from everytick.domain.decisions import Refusal
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import LateOverlap, Overlap
from everytick.domain.snapshots import Active, JobSnapshot, Request
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value

_LATE_RULES = {
    LateOverlap.QUEUE: Overlap.QUEUE,
    LateOverlap.SKIP: Overlap.SKIP,
    LateOverlap.ALLOW: Overlap.ALLOW,
}
_PENDING, _SCHEDULE = OccurrenceStatus.PENDING, Cause.SCHEDULE


@value
class Newcomer:
    """Somebody who wants to come in under a rule: an instant that is due or a request; a refusal was decided before."""

    who: Active
    rule: Overlap
    covers_after: datetime | None
    covers_through: datetime
    late: bool = False
    candidate: Candidate | None = None
    request: Request | None = None
    refusal: Refusal | None = None


class Newcomers:
    """Everybody who wants to come in, in order of the line.

    `more` names the backfills that ask for more than fits into a plan, each with the last
    instant that stands in this line, or None where it has no place in it at all.
    """

    __slots__ = ("job", "limit", "line", "more", "snapshot")

    def __init__(self, snapshot: JobSnapshot, job: Job, found: Due, limit: int) -> None:
        self.snapshot, self.job, self.limit = snapshot, job, limit
        self.more: dict[str, datetime | None] = {}
        self.line = [_due(snapshot.job_id, job, found, each) for each in found.candidates]
        if snapshot.requests:
            self._add_requests()
        if len(self.line) > 1:
            self.sort()

    def sort(self) -> None:
        """Put everybody in order: by time in line, and among equals by id."""
        self.line.sort(key=lambda each: (each.who.line_at, each.who.id))

    def _add_requests(self) -> None:
        taken: set[str] = set()
        room = self.limit
        for request in self.snapshot.requests:
            if request.cause is Cause.BACKFILL:
                asked = self._backfill(request, room)
                room -= len(asked)
                self.line += [each for each in asked if each.who.id not in taken]
                taken |= {each.who.id for each in asked}
            else:
                self.line.append(requested(self.snapshot.job_id, self.job, request))

    def _backfill(self, request: Request, room: int) -> list[Newcomer]:
        """The instants that a backfill asks for, as many as fit."""
        assert request.after is not None, "a backfill says where it begins"
        schedule = bound_schedule(self.snapshot, self.job, self.snapshot.watermark, idle=False)
        found = list(schedule.instants(request.after, _end_of(request), room + 1))
        if len(found) > room:
            del found[room:]
            self.more[request.key] = found[-1] if found else None
        befores = [schedule.last_at(found[0] - TICK), *found] if found else []
        return [
            _filling(self.snapshot.job_id, request, instant, before)
            for instant, before in zip(found, befores, strict=False)
        ]


def _due(job_id: str, job: Job, found: Due, candidate: Candidate) -> Newcomer:
    instant, named_for = candidate.instant, candidate.named_for
    late = instant != found.on_time
    rule = _LATE_RULES[job.settings.late_overlap] if late else job.settings.overlap
    who = Active(ids.occurrence_id(job_id, named_for), instant, instant, _PENDING, _SCHEDULE)
    return Newcomer(who, rule, candidate.before, named_for, late, candidate, None, candidate.refusal)


def requested(job_id: str, job: Job, request: Request, refusal: Refusal | None = None) -> Newcomer:
    """Return what one request asks for; it waits in line unless another rule was named with it."""
    asked = request.requested_at
    who = Active(_id_of(job_id, job, request), asked, request.scheduled_for or asked, _PENDING, request.cause)
    rule, through = request.overlap or Overlap.QUEUE, request.covers_through or who.scheduled_for
    return Newcomer(who, rule, request.covers_after, through, request=request, refusal=refusal)


def _id_of(job_id: str, job: Job, request: Request) -> str:
    match request.cause:
        case Cause.REPLAY:
            return ids.replay_id(job_id, request.key)
        case Cause.CREATE:
            return ids.create_id(job_id, job.version)
        case Cause.BACKFILL:
            # One that is turned down as a whole; the instants of any other have ids of their own.
            return ids.backfill_again_id(job_id, request.key, request.requested_at)
        case _:
            return ids.trigger_id(job_id, request.key)


def _filling(job_id: str, request: Request, instant: datetime, before: datetime | None) -> Newcomer:
    if request.again:
        id_ = ids.backfill_again_id(job_id, request.key, instant)
    else:
        id_ = ids.occurrence_id(job_id, instant)
    # With equal times in line their ids would decide, which are in no order; a microsecond for each
    # second keeps the order of time, and says the same however often the backfill is cut.
    line_at = request.requested_at - (_end_of(request) - instant) // 1_000_000
    who = Active(id_, line_at, instant, _PENDING, Cause.BACKFILL)
    return Newcomer(who, Overlap.QUEUE, before, instant, request=request)


def _end_of(request: Request) -> datetime:
    """The end of a backfill: what had not come when somebody asked is the schedule's own."""
    assert request.through is not None, "a backfill says where it ends"
    return min(request.through, request.requested_at)


def restarting(job_id: str, instant: datetime) -> Newcomer:
    """Return what an instant of the restart schedule asks for."""
    who = Active(ids.restart_id(job_id, instant), instant, instant, _PENDING, Cause.RESTART)
    return Newcomer(who, Overlap.QUEUE, None, instant)
