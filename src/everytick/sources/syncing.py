"""From the jobs of files to a store: what is new, changed or gone, and the store's verbs that make it so.

Only what files own is touched. An equal definition changes nothing: neither version nor pause nor
watermark. A job that was disabled by an operation stays so, unless its file says whether it is enabled.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from everytick.domain.snapshots import Missed
from everytick.domain.values import value
from everytick.errors import EverytickError, StoreUnavailable, shown
from everytick.sources.job_files import FILE
from everytick.sources.yaml_reader import Mistake
from everytick.stores.base import REMEMBERED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from everytick.domain.job import Job
    from everytick.sources.files import Folder
    from everytick.sources.job_files import FileJob
    from everytick.stores.base import JobRecord, JobStore

_SUSPENDED, _RESUMED = "suspended", "resumed"
_AT_ONCE = 100
"""So many definitions are stored side by side, so that a store may commit them together."""


@value
class Change:
    """What a sync did about one job, or would do; `parts` names what is different in a changed one."""

    name: str
    kind: Literal["added", "changed", "unchanged", "removed"]
    version: int | None
    parts: tuple[str, ...] = ()


@value
class Synced:
    """What came of a sync: the jobs that changed, and why others could not be stored."""

    changes: tuple[Change, ...]
    mistakes: tuple[Mistake, ...] = ()


async def sync_folder(store: JobStore, folder: Folder) -> Synced:
    """Read the folder and make the store hold what it says; jobs whose file is gone retire after ten minutes.

    While a file that was never understood stands in the folder, nothing is removed: what seems
    to be gone may be in there.
    """
    # Reading and checking a thousand files takes a while, and the loop has jobs to start.
    await asyncio.to_thread(folder.load)
    return await sync_loaded(store, folder)


async def sync_loaded(store: JobStore, folder: Folder) -> Synced:
    """Make the store hold what the folder said when it was last loaded."""
    return await sync_jobs(
        store, folder.jobs, owner=folder.owner, prune=folder.is_whole, retire_after=REMEMBERED, by=folder.owner
    )


async def sync_jobs(
    store: JobStore,
    jobs: Mapping[str, FileJob],
    *,
    owner: str = FILE,
    prune: bool = False,
    retire_after: timedelta = timedelta(0),
    dry_run: bool = False,
    by: str = FILE,
) -> Synced:
    """Store these jobs where they say anything new, and return what that changed.

    With `prune`, jobs of the owner that are not among them are removed. What one job is refused
    for does not hold up the others.
    """
    known = {record.job.name: record for record in await store.list()}
    act = _Act(store, owner, by, dry_run)
    names = list(jobs)
    for some in (names[place : place + _AT_ONCE] for place in range(0, len(names), _AT_ONCE)):
        await asyncio.gather(*(act.put(jobs[name], known.get(name)) for name in some))
    gone = [record for name, record in known.items() if record.job.owner == owner and name not in jobs]
    for record in gone if prune else ():
        await act.remove(record, retire_after)
    return Synced(tuple(act.changes), tuple(act.mistakes))


class _Act:
    """One sync in the making."""

    def __init__(self, store: JobStore, owner: str, by: str, dry_run: bool) -> None:
        self._store, self._owner, self._by, self._dry_run = store, owner, by, dry_run
        self.changes: list[Change] = []
        self.mistakes: list[Mistake] = []

    async def put(self, wanted: FileJob, record: JobRecord | None) -> None:
        """Store one job unless it is so already, and pause or resume it where its file says so."""
        if record is not None and record.job.owner != self._owner:
            owner = shown(record.job.owner, 60)
            self._note(
                wanted, f"belongs to {owner}, and a file changes only its own: rename it here, or remove it there"
            )
            return
        try:
            await self._put(wanted, record)
        except StoreUnavailable:
            raise
        except EverytickError as error:
            self._note(wanted, f"could not be stored: {error}")

    async def _put(self, wanted: FileJob, record: JobRecord | None) -> None:
        job = wanted.job if record is None else _as_enabled(wanted, record.job)
        parts = () if record is None else differences(record.job, job)
        parts = (*parts, *self._held(wanted, record))
        if record is not None and not parts:
            self.changes.append(Change(job.name, "unchanged", record.job.version))
            return
        version = None if self._dry_run else await self._write(wanted, job, parts)
        self.changes.append(Change(job.name, "added" if record is None else "changed", version, parts))

    def _held(self, wanted: FileJob, record: JobRecord | None) -> tuple[str, ...]:
        """Whether the file suspends the job, or takes back that it did; a pause of somebody else is left alone."""
        pause = None if record is None else record.pause
        if wanted.suspended:
            return (_SUSPENDED,) if pause is None else ()
        return (_RESUMED,) if pause is not None and pause.by == self._owner else ()

    async def _write(self, wanted: FileJob, job: Job, parts: Sequence[str]) -> int:
        stored = await self._store.put(job, by=self._by)
        if _SUSPENDED in parts:
            reason = f"suspended in {shown(wanted.file, 500)}"
            await self._store.pause(stored.job_id, missed=Missed.CATCH_UP, reason=reason, by=self._owner)
        elif _RESUMED in parts:
            await self._store.resume(stored.job_id, by=self._owner)
        return stored.version

    async def remove(self, record: JobRecord, retire_after: timedelta) -> None:
        """Take one job out of service."""
        if not self._dry_run:
            await self._store.remove(record.job.id, retire_after=retire_after, by=self._by)
        self.changes.append(Change(record.job.name, "removed", record.job.version))

    def _note(self, job: FileJob, said: str) -> None:
        self.mistakes.append(Mistake(job.file, job.place.line, job.place.column, f"job '{job.job.name}' {said}"))


def differences(before: Job, after: Job) -> tuple[str, ...]:
    """Name what a new definition says differently: the schedule, tasks, single policies."""
    found = [] if before.schedule == after.schedule else ["schedule"]
    for old, new in ((before.application, after.application), (before.overrides, after.overrides)):
        found += [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    if _tasks(before) != _tasks(after):
        found.append("tasks")
    if before.owner != after.owner or before.reports != after.reports:
        found.append("owner")
    return tuple(dict.fromkeys(found))


def _tasks(job: Job) -> Iterable[object]:
    return [(task.name, task.target, task.after, task.overrides) for task in job.tasks]


def _as_enabled(wanted: FileJob, before: Job) -> Job:
    """The definition, disabled where an operation has disabled it and the file itself does not say."""
    job = wanted.job
    silent = "enabled" not in job.overrides and "enabled" not in job.application
    return wanted.written.job(enabled=False) if silent and not before.enabled else job
