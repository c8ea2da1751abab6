"""The commonest plan, made at a quarter of the cost: one instant, on time, of a job that nothing else concerns.

Nearly every plan is this one, and thousands of jobs may be due at the same second. It decides
nothing of its own: a law holds it equal to what `plan` says in full.
"""

from datetime import datetime

from everytick.deciding.candidates import TICK
from everytick.domain.decisions import Creation, Plan, Why
from everytick.domain.ids import occurrence_id
from everytick.domain.occurrence import Cause
from everytick.domain.schedule import waits_for_end
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import OccurrenceStatus


def plain_tick(snapshot: JobSnapshot, now: datetime) -> Plan | None:
    """Return the plan for one instant on time, or None where there is anything more to decide."""
    if not _is_plain(snapshot):
        return None
    job, watermark = snapshot.editions[0].job, snapshot.watermark
    schedule = job.bound(job.created_at if snapshot.last_end is None else snapshot.last_end.ended_at)
    instant = schedule.last_at(now)
    if instant is None or not watermark < instant <= now < instant + job.settings.grace:
        return None
    before = schedule.last_at(instant - TICK)
    if before is not None and before > watermark:
        return None
    created = Creation(
        occurrence_id(snapshot.job_id, instant),
        instant,
        OccurrenceStatus.PENDING,
        job.version,
        Cause.SCHEDULE,
        instant,
        instant,
        before,
        instant,
        False,
        Why.ON_TIME,
        "",
        job.settings.payload,
    )
    wake_at = schedule.next_after(now)
    return Plan(snapshot.job_id, snapshot.revision, snapshot.woken, now, wake_at, (created,))


def _is_plain(snapshot: JobSnapshot) -> bool:
    """Whether nobody is active or waits, and nobody asked for, held, moved or changed anything."""
    if (
        snapshot.busy_count
        or snapshot.waiting_count
        or snapshot.requests
        or snapshot.more_requests
        or snapshot.adjustments
        or snapshot.pauses
        or snapshot.reschedule is not None
        or snapshot.retire_at is not None
        or len(snapshot.editions) > 1
    ):
        return False
    job = snapshot.editions[0].job
    settings = job.settings
    return (
        settings.enabled
        and not settings.skip_if_successful
        and settings.jitter is None
        and settings.stop_schedule is None
        and settings.restart_schedule is None
        and not waits_for_end(job.schedule)
    )
