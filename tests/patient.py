"""A real store on virtual time.

A file or a server needs real moments to answer. While it is asked, virtual time stands
still; between two questions it jumps as ever. So whole hours of several nodes on SQLite or
PostgreSQL happen in seconds, in the order in which they would happen.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any

from everytick.stores.addresses import AnyStore
from everytick.stores.base import Batch, NodeScope
from everytick.testing.virtual import VirtualLoop

_WRITES = frozenset(
    {
        *("apply", "request", "retire"),
        *("commit_plans", "commit_steps", "orphans", "record"),
    }
)


class Patient:
    """Passes everything on to a store that lives outside of the loop, which waits for each answer.

    The bell is its own: whatever was written through it rings. (A real bell comes through a
    socket or a file, for which a virtual loop does not wait.)
    """

    def __init__(self, store: AnyStore, loop: VirtualLoop) -> None:
        self._store, self._loop = store, loop
        self._rung = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not iscoroutinefunction(found):
            return found
        return self._waiting(found, rings=name in _WRITES)

    def _waiting(self, ask: Callable[..., Awaitable[Any]], rings: bool = False) -> Callable[..., Awaitable[Any]]:
        async def asked(*given: Any, **named: Any) -> Any:
            with self._loop.standing_still():
                answer = await ask(*given, **named)
            if rings:
                self._rung.set()
            return answer

        return asked

    async def bell(self, seconds: float) -> bool:
        """Wait for a hint, as the store in memory does."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AsyncIterator[Batch]:
        """Give what is due; nothing between here and the end of the batch waits for a timer."""
        with self._loop.standing_still():
            async with self._store.due(scope, limit, by) as batch:
                yield batch

    def apart(self) -> None:
        """Let the node beat on the virtual loop."""

    @asynccontextmanager
    async def transaction(self, claim: Any) -> AsyncIterator[Any]:
        """Give a transaction whose every call is waited for; the task's own waits between them pass virtually."""
        held = self._store.transaction(claim)
        inner = await self._waiting(held.__aenter__)()
        try:
            yield _Calls(inner, self._waiting)
        except BaseException as error:
            if not await self._waiting(held.__aexit__)(type(error), error, error.__traceback__):
                raise
        else:
            await self._waiting(held.__aexit__)(None, None, None)
        self._rung.set()


class _Calls:
    """An object whose coroutines are waited for."""

    def __init__(self, inner: Any, waiting: Callable[[Callable[..., Awaitable[Any]]], Callable[..., Any]]) -> None:
        self._inner, self._waiting = inner, waiting

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._waiting(found) if iscoroutinefunction(found) else found


Opened = Callable[[Callable[[], datetime]], AbstractAsyncContextManager[AnyStore]]
"""Makes a store on a clock, and opens it."""
