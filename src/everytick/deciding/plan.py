"""plan: what becomes of every instant of one job after its watermark and through now.

First filters, then recovery, then the line. `plan_in_full` calls them in this order; they stand in
`candidates`, `recovery`, `newcomers`, `admission` and `spans`. A live tick, a restart, a week's
outage and a backfill all take this one way: an instant may be late, but no code is for late ones
alone. `tick` only says the commonest plan sooner.
"""

from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from everytick.deciding.admission import Line
from everytick.deciding.candidates import Candidate, Segment, segments_of
from everytick.deciding.dependence import first_deadline, waiting_words, waits_for
from everytick.deciding.filling import Fills
from everytick.deciding.newcomers import Newcomer, Newcomers, requested
from everytick.deciding.recovery import DueInstants, due
from everytick.deciding.rollout import ASKED_AGAIN, dry_words, trial_words, tried_by, where_to
from everytick.deciding.spans import skips_of, spans_of, status_of
from everytick.deciding.stopping import next_stop, stop_or_restart
from everytick.deciding.tick import plain_tick
from everytick.domain.backfills import BackfillStatus, Filling, OpenBackfill
from everytick.domain.config import Unset
from everytick.domain.decisions import Creation, Ending, Plan, Refusal, RequestAnswer, Span, Turned, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.payload import Payload
from everytick.domain.schedule import waits_for_end
from everytick.domain.snapshots import PLAN_LIMIT, Adjustment, Edition, JobSnapshot, Rescheduled
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.upcoming import (
    ComingRun,
    coming,
    edition_in_force,
    editions_to_come,
    in_force,
    is_counted,
    next_instant,
    next_run,
    trial_of,
)

EDITIONS_KEPT = 8
"""Versions of a definition that may wait for the end of a pause. With more, a part of the pause is decided early."""


def plan(snapshot: JobSnapshot, now: datetime, limit: int = PLAN_LIMIT) -> Plan:
    """Decide every instant after the watermark and through `now`, and every open request.

    At most `limit` occurrences are created or released: if more are due, the watermark stops
    at the last instant decided and `wake_at` is now, so that the planner comes straight back.
    """
    return plain_tick(snapshot, now) or plan_in_full(snapshot, now, limit)


def plan_in_full(snapshot: JobSnapshot, now: datetime, limit: int = PLAN_LIMIT) -> Plan:
    """Decide with everything in view. The plan of a job on which others depend tells them, and its ends wake it."""
    found = _decide(snapshot, now, limit)
    if not snapshot.is_needed:
        return found
    # An occurrence that ended before it was marked as awaited did not wake the job. Plan once more.
    again = snapshot.busy_count and not snapshot.awaited
    return replace(found, tells=True, awaits_ends=True, wake_at=now if again else found.wake_at)


def _decide(snapshot: JobSnapshot, now: datetime, limit: int) -> Plan:
    """Return the plan, and whether a version comes into force with it."""
    if snapshot.retire_at is not None:
        return _retired(snapshot, now, snapshot.retire_at, limit)
    decided = _plan_in_service(snapshot, now, limit)
    if len(snapshot.editions) == 1:
        return decided
    turned = _with_turns(snapshot, decided, now)
    return turned if trial_of(snapshot.editions) is None else _with_trial(snapshot, turned, now)


def _with_trial(snapshot: JobSnapshot, decided: Plan, now: datetime) -> Plan:
    """Return the plan with what a rollout comes to. While it lasts, ends wake the job."""
    found = decided.verdict or where_to(snapshot)
    # An occurrence that ended before it was marked as awaited did not wake the job. Plan once more.
    again = bool(snapshot.busy_count) and not snapshot.awaited
    looks = [now] if again else [] if found is None else [now + ASKED_AGAIN]
    wake_at = min(filter(None, [decided.wake_at, *looks]), default=None)
    return replace(decided, verdict=found, awaits_ends=True, wake_at=wake_at)


