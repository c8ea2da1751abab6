"""Syncs the jobs of files into a store: finds new, changed and removed jobs, and stores them in one transaction.

Only what files own is touched. An equal definition changes nothing: neither version nor pause nor
watermark. A job that was disabled by an operation stays so, unless its file says whether it is enabled.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from everytick.domain.facts import Pause, Resume
from everytick.domain.snapshots import Missed
from everytick.domain.values import value
from everytick.errors import Conflict, TooManyEditions, VersionConflict, shown
from everytick.node.definers import DefinedNames
from everytick.sources.drafting import Drafted, done, draft, edits_of, removal
from everytick.sources.edit_conflicts import EDIT_TRIES, EditTries
from everytick.sources.job_files import FILE
from everytick.sources.yaml_reader import Mistake

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from everytick.domain.changes import Change, Edit
    from everytick.domain.policies import UpdatePolicy
    from everytick.sources.files import Folder
    from everytick.sources.job_files import FileJob
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord
    from everytick.stores.protocols import JobStore

_AT_ONCE = 250
"""Most jobs of a watched folder in one transaction: a node that writes at the same time waits for it."""

_GUARDED = "is protected and stays as it was: everytick apply stores the change, with --yes or by two people"


@value
class Synced:
    """The result of a sync: the changes, and the mistakes of jobs that could not be stored.

    `names` are the jobs that the files define and own, whether or not they could be stored; `protected` those that
    they no longer define and that stay nevertheless.
    """

    changes: tuple[Change, ...]
    mistakes: tuple[Mistake, ...] = ()
    names: frozenset[str] = field(default=frozenset(), compare=False)
    protected: frozenset[str] = field(default=frozenset(), compare=False)


async def sync_loaded(store: AnyStore, folder: Folder, defined: DefinedNames | None = None) -> Synced:
    """Store the jobs of the folder as it was last loaded. Jobs whose file is gone retire after ten minutes.

    A job that another living node still defines is kept until that node is gone.

    While the folder has a file that was never readable, nothing is removed: the missing job may be in it.
    """
    synced = await sync_jobs(store, folder.jobs, owner=folder.owner, prune=folder.is_whole, by=folder.owner)
    gone = frozenset(change.name for change in synced.changes if change.kind == "removed") - synced.protected
    removed = await (defined or DefinedNames()).tell(store, folder.owner, synced.names, gone)
    kept = (gone | synced.protected) - removed
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
    """Store the jobs that are new or changed, and return the changes.

    With `prune`, jobs of the owner that are not among them are told as removed, and left to the caller to
    remove. What one job is refused for does not hold up the others. Protected jobs stay as they are, since
    no person is asked here.
    """
    changes: dict[str, Change] = {}
    refused: dict[str, Mistake] = {}
    tries = EditTries(store)
    while True:
        drafted = await draft_of(
            store, jobs, owner=owner, prune=prune, removes=False, without=refused, unreadable=tries.unreadable
        )
        if guarded := [item.change.name for item in drafted.jobs if item.change.name in jobs and item.is_guarded]:
            refused |= {name: _mistake(jobs[name], _GUARDED) for name in guarded}
            continue
        try:
            for part in drafted.parts(_AT_ONCE):
                for change in await _commit(store, part, by):
                    # A later try finds the changes of an earlier one as unchanged.
                    if change.kind != "unchanged" or change.name not in changes:
                        changes[change.name] = change
            names = {*refused, *(item.change.name for item in drafted.jobs if item.change.kind != "removed")}
            kept = {item.change.name for item in drafted.jobs if item.change.kind == "removed" and item.is_guarded}
            told = (*drafted.mistakes, *refused.values())
            return Synced(tuple(changes.values()), told, frozenset(names), frozenset(kept))
        except TooManyEditions as error:
            refused[error.job] = _mistake(jobs[error.job], f"could not be stored: {error}")
        except VersionConflict as conflict:
            if not await tries.may_go_on(conflict):
                raise


async def apply_jobs(
    store: JobStore,
    jobs: Mapping[str, FileJob],
    *,
    owner: str = FILE,
    prune: bool = False,
    by: str = FILE,
    policy: UpdatePolicy | None = None,
    agree: Callable[[FilesDraft], Awaitable[None]] | None = None,
) -> Synced:
    """Store all of these jobs in one transaction, or none of them. If there are mistakes, nothing was stored.

    What another editor writes between reading and writing is read again. `policy` says when new versions come into
    force, instead of what each job says. `agree` raises if a draft may not be stored.
    """
    tries = EditTries(store)
    while True:
        drafted = await draft_of(store, jobs, owner=owner, prune=prune, unreadable=tries.unreadable, policy=policy)
        if drafted.mistakes:
            return Synced((), drafted.mistakes)
        if agree is not None:
            await agree(drafted)
        try:
            return Synced(tuple(await _commit(store, drafted, by)))
        except VersionConflict as conflict:
            if not await tries.may_go_on(conflict):
                text = f"jobs of these files were edited {EDIT_TRIES} times meanwhile: nothing was stored, try again"
                raise Conflict(text) from conflict


async def _commit(store: JobStore, drafted: FilesDraft, by: str) -> Sequence[Change]:
    """Make all changes in one transaction, and return them with the stored versions."""
    edits = drafted.edits()
    return done(drafted.jobs, edits, await store.apply(edits, by) if edits else ())


# ---------------------------------------------------------------------------------------------------------- the draft


@value
class FilesDraft:
    """The changes that bring the jobs of files into a store, and the mistakes of jobs that cannot be stored.

    Without `removes`, removed jobs are listed and stay in the store.
    """

    jobs: tuple[Drafted, ...]
    mistakes: tuple[Mistake, ...]
    removes: bool = True
    unreadable: frozenset[str] = frozenset()
    policy: UpdatePolicy | None = None

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes. A version that is not stored yet is None."""
        return tuple(item.change for item in self.jobs)

    def parts(self, size: int) -> Iterator[FilesDraft]:
        """Give the draft in parts of up to `size` changes. Unchanged jobs are in the first part."""
        changing = [item for item in self.jobs if item.change.kind != "unchanged"]
        unchanged = tuple(item for item in self.jobs if item.change.kind == "unchanged")
        for place in range(0, len(changing), size):
            jobs = (*(unchanged if place == 0 else ()), *changing[place : place + size])
            yield replace(self, jobs=jobs, mistakes=())
        if not changing:
            yield replace(self, mistakes=())

    def edits(self) -> list[Edit]:
        """Return the edits of one transaction, which fails if these jobs were edited in between."""
        return edits_of(self.jobs, unreadable=self.unreadable, removes=self.removes, policy=self.policy)


