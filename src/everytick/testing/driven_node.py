"""The driven node of the test kit: a node without its loops, which acts only when it is told to.

It decides, claims and runs with the node's own planner and engine, and hears after every
look which occurrences it shall stop. What it leaves out is what a test does without: the loop of the
heartbeat, the reaper and the janitor.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from everytick.app import Everytick
from everytick.domain.lookups import Promises
from everytick.domain.promises import promises_of
from everytick.domain.statuses import OccurrenceStatus
from everytick.node.hooks import hook_table
from everytick.node.inbox import OrdersCame
from everytick.node.node import Node
from everytick.runners.base import Repertoire
from everytick.stores.addresses import AnyStore
from everytick.stores.base import HistoryFilter

_LOOK_SECONDS = 0.02
"""Seconds of real time between two reads of the store while a task runs that may ring no bell."""

_STEP_SECONDS = 1e-5
"""Seconds on the store's clock that one step of the node takes."""

_FOR_EVER = timedelta(days=36_500)
"""A node timeout of a hundred years: this node sends no beats and must never look dead."""


class _EveryLabel:
    """Meets every need except other queues: it runs each job that has a body here, also jobs of other programs."""

    def __init__(self, queues: tuple[str, ...]) -> None:
        self._queues = {f"queue:{queue}" for queue in queues}

    def has(self, label: str) -> bool:
        """Whether the label is no queue, or one of the application's."""
        return label in self._queues or not label.startswith("queue:")


class DrivenNode:
    """Runs an application's jobs on a store, on the store's time."""

    def __init__(self, app: Everytick, store: AnyStore, repertoire: Repertoire, monotonic: Callable[[], float]) -> None:
        hooks = hook_table({definition.job.id: definition.hooks for definition in app.definitions})
        # This node sends no beats. With this timeout it does not look dead after any virtual time.
        settings = replace(app.settings, log_folder=None, node_timeout=_FOR_EVER)
        self._store, self._repertoire = store, repertoire
        self._promises = any(promises_of(definition.job.settings) for definition in app.definitions)
        self._node = Node(
            store,
            repertoire,
            settings,
            hooks=hooks,
            monotonic=monotonic,
            application=app.name,
            labels=_EveryLabel(settings.queues),
        )
        self._planner, self._engine, self._reporter = self._node.engine.planner, self._node.engine, self._node.reporter
        self._tasks: list[asyncio.Task[None]] = []
        self._is_claiming = False

    async def __aenter__(self) -> Self:
        self._node.clock.learn(await self._store.now())
        self._node.health.has_beaten()
        self._begin(self._engine.writer.run())
        return self

    def _begin(self, loop: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(loop))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop as a node does. Occurrences that wait for a retry are given back."""
        if error is None:
            self._engine.stop()
            await self._engine.emptied()
            await self._engine.writer.flushed()
            await self._reporter.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._engine.close()
        self._repertoire.close()

    async def settle(self) -> None:
        """Plan and run until no job is due, no task runs and every report is delivered.

        Only this loop claims. A claimer beside it could have a claim under way that the store has
        not committed when this loop asks what runs.
        """
        while (
            await self._act() or await self._runs() or await self._reports() or await self._judge() or await self._act()
        ):
            await self._store.bell(_LOOK_SECONDS)

    async def run_until(self, moment: datetime) -> None:
        """Plan and run until the store's clock shows this moment, including the instants at it."""
        if not self._is_claiming:
            self._is_claiming = True
            self._begin(self._engine.claimer.run())
            # Ready occurrences of an earlier node ring no bell.
            self._engine.claimer.wake()
        while True:
            await self._plan()
            ahead = await self._store.ahead(self._node.scope.current)
            moments = [at for at in (ahead.wake_at, ahead.ready_at, moment, await self._next_check()) if at is not None]
            seconds = (min(moments) - ahead.now).total_seconds()
            if not await self._store.bell(max(seconds, _STEP_SECONDS)):
                if ahead.now >= moment:
                    return
                self._engine.claimer.wake()

    async def _act(self) -> int:
        """Plan due jobs and claim ready occurrences. Return how many of both there were."""
        return await self._plan() + await self._engine.claimer.claim()

    async def _plan(self) -> int:
        planned = 0
        await self._node.look_around()
        while jobs := (await self._planner.round()).jobs:
            planned += jobs
            await self._node.rollouts.settle()
        await self._obey()
        return planned

    async def _judge(self) -> int:
        """Judge the promises that are due, and return how many there were."""
        return await self._node.promises.round() if self._promises else 0

    async def _next_check(self) -> datetime | None:
        """Judge what is due, and return when the next promise may be broken."""
        await self._judge()
        soonest = await self._store.ask(Promises(limit=1)) if self._promises else ()
        return soonest[0].state.check_at if soonest else None

    async def _obey(self) -> None:
        """Stop the tasks for which a person or a plan has asked to. A real node learns of it by its next beat."""
        named = self._engine.named
        if named:
            self._engine.inbox.put(OrdersCame(await self._store.beat(self._node.name, named)))

    async def _runs(self) -> bool:
        """Tell whether this node owns a running occurrence in the store."""
        await self._engine.writer.flushed()
        page = await self._store.history(HistoryFilter(statuses=(OccurrenceStatus.RUNNING,), limit=1000))
        return any(occurrence.owner == self._node.name for occurrence in page.occurrences)

    async def _reports(self) -> int:
        """Wait for every hook, deliver the reports that are left, and return how many there were."""
        await self._reporter.close()
        return await self._reporter.deliver_left()