def _with_turns(snapshot: JobSnapshot, decided: Plan, now: datetime) -> Plan:
    """Return the plan that looks again when a version comes into force, and tells of one that has."""
    current = edition_in_force(snapshot.editions, now)
    # What waits for other jobs by one of two versions may not by the other.
    needs = current.job.settings.depends_on
    moments = [
        each.in_force_after
        for each in editions_to_come(snapshot.editions, now)
        if each.has_waited or each.job.settings.depends_on != needs
    ]
    wake_at = min(filter(None, [decided.wake_at, *moments]), default=None)
    if current is snapshot.editions[0] or not current.has_waited:
        return decided if wake_at == decided.wake_at else replace(decided, wake_at=wake_at)
    before = in_force(snapshot.editions, (current.in_force_after or now) - MICROSECOND)
    is_narrowed = before.settings.recovery != current.job.settings.recovery and snapshot.narrowed_at is None
    narrowed_at = current.in_force_after if is_narrowed and snapshot.waiting_count else None
    turned = Turned(current.job, narrowed_at)
    return replace(decided, wake_at=wake_at if narrowed_at is None else now, turned=turned)


def _plan_in_service(snapshot: JobSnapshot, now: datetime, limit: int) -> Plan:
    """Decide about a job in service; the order of these lines is the order of a decision."""
    job = in_force(snapshot.editions, now)
    if not job.settings.enabled:
        return _disabled(snapshot, job, now)
    paused = bool(snapshot.pauses) and any(pause.holds(now) for pause in snapshot.pauses)
    # The instants of a pause become one span when it ends: until then next to nothing of the schedule is decided.
    found = _held(snapshot, now) if paused else due(snapshot, job, now)
    line = Line(snapshot, job, paused=paused)
    newcomers = Newcomers(snapshot, job, found, now)
    if (restarted := stop_or_restart(snapshot, job, now, line)) is not None:
        newcomers.asked.append(restarted)
    if snapshot.narrowed_at is not None and not paused and not line.narrow(job, snapshot.narrowed_at, limit):
        return _narrowed(snapshot, now, line)
    if snapshot.busy and (newest := _newest(found, line)) is not None:
        line.supersede_retries(newest)
    if line.depends_on:
        line.ask_others(snapshot, now)
        line.release_met(limit)
    else:
        line.release(limit)
    decided = _Decided(snapshot, job, found, line, now, paused)
    if snapshot.backfill is not None:
        decided.fills = _fills(snapshot, job, newcomers, line, now, limit - len(line.releases))
    decided.admit(newcomers, limit - len(line.releases))
    return decided.plan()


def _fills(snapshot: JobSnapshot, job: Job, newcomers: Newcomers, line: Line, now: datetime, room: int) -> Fills:
    """Return what the open backfill gets; it joins the newcomers, behind all others."""
    wanted = sum(1 for each in newcomers.found.candidates if each.refusal is None) + len(newcomers.asked)
    fills = Fills(snapshot, job, line, now, wanted, room - wanted)
    newcomers.asked += fills.newcomers
    return fills


def _newest(found: DueInstants, line: Line) -> datetime | None:
    """The newest instant that shall run: one that is due, or one that came while another ran and stands in line."""
    kept, waiting = found.newest_kept, [each.scheduled_for for each in line.waiting if each.cause is Cause.SCHEDULE]
    return max(filter(None, [kept, *waiting]), default=None) if waiting else kept


def _narrowed(snapshot: JobSnapshot, now: datetime, line: Line) -> Plan:
    """End what an edit of `recovery` left no reason for. No newcomer comes in before all of it has ended."""
    return Plan(
        snapshot.job_id,
        snapshot.revision,
        snapshot.woken,
        snapshot.watermark,
        now,
        endings=tuple(line.endings),
        cancels=tuple(line.cancels),
        cancels_before=line.cancels_before,
        cancels_because=line.cancels_because,
        next_run=next_run(snapshot, now),
        coming=_coming(snapshot, now),
    )


