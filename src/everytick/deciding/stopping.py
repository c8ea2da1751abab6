"""Stop and restart schedules: what is busy is asked to stop when their instant comes, and never later.

They act also while the job is paused or disabled: that holds starts, not stops. A restart then only stops.
"""

from datetime import datetime, timedelta

from everytick.deciding.admission import Line
from everytick.deciding.newcomers import Newcomer, restarting
from everytick.domain.job import Job
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.upcoming import TICK, in_force, pause_at


def stop_or_restart(snapshot: JobSnapshot, job: Job, now: datetime, line: Line) -> Newcomer | None:
    """Ask the busy to stop if a stop or restart instant is on time; return what a restart asks for."""
    settings = job.settings
    if settings.stop_schedule is None and settings.restart_schedule is None:
        return None
    stop = _on_time(settings.stop_schedule, snapshot.watermark, now, settings.grace)
    restart = _on_time(settings.restart_schedule, snapshot.watermark, now, settings.grace)
    # Where the watermark waits, the same instant is seen again: what came after it is not meant.
    if stop is not None:
        line.cancel_all("the stop schedule", before=stop)
    if restart is not None:
        line.cancel_all("the restart schedule", before=restart)
    if restart is None or _is_held(snapshot, restart):
        return None
    newcomer = restarting(job, restart)
    known = (*snapshot.busy, *snapshot.waiting)
    return newcomer if all(each.id != newcomer.id for each in known) else None


def next_stop(job: Job, now: datetime, line: Line) -> datetime | None:
    """Return when the busy are next asked to stop; None if none is busy or the job has no stop schedule."""
    if not line.busy_count:
        return None
    schedules = (job.settings.stop_schedule, job.settings.restart_schedule)
    return min(filter(None, (each.next_after(now) for each in schedules if each is not None)), default=None)


def _on_time(schedule: Schedule | None, after: datetime, now: datetime, grace: timedelta) -> datetime | None:
    """The newest instant if it is still on time: stop and restart are never caught up."""
    instant = schedule.last_at(now) if schedule is not None else None
    return instant if instant is not None and after < instant and now < instant + grace else None


def _is_held(snapshot: JobSnapshot, instant: datetime) -> bool:
    """Whether the job was paused or disabled at that instant."""
    return pause_at(snapshot, instant) is not None or not in_force(snapshot.editions, instant - TICK).enabled
