"""One initialization: everything between valid registrations and a node that runs them, or nothing of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from everytick.declarative import resuming
from everytick.declarative.callbacks import Callbacks
from everytick.declarative.jobs import owner_of
from everytick.declarative.lateness import Lateness
from everytick.declarative.names import job_name, prefix_of, task_name
from everytick.declarative.registrations import Registration
from everytick.declarative.resolution import Resolution, resolve
from everytick.declarative.telling import Tasks, Teller
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.snapshots import Request
from everytick.node.events import Events
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.stores.addresses import AnyStore
from everytick.stores.base import JobRecord

_log = logging.getLogger("everytick.declarative")

_SLOTS = 100_000
"""No task waits for another to end: as many run at once as a node can be given."""


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
        poll: timedelta,
    ) -> None:
        self._scheduler, self._registrations, self._store, self._teller = scheduler, registrations, store, teller
        self._identifier, self._owner = identifier, owner_of(scheduler)
        self._undo: list[Callable[[], Awaitable[object]]] = []
        self._tasks = {job_name(scheduler, task): task for task in registrations}
        self._ids: dict[str, str] = {}
        self._callbacks: dict[str, Registration] = {}
        self._events = Events()
        self.lateness = Lateness(len(registrations))
        self.node = Node(
            store,
            Callbacks(self._callbacks),
            node_settings(slots=_SLOTS, queues=(self._owner,), poll=poll),
            events=self._events,
            name=identifier,
            application=self._owner,
            monotonic=asyncio.get_running_loop().time,
        )

    async def run(self) -> None:
        """Resolve, put, settle what an earlier instance left, and start the node if there is anything to run."""
        self.node.clock.learn(await self._store.now())
        records = await self._records()
        active = await self._active(records)
        orphaned = {name for name, found in active.items() if any(map(resuming.is_running, found))}
        resolution = resolve(self._scheduler, self._registrations, records, orphaned, self._identifier)
        await self._put(resolution, records)
        await self._settle(records, active)
        await self._run_edited_now(resolution, records, active)
        if self._registrations:
            await self._begin_to_tell()
            await self.node.start()
            # What is due has been started when this is over: a stop that follows at once finds it running (S2-012).
            await self.node.executor.claimer.claim()

    async def undo(self) -> None:
        """Put back what was written; what goes wrong with that is logged, for another error is on its way."""
        for step in reversed(self._undo):
            try:
                await step()
            except Exception:  # noqa: BLE001
                _log.exception("an initialization that failed could not be undone as a whole")

    async def _records(self) -> dict[str, JobRecord]:
        prefix = prefix_of(self._scheduler)
        ours = [each for each in await self._store.list() if each.job.name.startswith(prefix)]
        return {self._task(each.job.name): each for each in ours}

    def _task(self, job: str) -> str:
        return self._tasks.get(job) or task_name(self._scheduler, job)

    async def _active(self, records: Mapping[str, JobRecord]) -> dict[str, list[Occurrence]]:
        names = {record.job.id: name for name, record in records.items()}
        return {names[id_]: found for id_, found in (await resuming.active_of(self._store, names)).items()}

    async def _put(self, resolution: Resolution, records: Mapping[str, JobRecord]) -> None:
        self._ids = {name: record.job.id for name, record in records.items()}
        if resolution.puts:
            stored = await self._store.put_all(resolution.puts, by=self._owner)
            self._undo.append(lambda: self._put_back(resolution))
            for job, each in zip(resolution.puts, stored, strict=True):
                self._ids[self._task(job.name)] = each.job_id
        self._callbacks.update({self._ids[name]: each for name, each in self._registrations.items()})

    async def _put_back(self, resolution: Resolution) -> None:
        """Restore every definition that was overridden and remove what was created (S2-062)."""
        if resolution.before:
            await self._store.put_all(resolution.before, by=self._owner)
        for name in resolution.created:
            await self._store.remove(self._ids[name], by=self._owner)

    async def _settle(self, records: Mapping[str, JobRecord], active: Mapping[str, list[Occurrence]]) -> None:
        now = await self._store.now()
        mine = {name: found for name, found in active.items() if name in self._registrations}
        decided = [
            resuming.leftovers(records[name], found, now, has_run=await self._has_run(records[name], found))
            for name, found in mine.items()
        ]
        await resuming.settle(self._store, self.node.reaper, decided, [self._ids[name] for name in mine])
        others = [each for name, found in active.items() if name not in self._registrations for each in found]
        await resuming.cancel_unregistered(self._store, others)

    async def _has_run(self, record: JobRecord, active: list[Occurrence]) -> bool:
        """Whether a callback of the task was ever called, as far as the store can know."""
        ended = (record.last_end, record.last_success)
        if any(each is not None and each.started_at is not None for each in ended):
            return True
        for each in active:
            if await resuming.was_attempted(self._store, each):
                return True
        return False

    async def _run_edited_now(
        self, resolution: Resolution, records: Mapping[str, JobRecord], active: Mapping[str, list[Occurrence]]
    ) -> None:
        """Run what matches this minute by its new expression, and has not run in it (S2-019, case A)."""
        now = await self._store.now()
        minute = now.replace(second=0, microsecond=0)
        for name in resolution.edited:
            matches = self._registrations[name].schedule.last_at(now) == minute
            if matches and resuming.begins_now(records[name], active.get(name, ()), minute):
                request = Request(f"override {minute.isoformat()}", Cause.TRIGGER, now, scheduled_for=minute)
                await self._store.request(self._ids[name], request)

    async def _begin_to_tell(self) -> None:
        """Listen to what becomes of the tasks, beginning with where each of them stands."""
        self.lateness.begin(await self._store.now())
        tasks = Tasks(self._tasks, self._teller, self.lateness)
        for id_, found in (await resuming.active_of(self._store, self._callbacks)).items():
            for each in found:
                if await resuming.awaits_retry(self._store, each):
                    tasks.awaits_retry(job_name(self._scheduler, self._callbacks[id_].name), each.id)
        self._events.listen(tasks.heard)
