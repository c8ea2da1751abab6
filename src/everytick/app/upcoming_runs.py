"""Upcoming runs: of a job that is in no store yet, and those that a change of files would add, remove and keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.deciding.revise import Revision, resumed, revise, suspended, with_edit
from everytick.domain.facts import Pause
from everytick.domain.upcoming import upcoming
from everytick.stores.storing_rules import under_id

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.domain.job import Job
    from everytick.domain.snapshots import JobSnapshot
    from everytick.sources.drafting import Drafted
    from everytick.sources.syncing import FilesDraft
    from everytick.stores.addresses import AnyStore

__all__ = ["Revision", "coming", "revisions"]


def coming(job: Job, now: datetime, n: int) -> list[datetime]:
    """Return up to `n` times after now at which a job would run if it were stored now."""
    return upcoming(with_edit(None, job, now), now, n)


async def revisions(store: AnyStore, draft: FilesDraft) -> dict[str, Revision]:
    """Return the runs that the draft adds, removes and keeps, for each job that it changes."""
    now = await store.now()
    changing = [drafted for drafted in draft.jobs if drafted.change.kind != "unchanged"]
    seen = await store.look([drafted.before.id for drafted in changing if drafted.before is not None])
    by_name = {}
    for drafted in changing:
        before = None if drafted.before is None else seen.get(drafted.before.id)
        by_name[drafted.change.name] = revise(before, _after(drafted, before, now), now)
    return by_name


def _after(drafted: Drafted, before: JobSnapshot | None, now: datetime) -> JobSnapshot | None:
    """Return the snapshot of the job after the change, None if it is removed."""
    if drafted.change.kind == "removed":
        return None
    after = before
    if drafted.job is not None:
        job = drafted.job if drafted.before is None else under_id(drafted.job, drafted.before.id)
        after = with_edit(before, job, now)
    if after is None or drafted.fact is None:
        return after
    return suspended(after, now) if isinstance(drafted.fact, Pause) else resumed(after, now)
