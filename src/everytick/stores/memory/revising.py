"""What most changes of a job end with: older snapshots are stale, the job is due, its next run is known anew."""

from dataclasses import replace
from datetime import datetime

from everytick.stores.memory.base import Shared
from everytick.stores.memory.due import DueJobs
from everytick.stores.memory.promises import recheck_promises
from everytick.stores.memory.rows import JobRow
from everytick.stores.storing_rules import shown_next_run


class Revisions:
    """Revisions of jobs, and their next runs."""

    def __init__(self, shared: Shared, due: DueJobs) -> None:
        self._shared, self._due = shared, due

    def revise(self, row: JobRow, now: datetime) -> None:
        """Make older snapshots stale, make the job due, and set its next run as of now."""
        row.revision += 1
        row.next_run = shown_next_run(self._due.snapshot(row, now), now)
        if row.promises:
            recheck_promises(row, now)
        self._shared.wake(row, now)


def bring_back(row: JobRow, now: datetime) -> None:
    """Let the newest version, pauses, resumes and a reschedule that were written ahead apply from now on.

    A stop that was obeyed ahead counts as obeyed now, so that the job obeys the stops to come. A window of `recovery`
    that was set ahead reaches back from now.
    """
    newest = row.editions[-1]
    if newest.job.updated_at is not None and newest.job.updated_at > now:
        last = newest.follows or newest.job.version
        known = [
            edition.job.version for edition in row.editions if edition.rollout is None and edition.job.version <= last
        ]
        oldest = max(known, default=newest.job.version)
        row.editions = [edition for edition in row.editions if edition.job.version >= oldest]
    row.pauses = [pause.brought_back(now) for pause in row.pauses]
    if row.reschedule is not None:
        row.reschedule = replace(row.reschedule, made_at=min(row.reschedule.made_at, now))
    if row.stopped_at is not None:
        row.stopped_at = min(row.stopped_at, now)
    if row.narrowed_at is not None:
        row.narrowed_at = min(row.narrowed_at, now)
