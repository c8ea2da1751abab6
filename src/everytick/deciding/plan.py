"""plan: what becomes of every instant of one job after its watermark and through now.

Filters, then recovery, then the line: the order of a decision is written out in `plan` and
the parts stand in `candidates` and `admission`. Live ticks, a restart, a week's outage and
a backfill all take these few lines; being late is a property of an instant, not a path.
"""

from datetime import datetime, timedelta

from everytick.deciding.admission import Line, Refusal
from everytick.deciding.candidates import NOTHING, Candidate, Due, append, bound_schedule, due, in_force
from everytick.domain import ids
from everytick.domain.decisions import Answer, Creation, Ending, Plan, Span, Why
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import LateOverlap, Overlap
from everytick.domain.schedule import Schedule, waits_for_end
from everytick.domain.snapshots import PLAN_LIMIT, Active, Adjustment, JobSnapshot, Request
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value

_TICK = timedelta(microseconds=1)
_LATE_RULES = {
    LateOverlap.QUEUE: Overlap.QUEUE,
    LateOverlap.SKIP: Overlap.SKIP,
    LateOverlap.ALLOW: Overlap.ALLOW,
}


def plan(snapshot: JobSnapshot, now: datetime, limit: int = PLAN_LIMIT) -> Plan:
    """Decide every instant after the watermark and through `now`, and every open request.

    At most `limit` occurrences are created or released: if more are due, the watermark stops
    at the last instant decided and `wake_at` is now, so that the planner comes straight back.
    """
    if snapshot.retire_at is not None:
        return _retired(snapshot, now, limit)
    job = in_force(snapshot.editions, now).job
    if not job.enabled:
        return Plan(snapshot.job_id, snapshot.revision, snapshot.woken, snapshot.watermark, None)
    paused = any(pause.holds(now) for pause in snapshot.pauses)
    found = NOTHING if paused or now <= snapshot.watermark else due(snapshot, job, now)
    line = Line(snapshot, job.settings, paused=paused)
    restart = None if paused else _stopped(snapshot, job, line, now)
    if found.candidates:
        line.supersede_retries(found.candidates[-1].instant)
    line.release(limit)
    decided = _Decided(snapshot, job, line, now, limit)
    decided.admit(_items(snapshot, job, found, restart, limit))
    return decided.plan(found, paused)


def _retired(snapshot: JobSnapshot, now: datetime, limit: int) -> Plan:
    """A removed job creates nothing; once its time is over, what nobody has claimed is canceled."""
    assert snapshot.retire_at is not None, "only a removed job is retired"
    over = now >= snapshot.retire_at
    unclaimed = [*snapshot.waiting, *(each for each in snapshot.busy if each.status is OccurrenceStatus.PENDING)]
    endings = [Ending(each.id, OccurrenceStatus.CANCELED, Why.REMOVED) for each in unclaimed[:limit]] if over else []
    cut = over and (len(unclaimed) > limit or snapshot.waiting_count > len(snapshot.waiting))
    job = snapshot.editions[-1].job
    asked = [_request_item(snapshot.job_id, job, request) for request in snapshot.requests]
    return Plan(
        snapshot.job_id,
        snapshot.revision,
        snapshot.woken,
        snapshot.watermark,
        (now if cut or snapshot.more_requests else None) if over else snapshot.retire_at,
        creations=tuple(_creation(job, item, OccurrenceStatus.SKIPPED, Why.REMOVED) for item in asked),
        endings=tuple(endings),
        answers=tuple(Answer(request.key, request.cause) for request in snapshot.requests),
    )


@value
class _Item:
    """Somebody who wants to come in: an instant that was kept, or a request."""

    id: str
    line_at: datetime
    scheduled_for: datetime
    cause: Cause
    rule: Overlap | None = None
    candidate: Candidate | None = None
    request: Request | None = None


def _items(snapshot: JobSnapshot, job: Job, found: Due, restart: datetime | None, limit: int) -> list[_Item]:
    """Everybody who wants to come in, in the order of the line."""
    items = [_candidate_item(snapshot.job_id, job, each) for each in found.candidates]
    if snapshot.requests or restart is not None:
        for request in snapshot.requests:
            if request.cause is Cause.BACKFILL:
                items += _backfill_items(snapshot, job, request, limit)
            else:
                items.append(_request_item(snapshot.job_id, job, request))
        if restart is not None:
            id_ = ids.restart_id(snapshot.job_id, restart)
            items.append(_Item(id_, restart, restart, Cause.RESTART, Overlap.QUEUE))
        items.sort(key=lambda item: (item.line_at, item.scheduled_for, item.id))
    return items


def _candidate_item(job_id: str, job: Job, candidate: Candidate) -> _Item:
    rule = _LATE_RULES[job.settings.late_overlap] if candidate.late else job.settings.overlap
    id_ = ids.occurrence_id(job_id, candidate.named_for)
    return _Item(id_, candidate.instant, candidate.instant, Cause.SCHEDULE, rule, candidate)