def _disabled(snapshot: JobSnapshot, job: Job, now: datetime) -> Plan:
    """Decide next to nothing. The job wakes when another definition is in force, or when something is to stop."""
    line = Line(snapshot, job, paused=False)
    stop_or_restart(snapshot, job, now, line)
    moments = [each.in_force_after for each in editions_to_come(snapshot.editions, now)]
    stop = next_stop(snapshot, job, now) if line.busy_count else None
    wake_at = min(filter(None, [stop, *moments]), default=None)
    held = _held(snapshot, now)
    watermark = held.segments[-1].through if held.segments else snapshot.watermark
    spans = tuple(spans_of(held, watermark))
    return Plan(
        snapshot.job_id,
        snapshot.revision,
        snapshot.woken,
        watermark,
        wake_at,
        cancels=tuple(line.cancels),
        spans=spans,
        cancels_before=line.cancels_before,
        cancels_because=line.cancels_because,
        next_run=next_run(snapshot, now),
        coming=_coming(snapshot, now),
    )


def _held(snapshot: JobSnapshot, now: datetime) -> DueInstants:
    """Return what is past and cannot run, where the definitions that name it have become too many to keep.

    It begins at the watermark and ends before the first stretch of time whose instants may
    still run, as those of a pause that is caught up. Where something was asked by hand, or an
    instant may follow an end, nothing is decided early.
    """
    if len(snapshot.editions) < EDITIONS_KEPT or snapshot.reschedule is not None:
        return DueInstants([], {})
    idle = not snapshot.busy_count and not snapshot.waiting_count
    if any(min(each.at, each.to or each.at) <= now for each in snapshot.adjustments) or (
        not idle and any(waits_for_end(each.job.schedule) for each in snapshot.editions)
    ):
        return DueInstants([], {})
    return DueInstants(list(takewhile(_cannot_run, segments_of(snapshot, now, idle=idle))), {})


def _cannot_run(segment: Segment) -> bool:
    """Whether everything in it is held back for good, or there is nothing in it."""
    last = segment.schedule.last_at(segment.through) if segment.hold is None else None
    return last is None or last <= segment.after


def _retired(snapshot: JobSnapshot, now: datetime, retire_at: datetime, limit: int) -> Plan:
    """Create nothing for a removed job. Once its time is over, cancel what no node runs, waits for a retry included.

    Runs that were asked for at a time are refused then too. Until then the job may be put back into service.
    A running occurrence finishes. If it comes to wait for a retry, its job is planned again.
    """
    is_over = now >= retire_at
    # Requests without a time come first: where one with a time is shown, no other is left out.
    answerable = [each for each in snapshot.requests if is_over or each.due_at is None]
    more_asked = len(answerable) > limit or (snapshot.more_requests and len(answerable) == len(snapshot.requests))
    job, asked = snapshot.editions[-1].job, answerable[:limit]
    refused = [requested(snapshot.job_id, job, each, (Why.REMOVED, "")) for each in asked]
    idle = [each for each in snapshot.busy if each.status is not OccurrenceStatus.RUNNING]
    unclaimed = [*snapshot.waiting, *idle]
    ended = unclaimed[:limit] if is_over else []
    unseen = snapshot.busy_count + snapshot.waiting_count - len(snapshot.busy) - len(snapshot.waiting)
    more = (ended and len(unclaimed) + unseen > limit) or more_asked
    awaits_ends = is_over and snapshot.busy_count > len(idle)
    more = more or (awaits_ends and not snapshot.awaited) or (is_over and snapshot.more_backfills)
    return Plan(
        snapshot.job_id,
        snapshot.revision,
        snapshot.woken,
        snapshot.watermark,
        now if more else None if is_over else retire_at,
        creations=tuple(_creation(job, each, OccurrenceStatus.SKIPPED, now, Why.REMOVED) for each in refused),
        endings=tuple(Ending(each.id, OccurrenceStatus.CANCELED, Why.REMOVED) for each in ended),
        answers=tuple(RequestAnswer(each.key, each.cause) for each in asked),
        awaits_ends=awaits_ends,
        coming=_coming(snapshot, now),
        filling=_given_up(snapshot.backfill) if snapshot.backfill is not None and is_over else None,
    )


