"""A thread with an event loop, where a process without a node asks its stores: scripts, web views, forked workers."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from everytick.app.background import at_exit

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    CloseStores = Callable[[asyncio.AbstractEventLoop], Coroutine[Any, Any, None]]

_CLOSE_WITHIN_SECONDS = 3.0
"""A store that does not answer must not keep a process that wants to end."""


class AskingLoop:
    """The thread and its loop; both end with the process, after the stores that were opened there."""

    def __init__(self, close_stores: CloseStores) -> None:
        self.loop = asyncio.new_event_loop()
        self._close_stores = close_stores
        self._thread = threading.Thread(target=self.loop.run_forever, name="everytick asking", daemon=True)
        self._thread.start()
        at_exit(self._end)

    def _end(self) -> None:
        if not self._thread.is_alive():  # this process is a fork of the one that had the thread
            return
        with suppress(Exception):  # the process ends: nothing is left to do about a store that cannot be closed
            closing = asyncio.run_coroutine_threadsafe(self._close_stores(self.loop), self.loop)
            closing.result(_CLOSE_WITHIN_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_CLOSE_WITHIN_SECONDS)
        if not self._thread.is_alive():
            self.loop.close()


_running: AskingLoop | None = None
_beginning = threading.Lock()


def asking_loop(close_stores: CloseStores) -> asyncio.AbstractEventLoop:
    """Return the loop of this process, which runs from now on; `close_stores` is awaited on it at the end."""
    global _running
    with _beginning:
        if _running is None:
            _running = AskingLoop(close_stores)
        return _running.loop


def _forget() -> None:
    """Begin anew in a fork: the thread has stayed in the original."""
    global _running, _beginning
    _running, _beginning = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
