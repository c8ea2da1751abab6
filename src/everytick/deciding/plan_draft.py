"""A plan in the making: which newcomers were let in or turned away so far, and the Plan that comes of it.

`plan` says in which order a decision is made. A PlanDraft asks the line about newcomer after newcomer, and
works out what follows for the rest of the plan: how far it decides, and when to look again.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from everytick.deciding.admission import Line
from everytick.deciding.dependence import first_deadline, waiting_words, waits_for
from everytick.deciding.filling import Fills
from everytick.deciding.newcomers import Newcomer, Newcomers
from everytick.deciding.recovery import DueInstants
from everytick.deciding.rollout import dry_words, trial_words, tried_by, where_to
from everytick.deciding.spans import skips_of, spans_of, status_of
from everytick.deciding.stopping import next_stop
from everytick.domain.backfills import Filling
from everytick.domain.config import Unset
from everytick.domain.decisions import Creation, Plan, Refusal, RequestAnswer, Span, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.payload import Payload
from everytick.domain.schedule import waits_for_end
from everytick.domain.snapshots import Adjustment, Edition, JobSnapshot, Rescheduled
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.upcoming import (
    ComingRun,
    coming,
    editions_to_come,
    in_force,
    is_counted,
    next_instant,
    next_run,
    trial_of,
)

if TYPE_CHECKING:
    from everytick.deciding.candidates import Candidate


class PlanDraft:
    """Which newcomers were let in or turned away so far, and which found no room.

    `settled` are the newcomers that were decided, `verdicts` the verdict on each. The limit leaves
    `cut_candidates` for the next plan and, where no schedule names them, `cut_asked`.
    """

    __slots__ = (
        "creations", "cut_asked", "cut_candidates", "dry_error", "fills", "instants", "is_on_time_behind", "job",
        "line", "now", "paused", "refused", "settled", "snapshot", "verdicts",
    )  # fmt: skip

    def __init__(
        self, snapshot: JobSnapshot, job: Job, instants: DueInstants, line: Line, now: datetime, paused: bool
    ) -> None:
        self.snapshot, self.job, self.instants, self.line = snapshot, job, instants, line
        self.now, self.paused = now, paused
        self.creations: list[Creation] = []
        self.refused: list[tuple[Candidate, Refusal]] = []
        self.settled: list[Newcomer] = []
        self.verdicts: list[OccurrenceStatus | Refusal | None] = []
        self.cut_candidates: list[Candidate] = []
        self.cut_asked: list[Newcomer] = []
        self.fills: Fills | None = None
        self.is_on_time_behind = False
        self.dry_error = ""

    def admit(self, newcomers: Newcomers, restart: Newcomer | None, room: int) -> None:
        """Take the newcomers in order until the plan is full, and the restart in any case.

        One that is only recorded in a span takes no room.
        """
        room = self._take(newcomers.in_order(), room)
        if restart is not None and restart not in self.settled:
            self._settle(restart, self._verdict(restart))
        if self.snapshot.backfill is not None:
            # After all others: only now is it known which places are free.
            self.fills = Fills(self.snapshot, self.job, self.line, self.now, 0 if self.line.is_cut else room)
            newcomers.asked += self.fills.newcomers
            self._take(self.fills.newcomers, room)
        self._leave_the_others(newcomers)
        displaced, behind = self.line.displaced, self.line.behind()
        self.is_on_time_behind = any(
            occurrence.cause is Cause.SCHEDULE and not occurrence.late and occurrence.id not in displaced
            for occurrence in self.line.waiting
        )
        for newcomer, verdict in zip(self.settled, self.verdicts, strict=True):
            if verdict is not None:
                self._write_down(newcomer, displaced.get(newcomer.id, verdict) if displaced else verdict, behind)

    def _take(self, newcomers: Iterable[Newcomer], room: int) -> int:
        """Decide about these in order until the plan is full or the line is cut; return the room that is left."""
        for newcomer in newcomers:
            if room <= 0:
                break
            verdict = self._verdict(newcomer)
            if self.line.is_cut:
                break
            self._settle(newcomer, verdict)
            if newcomer.cause is not Cause.RESTART and not (isinstance(verdict, tuple) and newcomer.is_instant):
                room -= 1
        return room

    def _settle(self, newcomer: Newcomer, verdict: OccurrenceStatus | Refusal | None) -> None:
        self.settled.append(newcomer)
        self.verdicts.append(verdict)

    def _leave_the_others(self, newcomers: Newcomers) -> None:
        """Remember the newcomers that found no room: both parts of the line were taken in order."""
        if len(self.settled) < len(self.instants.candidates) + len(newcomers.asked):
            taken = {newcomer.id for newcomer in self.settled if newcomer.candidate is None}
            self.cut_asked = [newcomer for newcomer in newcomers.asked if newcomer.id not in taken]
            seen = {newcomer.candidate.named_for for newcomer in self.settled if newcomer.candidate is not None}
            self.cut_candidates = [
                candidate for candidate in self.instants.candidates if candidate.named_for not in seen
            ]

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
            creation = creation_of(self.job if tried is None else tried.job, newcomer, verdict, self.now, why, detail)
            if (newcomer.late or newcomer.told) and not self.is_on_time_behind:
                # A catch-up does not push out live runs of other jobs, nor hold back the job's own.
                creation = replace(creation, in_lane=True)
            self.creations.append(creation)
        elif candidate is not None and not candidate.by_hand:
            self.refused.append((candidate, verdict))
        else:
            self.creations.append(creation_of(self.job, newcomer, status_of(verdict[0]), self.now, *verdict))

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
        spans = spans_of(self.instants, end)
        if self.refused:
            spans = sorted([*spans, *skips_of(self.refused)], key=lambda span: span.through)
        watermark = self._watermark(end, spans)
        awaits_ends = self._awaits_ends()
        # Occurrences that a pause holds wait too, though they stand in no line.
        idle = not (line.busy_count or line.waiting_count or (self.paused and snapshot.waiting_count))
        # An occurrence that ended before it was marked as awaited did not wake the job. Plan once more.
        again = awaits_ends and snapshot.busy_count and not snapshot.awaited
        return Plan(
            job_id=snapshot.job_id,
            revision=snapshot.revision,
            woken=snapshot.woken,
            watermark=watermark,
            wake_at=self.now if again else self._wake_at(watermark),
            creations=tuple(self.creations),
            releases=tuple(line.releases),
            endings=tuple(line.endings),
            cancels=tuple(line.cancels),
            spans=tuple(spans),
            answers=tuple(self._answers()) if snapshot.requests else (),
            used=tuple(self._used()) if snapshot.adjustments else (),
            rescheduled=snapshot.reschedule is not None and self._is_done(snapshot.reschedule, watermark),
            cancels_before=line.cancels_before,
            awaits_ends=awaits_ends,
            next_run=next_run(snapshot, self.now, idle=idle),
            narrowed=snapshot.narrowed_at is not None and not self.paused,
            cancels_because=line.cancels_because,
            coming=runs_shown(snapshot, self.now, idle=idle),
            filling=self._filling(),
            lifts=self.is_on_time_behind and self._has_late_unclaimed(),
            verdict=where_to(snapshot, self.dry_error) if self.dry_error else None,
            stopped_at=still_ahead(watermark, line.stopped_at),
        )

    def _has_late_unclaimed(self) -> bool:
        """Whether something that came before this plan may stand in the lane for what is late."""
        return any(
            occurrence.status is not OccurrenceStatus.RUNNING
            and (occurrence.late or occurrence.cause is Cause.BACKFILL)
            for occurrence in (*self.snapshot.busy, *self.snapshot.waiting)
        )

    def _filling(self) -> Filling | None:
        """What is written of the open backfill."""
        backfill = self.snapshot.backfill
        if self.fills is None or backfill is None:
            return None
        created = {creation.id for creation in self.creations if creation.cause is Cause.BACKFILL}
        return self.fills.written(created, {newcomer.id for newcomer in self.cut_asked}, backfill)

    def _awaits_ends(self) -> bool:
        """Whether anything follows from an end: an occurrence waits in line, or an instant is counted from it."""
        if self.line.waiting_count or (self.fills is not None and self.fills.awaits_ends):
            return True
        later = editions_to_come(self.snapshot.editions, self.now)
        return waits_for_end(self.job.schedule) or any(waits_for_end(edition.job.schedule) for edition in later)

    def _decided_through(self) -> datetime:
        """The end of what is decided: now, or right before the first instant of the schedule that was cut.

        A request by hand is kept until it is used, so it does not hold up the watermark.
        """
        for candidate in self.cut_candidates:
            if not candidate.by_hand:
                return min(candidate.instant, self.instants.compressed_from or candidate.instant) - MICROSECOND
        return max(self.now, self.snapshot.watermark)

    def _watermark(self, end: datetime, spans: list[Span]) -> datetime:
        """How far everything is decided: through now, or through the last instant before what is still open."""
        start = self.snapshot.watermark
        if self.paused:
            return self.instants.segments[-1].through if self.instants.segments else start
        if end <= start:
            return start
        # The next instant of one that waits follows from an end that may already lie before this now.
        waits = (self.line.busy_count or self.line.waiting_count) and waits_for_end(self.job.schedule)
        if end == self.now and not waits:
            return end
        decided = [span.through for span in spans]
        decided += [newcomer.candidate.instant for newcomer in self.settled if newcomer.candidate is not None]
        return max([start, *(at for at in decided if at <= end)])

    def _wake_at(self, watermark: datetime) -> datetime | None:
        """Return when to plan again: maybe early, never late."""
        snapshot, line, now = self.snapshot, self.line, self.now
        if (
            self.cut_candidates
            or self.cut_asked
            or snapshot.more_requests
            or line.goes_on
            or (line.waiting_count and line.in_the_way > 0 and line.has_room)
        ):
            return now
        if line.stuck and not line.newcomers.isdisjoint(line.stuck):
            # They wait for other jobs. What the snapshot knows of those may be older than they are.
            return now
        if line.waiting_count and any(creation.cause is Cause.BACKFILL for creation in self.creations):
            # The store creates nothing that exists already. Then none may be busy while others wait in line.
            return now
        if self.paused:
            ends = [pause.until for pause in snapshot.pauses if pause.until is not None and now < pause.until]
            stop = next_stop(snapshot, self.job, now) if line.busy_count else None
            others = [stop, snapshot.next_request_at, self._next_fill(), first_deadline(line.unmet.values()), *ends]
            return min(filter(None, others), default=None)
        return min(filter(None, (self._next_instant(watermark), self._next_fill())), default=None)

    def _next_fill(self) -> datetime | None:
        return None if self.fills is None else self.fills.wake_at

    def _next_instant(self, watermark: datetime) -> datetime | None:
        """The first time after the watermark at which there is something to decide."""
        snapshot, line = self.snapshot, self.line
        next_named = next_instant(snapshot, watermark, idle=not line.busy_count and not line.waiting_count)
        others = [next_stop(snapshot, self.job, self.now)]
        others += [
            adjustment.to
            for adjustment in snapshot.adjustments
            if adjustment.to is not None and adjustment.to > self.now
        ]
        if snapshot.reschedule is not None and snapshot.reschedule.to > self.now:
            others.append(snapshot.reschedule.to)
        if snapshot.next_request_at is not None:
            others.append(snapshot.next_request_at)
        if line.unmet:
            others.append(first_deadline(line.unmet.values()))
        return min(filter(None, [next_named, *others]), default=None)

    def _answers(self) -> list[RequestAnswer]:
        """Return the requests that are answered."""
        cut = {id(newcomer.request) for newcomer in self.cut_asked}
        return [
            RequestAnswer(request.key, request.cause) for request in self.snapshot.requests if id(request) not in cut
        ]

    def _used(self) -> list[Adjustment]:
        """The adjustments that had their effect."""
        candidates = (newcomer.candidate for newcomer in self.settled)
        return [
            candidate.adjustment
            for candidate in candidates
            if candidate is not None and candidate.adjustment is not None
        ]

    def _is_done(self, moved: Rescheduled, watermark: datetime) -> bool:
        """Whether the reschedule had its effect: its target was decided about, by itself or as an instant."""
        if any(candidate.named_for == moved.to for candidate in self.cut_candidates):
            return False
        settled = any(
            newcomer.candidate is not None and newcomer.candidate.named_for == moved.to for newcomer in self.settled
        )
        return settled or (moved.to <= watermark and not self.paused)


def creation_of(
    job: Job, newcomer: Newcomer, status: OccurrenceStatus, now: datetime, why: Why, detail: str = ""
) -> Creation:
    request, candidate, jitter, line_at = newcomer.request, newcomer.candidate, job.settings.jitter, newcomer.line_at
    # A request made while the clock was ahead is ready now.
    ready_at = min(line_at, now)
    adjustment = None if candidate is None else candidate.adjustment
    return Creation(
        id=newcomer.id,
        scheduled_for=newcomer.scheduled_for,
        status=status,
        version=job.version,
        cause=newcomer.cause,
        line_at=line_at,
        ready_at=ready_at if jitter is None else ready_at + _share(newcomer.id) * jitter,
        covers_after=newcomer.covers_after,
        covers_through=newcomer.covers_through,
        late=newcomer.late,
        why=why,
        detail=_as_asked(newcomer.told if request is None else request.detail, detail),
        payload=_payload(job, newcomer, adjustment),
        replay_of=None if request is None else request.replay_of,
        overrides=None if adjustment is None else adjustment.overrides,
        keeps=() if request is None else request.keeps,
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


def runs_shown(snapshot: JobSnapshot, now: datetime, *, idle: bool | None = None) -> tuple[ComingRun, ...] | None:
    """Return the runs to come that the definition in force wants to be shown; none where only an older one did."""
    horizon = in_force(snapshot.editions, now).settings.horizon
    if horizon is not None:
        return coming(snapshot, now, horizon, idle=idle)
    return () if any(edition.job.settings.horizon is not None for edition in snapshot.editions) else None


def still_ahead(watermark: datetime, stopped_at: datetime | None) -> datetime | None:
    """Return an instant of a stop that the watermark is still before."""
    return None if stopped_at is None or stopped_at <= watermark else stopped_at
