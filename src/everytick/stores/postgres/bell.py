"""The bell: LISTEN on a session of our own, or a counter that is polled behind a transaction-pooling proxy.

A hint may come late, twice or not at all; a node that waits looks again anyway.
"""

import asyncio

from everytick.stores.postgres.connections import Connection, Connections
from everytick.stores.postgres.pool import closed

POLLED_SECONDS = 0.1
"""Between two looks at the counter."""


class Bell:
    """Rings when a commit of any node, this one included, may have made a job due."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._rung = asyncio.Event()
        self._listener: Connection | None = None
        self._heard = self._refusals = 0

    async def open(self) -> None:
        """Listen from now on."""
        if self._connections.address.pooling:
            self._heard = await self._pulse()
        else:
            await self._listen()

    async def close(self) -> None:
        """Stop listening."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await closed(listener)

    async def wait(self, seconds: float) -> bool:
        """Wait up to this many seconds for a hint. Return whether one came."""
        if self._connections.address.pooling:
            return await self._poll(seconds)
        if self._listener is None or self._listener.is_closed() or self._refusals != self._connections.refusals:
            # The connection was lost, or the server refuses writes; another server may have its name by now. A ring
            # during that time is unknown, so this counts as a hint.
            self._let_go()
            await self._listen()
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def _listen(self) -> None:
        refusals = self._connections.refusals
        listener = await self._connections.connect()
        try:
            with self._connections.answering():
                await listener.add_listener(f'"{self._connections.address.schema}".bell', self._on_ring)
        except BaseException:
            # It would never ring.
            self._connections.drop(listener)
            raise
        listener.add_termination_listener(self._on_loss)
        self._listener, self._refusals = listener, refusals

    def _let_go(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            self._connections.drop(listener)

    def _on_ring(self, *_: object) -> None:
        self._rung.set()

    def _on_loss(self, _: object) -> None:
        self._rung.set()

    async def _poll(self, seconds: float) -> bool:
        until = asyncio.get_running_loop().time() + seconds
        while True:
            pulse = await self._pulse()
            if pulse != self._heard:
                self._heard = pulse
                return True
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            await asyncio.sleep(min(POLLED_SECONDS, left))

    async def _pulse(self) -> int:
        async with self._connections.connection() as db:
            return int(await db.fetchval(*self._connections.sql.pulse()))
