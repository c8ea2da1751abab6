"""The background: a thread with a loop in which an application runs beside the program that started it."""

import asyncio
import atexit
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from everytick.node.stopping import StopMode

_log = logging.getLogger("everytick")

_PATIENCE = 3.0


class Startable(Protocol):
    """An application, as far as this thread knows it."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self, mode: StopMode = "cancel") -> None:
        """End."""
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
        """Return once it runs, or raise what kept it from running."""
        self._thread.start()
        self._started.wait()
        if self._failed is not None:
            self._thread.join()
            raise self._failed
        at_exit(self.stop)

    def stop(self, mode: StopMode = "cancel") -> None:
        """Return once it has stopped; whoever stops what is being stopped waits for the same end."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("stop_background() would wait for the thread it is called in: call it from another")
        loop = self._loop
        if self._thread.is_alive() and loop is not None:
            with suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(self._tell, mode)
            self._ended.wait()
            self._thread.join(_PATIENCE)
            if self._thread.is_alive():
                _log.error("leaving the background thread behind: something in it was told to stop and did not")

    def _tell(self, mode: StopMode) -> None:
        if self._stop is None or self._stop.is_set():
            self._hastened = asyncio.ensure_future(self._app.stop(mode))
        else:
            self._mode = mode
            self._stop.set()

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001, raised again by whoever waits for the start
            if self._started.is_set():
                _log.exception("everytick ended in its background thread")
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
            # The loop may still wait for what tasks have left behind; nobody else needs to.
            if self._started.is_set():
                self._ended.set()


def at_exit(stop: Callable[[], None]) -> None:
    """Call this when the process ends, while threads can still be started: a stop needs some.

    `atexit` comes too late, after the interpreter has closed every pool of threads; what it
    uses for that itself is private, and taken where it exists. The last to register is the
    first to be called, so the pools must have registered before.
    """
    import concurrent.futures.thread  # noqa: F401

    register = getattr(threading, "_register_atexit", atexit.register)
    register(stop)