def _request_item(job_id: str, job: Job, request: Request) -> _Item:
    match request.cause:
        case Cause.REPLAY:
            id_ = ids.replay_id(job_id, request.key)
        case Cause.CREATE:
            id_ = ids.create_id(job_id, job.version)
        case _:
            id_ = ids.trigger_id(job_id, request.key)
    asked = request.requested_at
    rule = request.overlap or Overlap.QUEUE
    return _Item(id_, asked, request.scheduled_for or asked, request.cause, rule, request=request)


def _backfill_items(snapshot: JobSnapshot, job: Job, request: Request, limit: int) -> list[_Item]:
    """The instants that a backfill asks for, one more than fits so that a cut is seen."""
    assert request.after is not None, "a backfill says where it begins"
    assert request.through is not None, "a backfill says where it ends"
    schedule = bound_schedule(snapshot, job)
    items = []
    for place, instant in enumerate(schedule.instants(request.after, request.through, limit + 1)):
        if request.again:
            id_ = ids.backfill_again_id(snapshot.job_id, request.key, instant)
        else:
            id_ = ids.occurrence_id(snapshot.job_id, instant)
        # Equal times in line would be told apart by their ids, which are in no order.
        line_at = request.requested_at + place * _TICK
        items.append(_Item(id_, line_at, instant, Cause.BACKFILL, Overlap.QUEUE, request=request))
    return items


def _stopped(snapshot: JobSnapshot, job: Job, line: Line, now: datetime) -> datetime | None:
    """Ask the busy to stop if a stop or restart instant is on time; return the restart's instant, if there is one."""
    settings = job.settings
    if settings.stop_schedule is None and settings.restart_schedule is None:
        return None
    stop, restart = (
        _on_time(schedule, snapshot.watermark, now, settings.grace)
        for schedule in (settings.stop_schedule, settings.restart_schedule)
    )
    if stop is not None or restart is not None:
        line.cancel_all()
    return restart


def _on_time(schedule: Schedule | None, after: datetime, now: datetime, grace: timedelta) -> datetime | None:
    """The newest instant if it is still on time: stop and restart are never caught up."""
    instant = schedule.last_at(now) if schedule is not None else None
    return instant if instant is not None and after < instant and now < instant + grace else None


class _Decided:
    """A plan in the making: what was created, skipped and answered so far, and where it was cut."""

    __slots__ = ("answers", "creations", "cut", "job", "limit", "line", "now", "skipped", "snapshot", "used")

    def __init__(self, snapshot: JobSnapshot, job: Job, line: Line, now: datetime, limit: int) -> None:
        self.snapshot, self.job, self.line, self.now, self.limit = snapshot, job, line, now, limit
        self.creations: list[Creation] = []
        self.skipped: list[tuple[_Item, Refusal]] = []
        self.answers: dict[str, Answer] = {}
        self.used: list[Adjustment] = []
        self.cut: list[_Item] = []

    def admit(self, items: list[_Item]) -> None:
        """Let everybody in, in order, until the plan is full."""
        for place, item in enumerate(items):
            if len(self.creations) + len(self.line.releases) >= self.limit:
                self.cut = items[place:]
                return
            newcomer = Active(item.id, item.line_at, item.scheduled_for, OccurrenceStatus.PENDING, item.cause)
            assert item.rule is not None, "everybody comes in under a rule"
            self._settle(item, self._successful(item) or self.line.admit(newcomer, item.rule))

    def _settle(self, item: _Item, verdict: OccurrenceStatus | Refusal) -> None:
        request = item.request
        if not isinstance(verdict, tuple):
            self.creations.append(_creation(self.job, item, verdict, _why(item)))
        elif item.candidate is None or item.candidate.adjustment is not None or item.candidate.rescheduled:
            # What is no instant of the schedule could not be read back from a span: it is a row.
            self.creations.append(_creation(self.job, item, OccurrenceStatus.SKIPPED, *verdict))
        else:
            self.skipped.append((item, verdict))
        if request is not None:
            through = item.scheduled_for if item.cause is Cause.BACKFILL else None
            self.answers[request.key] = Answer(request.key, request.cause, through)
        elif item.candidate is not None and item.candidate.adjustment is not None:
            self.used.append(item.candidate.adjustment)

    def _successful(self, item: _Item) -> Refusal | None:
        last, candidate = self.snapshot.last_success, item.candidate
        if candidate is None or candidate.late or not self.job.settings.skip_if_successful or last is None:
            return None
        previous = candidate.schedule.last_at(candidate.instant - _TICK)
        if last.started_at is None or (previous is not None and last.started_at <= previous):
            return None
        return Why.SUCCESSFUL, f"started {last.started_at.isoformat()}"

    def plan(self, found: Due, paused: bool) -> Plan:
        """Return the plan: what was decided after a cut is left for the next one."""
        snapshot = self.snapshot
        watermark = self._watermark(found, paused)
        spans = [span for span in found.spans if span.through <= watermark]
        for item, (why, detail) in self.skipped:
            _skip(spans, self.job, item, why, detail)
        for candidate, why in found.dropped:
            if candidate.instant <= watermark:
                item = _candidate_item(snapshot.job_id, self.job, candidate)
                status = OccurrenceStatus.MISSED if why is Why.MISSED else OccurrenceStatus.SKIPPED
                self.creations.append(_creation(self.job, item, status, why))
                self.used += [candidate.adjustment] if candidate.adjustment else []
        return Plan(
            snapshot.job_id,
            snapshot.revision,
            snapshot.woken,
            watermark,
            self._wake_at(watermark, paused),
            tuple(self.creations),
            tuple(self.line.releases),
            tuple(self.line.endings),
            tuple(self.line.cancels),
            tuple(spans),
            tuple(self._answers()),
            tuple(self.used),
            snapshot.reschedule is not None and not paused and snapshot.reschedule.to <= watermark,
        )

    def _watermark(self, found: Due, paused: bool) -> datetime:
        """How far everything is decided: through now, or up to what a cut left over."""
        start = self.snapshot.watermark
        if paused or self.now <= start:
            return start
        left = [item.scheduled_for for item in self.cut if item.candidate is not None]
        if left:
            done = [item.scheduled_for for item, _ in self.skipped]
            done += [each.scheduled_for for each in self.creations if each.cause is Cause.SCHEDULE]
            done += [span.through for span in found.spans]
            return max((at for at in done if start < at < left[0]), default=start)
        line = self.line
        if (line.busy_count or line.waiting_count) and waits_for_end(self.job.schedule):
            # Its next instant follows from an end that may already lie before this now.
            return max([start, *(each.instant for each in found.candidates)])
        return self.now

    def _wake_at(self, watermark: datetime, paused: bool) -> datetime | None:
        """When to look again: maybe early, never late."""
        snapshot = self.snapshot
        more_in_line = self.line.waiting_count > 0 and self.line.has_room
        if self.cut or snapshot.more_requests or more_in_line:
            return self.now
        if paused:
            return min(
                (pause.until for pause in snapshot.pauses if pause.until and self.now < pause.until), default=None
            )
        times = [_next_instant(snapshot, watermark)]
        settings = self.job.settings
        times += [each.next_after(self.now) for each in (settings.stop_schedule, settings.restart_schedule) if each]
        times += [each.to for each in snapshot.adjustments if each.to is not None and each.to > watermark]
        if snapshot.reschedule is not None and snapshot.reschedule.to > watermark:
            times.append(snapshot.reschedule.to)
        return min(filter(None, times), default=None)

    def _answers(self) -> list[Answer]:
        """Requests that are dealt with; a backfill is so when nothing of it was cut."""
        unfinished = {item.request.key for item in self.cut if item.request is not None}
        answers = []
        for request in self.snapshot.requests:
            answer = self.answers.get(request.key)
            if request.key not in unfinished:
                answers.append(Answer(request.key, request.cause))
            elif answer is not None and request.cause is Cause.BACKFILL:
                answers.append(answer)
        return answers


