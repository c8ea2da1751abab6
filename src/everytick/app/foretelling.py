"""Runs to come: of a job that is in no store yet, and those that a change of files would add, remove and keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.deciding.revise import Revision, resumed, revise, suspended, with_edit
from everytick.domain.upcoming import upcoming
from everytick.stores.beginnings import under_id

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.domain.job import Job
    from everytick.domain.snapshots import JobSnapshot
    from everytick.sources.syncing import Draft, Planned
    from everytick.stores.addresses import AnyStore

__all__ = ["Revision", "coming", "revisions"]


def coming(job: Job, now: datetime, n: int) -> list[datetime]:
    """Return up to `n` times after now at which a job would run that begins now."""
    return upcoming(with_edit(None, job, now), now, n)


async def revisions(store: AnyStore, draft: Draft) -> dict[str, Revision]:
    """Return what the draft means for the runs to come of each job that it changes."""
    now = await store.now()
    changing = [each for each in draft.plans if each.change.kind != "unchanged"]
    seen = await store.look([each.record.job.id for each in changing if each.record is not None])
    found = {}
    for plan in changing:
        before = None if plan.record is None else seen.get(plan.record.job.id)
        found[plan.change.name] = revise(before, _after(plan, before, now), now)
    return found


def _after(plan: Planned, before: JobSnapshot | None, now: datetime) -> JobSnapshot | None:
    """What a plan would see of the job afterwards."""
    if plan.change.kind == "removed":
        return None
    after = before
    if plan.job is not None:
        job = plan.job if plan.record is None else under_id(plan.job, plan.record.job.id)
        after = with_edit(before, job, now)
    if after is not None and plan.suspends:
        after = suspended(after, now)
    return resumed(after, now) if after is not None and plan.resumes else after
