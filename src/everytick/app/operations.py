"""Operations: what people and programs ask of jobs. Each writes a fact; what follows from it, a plan decides."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from everytick.app.lookups import future, in_zone, now_or_later, readable, schedule_of
from everytick.app.requests import Requests
from everytick.domain.job import Job, TaskDefinition, define_job
from everytick.domain.names import checked_name
from everytick.domain.values import value
from everytick.errors import (
    Conflict,
    DuplicateDefinition,
    InvalidInstant,
    InvalidPolicies,
    TooManyEditions,
    VersionConflict,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from everytick.app.definition import Definition
    from everytick.domain.changes import Change as Edit
    from everytick.domain.keywords import JobPolicies
    from everytick.domain.schedule import Schedule
    from everytick.node.definers import DefinedNames
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

API = "api"
"""The owner of a job that `update` or `rename` has detached from the code or the file that defined it."""

_EDITS_TRIED = 5
_PURGED_AT_ONCE = 1000
_SHOWN_RUNNING = 1000


@value
class Change:
    """What `apply` and `sync` did about one job, or would do: added, changed, unchanged, removed or kept.

    A sync keeps a job that this code no longer defines as long as another node does.
    """

    name: str
    kind: Literal["added", "changed", "unchanged", "removed", "kept"]
    version: int | None


class Operations(Requests):
    """The operations; `by` says who asks, which is stored with the fact: by default this application."""

    formerly: str | None
    jobs_owner: str

    if TYPE_CHECKING:

        def _defined_names(self) -> DefinedNames:
            """Return what the store was told that this process defines; what runs the node keeps it."""

    # ------------------------------------------------------------------------------------------------- the schedule

    async def pause(
        self,
        name: str,
        *,
        until: datetime | str | None = None,
        reason: str = "",
        missed: Literal["skip", "catch_up"] = "skip",
        by: str | None = None,
    ) -> None:
        """Hold the schedule from now on; its instants are skipped, or caught up on resume if `missed` says so."""
        from everytick.domain.facts import Pause
        from everytick.domain.reading import choice
        from everytick.domain.snapshots import Missed

        what = choice("missed", Missed, missed)
        store = await self._opened()
        record = await self._find(store, name)
        end = None if until is None else future("the end of a pause", until, await store.now())
        await store.request(record.job.id, Pause(end, what, reason, self._by(by)))

    async def resume(self, name: str, *, by: str | None = None) -> bool:
        """End a pause now; return whether there was one."""
        from everytick.domain.facts import Resume

        store = await self._opened()
        job_id = (await self._find(store, name)).job.id
        return (await store.request(job_id, Resume(self._by(by)))).changed

    async def enable(self, name: str, *, by: str | None = None) -> bool:
        """Let a disabled job run again, from its next instant on; return whether anything changed."""
        return await self._switch(name, True, by)

    async def disable(self, name: str, *, by: str | None = None) -> bool:
        """Let the job create nothing and take no requests until it is enabled; return whether anything changed."""
        return await self._switch(name, False, by)

    async def _switch(self, name: str, enabled: bool, by: str | None) -> bool:
        store = await self._opened()
        if (await self._find(store, name)).job.enabled is enabled:
            return False
        await self._edit(store, name, None, None, {"enabled": enabled}, self._by(by))
        return True

    async def reschedule(self, name: str, at: datetime | str, *, by: str | None = None) -> None:
        """Set the next run; the instants before it give way, those after it stay.

        A time of the last minute means now.
        """
        from everytick.domain.facts import Reschedule

        store = await self._opened()
        record = await self._find(store, name)
        to = now_or_later("the next run", at, await store.now())
        if to == record.watermark:
            # An instant at this very moment has been decided, and the run would have its id.
            from everytick.domain.upcoming import TICK

            to += TICK
        await store.request(record.job.id, Reschedule(to, self._by(by)))

    async def rewind(self, name: str, *, by: str | None = None) -> bool:
        """Let a job go on now that was decided ahead while a clock was wrong; return whether it lay ahead.

        What has run stays so. What was recorded as not run is decided anew by the newest
        definition, and single instants of that time that were skipped or moved are forgotten.
        """
        import logging

        from everytick.domain.facts import Rewind

        store = await self._opened()
        record = await self._find(store, name)
        is_ahead = (await store.request(record.job.id, Rewind())).changed
        if is_ahead:
            text = "job '%s' was decided through %s and goes on now, by %s"
            logging.getLogger("everytick.app").warning(text, name, record.watermark.isoformat(), self._by(by))
        return is_ahead

    async def skip(self, name: str, at: datetime | str, *, reason: str = "", by: str | None = None) -> None:
        """Leave one single future instant out."""
        from everytick.domain.facts import Skip

        store = await self._opened()
        record = await self._find(store, name)
        instant = await self._coming(store, record, at)
        await store.request(record.job.id, Skip(instant, reason, self._by(by)))

    async def move(
        self, name: str, at: datetime | str, to: datetime | str, *, reason: str = "", by: str | None = None
    ) -> None:
        """Let one single future instant run at another time; it keeps its id.

        To its own time it is moved back: that undoes a skip or a move of it.
        """
        from everytick.domain.facts import Move, Undo

        store = await self._opened()
        record = await self._find(store, name)
        instant = await self._coming(store, record, at)
        target = future("where an instant is moved", to, await store.now())
        if target == instant and not await _is_moved_away(store, record.job.id, instant):
            raise InvalidInstant(to, "is where it stands already: give another time, or leave it")
        by = self._by(by)
        fact = Undo(instant, reason, by) if target == instant else Move(instant, target, reason, by)
        await store.request(record.job.id, fact)

    async def _coming(self, store: AnyStore, record: JobRecord, at: datetime | str) -> datetime:
        """Return the instant if it is still to come and the schedule names it."""
        instant = future("one single instant", at, await store.now())
        schedule = record.job.bound(None if record.last_end is None else record.last_end.ended_at)
        if schedule.last_at(instant) != instant:
            near = [schedule.last_at(instant), schedule.next_after(instant)]
            said = " and ".join(each.isoformat() for each in near if each is not None) or "none"
            reason = f"is not named by the schedule of job '{shown(record.job.name)}'; the nearest instants are {said}"
            raise InvalidInstant(at, reason)
        return instant

    # ---------------------------------------------------------------------------------------------- the definitions

    async def apply(
        self,
        definitions: Iterable[Definition | Job],
        *,
        prune: bool = False,
        dry_run: bool = False,
        by: str | None = None,
    ) -> list[Change]:
        """Store these definitions, each as a new version where it says anything new; return what that changed.

        With `prune`, jobs of the same owners that are not among them are removed. All of it is
        one transaction: if one is refused, nothing is stored.
        """
        jobs = [each if isinstance(each, Job) else each.job for each in definitions]
        for job in jobs:
            _refuse_idle(job)
        if twice := [name for name, count in Counter(job.name for job in jobs).items() if count > 1]:
            raise DuplicateDefinition(f"two definitions are named '{shown(twice[0])}': give one of them another name")
        owners = {job.owner for job in jobs} or {f"code:{self.name}"}
        pruned = owners if prune else set()
        return await self._apply(jobs, pruned, dry_run=dry_run, by=self._by(by))

    async def sync(self) -> list[Change]:
        """Store every definition of this application and return what that changed; equal ones change nothing.

        Those that its code no longer names are removed, ten minutes later, unless another living
        node defines them: then they are kept, with a warning, until it is gone. A job that was
        disabled by an operation stays so, unless the code itself says whether it is enabled.
        A job of another application is left alone, and so is one that `update` has detached.
        """
        return await self._sync(frozenset())

    async def _sync(self, left: frozenset[str]) -> list[Change]:
        """Store every definition but those that are left as they are."""
        jobs = [definition.job for definition in self._definitions.values()]
        for job in jobs:
            _refuse_idle(job)
        own = f"code:{self.name}"
        owners = {own} if self.formerly is None else {own, f"code:{self.formerly}"}
        changes = await self._apply(jobs, owners, dry_run=False, by=own, left=left, removes=False)
        gone = frozenset(each.name for each in changes if each.kind == "removed")
        names = [each.name for each in changes if each.kind != "removed"]
        removed = await self._defined_names().tell(await self._opened(), own, names, gone)
        kept = gone - removed
        return [replace(each, kind="kept") if each.name in kept else each for each in changes]

    async def _sync_what_can_be(self) -> dict[str, TooManyEditions]:
        """Store every definition, and return why some were left as they are: one must not keep the others out."""
        refused: dict[str, TooManyEditions] = {}
        while True:
            try:
                await self._sync(frozenset(refused))
                return refused
            except TooManyEditions as error:
                refused[error.job] = error

    async def _apply(
        self,
        jobs: list[Job],
        owners: set[str],
        *,
        dry_run: bool,
        by: str,
        left: frozenset[str] = frozenset(),
        removes: bool = True,
    ) -> list[Change]:
        store = await self._opened()
        for tries_left in reversed(range(_EDITS_TRIED)):
            known = {record.job.name: record.job for record in await store.list()}
            foreign = self._foreign(jobs, known)
            chosen = [job for job in jobs if job.name not in foreign]
            changes, edits = _drafted(chosen, known, owners, left, removes)
            if not dry_run:
                # Before they are stored: an occurrence may begin at once, and its job's hooks must be known by then.
                self._learned()
            try:
                stored = await store.apply(edits, by) if edits and not dry_run else ()
            except VersionConflict:
                # Somebody edits the same jobs: another process of this application may be starting too.
                if not tries_left:
                    raise
                continue
            if not dry_run:
                _say_left_alone(jobs, foreign, self.name)
                self._learned()
            versions = {edit.name: each.version for edit, each in zip(edits, stored, strict=False)}
            return [replace(each, version=versions.get(each.name, each.version)) for each in changes]
        raise AssertionError("the last try returns or raises")

    def _foreign(self, jobs: list[Job], known: Mapping[str, Job]) -> dict[str, Job]:
        """Return those of the stored jobs that have one of these names and are not this application's to change."""
        ours = {f"code:{self.name}", f"code:{self.formerly}"}
        found = {job.name: known[job.name] for job in jobs if job.name in known and known[job.name].owner != job.owner}
        return {
            name: stored
            for name, stored in found.items()
            if stored.owner == API or (stored.owner not in ours and stored.code != self.name)
        }

    async def update(
        self,
        name: str,
        schedule: Schedule | str | None = None,
        *,
        expected_version: int | None = None,
        detach: bool = False,
        by: str | None = None,
        **policies: Unpack[JobPolicies],
    ) -> int:
        """Change the schedule or single policies of a stored job and return its version then.

        What is not named stays; UNSET takes a policy back. If the job is at another version
        than `expected_version`, nothing is changed. A job that code or a file defines is refused,
        unless `detach` makes it the API's own: from then on a sync leaves it alone.
        """
        store = await self._opened()
        found = None if schedule is None else schedule_of(schedule)
        self._refuse_defined_elsewhere((await self._find(store, name)).job, detach)
        return await self._edit(store, name, found, expected_version, policies, self._by(by), detach=detach)

    def _refuse_defined_elsewhere(self, job: Job, detach: bool) -> None:
        """Return if an edit of the definition lasts: no code and no file would undo it at the next sync."""
        if detach:
            return
        if job.owner.startswith("code:"):
            where = f"the code of application '{shown(job.owner[5:])}' defines it"
        elif job.owner in ("file", self.jobs_owner):
            where = "a file defines it"
        else:
            return
        raise Conflict(
            f"job '{shown(job.name)}' is left as it is, since {where}: change it there, "
            "or say detach=True to make it the API's own"
        )

    async def _edit(
        self,
        store: AnyStore,
        name: str,
        schedule: Schedule | None,
        expected: int | None,
        policies: Mapping[str, object],
        by: str,
        *,
        detach: bool = False,
    ) -> int:
        from everytick.domain.changes import Put

        for _ in range(_EDITS_TRIED):
            job = (await self._find(store, name)).job
            if expected is not None and expected != job.version:
                raise VersionConflict(name, expected, job.version)
            try:
                edited = _edited(job, schedule, policies)
                edited = replace(edited, owner=API) if detach else edited
                [stored] = await store.apply([Put(edited, job.version)], by)
                return stored.version
            except VersionConflict:
                if expected is not None:
                    raise
        raise Conflict(f"job '{shown(name)}' was edited {_EDITS_TRIED} times meanwhile: try again")

    async def rename(self, old: str, new: str, *, detach: bool = False, by: str | None = None) -> None:
        """Give the job another name; its id, watermark and history stay.

        A job that code or a file defines is refused, unless `detach` makes it the API's own.
        """
        from everytick.domain.changes import Put, Rename

        checked = checked_name("job", new)
        store = await self._opened()
        job = (await self._find(store, old)).job
        self._refuse_defined_elsewhere(job, detach)
        detached = [Put(replace(job, name=checked, owner=API))] if detach and job.owner != API else []
        await store.apply([Rename(job.name, checked, job.version if detached else None), *detached], self._by(by))

    async def remove(self, name: str, *, purge: bool = False, by: str | None = None) -> None:
        """Take the job out of service: what was not claimed is canceled, its history is kept.

        With `purge` the job and all that belongs to it is forgotten for good. As long as
        something of it runs that is refused and nothing is changed; what begins at this very
        moment leaves the job removed and not yet forgotten, and the error says so. One that was
        removed before can still be purged.
        """
        from everytick.domain.changes import Remove

        store = await self._opened()
        record = await self._find(store, name, removed=purge)
        if record.removed_at is None:
            if purge:
                await _refuse_running(store, record.job)
            await store.apply([Remove(record.job.name)], self._by(by))
        while purge and not await store.purge(record.job.id, _PURGED_AT_ONCE):
            pass


