"""Stop and restart schedules: busy occurrences are asked to stop at their instants, and never later.

They act also on a paused or disabled job: that holds starts, not stops. A restart then only stops.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from everytick.deciding.admission import Line
from everytick.deciding.newcomers import Newcomer, restarting
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.upcoming import in_force, pause_at


def stop_or_restart(snapshot: JobSnapshot, job: Job, now: datetime, line: Line) -> Newcomer | None:
    """Ask the busy to stop if a stop or restart instant is on time; return what a restart asks for."""
    if len(snapshot.editions) == 1 and not _stops(job):
        return None
    stop = _on_time(snapshot, _stop_schedule, now, job.settings.grace)
    restart = _on_time(snapshot, _restart_schedule, now, job.settings.grace)
    # A late plan also sees occurrences created after the instant. They are not stopped.
    if stop is not None:
        line.cancel_all("the stop schedule", before=stop)
    if restart is not None:
        line.cancel_all("the restart schedule", before=restart)
    line.stopped_at = max(filter(None, (stop, restart)), default=None)
    return None if restart is None or _is_held(snapshot, restart) else restarting(job, restart)


def next_stop(snapshot: JobSnapshot, job: Job, now: datetime) -> datetime | None:
    """Return when to look for a stop or restart again; None if no definition names one.

    A definition that comes into force later counts from that moment on, so the job is looked at then.
    """
    moments = [schedule.next_after(now) for schedule in _stops(job)]
    moments += [edition.in_force_after for edition in snapshot.editions[1:] if _stops(edition.job)]
    return min((moment for moment in moments if moment is not None and moment > now), default=None)


def _stops(job: Job) -> list[Schedule]:
    return [schedule for schedule in (_stop_schedule(job), _restart_schedule(job)) if schedule is not None]


def _stop_schedule(job: Job) -> Schedule | None:
    return job.settings.stop_schedule


def _restart_schedule(job: Job) -> Schedule | None:
    return job.settings.restart_schedule


def _on_time(
    snapshot: JobSnapshot, schedule_of: Callable[[Job], Schedule | None], now: datetime, grace: timedelta
) -> datetime | None:
    """The newest instant if it is still on time, by the definition in force at it. A late one is never made up for."""
    until = now
    for edition in reversed(snapshot.editions):
        since = edition.in_force_after
        if since is not None and since >= until:
            continue
        schedule = schedule_of(edition.job)
        instant = schedule.last_at(until) if schedule is not None else None
        if instant is not None and (since is None or since < instant):
            return instant if _decided_through(snapshot) < instant and now < instant + grace else None
        if since is None:
            return None
        until = since
    return None


def _decided_through(snapshot: JobSnapshot) -> datetime:
    """The newest moment whose stops were obeyed: the watermark may wait, as in a pause, and a stop is obeyed once."""
    return max(filter(None, (snapshot.watermark, snapshot.stopped_at)))


def _is_held(snapshot: JobSnapshot, instant: datetime) -> bool:
    """Whether the job was paused or disabled at that instant."""
    return pause_at(snapshot, instant) is not None or not in_force(snapshot.editions, instant - MICROSECOND).enabled
