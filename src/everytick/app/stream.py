"""A stream of events: it keeps the events of a node until they are read."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from everytick.node.events import Event, Listeners

MOST_KEPT = 10_000
"""Most events that wait for a reader. Beyond that the oldest are dropped: no decision depends on them."""


class Stream:
    """Gives the events from its creation on. It ends with `aclose`, or when the last reference to it is gone."""

    def __init__(self, listeners: Listeners, name: str | None) -> None:
        self._kept: deque[Event] = deque(maxlen=MOST_KEPT)
        self._name = name
        self._waiting: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._is_open = True
        self._stop = _listen(listeners, ref(self))

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        while not self._kept:
            if not self._is_open:
                raise StopAsyncIteration
            rung = asyncio.Event()
            self._waiting = asyncio.get_running_loop(), rung
            # Check again: an event may have come before `_waiting` was set.
            if not self._kept and self._is_open:
                await rung.wait()
        return self._kept.popleft()

    async def aclose(self) -> None:
        """Stop listening. Events that are kept can still be read."""
        self._stop()
        self._is_open = False
        self._ring()

    def take(self, event: Event) -> None:
        """Keep the event if it is about this stream's job. The node calls this in its own thread."""
        if self._name is None or event.job == self._name:
            self._kept.append(event)
            self._ring()

    def _ring(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting[0].is_closed():
            waiting[0].call_soon_threadsafe(waiting[1].set)


def _listen(listeners: Listeners, stream: ref[Stream]) -> Callable[[], None]:
    """Pass events on to a stream until it is garbage collected."""

    def tell(event: Event) -> None:
        reader = stream()
        if reader is None:
            stop()
        else:
            reader.take(event)

    stop = listeners.listen(tell)
    return stop
