"""When a job runs next, as far as can be said now: its instants, with what people have said about them.

Plans, questions and the stores' verbs ask the same function, so that they give one answer.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from everytick.domain.config import Overrides, queue_of
from everytick.domain.durations import MICROSECOND as MICROSECOND
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import MOST_COMING
from everytick.domain.schedule import Schedule, waits_for_end
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Edition, JobSnapshot, PausedSpan, Rescheduled
from everytick.domain.values import value

_NEVER = datetime.max.replace(tzinfo=UTC)
# At most so many skipped or moved instants are passed by in one answer.
_LOOKS = 10_000


def in_force(editions: Sequence[Edition], moment: datetime) -> Job:
    """Return the definition in force right after a moment; an instant at that very moment is still the old one's."""
    return edition_in_force(editions, moment).job


def edition_in_force(editions: Sequence[Edition], moment: datetime) -> Edition:
    """Return the edition in force right after a moment."""
    current = editions[0]
    for edition in editions[1:]:
        if edition.in_force_after is None or edition.in_force_after <= moment:
            current = edition
    return current


def effective(editions: Sequence[Edition]) -> Sequence[Edition]:
    """Return the editions that are ever in force, in the order of their moments.

    The first is in force until another one is. An edit that is in force at once takes the place of one that is
    still to come.
    """
    if len(editions) < 2:
        return editions
    if editions[-1].rollout is not None or any(edition.rollout is not None for edition in editions):
        # A version on trial is never in force. The first one is no trial: it was in force when the others were written.
        editions = [edition for edition in editions if edition.rollout is None] or editions[:1]
    in_order = [editions[-1]]
    for edition in editions[-2::-1]:
        since, later = edition.in_force_after, in_order[-1].in_force_after
        if later is not None and (since is None or since < later or edition is editions[0]):
            in_order.append(edition)
    return in_order[::-1]


def trial_of(editions: Sequence[Edition]) -> Edition | None:
    """Return the version on trial: the newest, unless people or outcomes have ended its rollout."""
    return editions[-1] if editions[-1].rollout is not None else None


def is_counted(trial: Edition, cause: Cause, scheduled_for: datetime) -> bool:
    """Whether an occurrence belongs to the stage of a rollout: an instant or a trigger after the stage began."""
    since = trial.job.updated_at
    return cause in (Cause.SCHEDULE, Cause.TRIGGER) and since is not None and scheduled_for > since


def editions_to_come(editions: Sequence[Edition], now: datetime) -> list[Edition]:
    """Return the editions that come into force after now."""
    if len(editions) < 2:
        return []
    return [
        edition
        for edition in effective(editions)
        if edition.in_force_after is not None and edition.in_force_after > now
    ]


def bound_schedule(snapshot: JobSnapshot, job: Job, after: datetime, *, idle: bool) -> Schedule:
    """Return the schedule as the job has it now; one that follows an end names nothing unless the job is idle."""
    if not idle:
        return job.bound(None)
    end = snapshot.last_end.ended_at if snapshot.last_end is not None else job.created_at
    schedule = job.bound(end)
    return _going_on(schedule, job, end, after) if end is not None and waits_for_end(job.schedule) else schedule