def _given_up(backfill: OpenBackfill) -> Filling:
    """End the backfill of a removed job: it gets no more occurrences."""
    return Filling(
        backfill.order.key,
        backfill.after,
        backfill.through,
        backfill.pace,
        backfill.paced_at,
        backfill.filled_at,
        status=BackfillStatus.CANCELED,
    )


def _coming(snapshot: JobSnapshot, now: datetime, *, idle: bool | None = None) -> tuple[ComingRun, ...] | None:
    """Return the runs to come that the definition in force wants to be shown; none where only an older one did."""
    horizon = in_force(snapshot.editions, now).settings.horizon
    if horizon is not None:
        return coming(snapshot, now, horizon, idle=idle)
    return () if any(each.job.settings.horizon is not None for each in snapshot.editions) else None


class _Decided:
    """A plan in the making: which newcomers were let in or turned away so far, and which found no room.

    `settled` are those who were decided about; those whom the limit left for the next plan are
    `cut_candidates` and, where no schedule names them, `cut_asked`.
    """

    __slots__ = (
        "creations", "cut_asked", "cut_candidates", "dry_error", "fills", "found", "is_on_time_behind", "job", "line",
        "now", "paused", "refused", "settled", "snapshot",
    )  # fmt: skip

    def __init__(
        self, snapshot: JobSnapshot, job: Job, found: DueInstants, line: Line, now: datetime, paused: bool
    ) -> None:
        self.snapshot, self.job, self.found, self.line, self.now, self.paused = snapshot, job, found, line, now, paused
        self.creations: list[Creation] = []
        self.refused: list[tuple[Candidate, Refusal]] = []
        self.settled: list[Newcomer] = []
        self.cut_candidates: list[Candidate] = []
        self.cut_asked: list[Newcomer] = []
        self.fills: Fills | None = None
        self.is_on_time_behind = False
        self.dry_error = ""

    def admit(self, newcomers: Newcomers, room: int) -> None:
        """Take the newcomers in order until the plan is full. One that is only recorded in a span takes no room."""
        verdicts: list[OccurrenceStatus | Refusal | None] = []
        settled = self.settled
        for newcomer in newcomers.in_order():
            if room <= 0:
                break
            verdict = self._verdict(newcomer)
            if self.line.is_cut:
                break
            settled.append(newcomer)
            verdicts.append(verdict)
            if not isinstance(verdict, tuple) or not newcomer.is_instant:
                room -= 1
        self._leave_the_others(newcomers)
        displaced, behind = self.line.displaced, self.line.behind()
        self.is_on_time_behind = any(
            each.cause is Cause.SCHEDULE and not each.late and each.id not in displaced for each in self.line.waiting
        )
        for newcomer, verdict in zip(settled, verdicts, strict=True):
            if verdict is not None:
                self._write_down(newcomer, displaced.get(newcomer.id, verdict) if displaced else verdict, behind)

    def _leave_the_others(self, newcomers: Newcomers) -> None:
        """Remember the newcomers that found no room: both parts of the line were taken in order."""
        if len(self.settled) < len(self.found.candidates) + len(newcomers.asked):
            taken = {each.id for each in self.settled if each.candidate is None}
            self.cut_asked = [each for each in newcomers.asked if each.id not in taken]
            seen = {each.candidate.named_for for each in self.settled if each.candidate is not None}
            self.cut_candidates = [each for each in self.found.candidates if each.named_for not in seen]

    def _verdict(self, newcomer: Newcomer) -> OccurrenceStatus | Refusal | None:
        """Pending or queued, why not, or None for what a backfill asks for and the schedule has just created."""
        if newcomer.refusal is not None:
            return newcomer.refusal
        if newcomer.cause is not Cause.SCHEDULE and newcomer.id in self.line.newcomers:
            return None
        if self.job.settings.skip_if_successful and newcomer.candidate is not None and not newcomer.late:
            successful = self._already_successful(newcomer)
            if successful is not None:
                return successful
        return self.line.admit(newcomer, newcomer.rule)

    def _already_successful(self, newcomer: Newcomer) -> Refusal | None:
        """Why it need not run: a success started since the previous instant, other than that instant's own run."""
        before = newcomer.covers_after
        # The run of an instant starts a moment after it, and is no reason to leave the next one out.
        own = None if before is None else occurrence_id(self.job.id, before)
        for success in (self.snapshot.last_success, self.snapshot.other_success):
            if success is None or success.started_at is None or success.id == own:
                continue
            # One that starts at the very instant is one that a node starts a moment later.
            if before is None or success.started_at >= before:
                return Why.SUCCESSFUL, f"started {success.started_at.isoformat()}"
        return None

    def _write_down(self, newcomer: Newcomer, verdict: OccurrenceStatus | Refusal, behind: str) -> None:
        candidate = newcomer.candidate
        if not isinstance(verdict, tuple):
            why = Why.ASKED if candidate is None else Why.LATE if newcomer.late else Why.ON_TIME
            detail = self._why_queued(newcomer, behind) if verdict is OccurrenceStatus.QUEUED else ""
            if candidate is not None and candidate.adjustment is not None:
                detail = ", ".join(filter(None, (candidate.adjustment.detail, detail)))
            trial = trial_of(self.snapshot.editions)
            tried = tried_by(trial, newcomer)
            detail = ", ".join(filter(None, (detail, self._trial_words(trial, tried, newcomer))))
            made = _creation(self.job if tried is None else tried.job, newcomer, verdict, self.now, why, detail)
            if (newcomer.late or newcomer.told) and not self.is_on_time_behind:
                # A catch-up does not push out live runs of other jobs, nor hold back the job's own.
                made = replace(made, in_lane=True)
            self.creations.append(made)
        elif candidate is not None and not candidate.by_hand:
            self.refused.append((candidate, verdict))
        else:
            self.creations.append(_creation(self.job, newcomer, status_of(verdict[0]), self.now, *verdict))

    def _trial_words(self, trial: Edition | None, tried: Edition | None, newcomer: Newcomer) -> str:
        """Say that it tries a version, or what a dry run of that version says of it."""
        if tried is not None:
            return trial_words(tried)
        if trial is None or trial.rollout is None or not trial.rollout.dry_run:
            return ""
        if not is_counted(trial, newcomer.cause, newcomer.scheduled_for):
            return ""
        try:
            return dry_words(self.snapshot, trial, newcomer, self.now)
        except Exception as error:  # noqa: BLE001, a schedule of a user's own may raise anything: the dry run finds out
            self.dry_error = f"{type(error).__name__}: {error}"
            return f"version {trial.job.version} cannot be planned"

    def _why_queued(self, newcomer: Newcomer, behind: str) -> str:
        if not self.line.depends_on or not waits_for(self.line.depends_on, newcomer.cause):
            return behind
        since = self.now if newcomer.late else newcomer.line_at
        return waiting_words(self.snapshot, newcomer.cause, since, self.now)

    def plan(self) -> Plan:
        """Return the plan: what was decided after a cut is left for the next one."""
        snapshot, line = self.snapshot, self.line
        end = self._decided_through()
        spans = spans_of(self.found, end)
        if self.refused:
            spans = sorted([*spans, *skips_of(self.refused)], key=lambda each: each.through)
        watermark = self._watermark(end, spans)
        awaits_ends = self._awaits_ends()
        idle = not line.busy_count and not line.waiting_count
        # An occurrence that ended before it was marked as awaited did not wake the job. Plan once more.
        again = awaits_ends and snapshot.busy_count and not snapshot.awaited
        return Plan(
            snapshot.job_id,
            snapshot.revision,
            snapshot.woken,
            watermark,
            self.now if again else self._wake_at(watermark),
            tuple(self.creations),
            tuple(line.releases),
            tuple(line.endings),
            tuple(line.cancels),
            tuple(spans),
            tuple(self._answers()) if snapshot.requests else (),
            tuple(self._used()) if snapshot.adjustments else (),
            snapshot.reschedule is not None and self._is_done(snapshot.reschedule, watermark),
            line.cancels_before,
            awaits_ends,
            next_run(snapshot, self.now, idle=idle),
            snapshot.narrowed_at is not None and not self.paused,
            line.cancels_because,
            coming=_coming(snapshot, self.now, idle=idle),
            filling=self._filling(),
            lifts=self.is_on_time_behind and self._has_late_unclaimed(),
            verdict=where_to(snapshot, self.dry_error) if self.dry_error else None,
        )

    def _has_late_unclaimed(self) -> bool:
        """Whether something that came before this plan may stand in the lane for what is late."""
        return any(
            each.status is not OccurrenceStatus.RUNNING and (each.late or each.cause is Cause.BACKFILL)
            for each in (*self.snapshot.busy, *self.snapshot.waiting)
        )

    def _filling(self) -> Filling | None:
        """What is written of the open backfill."""
        backfill = self.snapshot.backfill
        if self.fills is None or backfill is None:
            return None
        made = {each.id for each in self.creations if each.cause is Cause.BACKFILL}
        return self.fills.written(made, {each.id for each in self.cut_asked}, backfill)

    def _awaits_ends(self) -> bool:
        """Whether anything follows from an end: an occurrence waits in line, or an instant is counted from it."""
        if self.line.waiting_count or (self.fills is not None and self.fills.awaits_ends):
            return True
        later = editions_to_come(self.snapshot.editions, self.now)
        return waits_for_end(self.job.schedule) or any(waits_for_end(each.job.schedule) for each in later)

    def _decided_through(self) -> datetime:
        """The end of what is decided: now, or right before the first instant of the schedule that was cut.

        What was asked by hand is remembered until it is used, so it holds nothing up.
        """
        for each in self.cut_candidates:
            if not each.by_hand:
                return min(each.instant, self.found.compressed_from or each.instant) - MICROSECOND
        return max(self.now, self.snapshot.watermark)

    def _watermark(self, end: datetime, spans: list[Span]) -> datetime:
        """How far everything is decided: through now, or through the last instant before what is still open."""
        start = self.snapshot.watermark
        if self.paused:
            return self.found.segments[-1].through if self.found.segments else start
        if end <= start:
            return start
        # The next instant of one that waits follows from an end that may already lie before this now.
        waits = (self.line.busy_count or self.line.waiting_count) and waits_for_end(self.job.schedule)
        if end == self.now and not waits:
            return end
        decided = [each.through for each in spans]
        decided += [each.candidate.instant for each in self.settled if each.candidate is not None]
        return max([start, *(at for at in decided if at <= end)])

    def _wake_at(self, watermark: datetime) -> datetime | None:
        """Return when to plan again: maybe early, never late."""
        snapshot, line, now = self.snapshot, self.line, self.now
        if (
            self.cut_candidates
            or self.cut_asked
            or snapshot.more_requests
            or line.goes_on
            or (line.waiting_count and line.in_the_way > 0 and line.has_room and not self._holds)
        ):
            return now
        if line.stuck and not line.newcomers.isdisjoint(line.stuck):
            # They wait for other jobs. What the snapshot knows of those may be older than they are.
            return now
        if line.waiting_count and any(each.cause is Cause.BACKFILL for each in self.creations):
            # The store creates nothing that exists already. Then none may be busy while others wait in line.
            return now
        if self.paused:
            ends = [pause.until for pause in snapshot.pauses if pause.until is not None and now < pause.until]
            stop = next_stop(snapshot, self.job, now) if line.busy_count else None
            others = [stop, snapshot.next_request_at, self._next_fill(), first_deadline(line.unmet.values()), *ends]
            others += [line.held_until if self._holds else None]
            return min(filter(None, others), default=None)
        return min(filter(None, (self._next_instant(watermark), self._next_fill())), default=None)

    @property
    def _holds(self) -> bool:
        """Whether what waits is held by a stop that the next plan sees again."""
        return self.line.held_until is not None and self.line.waiting_count > 0

    def _next_fill(self) -> datetime | None:
        return None if self.fills is None else self.fills.wake_at

    def _next_instant(self, watermark: datetime) -> datetime | None:
        """The first time after the watermark at which there is something to decide."""
        snapshot, line = self.snapshot, self.line
        found = next_instant(snapshot, watermark, idle=not line.busy_count and not line.waiting_count)
        others = [next_stop(snapshot, self.job, self.now)]
        others += [each.to for each in snapshot.adjustments if each.to is not None and each.to > self.now]
        if snapshot.reschedule is not None and snapshot.reschedule.to > self.now:
            others.append(snapshot.reschedule.to)
        if snapshot.next_request_at is not None:
            others.append(snapshot.next_request_at)
        if line.unmet:
            others.append(first_deadline(line.unmet.values()))
        return min(filter(None, [found, *others]), default=None)

    def _answers(self) -> list[RequestAnswer]:
        """Return the requests that are answered."""
        cut = {id(each.request) for each in self.cut_asked}
        return [RequestAnswer(each.key, each.cause) for each in self.snapshot.requests if id(each) not in cut]

    def _used(self) -> list[Adjustment]:
        """The adjustments that had their effect."""
        candidates = (each.candidate for each in self.settled)
        return [each.adjustment for each in candidates if each is not None and each.adjustment is not None]

    def _is_done(self, moved: Rescheduled, watermark: datetime) -> bool:
        """Whether the reschedule had its effect: its target was decided about, by itself or as an instant."""
        if any(each.named_for == moved.to for each in self.cut_candidates):
            return False
        settled = any(each.candidate is not None and each.candidate.named_for == moved.to for each in self.settled)
        return settled or (moved.to <= watermark and not self.paused)