async def _is_moved_away(store: AnyStore, job_id: str, instant: datetime) -> bool:
    """Whether the instant is to be skipped, or to run at another time; one that has run there stays there."""
    snapshot = (await store.look([job_id]))[job_id]
    return any(each.at == instant and each.vacates and not each.done for each in snapshot.adjustments)


async def _refuse_running(store: AnyStore, job: Job) -> None:
    """Return if no node holds anything of the job, which has not been touched yet."""
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.stores.base import HistoryFilter

    busy = (OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY)
    found = (await store.history(HistoryFilter(job_id=job.id, statuses=busy, limit=_SHOWN_RUNNING))).occurrences
    held = sum(each.owner is not None for each in found)
    if held:
        raise Conflict(
            f"job '{shown(job.name)}' is left as it is, for {held} of its occurrences still run: "
            "cancel them or wait for their end, then purge it; without a purge it can be removed now"
        )


def _drafted(
    jobs: list[Job], known: Mapping[str, Job], owners: set[str], left: frozenset[str], removes: bool
) -> tuple[list[Change], list[Edit]]:
    """What is to change so that these are the definitions of their owners, and the transaction that does it.

    Only with `removes` the transaction removes what is gone.
    """
    from everytick.domain.changes import Put, Remove

    wanted = [(job if job.name not in known else _as_enabled(job, known[job.name])) for job in jobs]
    puts = [job for job in wanted if job.name not in known or not _says_the_same(job, known[job.name])]
    puts = [job for job in puts if job.name not in left] if left else puts
    named = {job.name for job in jobs}
    gone = [each for each in known.values() if each.owner in owners and each.name not in named]
    new = {job.name for job in puts}
    changes = [_change(job, known.get(job.name), job.name in new) for job in wanted]
    changes += [Change(each.name, "removed", each.version) for each in gone]
    edits: list[Edit] = [Put(job, known[job.name].version if job.name in known else None) for job in puts]
    return changes, edits + [Remove(each.name, expected=each.version) for each in gone if removes]


