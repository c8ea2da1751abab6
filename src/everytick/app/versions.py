"""Versions of stored jobs: list them, compare them, go back to one; and look at changes before they are stored."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from everytick.answers.values import JobVersion, PartChange, RolloutStatus, VersionDiff
from everytick.app.stored_jobs import API, StoredJobs, update_policy_of
from everytick.app.text_reading import readable, schedule_of
from everytick.domain.lookups import Editions
from everytick.errors import NotFound, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from everytick.answers.values import Preview
    from everytick.app.definition import Definition
    from everytick.domain.job import Job, Task
    from everytick.domain.keywords import JobPolicies, UpdateKindWord
    from everytick.domain.policies import UpdatePolicy
    from everytick.domain.rollouts import Rollout
    from everytick.domain.schedule import Schedule
    from everytick.domain.snapshots import Edition, JobSnapshot
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

__all__ = ["JobVersion", "JobVersions", "PartChange", "VersionDiff", "part_changes"]


class JobVersions(StoredJobs):
    """Old and coming versions of stored jobs, and previews of new ones."""

    async def versions(self, name: str, n: int = 20) -> list[JobVersion]:
        """Return the newest `n` versions of a job, the newest first, with what each changed."""
        store = await self._opened()
        record = await self._find(store, name, removed=True, storing=False)
        snapshot, now = (await store.look([record.job.id]))[record.job.id], await store.now()
        return await versions_of(store, snapshot, now, n)

    async def compare(self, name: str, old: int, new: int) -> VersionDiff:
        """Return what differs between two versions of a job, and what that would mean for the runs to come."""
        from everytick.deciding.revise import revise, with_edit

        store = await self._opened()
        record = await self._find(store, name, removed=True, storing=False)
        first, second = await _jobs_of(store, record, old), await _jobs_of(store, record, new)
        now = await store.now()
        runs = revise(with_edit(None, first, now), with_edit(None, second, now), now)
        return VersionDiff(record.job.name, old, new, part_changes(first, second), runs)

    async def rollback(
        self,
        name: str,
        version: int,
        *,
        policy: UpdateKindWord | str | UpdatePolicy | Rollout | None = None,
        expected_version: int | None = None,
        detach: bool = False,
        confirmed: bool = False,
        by: str | None = None,
    ) -> int:
        """Make an old version the newest one again, as a new version equal to it; return its number.

        The job keeps its name, its owner and whether it is enabled. The new version comes into force as
        `policy` says, or the job's `update_policy` as it is now. A job that code or a file defines is refused,
        unless `detach` makes it the API's own. The change of a protected job must be `confirmed`.
        """
        when = update_policy_of(policy)
        store = await self._opened()
        record = await self._find(store, name)
        self._refuse_defined_elsewhere(record.job, detach)
        old = await _jobs_of(store, record, version)

        def rolled_back(job: Job) -> Job:
            from everytick.domain.updates import switched

            return switched(old, job)

        policy_then = when or record.job.settings.update_policy
        edit = partial(self._edit_by, detach=detach, policy=policy_then, confirmed=confirmed)
        return await edit(store, name, rolled_back, expected_version, self._by(by))

    async def rollout(self, name: str) -> RolloutStatus | None:
        """Return the rollout of a job, or None if no version of it is on trial."""
        from everytick.domain.rollouts import TrialCounts
        from everytick.domain.upcoming import edition_in_force, trial_of

        store = await self._opened()
        record = await self._find(store, name, storing=False)
        snapshot, now = (await store.look([record.job.id]))[record.job.id], await store.now()
        trial, counts = trial_of(snapshot.editions), snapshot.trial or TrialCounts()
        if trial is None or trial.rollout is None or trial.job.updated_at is None:
            return None
        in_force = edition_in_force(snapshot.editions, now).job.version
        told = trial.rollout, trial.job.updated_at, counts.well, counts.failed, counts.created
        return RolloutStatus(record.job.name, trial.job.version, in_force, *told)

    async def end_rollout(self, name: str, *, keep: bool, confirmed: bool = False, by: str | None = None) -> int:
        """End the rollout of a job by hand and return the version that is in force then.

        With `keep` the version on trial is in force now; without it, what was in force before. Code or a file that
        still says the version on trial changes nothing. A protected job keeps it only if that is `confirmed`.
        """
        from everytick.domain.changes import Put
        from everytick.domain.policies import UpdatePolicy as Policy
        from everytick.domain.rollouts import RolloutVerdict, Way
        from everytick.domain.upcoming import in_force

        found = await self.rollout(name)
        if found is None:
            raise NotFound("rollout of job", name)
        store, whom = await self._opened(), self._by(by)
        if keep:
            edit = partial(self._edit_by, policy=Policy(), confirmed=confirmed)
            return await edit(store, name, lambda job: job, found.version, whom)
        record = await self._find(store, name)
        old = in_force((await store.look([record.job.id]))[record.job.id].editions, await store.now())
        verdict = RolloutVerdict(Way.BACK, found.version, f"ended by {whom}")
        [stored] = await store.apply([Put(old, found.version, verdict=verdict)], whom)
        return stored.version

    async def preview(
        self,
        definitions: Iterable[Definition | Job],
        *,
        prune: bool = False,
        policy: UpdateKindWord | str | UpdatePolicy | Rollout | None = None,
    ) -> Preview:
        """Return what `apply` of these definitions would change, and which runs to come; nothing is stored.

        Its hash is for `apply(…, plan=…)`, which then stores exactly that, or nothing.
        """
        from everytick.app.previews import preview

        when = update_policy_of(policy)
        jobs, owners = self._given(definitions, prune)
        store = await self._opened()
        drafts, _ = await self._drafts(store, jobs, owners)
        return await preview(store, drafts, when)

    async def preview_update(
        self,
        name: str,
        schedule: Schedule | str | None = None,
        *,
        policy: UpdateKindWord | str | UpdatePolicy | Rollout | None = None,
        detach: bool = False,
        **policies: Unpack[JobPolicies],
    ) -> Preview:
        """Return what `update` with these arguments would change, and which runs to come; nothing is stored."""
        from everytick.app.previews import preview
        from everytick.sources.drafting import draft, edited

        rule = None if schedule is None else schedule_of(schedule)
        written = {key: readable(key, given) for key, given in policies.items()}
        store = await self._opened()
        record = await self._find(store, name)
        self._refuse_defined_elsewhere(record.job, detach)
        newer = edited(record.job, rule, written)
        drafted = draft(replace(newer, owner=API) if detach else newer, record.job)
        return await preview(store, [drafted], update_policy_of(policy))


async def versions_of(store: AnyStore, snapshot: JobSnapshot, now: datetime, n: int) -> list[JobVersion]:
    """Return the newest `n` versions of the job of this snapshot, the newest first."""
    newest = snapshot.editions[-1].job.version
    known = await store.ask(Editions(snapshot.job_id, versions_read(newest, n)))
    return versions_among(known, snapshot, now, n)


def versions_read(newest: int, n: int) -> tuple[int, ...]:
    """Return the numbers of the newest `n` versions, and of the one before them: its parts are compared."""
    return tuple(range(max(newest - n, 0), newest + 1))


def versions_among(known: Sequence[Edition], snapshot: JobSnapshot, now: datetime, n: int) -> list[JobVersion]:
    """Return the newest `n` of these editions, the newest first."""
    from everytick.domain.upcoming import edition_in_force, editions_to_come, trial_of

    current = edition_in_force(snapshot.editions, now).job.version
    later = {edition.job.version for edition in editions_to_come(snapshot.editions, now)}
    before: Edition | None = None
    trial, found = trial_of(snapshot.editions), []
    for edition in known:
        changes = () if before is None else part_changes(before.job, edition.job)
        found.append(_version(edition, changes, current, later, None if trial is None else trial.job.version))
        before = edition
    return found[::-1][:n]


def _version(
    edition: Edition, changes: tuple[PartChange, ...], current: int, later: set[int], trial: int | None
) -> JobVersion:
    number = edition.job.version
    return JobVersion(
        version=number,
        job=edition.job,
        edited_at=edition.job.updated_at,
        by=edition.by,
        in_force_after=edition.in_force_after,
        is_in_force=number == current,
        is_coming=number in later,
        follows=edition.follows,
        changes=changes,
        rollout=edition.rollout,
        is_on_trial=number == trial,
    )


async def _jobs_of(store: AnyStore, record: JobRecord, version: int) -> Job:
    """Return one version of the job. Raise NotFound with the versions that there are."""
    found = await store.ask(Editions(record.job.id, [version]))
    if not found:
        raise NotFound(f"version {version} of job", record.job.name)
    return found[0].job


def part_changes(old: Job, new: Job) -> tuple[PartChange, ...]:
    """Return the parts of a definition that differ, each with both values."""
    from everytick.sources.drafting import differences

    found = [PartChange("name", old.name, new.name)] if old.name != new.name else []
    for part in differences(old, new):
        found += _task_parts(old, new) if part == "tasks" else [PartChange(part, _said(old, part), _said(new, part))]
    return tuple(found)


def _task_parts(old: Job, new: Job) -> list[PartChange]:
    before, after = ({task.name: task for task in job.tasks} for job in (old, new))
    found = []
    for name in dict.fromkeys([*before, *after]):
        was, will = before.get(name), after.get(name)
        texts = ["none" if task is None else _task_text(task) for task in (was, will)]
        if texts[0] != texts[1]:
            found.append(PartChange(f"task {name}", *texts))
    return found or [PartChange("tasks", ", ".join(before), ", ".join(after))]


def _task_text(task: Task) -> str:
    from json import dumps

    own, after = task.overrides.as_data(), ", ".join(task.after)
    parts = [task.target, f"after {after}" if after else "", dumps(own, sort_keys=True) if own else ""]
    return " ".join(part for part in parts if part) or "as it is"


def _said(job: Job, part: str) -> str:
    from json import dumps

    from everytick.domain.policy_checks import as_data

    if part in ("schedule", "owner"):
        return str(getattr(job, part))
    given = as_data(getattr(job.settings, part, None))
    return given if isinstance(given, str) else dumps(given, default=str)


def both_sides(conflict: VersionConflict, then: Job, there: Job, wanted: Job | None) -> VersionConflict:
    """Return the conflict with what others changed since, and what this edit would have: None is a removal."""
    theirs = tuple(str(change) for change in part_changes(then, there))
    yours = ("removed",) if wanted is None else tuple(str(change) for change in part_changes(there, wanted))
    return VersionConflict(conflict.job, conflict.expected, conflict.found, theirs, yours)
