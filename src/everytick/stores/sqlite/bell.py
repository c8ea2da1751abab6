"""The bell: a hint within this process that something changed; losing it is harmless."""

import asyncio
import contextlib
from threading import Lock

from everytick.domain.values import value

SOON = 60.0
"""Who waits at most so many seconds expects something soon: then other processes are looked at more often."""


@value
class _Waiter:
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[bool]"
    is_soon: bool


class Bell:
    """Rings for everybody who waits, on whatever loop; if nobody does, for the next one who comes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rung = False
        self._waiters: list[_Waiter] = []

    def ring(self) -> None:
        """Wake everybody who waits; may be called from any thread."""
        with self._lock:
            waiters, self._waiters = self._waiters, []
            self._rung = not waiters
        for waiter in waiters:
            # A loop that has ended has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                waiter.loop.call_soon_threadsafe(_wake, waiter.future)

    def poll_interval(self) -> float | None:
        """Return how often to look for what other processes wrote; None while nobody waits."""
        with self._lock:
            if not self._waiters:
                return None
            return 0.02 if any(waiter.is_soon for waiter in self._waiters) else 0.25

    def enter(self, seconds: float) -> "asyncio.Future[bool] | None":
        """Return what to wait for, or None if it has rung already."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._rung:
                self._rung = False
                return None
            waiter = _Waiter(loop, loop.create_future(), seconds <= SOON)
            self._waiters.append(waiter)
            return waiter.future

    def leave(self, future: "asyncio.Future[bool]") -> None:
        """Stop waiting."""
        with self._lock:
            self._waiters = [waiter for waiter in self._waiters if waiter.future is not future]


def _wake(future: "asyncio.Future[bool]") -> None:
    if not future.done():
        future.set_result(True)