def _creation(
    job: Job, newcomer: Newcomer, status: OccurrenceStatus, now: datetime, why: Why, detail: str = ""
) -> Creation:
    request, candidate, jitter, line_at = newcomer.request, newcomer.candidate, job.settings.jitter, newcomer.line_at
    # What was asked for while a clock was ahead need not wait until the clock is there again.
    ready_at = min(line_at, now)
    adjustment = None if candidate is None else candidate.adjustment
    return Creation(
        newcomer.id,
        newcomer.scheduled_for,
        status,
        job.version,
        newcomer.cause,
        line_at,
        ready_at if jitter is None else ready_at + _share(newcomer.id) * jitter,
        newcomer.covers_after,
        newcomer.covers_through,
        newcomer.late,
        why,
        _as_asked(newcomer.told if request is None else request.detail, detail),
        _payload(job, newcomer, adjustment),
        None if request is None else request.replay_of,
        None if adjustment is None else adjustment.overrides,
        () if request is None else request.keeps,
    )


def _as_asked(who: str, detail: str) -> str:
    """Return the detail of the decision with the name of the person who asked, and the reason."""
    return f"{who}, {detail}" if who and detail else who or detail


def _payload(job: Job, newcomer: Newcomer, adjustment: Adjustment | None) -> Payload | None:
    """What it runs with: named with the request, amended for this one, or the job's own."""
    if newcomer.request is not None and newcomer.request.payload is not None:
        return newcomer.request.payload
    if adjustment is not None and adjustment.overrides is not None:
        amended: Payload | Unset | None = adjustment.overrides.get("payload")
        if not isinstance(amended, Unset):
            return amended
    return job.settings.payload


def _share(id_: str) -> float:
    """A number in [0, 1) that every node derives from the same id."""
    return int(id_[-12:], 16) / 2**48
