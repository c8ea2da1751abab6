"""Diagnosis: finds the task whose rows the store cannot read, and names the error (S2-053, S2-057).

Timestamps are persisted fields of a task too. A store that meets one that cannot be, or a row
that is missing, fails in whatever way its code does; here that failure finds its task.
"""

from collections.abc import Collection, Iterator, Sequence

from everytick.declarative.errors import TaskInvalidStructureError, TaskInvalidValueError, TaskTryDeserializeError
from everytick.declarative.names import job_name
from everytick.declarative.resuming import last_attempt_at
from everytick.domain.ids import job_id
from everytick.domain.lookups import Editions
from everytick.errors import NotFound, StoreUnavailable
from everytick.stores.addresses import AnyStore

_TASKS_AT_ONCE = 500
"""Most tasks whose rows are read in one call."""


async def unreadable(store: AnyStore, scheduler: str, tasks: Collection[str]) -> TaskTryDeserializeError | None:
    """Return the error of the first task whose rows cannot be read. None if all can."""
    for batch in _batches(list(tasks), _TASKS_AT_ONCE):
        if await _trouble(store, scheduler, batch) is None:
            continue
        for task in batch:
            trouble = await _trouble(store, scheduler, [task])
            if trouble is not None:
                return _told(task, trouble)
    return None


async def _trouble(store: AnyStore, scheduler: str, tasks: Sequence[str]) -> Exception | None:
    """Read all rows of these jobs. Return the error, None if there is none."""
    ids = [job_id(job_name(scheduler, task)) for task in tasks]
    try:
        records = await store.get(ids)
        for id_ in ids:
            if id_ in records:
                await last_attempt_at(store, records[id_])
            elif await _is_known(store, id_):
                return LookupError("some of its rows are missing")
    except StoreUnavailable:
        raise
    except Exception as error:  # noqa: BLE001, whatever a store raises about rows that cannot be
        return error
    return None


async def _is_known(store: AnyStore, id_: str) -> bool:
    try:
        await store.ask(Editions(id_))
    except NotFound:
        return False
    return True


def _told(task: str, trouble: Exception) -> TaskTryDeserializeError:
    reason = f"{type(trouble).__name__}: {trouble}"
    if isinstance(trouble, (OverflowError, ValueError)):
        return TaskInvalidValueError("timestamps", None, f"hold a time that cannot be ({reason})").about(task)
    return TaskInvalidStructureError(f"rows of a task that do not belong together ({reason})").about(task)


def _batches(tasks: list[str], size: int) -> Iterator[list[str]]:
    for place in range(0, len(tasks), size):
        yield tasks[place : place + size]