def _going_on(schedule: Schedule, job: Job, end: datetime, after: datetime) -> Schedule:
    """What follows an end must not fall silent because its instant was skipped: it goes on as if that had ended."""
    named = None if schedule.next_after(after) is not None else schedule.next_after(end - MICROSECOND)
    if named is None:
        return schedule
    delay = named - end
    return job.bound(end + (after - end) // delay * delay if delay else after + MICROSECOND)


def next_instant(snapshot: JobSnapshot, after: datetime, *, idle: bool) -> datetime | None:
    """Return the first instant after a moment, by the definition in force at it."""
    editions = effective(snapshot.editions)
    for place, edition in enumerate(editions):
        until = editions[place + 1].in_force_after if place + 1 < len(editions) else None
        if not edition.job.settings.enabled or (until is not None and until <= after):
            continue
        # The first is in force from the watermark on, whatever a clock showed when it was written.
        begin = after if place == 0 or edition.in_force_after is None else max(after, edition.in_force_after)
        instant = bound_schedule(snapshot, edition.job, after, idle=idle).next_after(begin)
        if instant is not None and (until is None or instant <= until):
            return instant
    return None


def next_run(snapshot: JobSnapshot, now: datetime, *, idle: bool | None = None) -> datetime | None:
    """Return the first of the times that `upcoming` gives; None where the job does not run again."""
    return next(iter(upcoming(snapshot, now, 1, idle=idle)), None)


def upcoming(snapshot: JobSnapshot, now: datetime, n: int, *, idle: bool | None = None) -> list[datetime]:
    """Return up to `n` times after now at which the job will run, if a node runs and no request changes it.

    Pauses, single instants that are skipped or moved, and a reschedule are seen;
    what overlap and recovery will say then is not known before. `idle` says whether nothing of
    the job is active, where that is no longer as the snapshot has it.
    """
    return [at for at, _ in _runs(snapshot, now, n, idle=idle)]


class Mark(StrEnum):
    """What a person said of a run to come."""

    MOVED = "moved"
    AMENDED = "amended"
    RESCHEDULED = "rescheduled"
    SKIPPED = "skipped"


@value(frozen=True)
class ComingRun:
    """One run to come of a schedule: when it runs, and the instant that names it.

    A run that a person has spoken of has a `mark`, and `detail` says who and why. `overrides` are its own.
    """

    at: datetime
    instant: datetime
    mark: Mark | None = None
    detail: str = ""
    overrides: Overrides | None = None

    @property
    def queue(self) -> str | None:
        """Its own queue, where it was amended to one."""
        return queue_of(self.overrides)


@value
class Coming:
    """The runs to come of a job that its last plan has written down, and the edition of the zone tables it had."""

    runs: tuple[ComingRun, ...]
    zone_data: str = ""


NOTHING_COMING = Coming(())


def coming_runs(snapshot: JobSnapshot, now: datetime, n: int, *, idle: bool | None = None) -> list[ComingRun]:
    """Return the runs at the times that `upcoming` gives."""
    told = {adjustment.at: adjustment for adjustment in snapshot.adjustments if not adjustment.is_undone}
    moved = snapshot.reschedule
    return [_marked(at, instant, told.get(instant), moved) for at, instant in _runs(snapshot, now, n, idle=idle)]


def _marked(at: datetime, instant: datetime, told: Adjustment | None, moved: Rescheduled | None) -> ComingRun:
    if told is not None:
        mark = Mark.MOVED if told.vacates else Mark.AMENDED
        return ComingRun(at, instant, mark, told.by_whom, told.overrides)
    if moved is not None and moved.to == instant:
        return ComingRun(at, instant, Mark.RESCHEDULED, moved.by and f"by {moved.by}")
    return ComingRun(at, instant)


def coming(
    snapshot: JobSnapshot, now: datetime, horizon: int | timedelta, *, idle: bool | None = None
) -> tuple[ComingRun, ...]:
    """Return the runs to come that the job's horizon shows: so many, or those of a time after the next one.

    Counted from the next run, what lies within the time from now is shown at every moment until then.
    """
    told = {adjustment.at: adjustment for adjustment in snapshot.adjustments if not adjustment.is_undone}
    most, within = (MOST_COMING, horizon) if isinstance(horizon, timedelta) else (horizon, None)
    runs = _runs(snapshot, now, most, within=within, idle=idle)
    return tuple(_marked(at, instant, told.get(instant), snapshot.reschedule) for at, instant in runs)


def skipped_by_hand(snapshot: JobSnapshot, now: datetime) -> list[ComingRun]:
    """Return the instants after now that a person has skipped, in order."""
    told = (
        adjustment
        for adjustment in snapshot.adjustments
        if adjustment.kind is AdjustmentKind.SKIP and adjustment.at > now
    )
    return [
        ComingRun(adjustment.at, adjustment.at, Mark.SKIPPED, adjustment.by_whom)
        for adjustment in sorted(told, key=lambda adjustment: adjustment.at)
    ]


def _runs(
    snapshot: JobSnapshot, now: datetime, n: int, *, within: timedelta | None = None, idle: bool | None = None
) -> list[tuple[datetime, datetime]]:
    """Return the next runs, or those `within` a time after the first: when each runs, and the instant that names it."""
    if snapshot.retire_at is not None:
        return []
    known_runs = {run for run in _set_by_hand(snapshot, now) if _may_run(snapshot, run[0])}
    if idle is None:
        idle = not snapshot.busy_count and not snapshot.waiting_count
    away = {adjustment.at for adjustment in snapshot.adjustments if adjustment.vacates}
    # What was decided while a clock was ahead does not run again.
    at, named = max(now, snapshot.watermark), 0
    first: datetime | None = None
    for _ in range(_LOOKS):
        if named >= n or (instant := next_instant(snapshot, at, idle=idle)) is None:
            break
        at, held = instant, _held_until(snapshot, instant)
        if held is None:
            if instant not in away:
                known_runs.add((instant, instant))
                named += 1
                if within is not None:
                    first = first or min(known_runs)[0]
                    if instant - first > within:
                        break
        elif held == _NEVER:
            break
        else:
            at = held
    runs = sorted(known_runs)[:n]
    return runs if within is None else [run for run in runs if run[0] - runs[0][0] <= within]


def _may_run(snapshot: JobSnapshot, target: datetime) -> bool:
    """Whether the target of a move or a reschedule runs: no pause and no disabled definition is in force at it."""
    return in_force(snapshot.editions, target - MICROSECOND).enabled and _pause_over(snapshot, target) is None


def set_by_hand(snapshot: JobSnapshot, now: datetime) -> list[datetime]:
    """Return the times after now that were set by hand: targets of moves and of a reschedule."""
    return [to for to, _ in _set_by_hand(snapshot, now)]


def _set_by_hand(snapshot: JobSnapshot, now: datetime) -> list[tuple[datetime, datetime]]:
    """Return the times after now that were set by hand, each with the instant that names it."""
    moves = (
        (adjustment.to, adjustment.at)
        for adjustment in snapshot.adjustments
        if adjustment.vacates and not adjustment.done
    )
    runs = [(to, at) for to, at in moves if to is not None]
    runs += [(to, to) for to in rescheduled_to(snapshot)]
    return [run for run in runs if run[0] > now]


def rescheduled_to(snapshot: JobSnapshot) -> list[datetime]:
    """Return the time to which the next run is set; none if that run was skipped or moved away since."""
    moved = snapshot.reschedule
    if moved is None or any(run.at == moved.to and run.vacates for run in snapshot.adjustments):
        return []
    return [moved.to]


def _held_until(snapshot: JobSnapshot, instant: datetime) -> datetime | None:
    """The end of what holds this instant back: a reschedule or a pause; None if nothing does."""
    moved = snapshot.reschedule
    if moved is not None and moved.made_at < instant < moved.to:
        return moved.to - MICROSECOND
    return _pause_over(snapshot, instant)


def _pause_over(snapshot: JobSnapshot, instant: datetime) -> datetime | None:
    pause = pause_at(snapshot, instant)
    if pause is None:
        return None
    return pause.until or _NEVER


def pause_at(snapshot: JobSnapshot, instant: datetime) -> PausedSpan | None:
    """Return the pause that covers an instant: a pause is `(since, until]`."""
    for pause in snapshot.pauses:
        if pause.since < instant and (pause.until is None or instant <= pause.until):
            return pause
    return None
