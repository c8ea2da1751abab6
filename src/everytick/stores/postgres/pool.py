"""The connections to one server, kept between two verbs: the one that was used last is given out first.

Our own, not the driver's pool. To give a connection back takes that one a task and three turns of the loop, and a run
that is asked for waits for three verbs (`bench/pickup.py`).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

from everytick.errors import StoreUnavailable
from everytick.stores.postgres.failures import Failure

Connection: TypeAlias = Any
"""An asyncpg connection; the driver ships no types."""

IDLE_SECONDS = 240.0
"""A connection that was idle for so long is closed: firewalls and balancers forget silent ones after five minutes, and
tell neither side."""

LIFE_SECONDS = 3600.0
"""A connection that is older is closed when it is given back: its session has grown on the server, and after a change
of the server's address new connections lead elsewhere."""

_CLOSE_SECONDS = 1.0
"""How long the server has to cancel a statement and to hear that a session ends. Then the line is cut."""

_LEAVE_SECONDS = 5.0
"""How long `close` waits for connections that are in use."""


class Pool:
    """At most `most` connections, each made by `connect` when it is needed.

    Only `take` and `close` wait; a connection is given back within one turn of the loop.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], most: int, store: str) -> None:
        self._connect, self._most, self._store = connect, most, store
        self._open: dict[Connection, tuple[int, float]] = {}
        """The generation of each connection, and the time of the loop at which it is too old."""
        self._idle: list[tuple[Connection, float]] = []
        """Connections that are not in use, and since when; the newest last."""
        self._coming = 0
        """How many connections are being made, or may be made by a caller that was told so."""
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        """Callers that wait. Each gets a connection, or None if it may make one."""
        self._generation = 0
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed, self._all_ended = False, asyncio.Event()

    async def take(self) -> Connection:
        """Return a connection that no other caller uses. It must be given back."""
        if self._is_closed:
            raise self._not_open()
        while self._idle:
            db, _ = self._idle.pop()
            if not db.is_closed():
                return db
            self._forget(db)
        if len(self._open) + self._coming < self._most:
            self._coming += 1
            return await self._made()
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            db = await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._pass_on(waiter)
            raise
        return await self._made() if db is None else db

    def give_back(self, db: Connection) -> None:
        """Keep the connection for the next caller, or close it if it is of no further use."""
        if db not in self._open:
            return  # It was cut when its pool was closed.
        generation, until = self._open[db]
        now = asyncio.get_running_loop().time()
        is_current = generation == self._generation and now < until
        if not is_current or self._is_closed or db.is_closed() or db.is_in_transaction():
            self.end(db)
        elif (waiter := self._next_waiter()) is not None:
            waiter.set_result(db)
        else:
            self._idle.append((db, now))
            self._look_later()

    def end(self, db: Connection) -> "asyncio.Task[None] | None":
        """Close the connection instead of giving it back. The task ends when the server has heard of it.

        A statement that was broken off is canceled first, so that it holds no locks any more.
        """
        if self._open.pop(db, None) is None:
            return None
        ending = asyncio.ensure_future(closed(db))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        self._one_less()
        return ending

    def expire(self) -> None:
        """Give out none of the connections there are any more: those in use end when they are given back."""
        self._generation += 1
        idle, self._idle = self._idle, []
        for db, _ in idle:
            self.end(db)

    async def close(self) -> None:
        """Close every connection, those in use when they are given back. What takes too long is cut."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(self._not_open())
        self.expire()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVE_SECONDS):
                    if self._open or self._coming:
                        await self._all_ended.wait()
                    await asyncio.gather(*self._ending)
        finally:
            self.terminate()

    def terminate(self) -> None:
        """Cut every line that is still there, without a word to the server."""
        for ending in self._ending:
            ending.cancel()
        for db in self._open:
            db.terminate()
        self._open.clear()

    async def _made(self) -> Connection:
        """Return a new connection: a place among `_coming` was reserved for it."""
        generation = self._generation
        try:
            db = await self._connect()
        except BaseException:
            self._coming -= 1
            self._one_less()
            raise
        self._coming -= 1
        self._open[db] = generation, asyncio.get_running_loop().time() + LIFE_SECONDS
        if self._is_closed:
            self.end(db)
            raise self._not_open()
        return db

    def _pass_on(self, waiter: "asyncio.Future[Connection | None]") -> None:
        """Give to the next caller what this one got while it was canceled."""
        if waiter.exception() is not None:
            return
        db = waiter.result()
        if db is not None:
            self.give_back(db)
        else:
            self._coming -= 1
            self._one_less()

    def _forget(self, db: Connection) -> None:
        """Count a connection no more that the server or the network has closed."""
        if self._open.pop(db, None) is not None:
            self._one_less()

    def _one_less(self) -> None:
        """Tell the caller that waits longest to make a connection, as there is room for one."""
        if (waiter := self._next_waiter()) is not None:
            self._coming += 1
            waiter.set_result(None)
        elif self._is_closed and not self._open and not self._coming:
            self._all_ended.set()

    def _next_waiter(self) -> "asyncio.Future[Connection | None] | None":
        """Return the caller that waits longest and has not been canceled."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                return waiter
        return None

    def _look_later(self) -> None:
        """Look at the connections again when the one that is idle longest has been so for too long."""
        if self._timer is None and self._idle:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._idle[0][1] + IDLE_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        """Close the connections that have been idle for too long."""
        self._timer = None
        before = asyncio.get_running_loop().time() - IDLE_SECONDS
        while self._idle and self._idle[0][1] <= before:
            self.end(self._idle.pop(0)[0])
        self._look_later()

    def _not_open(self) -> StoreUnavailable:
        return StoreUnavailable(self._store, "the store is not open")


async def closed(db: Connection) -> None:
    """Close the connection; whatever prevents it, the line is cut."""
    with suppress(*Failure):
        # Before asyncpg 0.32 its own timeout does not count the cancellation of a statement.
        async with asyncio.timeout(2 * _CLOSE_SECONDS):
            await db.close(timeout=_CLOSE_SECONDS)
