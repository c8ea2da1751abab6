"""What jobs depend on, for edits: who follows whom, and which edits are refused for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from everytick.domain.changes import Edit, Put, Rename
from everytick.domain.dependencies import Dependency
from everytick.domain.job import Job
from everytick.stores.depending import refuse_circles, refuse_never_meeting, unknown_dependency
from everytick.stores.memory.base import Shared
from everytick.stores.memory.rows import JobRow
from everytick.stores.memory.versions import is_forgotten, is_stored


class Dependencies:
    """Which job follows which."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._tables = shared, shared.tables

    def depend(self, jobs: Sequence[Job], now: datetime) -> None:
        """Let these jobs follow those on which they depend, which know from now on that others depend on them."""
        for job in jobs:
            row, needs_jobs = self._tables.names[job.name], dict[str, str]()
            for dependency in job.settings.depends_on:
                named = self._tables.names.get(dependency.job)
                in_service = named is not None and named.removed_at is None
                needs_jobs[dependency.job] = (
                    named.id if in_service and named is not None else row.needs_jobs[dependency.job]
                )
            self._tables.depend(row, needs_jobs)
        for id_ in sorted({id_ for job in jobs for id_ in self._tables.names[job.name].needs_jobs.values()}):
            needed = self._tables.jobs.get(id_)
            if needed is not None and not needed.is_needed:
                needed.is_needed = True
                needed.revision += 1
                self._shared.wake(needed, now)

    def check(self, changes: Sequence[Edit], now: datetime) -> None:
        """Raise if a job that is put depends on one that is not there, or on itself through others."""
        puts = [change for change in changes if isinstance(change, Put)]
        if not any(change.job.settings.depends_on for change in puts):
            return
        rows = self._names_after(changes, now)
        new = {change.name: change.job for change in puts}
        edited = [
            change.job for change in puts if (row := rows.get(change.name)) is None or not is_stored(row, change, now)
        ]
        followed: dict[str, list[str]] = {}
        for job in edited:
            row = rows.get(job.name)
            followed[job.name] = [
                self._followed(dependency, job, row, rows, new, now) for dependency in job.settings.depends_on
            ]
        names = {row.id: name for name, row in rows.items()}

        def needed_by(name: str) -> list[str]:
            row = rows.get(name)
            return (
                followed[name]
                if name in followed or row is None
                else [names[id_] for id_ in row.needs_jobs.values() if id_ in names]
            )

        refuse_circles(followed, needed_by)

    def _names_after(self, changes: Sequence[Edit], now: datetime) -> dict[str, JobRow]:
        """Return all jobs by the names that they have after the renames; a name that is free for a new job has none."""
        renamed = {change.name: change.to for change in changes if isinstance(change, Rename)}
        put = {change.name for change in changes if isinstance(change, Put)}
        rows = {renamed.get(name, name): row for name, row in self._tables.names.items()}
        return {name: row for name, row in rows.items() if name not in put or not is_forgotten(row, now)}

    def _followed(
        self,
        dependency: Dependency,
        job: Job,
        row: JobRow | None,
        rows: Mapping[str, JobRow],
        new: Mapping[str, Job],
        now: datetime,
    ) -> str:
        """Return the name of the job that a dependency follows: the one of that name, or one that had it before."""
        named = rows.get(dependency.job)
        if dependency.job not in new and (named is None or named.removed_at is not None):
            before = None if row is None else self._tables.jobs.get(row.needs_jobs.get(dependency.job, ""))
            if before is None:
                in_service = [name for name, other in rows.items() if other.removed_at is None]
                raise unknown_dependency(job.name, dependency.job, sorted({*in_service, *new}))
            return next(name for name, other in rows.items() if other is before)
        needed = new[dependency.job] if dependency.job in new or named is None else named.job
        refuse_never_meeting(job, dependency, needed, now)
        return dependency.job