def _next_instant(snapshot: JobSnapshot, after: datetime) -> datetime | None:
    """The first instant after a moment, by the definition in force at it."""
    editions = snapshot.editions
    for place, edition in enumerate(editions):
        until = editions[place + 1].in_force_after if place + 1 < len(editions) else None
        if until is not None and until <= after:
            continue
        begin = after if edition.in_force_after is None else max(after, edition.in_force_after)
        found = bound_schedule(snapshot, edition.job).next_after(begin) if edition.job.enabled else None
        if found is not None and (until is None or found <= until):
            return found
    return None


def _why(item: _Item) -> Why:
    if item.candidate is None:
        return Why.ASKED
    return Why.LATE if item.candidate.late else Why.ON_TIME


def _creation(job: Job, item: _Item, status: OccurrenceStatus, why: Why, detail: str = "") -> Creation:
    candidate, request = item.candidate, item.request
    at = item.scheduled_for
    if candidate is not None:
        covers_after = candidate.covers_after or candidate.schedule.last_at(at - _TICK)
    elif request is not None and request.cause is Cause.BACKFILL:
        covers_after = job.bound(None).last_at(at - _TICK)
    else:
        covers_after = request.covers_after if request is not None else None
    jitter = job.settings.jitter
    return Creation(
        item.id,
        at,
        status,
        job.version,
        item.cause,
        item.line_at,
        item.line_at if jitter is None else item.line_at + _share(item.id) * jitter,
        covers_after,
        at if request is None or request.covers_through is None else request.covers_through,
        candidate is not None and candidate.late,
        why,
        detail,
        job.settings.payload if request is None or request.payload is None else request.payload,
        None if request is None else request.replay_of,
    )


def _share(id_: str) -> float:
    """A number in [0, 1) that every node derives from the same id."""
    return int(id_[-12:], 16) / 2**48


def _skip(spans: list[Span], job: Job, item: _Item, why: Why, detail: str) -> None:
    assert item.candidate is not None, "only an instant is skipped as a span"
    at = item.scheduled_for
    span = Span(OccurrenceStatus.SKIPPED, why, detail, at - _TICK, at, job.version, 1)
    append(spans, span, item.candidate.schedule)
