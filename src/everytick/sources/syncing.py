"""From the jobs of files to a store: what is new, changed or gone, and the one transaction that makes it so.

Only what files own is touched. An equal definition changes nothing: neither version nor pause nor
watermark. A job that was disabled by an operation stays so, unless its file says whether it is enabled.
"""

from __future__ import annotations

import asyncio
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from everytick.domain.changes import Put, Remove, Tell
from everytick.domain.facts import Pause, Resume
from everytick.domain.snapshots import Missed
from everytick.domain.values import value
from everytick.errors import Conflict, TooManyEditions, VersionConflict, shown
from everytick.node.definers import DefinedNames
from everytick.sources.job_files import FILE
from everytick.sources.yaml_reader import Mistake

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from everytick.domain.changes import Change as Edit
    from everytick.domain.job import Job
    from everytick.sources.files import Folder
    from everytick.sources.job_files import FileJob
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord, Stored
    from everytick.stores.protocols import JobStore

_SUSPENDED, _RESUMED = "suspended", "resumed"
_AT_ONCE = 250
"""So many jobs of a watched folder share a transaction: a node that writes meanwhile waits for it."""

_TRIES = 5


@value
class Change:
    """What a sync did about one job, or would do; `parts` names what is different in a changed one.

    A job is kept that no file here defines and another living node does.
    """

    name: str
    kind: Literal["added", "changed", "unchanged", "removed", "kept"]
    version: int | None
    parts: tuple[str, ...] = ()


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
    gone = frozenset(each.name for each in synced.changes if each.kind == "removed")
    removed = await (defined or DefinedNames()).tell(store, folder.owner, synced.names, gone)
    kept = gone - removed
    changes = tuple(replace(each, kind="kept") if each.name in kept else each for each in synced.changes)
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
    done: dict[str, Change] = {}
    refused: dict[str, Mistake] = {}
    unreadable: set[str] = set()
    left = _TRIES
    while True:
        draft = await draft_of(
            store, jobs, owner=owner, prune=prune, removes=False, without=refused, unreadable=unreadable
        )
        try:
            for part in draft.parts(_AT_ONCE):
                for change in await _commit(store, part, by):
                    # What an earlier try did is unchanged in a later one.
                    if change.kind != "unchanged" or change.name not in done:
                        done[change.name] = change
            names = {*refused, *(each.change.name for each in draft.plans if each.change.kind != "removed")}
            return Synced(tuple(done.values()), (*draft.mistakes, *refused.values()), frozenset(names))
        except TooManyEditions as error:
            refused[error.job] = _mistake(jobs[error.job], f"could not be stored: {error}")
        except VersionConflict as conflict:
            left -= 1
            if not left:
                raise
            unreadable |= await _unreadable(store, conflict)


async def _unreadable(store: JobStore, conflict: VersionConflict) -> set[str]:
    """The job that is there although no list shows it: one that nobody here can read gives way to a new definition."""
    shows = {record.job.name for record in await store.list()}
    return set() if conflict.expected or conflict.job in shows else {conflict.job}


async def apply_jobs(
    store: JobStore, jobs: Mapping[str, FileJob], *, owner: str = FILE, prune: bool = False, by: str = FILE
) -> Synced:
    """Store all of these jobs in one transaction, or none of them; with mistakes, nothing was stored.

    What somebody else edits between reading and writing is read again.
    """
    unreadable: set[str] = set()
    for _ in range(_TRIES):
        draft = await draft_of(store, jobs, owner=owner, prune=prune, unreadable=unreadable)
        if draft.mistakes:
            return Synced((), draft.mistakes)
        try:
            return Synced(tuple(await _commit(store, draft, by)))
        except VersionConflict as conflict:
            unreadable |= await _unreadable(store, conflict)
    raise Conflict(f"jobs of these files were edited {_TRIES} times meanwhile: nothing was stored, try again")


async def _commit(store: JobStore, draft: Draft, by: str) -> Sequence[Change]:
    """Do all of it at once, and return the changes as they came to be."""
    edits = draft.edits()
    stored = await store.apply(edits, by) if edits else ()
    made = {edit.name: each for edit, each in zip(edits, stored, strict=True) if isinstance(edit, Put)}
    return [each.done(made.get(each.change.name)) for each in draft.plans]


# ---------------------------------------------------------------------------------------------------------- the draft


@value
class Planned:
    """One job of a draft: what is to change, its definition then, and how the store has it now."""

    change: Change
    job: Job | None
    wanted: FileJob | None
    record: JobRecord | None

    @property
    def suspends(self) -> bool:
        """Whether its schedule is to be held."""
        return _SUSPENDED in self.change.parts

    @property
    def resumes(self) -> bool:
        """Whether its schedule is to be let go."""
        return _RESUMED in self.change.parts

    def done(self, stored: Stored | None) -> Change:
        """Return the change as it came to be."""
        if stored is not None:
            return replace(self.change, version=stored.version)
        return self.change if self.record is None else replace(self.change, version=self.record.job.version)


