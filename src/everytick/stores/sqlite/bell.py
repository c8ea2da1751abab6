"""The bell: a hint within this process that something changed. Nothing is lost if the hint is."""

import asyncio
import contextlib
from threading import Lock

from everytick.domain.values import value

SOON_SECONDS = 60.0
"""A waiter with at most this long expects a change soon: then the file is checked more often."""


@value
class _Waiter:
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[bool]"
    is_soon: bool


class Bell:
    """Rings for all waiters, on any event loop. If there are none, the next waiter returns at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rung = False
        self._waiters: list[_Waiter] = []

    def ring(self) -> None:
        """Wake all waiters. It may be called from any thread."""
        with self._lock:
            waiters, self._waiters = self._waiters, []
            self._rung = not waiters
        for waiter in waiters:
            # The loop has ended, and its waiters with it.
            with contextlib.suppress(RuntimeError):
                waiter.loop.call_soon_threadsafe(_wake, waiter.future)

    def poll_interval(self) -> float | None:
        """Return the seconds between two checks for writes of other processes; None without waiters."""
        with self._lock:
            if not self._waiters:
                return None
            return 0.02 if any(waiter.is_soon for waiter in self._waiters) else 0.25

    def enter(self, seconds: float) -> "asyncio.Future[bool] | None":
        """Return the future to wait for, or None if the bell has rung already."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._rung:
                self._rung = False
                return None
            waiter = _Waiter(loop, loop.create_future(), seconds <= SOON_SECONDS)
            self._waiters.append(waiter)
            return waiter.future

    def leave(self, future: "asyncio.Future[bool]") -> None:
        """Stop waiting."""
        with self._lock:
            self._waiters = [waiter for waiter in self._waiters if waiter.future is not future]


def _wake(future: "asyncio.Future[bool]") -> None:
    if not future.done():
        future.set_result(True)
