"""Questions about the tasks of a declarative scheduler, answered from the store alone (S2-013, S2-025)."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from everytick.declarative import resuming
from everytick.declarative.diagnosis import unreadable
from everytick.declarative.documents import data_of, document_on, read_document
from everytick.declarative.events import TaskStatus
from everytick.declarative.jobs import job_of, with_data
from everytick.declarative.names import job_name, prefix_of, task_name
from everytick.declarative.opening import reading
from everytick.declarative.registrations import milliseconds, read_registrations
from everytick.domain.changes import Put
from everytick.domain.ids import job_id
from everytick.domain.job import Job
from everytick.domain.lookups import Editions
from everytick.domain.occurrence import Occurrence
from everytick.errors import EverytickError, NotFound
from everytick.stores.addresses import AnyStore
from everytick.stores.base import JobRecord


class TaskState(Mapping[str, Any]):
    """The state of one task by the specification's names, as keys and as attributes."""

    KEYS = (
        "name", "cronExpression", "retryDelayMs", "schedulerIdentifier", "state",
        "lastAttemptAt", "lastSuccessAt", "lastFailureAt", "pendingRetryUntil",
    )  # fmt: skip

    def __init__(self, **known: Any) -> None:
        self._known = {key: known.get(key) for key in self.KEYS}

    def __getitem__(self, key: str) -> Any:
        return self._known[key]

    def __getattr__(self, key: str) -> Any:
        known = self.__dict__.get("_known", {})
        if key not in known:
            raise AttributeError(key)
        return known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"TaskState({', '.join(f'{key}={value!r}' for key, value in self._known.items())})"


async def task_states(
    store: "str | AnyStore", name: str = "default", tasks: Collection[str] | None = None
) -> dict[str, TaskState]:
    """Return the states of the tasks of this scheduler, registered or not, by the task's name.

    Without `tasks` these are all of them.
    """
    named = list(tasks or ())
    async with reading(store) as opened:
        try:
            records = await _records(opened, name, tasks)
            named = [task_name(name, record.job.name) for record in records]
            ids = {record.job.id for record in records}
            active = await resuming.active_of(opened, ids)
            states = [await _state(opened, name, record, active.get(record.job.id, [])) for record in records]
        except EverytickError:
            raise
        except Exception as error:
            raise (await unreadable(opened, name, named)) or error from error
        return {state["name"]: state for state in states}


async def _records(store: AnyStore, scheduler: str, tasks: Collection[str] | None) -> list[JobRecord]:
    prefix = prefix_of(scheduler)
    wanted = None if tasks is None else {job_name(scheduler, task) for task in tasks}
    records = [record for record in await store.list() if record.job.name.startswith(prefix)]
    return [record for record in records if wanted is None or record.job.name in wanted]


async def state_document(store: "str | AnyStore", task: str, name: str = "default") -> object:
    """Return the JSON value of the task's state document, unchecked."""
    async with reading(store) as opened:
        return data_of((await _record(opened, task, name)).job)


async def write_state_document(store: "str | AnyStore", task: str, document: object, name: str = "default") -> None:
    """Write a JSON value as the task's state document, unchecked: for repairs, and for tests of them.

    Where nothing that the store holds of the task can be read, the value must be a readable
    document: the task is made anew by its words, with its history.
    """
    async with reading(store) as opened:
        if await _is_unreadable(opened, task, name):
            job = _made_anew(task, document, name)
        else:
            job = with_data((await _record(opened, task, name)).job, document)
        await opened.apply([Put(job)])


async def _record(store: AnyStore, task: str, name: str) -> JobRecord:
    job = job_name(name, task)
    record = (await store.get([job_id(job)])).get(job_id(job))
    if record is None or record.removed_at is not None:
        raise NotFound("task", task)
    return record


async def _is_unreadable(store: AnyStore, task: str, name: str) -> bool:
    """Whether the store has a job for the task whose definition cannot be read."""
    job = job_id(job_name(name, task))
    try:
        await store.ask(Editions(job))
    except NotFound:
        return False
    return not await store.get([job])


def _made_anew(task: str, document: object, name: str) -> Job:
    async def callback() -> None:
        """Stand for a callback, which is no part of what is stored."""

    read = read_document(document, task.__eq__)
    given = (task, read.cron_expression, callback, read.retry_delay)
    return job_of(name, read_registrations([given], lambda: datetime.now(UTC))[task], read)


async def _state(store: AnyStore, scheduler: str, record: JobRecord, active: list[Occurrence]) -> TaskState:
    job = record.job
    document = document_on(job, task_name(scheduler, job.name), lambda task: job_name(scheduler, task) == job.name)
    status, until = await _standing(store, active)
    succeeded = record.last_success
    return TaskState(
        name=document.name,
        cronExpression=document.cron_expression,
        retryDelayMs=milliseconds(document.retry_delay),
        schedulerIdentifier=document.scheduler_identifier,
        state=str(status),
        lastAttemptAt=await resuming.last_attempt_at(store, record),
        lastSuccessAt=None if succeeded is None else succeeded.ended_at,
        lastFailureAt=record.last_failure_at,
        pendingRetryUntil=until,
    )


async def _standing(store: AnyStore, active: list[Occurrence]) -> tuple[TaskStatus, datetime | None]:
    if any(map(resuming.is_running, active)):
        return TaskStatus.RUNNING, None
    for occurrence in active:
        if await resuming.awaits_retry(store, occurrence):
            return TaskStatus.AWAITING_RETRY, occurrence.ready_at
    return TaskStatus.AWAITING_RUN, None
