"""Whether a job is active: now lies inside its window, and something of its schedule is still to come."""

from datetime import datetime

from everytick.deciding.unnamed_instants import window_of
from everytick.domain.schedule import is_on_request, waits_for_end
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.upcoming import in_force, set_by_hand


def is_active(snapshot: JobSnapshot, now: datetime) -> bool:
    """Tell whether now lies inside the job's window, and something of it is still to come."""
    if snapshot.retire_at is not None:
        return False
    job = in_force(snapshot.editions, now)
    starts = [moment for moment in (job.settings.start, window_of(job.schedule)[0]) if moment is not None]
    if starts and now < max(starts):
        return False
    if set_by_hand(snapshot, now) or snapshot.busy_count or snapshot.waiting_count:
        return True
    if snapshot.requests or snapshot.next_request_at is not None:
        return True
    if waits_for_end(job.schedule) or is_on_request(job.schedule):
        return job.settings.end is None or now <= job.settings.end
    return job.bound(None).next_after(now) is not None
