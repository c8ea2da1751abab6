"""Nodes that live in a test: real loops on a real store, on virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from everytick.domain.durations import duration
from everytick.domain.facts import Trigger
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import Occurrence
from everytick.domain.schedule import Schedule
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import NotFound
from everytick.node.clock import Offset
from everytick.node.hooks import hook_table
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.runners.catalogue import Catalogue
from everytick.schedules.interval import every
from everytick.stores.base import HistoryFilter
from everytick.stores.memory import MemoryStore
from everytick.testing.virtual import VirtualLoop, run_virtually
from tests.patient import Opened, Patient
from tests.stores.acting import put

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
Function = Callable[..., Awaitable[Any]]


class World:
    """One store and the nodes on it; time passes only while everything waits."""

    def __init__(self, loop: VirtualLoop, store: Callable[[Callable[[], datetime]], Any] = MemoryStore) -> None:
        self.loop = loop
        self.offset = timedelta(0)
        """How far the store's clock was set ahead since the beginning; below zero it was set back."""
        self.store = store(self.now)
        self.functions: dict[str, dict[str, Function]] = {}
        self.hooks: dict[str, dict[str, Callable[..., Any]]] = {}

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.loop.time()) + self.offset

    async def define(
        self,
        name: str,
        tasks: Function | Mapping[str, Function],
        schedule: Schedule | None = None,
        *,
        own: Mapping[str, Mapping[str, object]] | None = None,
        **policies: object,
    ) -> Job:
        """Store a job of these tasks; without a schedule it is due once a year, so that it only runs when asked."""
        named = tasks if isinstance(tasks, Mapping) else {"a": tasks}
        written = []
        for task in named:
            settings = dict((own or {}).get(task, {}))
            written.append(define_task(name, task, after=settings.pop("after", ()), policies=settings))
        job = define_job(name, schedule or every("P1Y", start=NOON), policies=policies, tasks=written)
        # Before it is stored: the node may look at once, and leaves a job alone whose functions it does not know.
        self.functions[job.id] = dict(named)
        await put(self.store, job)
        return job

    def node(
        self,
        *,
        knows: Mapping[str, Mapping[str, Function]] | None = None,
        host: Callable[[], datetime] | None = None,
        **settings: Any,
    ) -> Node:
        """Return a node that has not been started; it knows every function unless told which.

        Its host shows the world's time, unless `host` does.
        """
        return Node(
            self.store,
            Catalogue(self.functions if knows is None else knows, grace=timedelta(seconds=1)),
            node_settings(**settings),
            hooks=hook_table(self.hooks),
            monotonic=self.loop.time,
            offset=Offset(host or self.now),
        )

    async def trigger(self, job: Job, key: str = "k", **given: Any) -> str:
        asked: str = (await self.store.request(job.id, Trigger(key, **given))).id
        return asked

    async def status(self, occurrence_id: str) -> OccurrenceStatus:
        found: Occurrence = (await self.store.whole(occurrence_id)).occurrence
        return found.status

    async def ended(self, occurrence_id: str, within: str = "1h") -> Occurrence:
        """Return the occurrence once it is over."""
        deadline = self.now() + duration(within)
        found: Occurrence | None = None
        seconds = 0.1
        while found is None or found.ended_at is None:
            assert self.now() < deadline, f"{occurrence_id} is still {found}"
            await passing(seconds)
            seconds = min(1.2 * seconds, 1.0)
            # A request is an occurrence only once it was planned.
            with suppress(NotFound):
                found = (await self.store.whole(occurrence_id)).occurrence
        return found

    async def history(self, job: Job) -> list[Occurrence]:
        """The job's occurrences, oldest first."""
        return list(reversed((await self.store.history(HistoryFilter(job_id=job.id, limit=10_000))).occurrences))


async def has_run_short_bodies(node: Node) -> None:
    """Let the node take bodies for short, so that it claims ahead of its slots."""
    slots = node.engine.slots
    for _ in range(1_000):
        slots.take()
        slots.ran(0.001)
        slots.free(NOON)
    await pause("100ms")
    assert slots.ahead() > 0


async def pause(length: str) -> None:
    """Let virtual time pass."""
    await passing(duration(length).total_seconds())


async def passing(seconds: float) -> None:
    """Return when so much of the loop's time has passed; on a virtual loop the clock is moved."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()


Story = Callable[[World], Coroutine[Any, Any, None]]


def living(story: Story, store: Callable[[Callable[[], datetime]], Any] = MemoryStore) -> None:
    """Let the story happen in a world of its own, in memory."""

    async def main(loop: VirtualLoop) -> None:
        await story(World(loop, store))

    run_virtually(main)


def living_on(story: Story, opened: Opened, around: Callable[[Any], Any] = lambda store: store) -> None:
    """Let the story happen on a store that is no part of this process, or on what is put `around` it."""

    async def main(loop: VirtualLoop) -> None:
        world: World | None = None

        def now() -> datetime:
            return NOON + timedelta(seconds=loop.time()) if world is None else world.now()

        with loop.standing_still():
            held = opened(now)
            store = await held.__aenter__()
        try:
            world = World(loop, lambda _: around(Patient(store, loop)))
            await story(world)
        finally:
            with loop.standing_still():
                await held.__aexit__(None, None, None)

    run_virtually(main)
