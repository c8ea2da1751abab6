"""Loops: the endless work of a node, each in its own asyncio task that only a stop ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from everytick.errors import StoreUnavailable
from everytick.node.clock import NodeClock
from everytick.node.health import Backoff, Health
from everytick.node.planner import BATCH

_log = logging.getLogger("everytick.node")

_WELL_SECONDS = 10.0
"""After this time without a failure the wait of a loop begins anew, short."""


class Loops:
    """The loops of one node, by their names."""

    def __init__(self, clock: NodeClock, health: Health) -> None:
        self._clock, self._health = clock, health
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work in the background until it returns, or `end` is called."""
        loop = asyncio.get_running_loop()
        self._tasks[name] = loop.create_task(self._go_on(name, work), name=f"everytick-{name}")

    def begin_every(self, seconds: float, name: str, round_: Callable[[], Awaitable[int]]) -> None:
        """Do a round every this many seconds; at once after a full one."""

        async def forever() -> None:
            while True:
                if await round_() < BATCH:
                    await asyncio.sleep(seconds)

        self.begin(name, forever)

    async def ended(self, name: str) -> None:
        """Return when the loop has returned by itself."""
        if name in self._tasks:
            await asyncio.wait([self._tasks[name]])

    async def end(self, *names: str) -> None:
        """End these loops."""
        ended = [self._tasks.pop(name) for name in names if name in self._tasks]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)

    async def end_but(self, *names: str) -> None:
        """End all loops but these."""
        await self.end(*(name for name in self._tasks if name not in names))

    async def _go_on(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Begin the work again after every error: neither a silent store nor a mistake of ours ends a loop."""
        backoff = Backoff()
        while True:
            began = self._clock.monotonic()
            met: Exception
            try:
                await work()
                return
            except StoreUnavailable as error:
                self._health.failed(error)
                met = error
            except Exception as error:  # noqa: BLE001, the loop's edge
                _log.exception("the %s loop failed; it begins again in a moment", name)
                met = error
            if self._clock.monotonic() - began > _WELL_SECONDS:
                backoff.succeeded()
            await asyncio.sleep(backoff.failed(met))