@value
class Draft:
    """What is to be done so that a store holds what files say: job by job, and why some cannot be stored.

    Only with `removes` its transaction removes what is gone.
    """

    plans: tuple[Planned, ...]
    mistakes: tuple[Mistake, ...]
    owner: str
    removes: bool
    unreadable: frozenset[str] = frozenset()

    @property
    def changes(self) -> tuple[Change, ...]:
        """What would change; a version that is not there yet is not known."""
        return tuple(each.change for each in self.plans)

    def parts(self, size: int) -> Iterator[Draft]:
        """Give the draft in parts of so many changes; what stays as it is, is in the first."""
        busy = [each for each in self.plans if each.change.kind != "unchanged"]
        rest = tuple(each for each in self.plans if each.change.kind == "unchanged")
        for place in range(0, len(busy), size):
            yield replace(self, plans=(*(rest if place == 0 else ()), *busy[place : place + size]), mistakes=())
        if not busy:
            yield replace(self, mistakes=())

    def edits(self) -> list[Edit]:
        """Return all of it as one transaction, on the condition that nobody edits these jobs meanwhile."""
        still = ("unchanged",) if self.removes else ("unchanged", "removed")
        busy = [each for each in self.plans if each.change.kind not in still]
        return [edit for each in busy for edit in self._edits_of(each)]

    def _edits_of(self, planned: Planned) -> Iterator[Edit]:
        name, wanted = planned.change.name, planned.wanted
        expected = 0 if planned.record is None else planned.record.job.version
        at = None if name in self.unreadable else expected
        if planned.job is not None:
            yield Put(planned.job, at)
        if wanted is not None and planned.suspends:
            reason = f"suspended in {shown(wanted.file, 500)}"
            yield Tell(name, Pause(None, Missed.CATCH_UP, reason, self.owner), at)
        if planned.resumes:
            yield Tell(name, Resume(self.owner), at)
        if planned.change.kind == "removed":
            yield Remove(name, expected=at)


async def draft_of(
    store: JobStore,
    jobs: Mapping[str, FileJob],
    *,
    owner: str = FILE,
    prune: bool = False,
    removes: bool = True,
    without: Collection[str] = (),
    unreadable: Iterable[str] = (),
) -> Draft:
    """Return what would have to be done now so that the store holds these jobs; nothing is changed.

    Those `without` are left as they are.
    """
    known = {record.job.name: record for record in await store.list()}
    foreign = {name for name in jobs if name in known and known[name].job.owner != owner}
    chosen = [(name, wanted) for name, wanted in jobs.items() if name not in foreign and name not in without]
    gone = [record for name, record in known.items() if prune and record.job.owner == owner and name not in jobs]
    plans = [_planned(wanted, known.get(name), owner) for name, wanted in chosen]
    plans += [Planned(Change(each.job.name, "removed", each.job.version), None, None, each) for each in gone]
    refusals = tuple(_mistake(jobs[name], _belongs_to(known[name].job.owner)) for name in jobs if name in foreign)
    return Draft(tuple(plans), refusals, owner, removes, frozenset(unreadable))


def _planned(wanted: FileJob, record: JobRecord | None, owner: str) -> Planned:
    job = wanted.job if record is None else _as_enabled(wanted, record.job)
    said = () if record is None else differences(record.job, job)
    parts = (*said, *_held(wanted, record, owner))
    if record is None:
        return Planned(Change(job.name, "added", None, parts), job, wanted, None)
    if not parts:
        return Planned(Change(job.name, "unchanged", record.job.version), None, wanted, record)
    return Planned(Change(job.name, "changed", None, parts), job if said else None, wanted, record)


def _held(wanted: FileJob, record: JobRecord | None, owner: str) -> tuple[str, ...]:
    """Whether the file suspends the job, or takes back that it did; a pause of somebody else is left alone."""
    pause = None if record is None else record.pause
    if wanted.suspended:
        return (_SUSPENDED,) if pause is None else ()
    return (_RESUMED,) if pause is not None and pause.by == owner else ()


def _belongs_to(owner: str) -> str:
    return f"belongs to {shown(owner, 60)}, and a file changes only its own: rename it here, or remove it there"


def _mistake(job: FileJob, said: str) -> Mistake:
    return Mistake(job.file, job.place.line, job.place.column, f"job '{job.job.name}' {said}")


def differences(before: Job, after: Job) -> tuple[str, ...]:
    """Name what a new definition says differently: the schedule, tasks, single policies."""
    found = [] if before.schedule == after.schedule else ["schedule"]
    for old, new in ((before.application, after.application), (before.overrides, after.overrides)):
        found += [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    if _tasks(before) != _tasks(after):
        found.append("tasks")
    if (before.owner, before.code, before.reports) != (after.owner, after.code, after.reports):
        found.append("owner")
    return tuple(dict.fromkeys(found))


def _tasks(job: Job) -> Iterable[object]:
    return [(task.name, task.target, task.after, task.overrides) for task in job.tasks]


def _as_enabled(wanted: FileJob, before: Job) -> Job:
    """The definition, disabled where an operation has disabled it and the file itself does not say."""
    job = wanted.job
    silent = "enabled" not in job.overrides and "enabled" not in job.application
    return wanted.written.job(enabled=False) if silent and not before.enabled else job
