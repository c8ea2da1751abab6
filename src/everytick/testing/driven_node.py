"""The driven node of the test kit: a node without its loops, which acts only when it is told to.

It decides, claims and runs with the node's own planner and engine, and hears whom it shall
stop after every look. What it leaves out is what a test does without: the loop of the
heartbeat, the reaper and the janitor.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from everytick.app import Everytick
from everytick.domain.statuses import OccurrenceStatus
from everytick.node.hooks import hook_table
from everytick.node.inbox import OrdersCame
from everytick.node.node import Node
from everytick.runners.base import Repertoire
from everytick.stores.addresses import AnyStore
from everytick.stores.base import HistoryFilter

_SOON = 0.02
"""Seconds of the wall between two looks, while something runs that may ring no bell."""

_MOMENT = 1e-5
"""Seconds on the store's clock in which everything happens that needs no time."""

_FOR_EVER = timedelta(days=36_500)


class _EveryLabel:
    """Everything but other queues: what the repertoire has a body for is run, also in the place of other programs."""

    def __init__(self, queues: tuple[str, ...]) -> None:
        self._queues = {f"queue:{queue}" for queue in queues}

    def has(self, label: str) -> bool:
        """Whether the label is no queue, or one of the application's."""
        return label in self._queues or not label.startswith("queue:")


class DrivenNode:
    """Runs an application's jobs on a store, on the store's time."""

    def __init__(self, app: Everytick, store: AnyStore, repertoire: Repertoire, monotonic: Callable[[], float]) -> None:
        hooks = hook_table({definition.job.id: definition.hooks for definition in app.definitions})
        # Nobody listens for beats here, and none are sent: no length of virtual time makes this node look dead.
        settings = replace(app.settings, log_folder=None, node_timeout=_FOR_EVER)
        self._store, self._repertoire = store, repertoire
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
        """Stop as a node does; what waits for a retry is given back."""
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
        """Plan and run until nothing is due, nothing runs and every report is delivered.

        Only this loop claims. A claimer beside it could have a claim under way that the store has
        not committed when this loop asks what runs.
        """
        while await self._act() or await self._runs() or await self._reports() or await self._act():
            await self._store.bell(_SOON)

    async def run_until(self, moment: datetime) -> None:
        """Plan and run whatever comes until the store's clock shows this moment, its own instants included."""
        if not self._is_claiming:
            self._is_claiming = True
            self._begin(self._engine.claimer.run())
            # Occurrences that the node before this one left ready ring no bell.
            self._engine.claimer.wake()
        while True:
            await self._plan()
            ahead = await self._store.ahead(self._node.scope.current)
            moments = [at for at in (ahead.wake_at, ahead.ready_at, moment) if at is not None]
            seconds = (min(moments) - ahead.now).total_seconds()
            if not await self._store.bell(max(seconds, _MOMENT)):
                if ahead.now >= moment:
                    return
                self._engine.claimer.wake()

    async def _act(self) -> int:
        """Plan what is due and claim what is ready; return how much there was."""
        return await self._plan() + await self._engine.claimer.claim()

    async def _plan(self) -> int:
        planned = 0
        await self._node.look_around()
        while found := (await self._planner.round()).jobs:
            planned += found
        await self._obey()
        return planned

    async def _obey(self) -> None:
        """Tell what runs to stop, if somebody or the plan has asked for that; a node hears it by its next beat."""
        named = self._engine.named
        if named:
            self._engine.inbox.put(OrdersCame(await self._store.beat(self._node.name, named)))

    async def _runs(self) -> bool:
        """Say whether anything of this engine runs, by what the store knows."""
        await self._engine.writer.flushed()
        page = await self._store.history(HistoryFilter(statuses=(OccurrenceStatus.RUNNING,), limit=1000))
        return any(occurrence.owner == self._node.name for occurrence in page.occurrences)

    async def _reports(self) -> int:
        """Let every hook end, deliver what was left, and return how much that was."""
        await self._reporter.close()
        return await self._reporter.deliver_left()
