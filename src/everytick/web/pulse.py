"""Whether the store answers. After one request has waited for it in vain, the others are told so within a second.

A server that is frozen, or behind a network that swallows everything, refuses nothing: each question waits until it
gives up. Without this, each page would take as long, on the day on which people look at them most.
"""

import asyncio
import time
from copy import copy

from fastapi import Request

from everytick.app import Everytick
from everytick.app.store_access import open_store
from everytick.errors import Contended, EverytickError, StoreUnavailable

MOMENT_SECONDS = 1.0
"""How long a request waits for a store that was silent last."""


class StorePulse:
    """What the last request heard of the store of one service. While it is silent, one question at a time is asked."""

    def __init__(self, tick: Everytick, moment: float = MOMENT_SECONDS) -> None:
        self._tick, self._moment = tick, moment
        self._silent: StoreUnavailable | None = None
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        self.silent_since = float("inf")
        """When the store fell silent, on this process's clock."""

    def missed(self, error: StoreUnavailable | TimeoutError) -> StoreUnavailable:
        """Take note that the store has not answered, and return what there is to say of it."""
        if isinstance(error, Contended):
            return error
        if isinstance(error, TimeoutError):
            error = StoreUnavailable("the store", "it took too long")
        if self._silent is None:
            self.silent_since = time.monotonic()
        self._silent = error
        return error

    async def feel(self) -> None:
        """Return if the store may be asked. If it was silent, ask again, wait a moment, and raise what it said."""
        if self._silent is None:
            return
        if self._asking is None or self._asking.done():
            self._asking, self._asked_at = asyncio.create_task(self._ask()), time.monotonic()
        left = self._asked_at + self._moment - time.monotonic()
        await asyncio.wait([self._asking], timeout=max(left, 0))
        if self._silent is not None:
            # A copy: it says what to do where that is known, and each request has a traceback of its own.
            raise copy(self._silent)

    async def _ask(self) -> None:
        try:
            await (await open_store(self._tick)).now()
        except StoreUnavailable as error:
            self.missed(error)
            return
        except EverytickError:
            pass  # It answers, if only with an error: the page tells which.
        self._silent, self.silent_since = None, float("inf")

    def end(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()


def pulse_of(request: Request) -> StorePulse:
    """Return the pulse of the service's store."""
    found = request.app.state.pulse
    assert isinstance(found, StorePulse), "asgi() sets it"
    return found
