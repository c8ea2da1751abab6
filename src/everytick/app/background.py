"""`start_background`: a thread with an event loop, in which the application runs beside the program."""

import asyncio
import atexit
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from everytick.node.stopping import StopMode

_log = logging.getLogger("everytick")

_JOIN_SECONDS = 3.0
"""How long a stop waits for the thread after the application has stopped. Tasks may block it for ever."""


class Startable(Protocol):
    """What the thread needs of an application."""

    async def start(self) -> None:
        """Start the node."""
        ...

    async def stop(self, mode: StopMode = "cancel") -> None:
        """Stop the node."""
        ...


class Background:
    """A thread with a loop in which the application runs."""

    def __init__(self, app: Startable) -> None:
        self._app = app
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._mode: StopMode = "cancel"
        self._started, self._ended = threading.Event(), threading.Event()
        self._hastened: asyncio.Future[None] | None = None
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="everytick", daemon=True)

    def start(self) -> None:
        """Return once the application runs. Raise the error that kept it from running."""
        self._thread.start()
        self._started.wait()
        if self._failed is not None:
            self._thread.join()
            raise self._failed
        at_exit(self.stop)

    def stop(self, mode: StopMode = "cancel") -> None:
        """Return once the application has stopped. A second caller waits for the same stop."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("stop_background() would wait for the thread it is called in: call it from another")
        loop = self._loop
        if self._thread.is_alive() and loop is not None:
            with suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(self._tell, mode)
            self._ended.wait()
            self._thread.join(_JOIN_SECONDS)
            if self._thread.is_alive():
                _log.error(
                    "everytick has stopped, but its background thread runs on: a task does not end; "
                    "the thread ends with the process"
                )

    def _tell(self, mode: StopMode) -> None:
        if self._stop is None or self._stop.is_set():
            self._hastened = asyncio.ensure_future(self._app.stop(mode))
        else:
            self._mode = mode
            self._stop.set()

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001, start() raises it again
            if self._started.is_set():
                _log.exception("everytick ended in its background thread: nothing more is planned or run here")
            self._failed = error
        finally:
            self._started.set()
            self._ended.set()

    async def _live(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self._app.start()
            self._started.set()
            await self._stop.wait()
        finally:
            await self._app.stop(self._mode)
            # asyncio.run may still wait for coroutines that tasks left behind; the caller of stop() does not.
            if self._started.is_set():
                self._ended.set()


def at_exit(stop: Callable[[], None]) -> None:
    """Call `stop` when the process ends, while threads can still be started: a stop needs some.

    `atexit` comes too late, after the interpreter has closed every pool of threads. `threading._register_atexit` is
    private and used if it exists. The last to register is called first, so the pools must register before.
    """
    import concurrent.futures.thread  # noqa: F401

    register = getattr(threading, "_register_atexit", atexit.register)
    register(stop)
