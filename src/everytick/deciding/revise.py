"""What an edit means for the runs to come: which are added, which are removed, which stay."""

from dataclasses import replace
from datetime import datetime

from everytick.domain.job import Job
from everytick.domain.snapshots import Edition, JobSnapshot, Missed, PausedSpan
from everytick.domain.upcoming import upcoming
from everytick.domain.values import value

LOOKS = 100
"""So many runs before and after an edit are compared."""


@value
class Revision:
    """The coming runs that an edit adds, removes and keeps, through a moment; None says that these are all."""

    added: tuple[datetime, ...]
    removed: tuple[datetime, ...]
    kept: tuple[datetime, ...]
    through: datetime | None


def revise(before: JobSnapshot | None, after: JobSnapshot | None, now: datetime, limit: int = LOOKS) -> Revision:
    """Compare the runs to come as they are with those as they will be; None is a job that is not there.

    Of both only so many are looked at; the answer ends where the shorter look does, since
    what lies behind it was not compared.
    """
    old = [] if before is None else upcoming(before, now, limit)
    new = [] if after is None else upcoming(after, now, limit)
    ends = [seen[-1] for seen in (old, new) if len(seen) == limit]
    through = min(ends, default=None)
    was, will = ({instant for instant in seen if through is None or instant <= through} for seen in (old, new))
    return Revision(tuple(sorted(will - was)), tuple(sorted(was - will)), tuple(sorted(was & will)), through)


def with_edit(before: JobSnapshot | None, job: Job, now: datetime) -> JobSnapshot:
    """Return what a plan will see once this is the definition from now on."""
    if before is None:
        return JobSnapshot(job.id, 1, 1, now, (Edition(job),))
    return replace(before, editions=(*before.editions, Edition(job, now)))


def suspended(before: JobSnapshot, now: datetime) -> JobSnapshot:
    """Return what a plan will see once the schedule is held from now on."""
    return replace(before, pauses=(*before.pauses, PausedSpan(now, None, Missed.CATCH_UP)))


def resumed(before: JobSnapshot, now: datetime, missed: Missed | None = None) -> JobSnapshot:
    """Return what a plan will see once the pauses that last end now, and what was held becomes what `missed` says."""
    pauses = tuple(
        replace(each, until=now, resumed_by="", missed=missed or each.missed) if each.holds(now) else each
        for each in before.pauses
    )
    return replace(before, pauses=pauses)
