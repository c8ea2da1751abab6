"""From the jobs of files to a store: what is new, changed or gone, and the one transaction that makes it so.

Only what files own is touched. An equal definition changes nothing: neither version nor pause nor
watermark. A job that was disabled by an operation stays so, unless its file says whether it is enabled.
"""

from __future__ import annotations

import asyncio
from dataclasses import field, replace
from typing import TYPE_CHECKING

from everytick.domain.facts import Pause, Resume
from everytick.domain.snapshots import Missed
from everytick.domain.values import value
from everytick.errors import Conflict, TooManyEditions, VersionConflict, shown
from everytick.node.definers import DefinedNames
from everytick.sources.drafting import Change, Drafted, done, draft, edits_of, removal, unreadable_job
from everytick.sources.job_files import FILE
from everytick.sources.yaml_reader import Mistake

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from everytick.domain.changes import Edit
    from everytick.sources.files import Folder
    from everytick.sources.job_files import FileJob
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord
    from everytick.stores.protocols import JobStore

_AT_ONCE = 250
"""So many jobs of a watched folder share a transaction: a node that writes meanwhile waits for it."""

_TRIES = 5


@value
class Synced:
    """What came of a sync: the jobs that changed, and why others could not be stored.

    `names` are the jobs that the files define and own, whether or not they could be stored.
    """

    changes: tuple[Change, ...]
    mistakes: tuple[Mistake, ...] = ()
    names: frozenset[str] = field(default=frozenset(), compare=False)


async def sync_folder(store: AnyStore, folder: Folder, defined: DefinedNames | None = None) -> Synced:
    """Read the folder and make the store hold what it says; jobs whose file is gone retire after ten minutes.

    Those that another living node still defines are kept until it is gone.

    While a file that was never understood stands in the folder, nothing is removed: what seems
    to be gone may be in there.
    """
    # Reading and checking a thousand files takes a while, and the loop has jobs to start.
    await asyncio.to_thread(folder.load)
    return await sync_loaded(store, folder, defined)


async def sync_loaded(store: AnyStore, folder: Folder, defined: DefinedNames | None = None) -> Synced:
    """Make the store hold what the folder said when it was last loaded."""
    synced = await sync_jobs(store, folder.jobs, owner=folder.owner, prune=folder.is_whole, by=folder.owner)
    gone = frozenset(change.name for change in synced.changes if change.kind == "removed")
    removed = await (defined or DefinedNames()).tell(store, folder.owner, synced.names, gone)
    kept = gone - removed
    changes = tuple(replace(change, kind="kept") if change.name in kept else change for change in synced.changes)
    return replace(synced, changes=changes)


async def sync_jobs(
    store: JobStore,
    jobs: Mapping[str, FileJob],
    *,
    owner: str = FILE,
    prune: bool = False,
    by: str = FILE,
) -> Synced:
    """Store these jobs where they say anything new, and return what that changed.

    With `prune`, jobs of the owner that are not among them are told as removed, and left to the caller to
    remove. What one job is refused for does not hold up the others.
    """
    changes: dict[str, Change] = {}
    refused: dict[str, Mistake] = {}
    unreadable: set[str] = set()
    left = _TRIES
    while True:
        drafted = await draft_of(
            store, jobs, owner=owner, prune=prune, removes=False, without=refused, unreadable=unreadable
        )
        try:
            for part in drafted.parts(_AT_ONCE):
                for change in await _commit(store, part, by):
                    # What an earlier try did is unchanged in a later one.
                    if change.kind != "unchanged" or change.name not in changes:
                        changes[change.name] = change
            names = {*refused, *(item.change.name for item in drafted.jobs if item.change.kind != "removed")}
            return Synced(tuple(changes.values()), (*drafted.mistakes, *refused.values()), frozenset(names))
        except TooManyEditions as error:
            refused[error.job] = _mistake(jobs[error.job], f"could not be stored: {error}")
        except VersionConflict as conflict:
            hidden = await unreadable_job(store, conflict)
            left -= not hidden - unreadable
            if not left:
                raise
            unreadable |= hidden