def _say_left_alone(jobs: list[Job], foreign: Mapping[str, Job], application: str) -> None:
    """Log which jobs a sync left as they are, and how to change that."""
    if not foreign:
        return
    import logging

    log = logging.getLogger("everytick.app")
    for job in jobs:
        stored = foreign.get(job.name)
        if stored is None:
            continue
        if stored.owner == API:
            text = "job '%s' was detached from the code of '%s' and is left alone: remove it to let the code define it"
            log.warning(text, job.name, application)
        else:
            text = (
                "job '%s' belongs to '%s' and is left alone, not taken over for '%s': give it another name here, "
                "remove it there with `everytick remove`, or say formerly= if the application was renamed"
            )
            log.error(text, job.name, stored.owner, job.owner)


def _change(job: Job, before: Job | None, is_put: bool) -> Change:
    if before is None:
        return Change(job.name, "added", None)
    return Change(job.name, "changed", None) if is_put else Change(job.name, "unchanged", before.version)


def _refuse_idle(job: Job) -> None:
    """Return if the job has something to do."""
    if not job.tasks:
        reason = "has no task: there is nothing that it could run"
        raise InvalidPolicies(job.name, reason, ("a function decorated with its .task",))


def _content(job: Job) -> tuple[object, ...]:
    """What a definition says, whatever its id, version and times."""
    tasks = tuple((task.name, task.target, task.after, task.overrides) for task in job.tasks)
    return job.name, job.schedule, job.owner, job.overrides, job.application, tasks, job.reports, job.code


