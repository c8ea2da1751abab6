"""One initialization: everything between valid registrations and a node that runs them, or nothing of it."""

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
from everytick.declarative.instances import Instances
from everytick.declarative.jobs import owner_of
from everytick.declarative.lateness import Lateness
from everytick.declarative.names import job_name, prefix_of, task_name
from everytick.declarative.registrations import Registration
from everytick.declarative.resolution import Resolution, resolve
from everytick.declarative.telling import Tasks, Teller
from everytick.domain.changes import Edit, Put, Remove
from everytick.domain.facts import Trigger
from everytick.domain.occurrence import Occurrence
from everytick.errors import DeclarativeError, JobDisabled, StoreUnavailable, TooManyEditions, VersionConflict
from everytick.node.listeners import Listeners
from everytick.node.node import Node
from everytick.node.offset import Offset
from everytick.node.settings import node_settings
from everytick.stores.addresses import AnyStore
from everytick.stores.base import JobRecord

_log = logging.getLogger("everytick.declarative")

_SLOTS = 100_000
"""No task waits for another to end: as many run at once as a node can be given."""

_LOOKS = 5
"""So often the store is looked at until nobody has changed it in between."""

_NAMED = 5
"""So many tasks a log line names."""

_A_WHILE = 1.0
"""Seconds after which an end that was not told is not waited for any more."""

# A clock of a test may stand still and jump by hours: the node looks often, and nobody is silent for too long.
_ON_A_GIVEN_CLOCK: dict[str, Any] = {"poll": "20ms", "heartbeat": "100ms", "node_timeout": timedelta(days=36_500)}


