"""everytick's side of a run: jobs whose tasks call one coroutine, and a node on a given store that runs them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from everytick.app.foreground import calm_collector, share_interpreter
from everytick.domain.job import Job, define_job, define_task
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.runners.base import Body
from everytick.runners.function import FunctionBody
from everytick.schedules.interval import every
from everytick.stores.addresses import AnyStore, store_of


class OneBody:
    """A repertoire in which every task of every job does the same."""

    def __init__(self, body: Callable[[], Awaitable[Any]], tasks: int = 1) -> None:
        self._bodies: tuple[Body, ...] = (FunctionBody(body),) * tasks

    def bodies(self, job: Job) -> tuple[Body, ...]:
        """Return what the tasks of the job do."""
        return self._bodies

    def why(self, job: Job) -> str:
        """Never asked: everything can be run."""
        return ""

    def forget(self, occurrence_id: str) -> None:
        """Nothing was kept for it."""

    def close(self) -> None:
        """Nothing was kept ready."""


def hourly(number: int, *, tasks: int = 1, start: datetime | None = None) -> Job:
    """Return a job of tasks in order that is due once an hour, first at `start` or an hour from now."""
    name = f"job-{number}"
    schedule = every("1h") if start is None else every("1h", start=start)
    written = [define_task(name, f"task-{order}") for order in range(tasks)]
    return define_job(name, schedule, policies={"overlap": "allow"}, tasks=written)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[AnyStore]:
    """Give the open store of this address."""
    store = store_of(address)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def running(
    store: AnyStore, body: Callable[[], Awaitable[Any]], *, slots: int, tasks: int = 1
) -> AsyncIterator[Node]:
    """Give a node that runs the body for every task; everything it did is written afterwards.

    The garbage collector and the turns of threads are set as `tick.run()` sets them for the process it owns.
    """
    calm_collector()
    share_interpreter()
    node = Node(store, OneBody(body, tasks), node_settings(slots=slots))
    await node.start()
    try:
        yield node
    finally:
        await node.stop("drain")
