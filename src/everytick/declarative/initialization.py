"""One initialization: stores the registrations and starts a node that runs them, or takes everything back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from everytick.declarative import resuming
from everytick.declarative.callbacks import Callbacks
from everytick.declarative.diagnosis import unreadable
from everytick.declarative.errors import TaskInvalidStructureError
from everytick.declarative.events import EventDelivery, TaskEvents
from everytick.declarative.instances import Instances
from everytick.declarative.jobs import owner_of
from everytick.declarative.lateness import Lateness
from everytick.declarative.names import job_name, prefix_of, task_name
from everytick.declarative.registrations import Registration
from everytick.declarative.resolution import Resolution, resolve
from everytick.domain.changes import Edit, Put, Remove
from everytick.domain.facts import Trigger
from everytick.domain.lookups import Editions
from everytick.domain.occurrence import Occurrence
from everytick.errors import DeclarativeError, JobDisabled, StoreUnavailable, TooManyEditions, VersionConflict
from everytick.node.clock import Offset
from everytick.node.events import Listeners
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.stores.addresses import AnyStore
from everytick.stores.base import JobRecord

_log = logging.getLogger("everytick.declarative")

_SLOTS = 100_000
"""Enough that no task waits for another to end: the largest number that a node takes."""

_TRIES = 5
"""How often the store is read until no other instance has changed it in between."""

_NAMED = 5
"""Most tasks that a log line names."""

_END_SECONDS = 1.0
"""How long an event of a start waits for the event of the end before it."""

# The clock of a test may stand still and jump by hours: the node polls often, and no instance counts as silent.
_ON_A_GIVEN_CLOCK: dict[str, Any] = {"poll": "20ms", "heartbeat": "100ms", "node_timeout": timedelta(days=36_500)}


class Initialization:
    """Stores the registrations and starts a node for them. `undo` restores the store."""

    def __init__(
        self,
        scheduler: str,
        registrations: Mapping[str, Registration],
        store: AnyStore,
        teller: EventDelivery,
        *,
        identifier: str,
        clock: Callable[[], datetime] | None,
        host_time: Callable[[], datetime],
    ) -> None:
        self._scheduler, self._registrations, self._store, self._teller = scheduler, registrations, store, teller
        self._identifier, self._owner = identifier, owner_of(scheduler)
        self._undo: list[Callable[[], Awaitable[object]]] = []
        self._tasks = {job_name(scheduler, task): task for task in registrations}
        self._ids: dict[str, str] = {}
        self._callbacks: dict[str, Registration] = {}
        self._owed: dict[str, datetime] = {}
        self._living: frozenset[str] = frozenset()
        self._unscheduled: list[str] = []
        self._is_up = False
        self._listeners = Listeners()
        self.callbacks = Callbacks(self._callbacks)
        self.lateness = Lateness(len(registrations))
        settings = node_settings(slots=_SLOTS, queues=(self._owner,), **({} if clock is None else _ON_A_GIVEN_CLOCK))
        self.node = Node(
            store,
            self.callbacks,
            settings,
            listeners=self._listeners,
            name=identifier,
            application=self._owner,
            falls_back=False,
            monotonic=asyncio.get_running_loop().time if clock is None else lambda: clock().timestamp(),
            offset=Offset(host_time),
        )
        self.instances = Instances(store, identifier, self._owner, self.node.clock, settings)

    async def run(self) -> None:
        """Resolve and store the registrations, settle the leftovers of earlier instances, and start the node.

        Without registrations no node is started.
        """
        self.node.clock.learn(await self._store.now())
        # Register first: an older living instance must learn that its tasks may have changed.
        self._undo.append(self.leave)
        await self.node.register()
        # The commit of a plan may claim its occurrences: none may begin before all registrations are stored.
        self.node.engine.claimer.rest(True)
        await self._store_registrations()
        await self._warn_of_others()
        if self._registrations:
            await self._begin_to_tell()
            # Claim nothing before the owed runs are requested: a due retry might come first.
            self.node.engine.claimer.rest(bool(self._owed))
            await self.node.start()
            self._undo.append(lambda: self.node.stop("cancel"))
            await self._start_due()

    async def leave(self) -> None:
        """Tell the store that this instance has stopped, so that others need not wait for its silence."""
        await self._store.leave(self._identifier)

    async def take_up(self) -> None:
        """Store the registrations again, since others may have changed them, and settle leftovers of dead instances.

        Until this returns, nothing is claimed. After a failure of the store, nothing is claimed until the next call.
        """
        claimer = self.node.engine.claimer
        claimer.rest(True)
        self._is_up = True
        try:
            await self._store_registrations()
            if self._registrations:
                await self._start_due()
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001, the stored tasks run on
            _log.exception("the tasks of this scheduler could not be stored again; they run as they are stored")
            claimer.rest(False)
        self._undo.clear()

    async def _store_registrations(self) -> None:
        """Store the registrations. If another instance does the same, read its changes and try again."""
        failure: TooManyEditions | VersionConflict | None = None
        for _ in range(_TRIES):
            try:
                await self._try_to_store_registrations()
            except TooManyEditions as error:
                failure = error
                await self._plan_all_tasks()
            except VersionConflict as error:
                failure = error
            else:
                return
        assert failure is not None, "every try has failed"
        if isinstance(failure, VersionConflict) and failure.expected == 0:
            # The job exists, and `list` leaves it out because its definition cannot be read.
            raise TaskInvalidStructureError(f"an unreadable definition of job '{failure.job}'").about(
                self._task(failure.job)
            ) from failure
        raise failure

    async def _plan_all_tasks(self) -> None:
        """Plan all tasks of this scheduler: failed initializations left more versions than may wait for a plan.

        It includes tasks that are not registered here: the edit that disables them needs room too.
        """
        scope = self.node.scope
        with scope.planning_unknown():
            scope.leave(())
            await self.node.look_around()
            await self.node.engine.planner.round()

    async def _try_to_store_registrations(self) -> None:
        records, active = await self._seen()
        # Read the instances after the occurrences: then the owner of each running one is known.
        self._living = await self._living_now()
        orphaned = {name for name, occurrences in active.items() if any(map(self._is_orphan, occurrences))}
        resolution = resolve(self._scheduler, self._registrations, records, orphaned, self._identifier)
        self._unscheduled += [name for name in records if name not in self._registrations and records[name].job.enabled]
        await self._put(resolution, records)
        await self._settle(records, active)
        edited = {name: record for name, record in records.items() if name in resolution.edited}
        changed = edited | await self._changed_before(records, resolution)
        await self._set_owed(changed, active)
        away = [records[name].job.id for name in active if name not in self._registrations]
        self.node.scope.leave(away)

    async def _living_now(self) -> frozenset[str]:
        """Return the living instances. This one counts only while it runs, not for leftovers of its last run."""
        others = await self.instances.living() - {self._identifier}
        return frozenset(others | {self._identifier} if self._is_up else others)

    def _is_orphan(self, occurrence: Occurrence) -> bool:
        return resuming.is_running(occurrence) and not resuming.is_running_in(occurrence, self._living)

    def _runs_elsewhere(self, occurrences: Iterable[Occurrence]) -> bool:
        return any(resuming.is_running_in(occurrence, self._living) for occurrence in occurrences)

    async def _start_due(self) -> None:
        """Request the owed runs and claim once, so that an immediate stop finds due tasks running (S2-012)."""
        claimer = self.node.engine.claimer
        if self._owed:
            await self._request_owed()
        claimer.rest(False)
        try:
            if self._owed:
                await self.node.engine.planner.round()
            await claimer.claim()
        except StoreUnavailable as error:
            self.node.health.failed(error)

    async def _request_owed(self) -> None:
        """Request one run of each owed task. Cancel the retries that they replace last, when all runs are stored."""
        requested = list[str]()
        # Plan first: a task whose missed minute the planner has created needs no further run.
        for _ in range(_TRIES):
            # A superseded retry takes two plans: one that ends it, and one that creates the minute.
            if not (await self.node.engine.planner.round()).jobs:
                break
        active = await resuming.active_of(self._store, {self._ids[name] for name in self._owed})
        # A requested run waits behind a callback that a living instance runs.
        unowned = {
            id_: [occurrence for occurrence in all_ if not self._runs_elsewhere([occurrence])]
            for id_, all_ in active.items()
        }
        waiting = {id_ for id_, occurrences in unowned.items() if not all(map(resuming.is_retrying, occurrences))}
        self._owed = {name: instant for name, instant in self._owed.items() if self._ids[name] not in waiting}
        for name, instant in list(self._owed.items()):
            fact = Trigger(f"{self._identifier} {instant.isoformat()}", scheduled_for=instant)
            try:
                requested.append((await self._store.request(self._ids[name], fact)).id)
            except JobDisabled:
                # A newer instance has disabled the task since.
                del self._owed[name]
        reason = "the initialization that asked for it failed"
        self._undo.append(lambda: resuming.cancel(self._store, requested, reason))
        await self.node.engine.planner.round()
        retries = [occurrence.id for name in self._owed for occurrence in unowned.get(self._ids[name], ())]
        await resuming.cancel(self._store, retries, resuming.SUPERSEDED)

    async def diagnosed(self, error: BaseException) -> BaseException:
        """Return the error of the specification if the store cannot read the rows of a task, else the error itself."""
        is_known = isinstance(error, (DeclarativeError, StoreUnavailable)) or not isinstance(error, Exception)
        if not is_known:
            with suppress(Exception):
                named = await unreadable(self._store, self._scheduler, self._registrations)
                if named is not None:
                    named.__cause__ = error
                    return named
        return error

    async def undo(self) -> None:
        """Restore the store. A failure of that is logged, not raised: the caller raises another error."""
        for step in reversed(self._undo):
            try:
                await step()
            except Exception:  # noqa: BLE001
                _log.exception("one step of a failed initialization could not be undone; the other steps are undone")

    async def _seen(self) -> tuple[dict[str, JobRecord], dict[str, list[Occurrence]]]:
        """Return the jobs and their active occurrences as of one moment: other nodes may be planning them."""
        records = await self._records()
        for _ in range(_TRIES):
            active = await self._active(records)
            fresh = await self._store.get([records[name].job.id for name in active])
            moved = {name for name in active if fresh[records[name].job.id].revision != records[name].revision}
            if not moved:
                break
            records |= {name: fresh[records[name].job.id] for name in moved}
        return records, active

    async def _records(self) -> dict[str, JobRecord]:
        prefix = prefix_of(self._scheduler)
        ours = [record for record in await self._store.list() if record.job.name.startswith(prefix)]
        return {self._task(record.job.name): record for record in ours}

    def _task(self, job: str) -> str:
        return self._tasks.get(job) or task_name(self._scheduler, job)

    async def _active(self, records: Mapping[str, JobRecord]) -> dict[str, list[Occurrence]]:
        names = {record.job.id: name for name, record in records.items()}
        return {names[id_]: occurrences for id_, occurrences in (await resuming.active_of(self._store, names)).items()}

    async def _put(self, resolution: Resolution, records: Mapping[str, JobRecord]) -> None:
        self._ids = {name: record.job.id for name, record in records.items()}
        if resolution.puts:
            stored = await self._store.apply(resolution.changes, self._owner)
            self._undo.append(lambda: self._restore(resolution))
            for job, result in zip(resolution.puts, stored, strict=True):
                self._ids[self._task(job.name)] = result.job_id
        self._callbacks.update({self._ids[name]: registration for name, registration in self._registrations.items()})

    async def _restore(self, resolution: Resolution) -> None:
        """Restore every overridden definition and remove every created job, in one transaction (S2-062)."""
        created = [Remove(job_name(self._scheduler, name)) for name in resolution.created]
        back: list[Edit] = [*(Put(job) for job in resolution.before), *created]
        try:
            await self._store.apply(back, self._owner)
        except TooManyEditions:
            await self._plan_all_tasks()
            await self._store.apply(back, self._owner)

    async def _settle(self, records: Mapping[str, JobRecord], active: Mapping[str, list[Occurrence]]) -> None:
        now = await self._store.now()
        mine = {
            name: occurrences
            for name, occurrences in active.items()
            # A callback that a living instance runs, and a run that waits for its end, stay as they are.
            if name in self._registrations and not self._runs_elsewhere(occurrences)
        }
        decided = [
            resuming.leftovers(records[name], occurrences, now, has_run=await self._has_run(records[name], occurrences))
            for name, occurrences in mine.items()
        ]
        await resuming.settle(self._store, self.node.reaper, decided, chain.from_iterable(mine.values()))

    async def _has_run(self, record: JobRecord, active: list[Occurrence]) -> bool:
        """Whether a callback of the task was ever called, as far as the history goes."""
        ended = (record.last_end, record.last_success)
        if any(end is not None and end.started_at is not None for end in ended):
            return True
        for occurrence in active:
            if await resuming.was_attempted(self._store, occurrence):
                return True
        return False

    async def _changed_before(self, records: Mapping[str, JobRecord], resolution: Resolution) -> dict[str, JobRecord]:
        """Return the tasks that were changed earlier in this minute, as they were before.

        The instance that changed them may have ended before it requested their owed runs.
        """
        minute = (await self._store.now()).replace(second=0, microsecond=0)
        before: dict[str, JobRecord] = {}
        for name, record in records.items():
            made_at, version = record.job.updated_at, record.job.version
            is_fresh = version > 1 and made_at is not None and made_at >= minute
            if is_fresh and name in self._registrations and name not in resolution.edited:
                for edition in await self._store.ask(Editions(record.job.id, [version - 1])):
                    before[name] = replace(record, job=edition.job)
        return before

    async def _set_owed(self, edited: Mapping[str, JobRecord], active: Mapping[str, list[Occurrence]]) -> None:
        """Set the minutes that changed tasks have to run for. Such a run replaces a retry of its task."""
        now = await self._store.now()
        self._owed = {}
        for name, record in edited.items():
            schedule = self._registrations[name].schedule
            if not resuming.may_be_owed(record, schedule, now):
                continue
            occurrences = [occurrence for occurrence in active.get(name, []) if not self._runs_elsewhere([occurrence])]
            instant = resuming.owed(
                record, occurrences, schedule, now, await resuming.last_attempt_at(self._store, record)
            )
            if instant is not None:
                self._owed[name] = instant

    async def _warn_of_others(self) -> None:
        """Warn if this instance disabled tasks that another living instance may have registered."""
        if not self._unscheduled:
            return
        others = [
            instance.id for instance in await self.instances.all() if instance.lives and instance.id != self._identifier
        ]
        if others:
            _log.warning(
                "scheduler '%s' is also run by %s, which lives: its tasks that are not registered here are not "
                "scheduled while this instance lives (%s). If these are two services, give each scheduler a name of "
                "its own (name=…); if this is a deploy, nothing has to be done",
                self._scheduler,
                ", ".join(others),
                _some(self._unscheduled),
            )

    async def _begin_to_tell(self) -> None:
        """Listen to the events of the tasks, beginning with their present state."""
        self.lateness.begin(await self._store.now())
        later = partial(asyncio.get_running_loop().call_later, _END_SECONDS)
        tasks = TaskEvents(self._tasks, self._teller, self.lateness, later)
        for id_, occurrences in (await resuming.active_of(self._store, self._callbacks)).items():
            for occurrence in occurrences:
                if await resuming.awaits_retry(self._store, occurrence):
                    tasks.awaits_retry(job_name(self._scheduler, self._callbacks[id_].name), occurrence.id)
        self._listeners.listen(tasks.heard)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in sorted(set(names))[:_NAMED])
    return shown if len(set(names)) <= _NAMED else f"{shown} and {len(set(names)) - _NAMED} more"