async def apply_jobs(
    store: JobStore, jobs: Mapping[str, FileJob], *, owner: str = FILE, prune: bool = False, by: str = FILE
) -> Synced:
    """Store all of these jobs in one transaction, or none of them; with mistakes, nothing was stored.

    What somebody else edits between reading and writing is read again.
    """
    unreadable: set[str] = set()
    left = _TRIES
    while left:
        drafted = await draft_of(store, jobs, owner=owner, prune=prune, unreadable=unreadable)
        if drafted.mistakes:
            return Synced((), drafted.mistakes)
        try:
            return Synced(tuple(await _commit(store, drafted, by)))
        except VersionConflict as conflict:
            hidden = await unreadable_job(store, conflict)
            left -= not hidden - unreadable
            unreadable |= hidden
    raise Conflict(f"jobs of these files were edited {_TRIES} times meanwhile: nothing was stored, try again")


async def _commit(store: JobStore, drafted: FilesDraft, by: str) -> Sequence[Change]:
    """Do all of it at once, and return the changes as they came to be."""
    edits = drafted.edits()
    return done(drafted.jobs, edits, await store.apply(edits, by) if edits else ())


# ---------------------------------------------------------------------------------------------------------- the draft


@value
class FilesDraft:
    """What is to be done so that a store holds what files say: job by job, and why some cannot be stored.

    Without `removes`, what is gone is told and left.
    """

    jobs: tuple[Drafted, ...]
    mistakes: tuple[Mistake, ...]
    removes: bool = True
    unreadable: frozenset[str] = frozenset()

    @property
    def changes(self) -> tuple[Change, ...]:
        """What would change; a version that is not there yet is not known."""
        return tuple(item.change for item in self.jobs)

    def parts(self, size: int) -> Iterator[FilesDraft]:
        """Give the draft in parts of so many changes; what stays as it is, is in the first."""
        busy = [item for item in self.jobs if item.change.kind != "unchanged"]
        rest = tuple(item for item in self.jobs if item.change.kind == "unchanged")
        for place in range(0, len(busy), size):
            yield replace(self, jobs=(*(rest if place == 0 else ()), *busy[place : place + size]), mistakes=())
        if not busy:
            yield replace(self, mistakes=())

    def edits(self) -> list[Edit]:
        """Return all of it as one transaction, on the condition that no other edit of these jobs comes between."""
        return edits_of(self.jobs, unreadable=self.unreadable, removes=self.removes)


async def draft_of(
    store: JobStore,
    jobs: Mapping[str, FileJob],
    *,
    owner: str = FILE,
    prune: bool = False,
    removes: bool = True,
    without: Collection[str] = (),
    unreadable: Iterable[str] = (),
) -> FilesDraft:
    """Return what would have to be done now so that the store holds these jobs; nothing is changed.

    Those `without` are left as they are.
    """
    known = {record.job.name: record for record in await store.list()}
    foreign = {name for name in jobs if name in known and known[name].job.owner != owner}
    chosen = [(name, wanted) for name, wanted in jobs.items() if name not in foreign and name not in without]
    gone = [record for name, record in known.items() if prune and record.job.owner == owner and name not in jobs]
    drafts = [_drafted(wanted, known.get(name), owner) for name, wanted in chosen]
    drafts += [removal(record.job) for record in gone]
    refusals = tuple(_mistake(jobs[name], _belongs_to(known[name].job.owner)) for name in jobs if name in foreign)
    return FilesDraft(tuple(drafts), refusals, removes, frozenset(unreadable))


def _drafted(wanted: FileJob, record: JobRecord | None, owner: str) -> Drafted:
    return draft(wanted.job, None if record is None else record.job, _hold(wanted, record, owner))


def _hold(wanted: FileJob, record: JobRecord | None, owner: str) -> Pause | Resume | None:
    """Suspend the job as its file says, or take back that it did; a pause by another is left alone."""
    pause = None if record is None else record.pause
    if wanted.suspended:
        reason = f"suspended in {shown(wanted.file, 500)}"
        return Pause(None, Missed.CATCH_UP, reason, owner) if pause is None else None
    return Resume(owner) if pause is not None and pause.by == owner else None


def _belongs_to(owner: str) -> str:
    return f"belongs to {shown(owner, 60)}, and a file changes only its own: rename it here, or remove it there"


def _mistake(job: FileJob, said: str) -> Mistake:
    return Mistake(job.file, job.place.line, job.place.column, f"job '{job.job.name}' {said}")
