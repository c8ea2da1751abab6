"""The stored definitions: apply and sync those of this program; update, disable, rename and remove single jobs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from everytick.app.schedule_requests import ScheduleRequests
from everytick.app.text_reading import readable, schedule_of
from everytick.domain.job import Job
from everytick.domain.lookups import Editions
from everytick.domain.names import checked_name
from everytick.domain.texts import OVER
from everytick.errors import (
    Conflict,
    DuplicateDefinition,
    InvalidPolicies,
    NeedsConfirmation,
    TooManyEditions,
    VersionConflict,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from everytick.app.definition import Definition
    from everytick.domain.changes import Change, Edit
    from everytick.domain.keywords import JobPolicies, UpdateKindWord
    from everytick.domain.policies import UpdatePolicy
    from everytick.domain.rollouts import Rollout
    from everytick.domain.schedule import Schedule
    from everytick.node.definers import DefinedNames
    from everytick.sources.drafting import Drafted
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

API = "api"
"""The owner of a job that `update` or `rename` has detached from the code or the file that defined it."""

_EDITS_TRIED = 5
"""How often an edit is tried while others edit the same job."""

_PURGED_AT_ONCE = 1000
"""Most occurrences that one call deletes: it holds their locks."""

_SHOWN_RUNNING = 1000
"""Most running occurrences that the refusal of a purge counts."""


class StoredJobs(ScheduleRequests):
    """Changes of definitions; `by` says who asks, which is stored with the version: by default this application."""

    formerly: str | None
    jobs_owner: str

    if TYPE_CHECKING:

        def _defined_names(self) -> DefinedNames:
            """Return the names of the jobs that this process defines; see `Lifecycle`."""

    async def apply(
        self,
        definitions: Iterable[Definition | Job],
        *,
        prune: bool = False,
        dry_run: bool = False,
        policy: UpdateKindWord | str | UpdatePolicy | Rollout | None = None,
        plan: str | None = None,
        confirmed: bool = False,
        by: str | None = None,
    ) -> list[Change]:
        """Store these definitions, each as a new version where it says anything new; return what that changed.

        With `prune`, jobs of the same owners that are not among them are removed. All of it is
        one transaction: if one is refused, nothing is stored. `policy` says when new versions come
        into force, instead of what each job says. `plan` is the hash of a preview: exactly that is
        stored, or nothing, and the error says what has moved. `confirmed` carries out what is guarded:
        changes of protected jobs, or new jobs with many runs at once.
        """
        when = update_policy_of(policy)
        jobs, owners = self._given(definitions, prune)
        return await self._apply(
            jobs, owners, dry_run=dry_run, by=self._by(by), policy=when, plan=plan, confirmed=confirmed
        )

    def _given(self, definitions: Iterable[Definition | Job], prune: bool) -> tuple[list[Job], set[str]]:
        """Return the jobs that were given, each once and with a task, and whose other jobs are to go."""
        jobs = [definition if isinstance(definition, Job) else definition.job for definition in definitions]
        for job in jobs:
            _refuse_idle(job)
        if twice := [name for name, count in Counter(job.name for job in jobs).items() if count > 1]:
            raise DuplicateDefinition(f"two definitions are named '{shown(twice[0])}': give one of them another name")
        owners = {job.owner for job in jobs} or {f"code:{self.name}"}
        return jobs, owners if prune else set()

    async def sync(self, *, confirmed: bool = False, by: str | None = None) -> list[Change]:
        """Store every definition of this application. Return what that changed; equal ones change nothing.

        Those that its code no longer names are removed, ten minutes later, unless another living
        node defines them: then they are kept, with a warning, until it is gone. A job that was
        disabled by an operation stays so, unless the code itself says whether it is enabled.
        A job of another application is left alone, and so is one that `update` has detached. A changed
        definition of a protected job is refused unless it is `confirmed`; one that the code no longer
        names stays.
        """
        return await self._sync(frozenset(), confirmed=confirmed, by=by)

    async def _sync(self, left: frozenset[str], *, confirmed: bool = False, by: str | None = None) -> list[Change]:
        """Store every definition except those that the store refuses."""
        jobs = [definition.job for definition in self._definitions.values()]
        for job in jobs:
            if job.name not in left:
                _refuse_idle(job)
        own = f"code:{self.name}"
        owners = {own} if self.formerly is None else {own, f"code:{self.formerly}"}
        changes = await self._apply(
            jobs, owners, dry_run=False, by=self._by(by), left=left, removes=False, confirmed=confirmed
        )
        left_out = gone = frozenset(change.name for change in changes if change.kind == "removed")
        if left_out:
            # A protected job goes only by `remove`.
            records = await (await self._opened()).list()
            gone -= {record.job.name for record in records if record.job.is_protected}
        names = [change.name for change in changes if change.kind != "removed"]
        removed = await self._defined_names().tell(await self._opened(), own, names, gone)
        kept = left_out - removed
        return [replace(change, kind="kept") if change.name in kept else change for change in changes]

    async def _sync_skipping_refused(self) -> dict[str, TooManyEditions]:
        """Store every definition that the store does not refuse. Return the refused ones with the reason.

        Changed definitions of protected jobs are left as they are: a start has no person who could confirm them.
        """
        refused: dict[str, TooManyEditions] = {}
        guarded: frozenset[str] = frozenset()
        is_known = False
        while True:
            try:
                await self._sync(frozenset(refused) | guarded, confirmed=is_known)
                return refused
            except TooManyEditions as error:
                refused[error.job] = error
            except NeedsConfirmation as error:
                # No person was asked. What is left now is only the number of runs, which the code wants.
                guarded, is_known = guarded.union(error.jobs), True
                _say_guarded(error.jobs)

    async def _apply(
        self,
        jobs: list[Job],
        owners: set[str],
        *,
        dry_run: bool,
        by: str,
        left: frozenset[str] = frozenset(),
        removes: bool = True,
        policy: UpdatePolicy | None = None,
        plan: str | None = None,
        confirmed: bool = False,
    ) -> list[Change]:
        """Store these definitions. List the jobs that their owners no longer define; remove them with `removes`.

        Those `left` are not stored.
        """
        from everytick.sources.drafting import done, edits_of
        from everytick.sources.edit_conflicts import EditTries

        store = await self._opened()
        tries = EditTries(store)
        while True:
            drafts, foreign = await self._drafts(store, jobs, owners, left)
            if plan is not None:
                from everytick.app.previews import refuse_moved

                await refuse_moved(store, plan, drafts, policy)
            edits = [] if dry_run else edits_of(drafts, unreadable=tries.unreadable, removes=removes, policy=policy)
            if edits:
                await self._agree_to_drafts(store, drafts, edits, removes=removes, confirmed=confirmed, by=by)
            if not dry_run:
                # Teach the node first: an occurrence may begin as soon as its job is stored, and needs its hooks.
                self._learned()
            try:
                stored = await store.apply(edits, by) if edits else []
            except VersionConflict as conflict:
                # Another process edits the same jobs: it may be a second instance of this application.
                if not await tries.may_go_on(conflict):
                    raise
                continue
            if not dry_run:
                _say_left_alone(jobs, foreign, self.name)
                self._learned()
            changes = done(drafts, edits, stored)
            if not dry_run:
                _say_over(jobs, changes, await store.now())
                _say_renamed(drafts)
            return changes

    async def _agree_to_drafts(
        self,
        store: AnyStore,
        drafts: Sequence[Drafted],
        edits: Sequence[Edit],
        *,
        confirmed: bool,
        by: str,
        removes: bool = True,
    ) -> None:
        """Return if these changes of definitions may be made now; see `_agree`."""
        from everytick.app.guarding import created_by

        changing = [
            draft
            for draft in drafts
            if draft.change.kind != "unchanged" and (removes or draft.change.kind != "removed")
        ]
        added = [draft.job for draft in changing if draft.before is None and draft.job is not None]
        await self._agree(
            store,
            f"the change of {_counted(len(changing))}",
            [draft.before for draft in changing if draft.before is not None],
            edits,
            created=created_by(added, await store.now()) if added else None,
            confirmed=confirmed,
            by=by,
        )

    async def _drafts(
        self, store: AnyStore, jobs: list[Job], owners: set[str], left: frozenset[str] = frozenset()
    ) -> tuple[list[Drafted], dict[str, Job]]:
        """Return the drafts of these jobs and of those that are gone, and the stored ones that are not ours."""
        from everytick.sources.drafting import draft, removal

        records = {record.job.name: record for record in await store.list()}
        known = {name: record.job for name, record in records.items()}
        lapsed = {name: record.lapsed for name, record in records.items()}
        foreign, named = self._foreign(jobs, known), {job.name for job in jobs}
        drafts = [
            draft(job, known.get(job.name), lapsed=lapsed.get(job.name)) for job in jobs if job.name not in foreign
        ]
        drafts = [_left_as_it_is(draft) if draft.change.name in left else draft for draft in drafts]
        drafts += [removal(job) for job in known.values() if job.owner in owners and job.name not in named]
        return drafts, foreign

    def _foreign(self, jobs: list[Job], known: Mapping[str, Job]) -> dict[str, Job]:
        """Return the stored jobs with these names that this application must not change."""
        ours = {f"code:{self.name}", f"code:{self.formerly}"}
        others = {job.name: known[job.name] for job in jobs if job.name in known and known[job.name].owner != job.owner}
        return {
            name: stored
            for name, stored in others.items()
            if stored.owner == API or (stored.owner not in ours and stored.code != self.name)
        }

    async def update(
        self,
        name: str,
        schedule: Schedule | str | None = None,
        *,
        policy: UpdateKindWord | str | UpdatePolicy | Rollout | None = None,
        expected_version: int | None = None,
        plan: str | None = None,
        detach: bool = False,
        confirmed: bool = False,
        by: str | None = None,
        **policies: Unpack[JobPolicies],
    ) -> int:
        """Change the schedule or single policies of a stored job and return its version then.

        What is not named stays; UNSET takes a policy back. `policy` says when this version comes
        into force, instead of the job's own `update_policy`. If the job is at another version
        than `expected_version`, nothing is changed, and the error tells both sides. `plan` is the hash of a
        `preview_update`: exactly that is stored, or nothing. A job that code or a file defines is refused,
        unless `detach` makes it the API's own: from then on a sync leaves it alone. The change of a
        protected job must be `confirmed`.
        """
        when = update_policy_of(policy)
        store = await self._opened()
        rule = None if schedule is None else schedule_of(schedule)
        self._refuse_defined_elsewhere((await self._find(store, name)).job, detach)
        edit = partial(self._edit, detach=detach, policy=when, plan=plan, confirmed=confirmed)
        return await edit(store, name, rule, expected_version, policies, self._by(by))

    def _refuse_defined_elsewhere(self, job: Job, detach: bool) -> None:
        """Raise Conflict if code or a file defines the job: the next sync would undo the edit."""
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
            "or detach it (detach=True, --detach) to make it the API's own"
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
        policy: UpdatePolicy | None = None,
        plan: str | None = None,
        confirmed: bool = False,
    ) -> int:
        from everytick.sources.drafting import edited

        written = {key: readable(key, given) for key, given in policies.items()}
        return await self._edit_by(
            store,
            name,
            lambda job: edited(job, schedule, written),
            expected,
            by,
            detach=detach,
            policy=policy,
            plan=plan,
            confirmed=confirmed,
        )

    async def _edit_by(
        self,
        store: AnyStore,
        name: str,
        edit: Callable[[Job], Job],
        expected: int | None,
        by: str,
        *,
        detach: bool = False,
        policy: UpdatePolicy | None = None,
        plan: str | None = None,
        confirmed: bool = False,
    ) -> int:
        """Store what the function makes of the definition, and return the version; again, if others were faster."""
        from everytick.domain.changes import Put
        from everytick.sources.drafting import draft

        for _ in range(_EDITS_TRIED):
            job = (await self._find(store, name)).job
            newer = edit(job)
            newer = replace(newer, owner=API) if detach else newer
            await _refuse_other_version(store, job, newer, expected)
            if plan is not None:
                from everytick.app.previews import refuse_moved

                await refuse_moved(store, plan, [draft(newer, job)], policy)
            try:
                put = Put(newer, job.version, policy)
                await self._agree(store, f"the change of job '{shown(name)}'", [job], [put], confirmed=confirmed, by=by)
                [stored] = await store.apply([put], by)
                return stored.version
            except VersionConflict:
                if expected is not None:
                    raise await _both_sides(store, (await self._find(store, name)).job, newer, expected) from None
        raise Conflict(f"job '{shown(name)}' was edited {_EDITS_TRIED} times meanwhile: try again")

    async def rename(
        self,
        old: str,
        new: str,
        *,
        expected_version: int | None = None,
        detach: bool = False,
        confirmed: bool = False,
        by: str | None = None,
    ) -> None:
        """Give the job another name; its id, watermark and history stay.

        If the job is at another version than `expected_version`, nothing is changed, and the error tells both sides.
        A job that code or a file defines is refused, unless `detach` makes it the API's own. The name of a
        protected job is changed only if that is `confirmed`.
        """
        from everytick.domain.changes import Put, Rename

        checked = checked_name("job", new)
        store = await self._opened()
        job = (await self._find(store, old)).job
        self._refuse_defined_elsewhere(job, detach)
        await _refuse_other_version(store, job, replace(job, name=checked), expected_version)
        detached = [Put(replace(job, name=checked, owner=API))] if detach and job.owner != API else []
        expected = job.version if detached else expected_version
        edits: list[Edit] = [Rename(job.name, checked, expected), *detached]
        what = f"another name for job '{shown(old)}'"
        await self._agree(store, what, [job], edits, confirmed=confirmed, by=self._by(by))
        await self._apply_at(store, edits, checked, expected_version, self._by(by))

    async def _apply_at(
        self, store: AnyStore, edits: Sequence[Edit], new: str | None, expected: int | None, by: str
    ) -> None:
        """Store the edits. The first is of the job that is expected at a version; its name is `new` then, or gone."""
        try:
            await store.apply(edits, by)
        except VersionConflict as conflict:
            if expected is None or conflict.job != edits[0].name:
                raise
            there = (await self._find(store, conflict.job)).job
            wanted = None if new is None else replace(there, name=new)
            raise await _both_sides(store, there, wanted, expected) from None

    async def remove(
        self,
        name: str,
        *,
        purge: bool = False,
        expected_version: int | None = None,
        confirmed: bool = False,
        by: str | None = None,
    ) -> None:
        """Take the job out of service. Unclaimed occurrences are canceled, and its history is kept.

        If the job is at another version than `expected_version`, nothing is changed, and the error tells both sides.
        The jobs that send its notices are removed with it. With `purge` the job and its history are deleted. That
        is refused, and nothing changes, while one of its occurrences runs. If one begins at this very moment, the job
        is removed and not deleted, and the error says so. A removed job can still be purged. A protected job
        is removed only if that is `confirmed`.
        """
        from everytick.domain.changes import Remove

        store = await self._opened()
        record = await self._find(store, name, removed=purge)
        await _refuse_other_version(store, record.job, None, expected_version)
        together = [record, *await _senders(store, record.job)]
        if record.removed_at is None:
            if purge:
                await _refuse_running(store, record.job)
            serving = [stored.job for stored in together if stored.removed_at is None]
            edits = [Remove(job.name, expected=expected_version if job is record.job else None) for job in serving]
            what = f"the removal of job '{shown(name)}'"
            await self._agree(store, what, serving, edits, confirmed=confirmed, by=self._by(by))
            await self._apply_at(store, edits, None, expected_version, self._by(by))
        elif record.job.is_protected and not confirmed:
            reason = f"job '{shown(name)}' is protected"
            raise NeedsConfirmation(f"the deletion of job '{shown(name)}' and its history", [reason], "0 runs", [name])
        for stored in together if purge else ():
            while not await store.purge(stored.job.id, _PURGED_AT_ONCE):
                pass

    async def enable(self, name: str, *, confirmed: bool = False, by: str | None = None) -> bool:
        """Let a disabled job run again, from its next instant on. Return whether anything changed."""
        return await self._switch(name, True, confirmed, by)

    async def disable(self, name: str, *, confirmed: bool = False, by: str | None = None) -> bool:
        """Disable the job: no scheduled runs and no triggers until it is enabled. Return whether anything changed."""
        return await self._switch(name, False, confirmed, by)

    async def _switch(self, name: str, enabled: bool, confirmed: bool, by: str | None) -> bool:
        store = await self._opened()
        if (await self._find(store, name)).job.enabled is enabled:
            return False
        await self._edit(store, name, None, None, {"enabled": enabled}, self._by(by), confirmed=confirmed)
        return True


def _counted(jobs: int) -> str:
    return f"{jobs:,} job{'' if jobs == 1 else 's'}"


async def _senders(store: AnyStore, job: Job) -> list[JobRecord]:
    """Return the jobs that have sent notices of this one, in service or removed."""
    from everytick.deciding.notices import notice_job_name
    from everytick.domain.ids import job_id
    from everytick.domain.notices import OWNER, NoticeKind

    names = [notice_job_name(job.name, kind) for kind in NoticeKind]
    found = (await store.get([job_id(name) for name in names])).values()
    return [record for record in found if record.job.owner == OWNER and record.job.name in names]


async def _refuse_running(store: AnyStore, job: Job) -> None:
    """Raise Conflict if a node owns an occurrence of the job."""
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.stores.base import HistoryFilter

    busy = (OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY)
    occurrences = (await store.history(HistoryFilter(job_id=job.id, statuses=busy, limit=_SHOWN_RUNNING))).occurrences
    held = sum(occurrence.owner is not None for occurrence in occurrences)
    if held:
        raise Conflict(
            f"job '{shown(job.name)}' is left as it is, for {held} of its occurrences still run: "
            "cancel them or wait for their end, then purge it; without a purge it can be removed now"
        )


async def _refuse_other_version(store: AnyStore, there: Job, wanted: Job | None, expected: int | None) -> None:
    """Raise VersionConflict if the job is at another version than the expected one."""
    if expected is not None and expected != there.version:
        raise await _both_sides(store, there, wanted, expected)


async def _both_sides(store: AnyStore, there: Job, wanted: Job | None, expected: int) -> VersionConflict:
    """Return the conflict with what others changed since the expected version, and what this edit would change.

    Without a definition that is wanted, the edit would remove the job.
    """
    from everytick.app.versions import both_sides

    conflict = VersionConflict(there.name, expected, there.version)
    found = await store.ask(Editions(there.id, [expected]))
    return both_sides(conflict, found[0].job, there, wanted) if found else conflict


def update_policy_of(given: str | UpdatePolicy | Rollout | None) -> UpdatePolicy | None:
    """Return the update policy that was named, if any was."""
    if given is None:
        return None
    from everytick.domain.policies import update_policy

    return update_policy(given)


def _left_as_it_is(drafted: Drafted) -> Drafted:
    """Return the draft without its definition, which the store has refused."""
    before = drafted.before
    change = drafted.change if before is None else replace(drafted.change, kind="unchanged", version=before.version)
    return replace(drafted, change=change, job=None)


def _say_guarded(jobs: Iterable[str]) -> None:
    """Warn of each protected job whose definition has changed."""
    import logging

    text = "job '%s' is protected and goes on as it was, though its code has changed: everytick sync stores the change"
    for name in jobs:
        logging.getLogger("everytick.app").warning(text, shown(name))


def _say_over(jobs: list[Job], changes: list[Change], now: datetime) -> None:
    """Warn of each new or changed job whose schedule is over. A job that has run and is over is no mistake."""
    import logging

    log = logging.getLogger("everytick.app")
    new = {change.name for change in changes if change.kind in ("added", "changed")}
    for job in jobs:
        if job.name in new and job.is_over(now):
            log.warning("job '%s' %s", shown(job.name), OVER.format(schedule=job.schedule.describe()))


def _say_renamed(drafts: list[Drafted]) -> None:
    """Warn if one job is new and one is gone with the same schedule: a function with another name is another job."""
    new = [drafted.job for drafted in drafts if drafted.change.kind == "added"]
    gone = [drafted.before for drafted in drafts if drafted.change.kind == "removed"]
    if len(new) != 1 or len(gone) != 1:
        return
    import logging

    [job], [before] = new, gone
    if job is not None and before is not None and str(job.schedule) == str(before.schedule):
        old = shown(before.name)
        logging.getLogger("everytick.app").warning(
            "job '%s' is new and job '%s' is gone: if it is the same one, give it name='%s', and it keeps its history "
            "and all that waits",
            shown(job.name),
            old,
            old,
        )


def _say_left_alone(jobs: list[Job], foreign: Mapping[str, Job], application: str) -> None:
    """Log which jobs a sync did not change, and how to let it."""
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


def _refuse_idle(job: Job) -> None:
    """Raise InvalidPolicies if the job has no task."""
    if not job.tasks:
        reason = "has no task: there is nothing that it could run"
        raise InvalidPolicies(job.name, reason, ("a function decorated with its .task",))