def _says_the_same(one: Job, other: Job) -> bool:
    return _content(one) == _content(other)


def _as_enabled(job: Job, before: Job) -> Job:
    """The definition, disabled where an operation has disabled it and the code itself does not say."""
    silent = "enabled" not in job.overrides and "enabled" not in job.application
    if not silent or before.owner != job.owner or "enabled" not in before.overrides:
        return job
    return _edited(job, None, {"enabled": before.enabled})


def _edited(job: Job, schedule: Schedule | None, policies: Mapping[str, object]) -> Job:
    """The definition with another schedule or other policies, checked as a new one is."""
    written = {key: readable(key, given) for key, given in policies.items()}
    if schedule is None and written.get("timezone", job.settings.timezone) != job.settings.timezone:
        instead = ("schedule= along with timezone=",)
        raise InvalidPolicies(job.name, "the stored schedule has its zone already and would keep it", instead)
    kept = {key: given for key, given in job.overrides.items if key not in written}
    # The store gives it the id that it keeps for this name: after a rename that is another one.
    return define_job(
        job.name,
        _without_spread(job) if schedule is None else schedule,
        policies={**kept, **written},
        tasks=[TaskDefinition(task.name, task.target, task.after, task.overrides) for task in job.tasks],
        application=job.application,
        owner=job.owner,
        in_zone=in_zone,
        reports=job.reports,
        code=job.code,
    )


def _without_spread(job: Job) -> Schedule:
    """The schedule as it was written: the policy spread puts itself around it again."""
    from everytick.schedules.combine import Spread

    wrapped = job.settings.spread is not None and isinstance(job.schedule, Spread)
    return job.schedule.schedule if wrapped and isinstance(job.schedule, Spread) else job.schedule
