"""The beat of a node on a loop and a connection of its own: it goes on while the node's loop stands still.

The copy of the store belongs to the node's loop, so a beat does not touch it. It writes the row of its node, by one
commit that is conditional as all are, and asks the node's loop for the orders of the store.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from everytick.errors import Contended
from everytick.stores.base import ClaimKey, Orders
from everytick.stores.memory.rows import NodeRow
from everytick.stores.redis import codec
from everytick.stores.redis.connections import RedisConnections
from everytick.stores.redis.entries import entry_of
from everytick.stores.redis.log import Behind, ChangeLog

_TRIES = 50
"""How often a beat is written again because another process was faster. After the first time it gets the next turn."""

_ORDERS_SECONDS = 1.0
"""How long a beat waits for orders: a loop that has not turned for this long is blocked, and could not obey them."""

AskOrders = Callable[[str, Collection[ClaimKey]], Coroutine[Any, Any, Orders]]


class OwnBeat:
    """Beats for the node whose loop is `home`. There, `ask` reads the orders of the store in the copy."""

    def __init__(
        self,
        connections: RedisConnections,
        epoch: str,
        clock: Callable[[], datetime] | None,
        ask: AskOrders,
        home: asyncio.AbstractEventLoop,
    ) -> None:
        self._connections, self._clock = connections, clock
        self._log, self._nodes = ChangeLog(connections, epoch), connections.address.key("nodes")
        self._ask, self._home = ask, home
        self._asked: Future[Orders] | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["OwnBeat"]:
        """Connect, on the loop that enters here."""
        try:
            await self._log.open()
            yield self
        finally:
            if self._asked is not None:
                self._asked.cancel()
            await self._connections.close()

    async def beat(self, node: str, keys: Collection[ClaimKey]) -> Orders:
        """Record that the node lives. Return the store's orders, none if the node's loop does not answer."""
        await self._record(codec.write(node))
        return await self._orders(node, keys)

    async def _record(self, field: str) -> None:
        text, now = await self._row(field)
        for lost in range(_TRIES):
            row = NodeRow(now) if text is None else codec.read(text)
            row.beat_at, row.beats = now, row.beats + 1
            entry = entry_of({"nodes": {field: codec.write(row)}})
            try:
                answer = await self._log.commit(entry, "", rings=False, turn=lost > 0)
            except Behind:
                text, now = await self._row(field)
                continue
            if answer.written:
                return
            # The node's own loop may have written the row: a claim counts as a beat, too.
            for changes in answer.entries:
                text = (changes.get("nodes") or {}).get(field, text)
            now = self._clock() if self._clock is not None else answer.now
            if answer.must_wait:
                await self._log.wait()
        raise Contended(str(self._connections.address), "other processes were faster each time")

    async def _row(self, field: str) -> tuple[str | None, datetime]:
        """Return the row of the node as of the log's last entry or later, and the store's time."""
        await self._log.open()
        pipeline = self._connections.client.pipeline(transaction=False)
        pipeline.hget(self._nodes, field)
        pipeline.time()
        text, (seconds, fraction) = await self._connections.asked(pipeline.execute())
        now = codec.moment_of(int(seconds) * 1_000_000 + int(fraction))
        return text, now if self._clock is None else self._clock()

    async def _orders(self, node: str, keys: Collection[ClaimKey]) -> Orders:
        """Ask the node's loop. While it has not answered an earlier question it is not asked again."""
        if self._asked is not None and not self._asked.done():
            return Orders()
        asking = self._ask(node, keys)
        try:
            self._asked = asked = asyncio.run_coroutine_threadsafe(asking, self._home)
        except RuntimeError:
            # The node's loop is closed: the node has ended without stopping its beat.
            asking.close()
            return Orders()
        answered = asyncio.wrap_future(asked)
        answered.add_done_callback(_pass_over)
        await asyncio.wait([answered], timeout=_ORDERS_SECONDS)
        if not asked.done():
            return Orders()
        try:
            return asked.result()
        except CancelledError:
            return Orders()


def _pass_over(answered: "asyncio.Future[Orders]") -> None:
    """Take note of an answer that may have come too late to be looked at."""
    if not answered.cancelled():
        answered.exception()
