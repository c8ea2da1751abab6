"""The store in memory: the readable specification of every verb.

Each verb is one uninterrupted piece of code, which is what a transaction is to the other
stores. They stand in `planning`, `running`, `jobs`, `recording` and `history`; how rows are
found without walking all of them is the business of `tables`.
"""

import asyncio
from collections.abc import Collection
from datetime import datetime, timedelta
from itertools import islice
from typing import ClassVar

from everytick.stores.base import Ahead
from everytick.stores.memory.history import History
from everytick.stores.memory.jobs import Jobs
from everytick.stores.memory.recording import Recording
from everytick.stores.memory.running import Running

_TICK = timedelta(microseconds=1)


class MemoryStore(Recording, Running, Jobs, History):
    """Everything in this process, for tests and for scripts that may forget."""

    is_in_memory: ClassVar[bool] = True
    holds_due: ClassVar[bool] = False
    file: ClassVar[None] = None

    async def migrated(self) -> int:
        """Return 0: nothing is kept that could be of another version."""
        return 0

    async def open(self) -> None:
        """Return: there is nothing to make ready."""

    async def close(self) -> None:
        """Return: there is nothing to give back."""

    async def now(self) -> datetime:
        """Return the store's time; a clock that was set back stands still until it has caught up."""
        return self._now()

    async def check_writable(self) -> None:
        """Return: what is in memory can be written."""

    async def bell(self, seconds: float) -> bool:
        """Wait for a hint that something changed, at most so many seconds; return whether one came."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def ahead(self, queues: Collection[str]) -> Ahead:
        """Return what is next for a node of these queues, so that it sleeps until then and not longer."""
        now = self._now()
        wakes = next(self._tables.wakes.since((now + _TICK,)), None)
        firsts = [row for queue in queues for row in islice(self._tables.unripe.get(queue, ()), 1)]
        ready_at = min((row.ready_at for row in firsts), default=None)
        return Ahead(now, None if wakes is None else wakes.wake_at, ready_at)