async def draft_of(
    store: JobStore,
    jobs: Mapping[str, FileJob],
    *,
    owner: str = FILE,
    prune: bool = False,
    removes: bool = True,
    without: Collection[str] = (),
    unreadable: Iterable[str] = (),
    policy: UpdatePolicy | None = None,
) -> FilesDraft:
    """Return the changes that would bring these jobs into the store. Nothing is changed.

    Jobs in `without` stay as they are.
    """
    known = {record.job.name: record for record in await store.list()}
    foreign = {name for name in jobs if name in known and known[name].job.owner != owner}
    chosen = [(name, wanted) for name, wanted in jobs.items() if name not in foreign and name not in without]
    gone = [record for name, record in known.items() if prune and record.job.owner == owner and name not in jobs]
    drafts = [_drafted(wanted, known.get(name), owner) for name, wanted in chosen]
    drafts += [removal(record.job) for record in gone]
    refusals = tuple(_mistake(jobs[name], _belongs_to(known[name].job.owner)) for name in jobs if name in foreign)
    return FilesDraft(tuple(drafts), refusals, removes, frozenset(unreadable), policy)


def _drafted(wanted: FileJob, record: JobRecord | None, owner: str) -> Drafted:
    if record is None:
        return draft(wanted.job, None, _hold(wanted, record, owner))
    return draft(wanted.job, record.job, _hold(wanted, record, owner), lapsed=record.lapsed)


def _hold(wanted: FileJob, record: JobRecord | None, owner: str) -> Pause | Resume | None:
    """Return the pause or resume that follows from the file's `suspended`. A pause by another stays."""
    pause = None if record is None else record.pause
    if wanted.suspended:
        reason = f"suspended in {shown(wanted.file, 500)}"
        return Pause(None, Missed.CATCH_UP, reason, owner) if pause is None else None
    return Resume(owner) if pause is not None and pause.by == owner else None


def _belongs_to(owner: str) -> str:
    return f"belongs to {shown(owner, 60)}, and a file changes only its own: rename it here, or remove it there"


def _mistake(job: FileJob, said: str) -> Mistake:
    return Mistake(job.file, job.place.line, job.place.column, f"job '{job.job.name}' {said}")