class Beginning:
    """Brings the registrations into the store and starts a node for them; `undo` takes back what was written."""

    def __init__(
        self,
        scheduler: str,
        registrations: Mapping[str, Registration],
        store: AnyStore,
        teller: Teller,
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
        """Resolve, put, settle what an earlier instance left, and start the node if there is anything to run."""
        self.node.clock.learn(await self._store.now())
        # Before anything is written: an older instance that lives must find out that its tasks may have changed.
        self._undo.append(self.leave)
        await self.node.register()
        # A plan may bring along what it makes: nothing is to begin before all is brought in.
        self.node.engine.claimer.rest(True)
        await self._bring_in()
        await self._tell_of_others()
        if self._registrations:
            await self._begin_to_tell()
            # Nothing is claimed before what is owed was asked for: a retry that is due might be.
            self.node.engine.claimer.rest(bool(self._owed))
            await self.node.start()
            self._undo.append(lambda: self.node.stop("cancel"))
            await self._start_what_is_due()

    async def leave(self) -> None:
        """Say goodbye, so that other instances need not wait for the silence of this one."""
        await self._store.leave(self._identifier)

    async def take_up(self) -> None:
        """Bring the registrations in again, after others may have changed them, and settle what dead instances left.

        Nothing is claimed meanwhile; after a failure of the store that stays so until this is called again.
        """
        claimer = self.node.engine.claimer
        claimer.rest(True)
        self._is_up = True
        try:
            await self._bring_in()
            if self._registrations:
                await self._start_what_is_due()
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001, what is scheduled goes on as it is stored
            _log.exception("the tasks of this scheduler could not be brought in again; they go on as they are stored")
            claimer.rest(False)
        self._undo.clear()

    async def _bring_in(self) -> None:
        """Bring in what is registered; others may do the same, and what they changed meanwhile is looked at again."""
        failure: TooManyEditions | VersionConflict | None = None
        for _ in range(_LOOKS):
            try:
                await self._try_to_bring_in()
            except TooManyEditions as error:
                failure = error
                await self._decide_what_waits()
            except VersionConflict as error:
                failure = error
            else:
                return
        assert failure is not None, "whoever is here has failed"
        if isinstance(failure, VersionConflict) and failure.expected == 0:
            # It is there and cannot be seen: its definition cannot be read.
            raise TaskInvalidStructureError(f"an unreadable definition of job '{failure.job}'").about(
                self._task(failure.job)
            ) from failure
        raise failure

    async def _decide_what_waits(self) -> None:
        """Plan all tasks of this scheduler: failed initializations left more versions than may wait for that.

        Those too that are not registered here: they can only leave the schedule once there is room for that edit.
        """
        scope = self.node.scope
        scope.plans_unknown = True
        scope.leave(())
        try:
            await self.node.look_around()
            await self.node.engine.planner.round()
        finally:
            scope.plans_unknown = False

    async def _try_to_bring_in(self) -> None:
        records, active = await self._seen()
        # Asked after what runs was seen: the instance that began it is known by then.
        self._living = await self._living_now()
        orphaned = {name for name, found in active.items() if any(map(self._is_orphan, found))}
        resolution = resolve(self._scheduler, self._registrations, records, orphaned, self._identifier)
        self._unscheduled += [name for name in records if name not in self._registrations and records[name].job.enabled]
        await self._put(resolution, records)
        await self._settle(records, active)
        edited = {name: record for name, record in records.items() if name in resolution.edited}
        changed = edited | await self._changed_before(records, resolution)
        await self._look_what_is_owed(changed, active)
        away = [records[name].job.id for name in active if name not in self._registrations]
        self.node.scope.leave(away)

    async def _living_now(self) -> frozenset[str]:
        """Return the instances that live; this one counts only while it runs, not for what its last life left."""
        others = await self.instances.living() - {self._identifier}
        return frozenset(others | {self._identifier} if self._is_up else others)

    def _is_orphan(self, occurrence: Occurrence) -> bool:
        return resuming.is_running(occurrence) and not resuming.is_running_in(occurrence, self._living)

    def _runs_elsewhere(self, occurrences: Iterable[Occurrence]) -> bool:
        return any(resuming.is_running_in(occurrence, self._living) for occurrence in occurrences)

    async def _start_what_is_due(self) -> None:
        """Ask for what is owed and claim once: a stop that follows at once finds what is due running (S2-012)."""
        claimer = self.node.engine.claimer
        if self._owed:
            await self._ask_for_what_is_owed()
        claimer.rest(False)
        try:
            if self._owed:
                await self.node.engine.planner.round()
            await claimer.claim()
        except StoreUnavailable as error:
            self.node.health.failed(error)

    async def _ask_for_what_is_owed(self) -> None:
        """Ask for one run of each; the retries that these tasks waited for give way last, when all runs are sure."""
        asked = list[str]()
        # Not where the planner has found a minute to run for, one from before the task was away: one run is enough.
        for _ in range(_LOOKS):
            # A retry that gives way takes two plans: one that ends it, and one that lets the minute in.
            if not (await self.node.engine.planner.round()).jobs:
                break
        active = await resuming.active_of(self._store, {self._ids[name] for name in self._owed})
        # Behind a callback that a living instance runs, the run that is asked for stands in line.
        found = {
            id_: [occurrence for occurrence in all_ if not self._runs_elsewhere([occurrence])]
            for id_, all_ in active.items()
        }
        waiting = {id_ for id_, occurrences in found.items() if not all(map(resuming.is_retrying, occurrences))}
        self._owed = {name: instant for name, instant in self._owed.items() if self._ids[name] not in waiting}
        for name, instant in list(self._owed.items()):
            fact = Trigger(f"{self._identifier} {instant.isoformat()}", scheduled_for=instant)
            try:
                asked.append((await self._store.request(self._ids[name], fact)).id)
            except JobDisabled:
                # A newer instance has taken the task out of the schedule meanwhile.
                del self._owed[name]
        self._undo.append(lambda: resuming.cancel(self._store, asked, "the initialization that asked for it failed"))
        await self.node.engine.planner.round()
        retries = [occurrence.id for name in self._owed for occurrence in found.get(self._ids[name], ())]
        await resuming.cancel(self._store, retries, resuming.SUPERSEDED)

    async def diagnosed(self, error: BaseException) -> BaseException:
        """Return what the taxonomy calls an error that comes of rows of a task which the store cannot read."""
        is_known = isinstance(error, (DeclarativeError, StoreUnavailable)) or not isinstance(error, Exception)
        if not is_known:
            with suppress(Exception):
                found = await unreadable(self._store, self._scheduler, self._registrations)
                if found is not None:
                    found.__cause__ = error
                    return found
        return error

    async def undo(self) -> None:
        """Put back what was written; what goes wrong with that is logged, for another error is on its way."""
        for step in reversed(self._undo):
            try:
                await step()
            except Exception:  # noqa: BLE001
                _log.exception("an initialization that failed could not be undone as a whole")

    async def _seen(self) -> tuple[dict[str, JobRecord], dict[str, list[Occurrence]]]:
        """Return the jobs and what is not over of them as of one moment: other nodes may be planning them."""
        records = await self._records()
        for _ in range(_LOOKS):
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
        return {names[id_]: found for id_, found in (await resuming.active_of(self._store, names)).items()}

    async def _put(self, resolution: Resolution, records: Mapping[str, JobRecord]) -> None:
        self._ids = {name: record.job.id for name, record in records.items()}
        if resolution.puts:
            stored = await self._store.apply(resolution.changes, self._owner)
            self._undo.append(lambda: self._put_back(resolution))
            for job, result in zip(resolution.puts, stored, strict=True):
                self._ids[self._task(job.name)] = result.job_id
        self._callbacks.update({self._ids[name]: registration for name, registration in self._registrations.items()})

    async def _put_back(self, resolution: Resolution) -> None:
        """Restore every definition that was overridden and remove what was created, all at once (S2-062)."""
        created = [Remove(job_name(self._scheduler, name)) for name in resolution.created]
        back: list[Edit] = [*(Put(job) for job in resolution.before), *created]
        try:
            await self._store.apply(back, self._owner)
        except TooManyEditions:
            await self._decide_what_waits()
            await self._store.apply(back, self._owner)

    async def _settle(self, records: Mapping[str, JobRecord], active: Mapping[str, list[Occurrence]]) -> None:
        now = await self._store.now()
        mine = {
            name: found
            for name, found in active.items()
            # What a living instance runs is not touched, nor what waits for its end.
            if name in self._registrations and not self._runs_elsewhere(found)
        }
        decided = [
            resuming.leftovers(records[name], found, now, has_run=await self._has_run(records[name], found))
            for name, found in mine.items()
        ]
        await resuming.settle(self._store, self.node.reaper, decided, chain.from_iterable(mine.values()))

    async def _has_run(self, record: JobRecord, active: list[Occurrence]) -> bool:
        """Whether a callback of the task was ever called, as far as the store can know."""
        ended = (record.last_end, record.last_success)
        if any(end is not None and end.started_at is not None for end in ended):
            return True
        for occurrence in active:
            if await resuming.was_attempted(self._store, occurrence):
                return True
        return False

    async def _changed_before(self, records: Mapping[str, JobRecord], resolution: Resolution) -> dict[str, JobRecord]:
        """Return tasks that were changed in this minute already, as they were before.

        Whoever did that may have gone before it asked for what it owed them.
        """
        minute = (await self._store.now()).replace(second=0, microsecond=0)
        found: dict[str, JobRecord] = {}
        for name, record in records.items():
            made_at, version = record.job.updated_at, record.job.version
            is_fresh = version > 1 and made_at is not None and made_at >= minute
            if is_fresh and name in self._registrations and name not in resolution.edited:
                for edition in await self._store.editions(record.job.id, [version - 1]):
                    found[name] = replace(record, job=edition.job)
        return found

    async def _look_what_is_owed(self, edited: Mapping[str, JobRecord], active: Mapping[str, list[Occurrence]]) -> None:
        """Note the minutes that changed tasks are to run for; a retry that one of them waits for gives way to it."""
        now = await self._store.now()
        self._owed = {}
        for name, record in edited.items():
            schedule = self._registrations[name].schedule
            if not resuming.may_be_owed(record, schedule, now):
                continue
            found = [occurrence for occurrence in active.get(name, []) if not self._runs_elsewhere([occurrence])]
            instant = resuming.owed(record, found, schedule, now, await resuming.last_attempt_at(self._store, record))
            if instant is not None:
                self._owed[name] = instant

    async def _tell_of_others(self) -> None:
        """Warn if tasks that are not registered here left the schedule though an instance lives that may have them."""
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
        """Listen to what becomes of the tasks, beginning with where each of them stands."""
        self.lateness.begin(await self._store.now())
        later = partial(asyncio.get_running_loop().call_later, _A_WHILE)
        tasks = Tasks(self._tasks, self._teller, self.lateness, later)
        for id_, found in (await resuming.active_of(self._store, self._callbacks)).items():
            for occurrence in found:
                if await resuming.awaits_retry(self._store, occurrence):
                    tasks.awaits_retry(job_name(self._scheduler, self._callbacks[id_].name), occurrence.id)
        self._listeners.listen(tasks.heard)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in sorted(set(names))[:_NAMED])
    return shown if len(set(names)) <= _NAMED else f"{shown} and {len(set(names)) - _NAMED} more"
