"""An event loop on virtual time: it does not wait for timers, and calls them in order.

Time stands still while anything runs. When nothing can, it jumps to the next timer: a
coroutine that sleeps for an hour has slept an hour, and no second has passed.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Jumps over every wait for a timer, except while a thread that it started works: then its time stands still.

    A socket is not waited for where a timer is set as well: what talks to a network belongs
    on an ordinary loop.
    """

    def __init__(self) -> None:
        self._virtual = 0.0
        self._elsewhere = 0
        super().__init__(_Jumping(self))
        # A timer is called once it is nearer than this. The default, a nanosecond, is smaller than the precision of
        # a float for the seconds of a year: the timer would never be reached.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Return the virtual seconds since this loop was made."""
        return self._virtual

    def jump(self, seconds: float) -> None:
        """Move the virtual time by this many seconds."""
        # In whole microseconds, rounded up: a time just before the timer would set it again without end.
        reached = self._virtual + seconds
        self._virtual = max(reached, round(reached, 6))

    @property
    def is_alone(self) -> bool:
        """Whether the loop waits for nothing outside of it."""
        return self._elsewhere == 0

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Call no timer inside the block: the loop waits for something outside of it."""
        self._elsewhere += 1
        try:
            yield
        finally:
            self._elsewhere -= 1

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        """Run the function in a thread. No timer is called before it is done."""
        self._elsewhere += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._is_back)
        return future

    def _is_back(self, _: object) -> None:
        self._elsewhere -= 1


class _Jumping(selectors.DefaultSelector):
    """A selector that moves the loop's time instead of waiting."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None or not self._loop.is_alone:
            return super().select(None)
        self._loop.jump(timeout)
        return []


def run_virtually(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine on a new virtual loop, also while another loop runs, and return its result."""
    loop = VirtualLoop()

    def run() -> T:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main(loop))

    # Not inside an `except`: its RuntimeError would become the context of every error of a task.
    return _in_thread(run) if _is_in_loop() else run()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(run: Callable[[], T]) -> T:
    """Run the function in a new thread, which has no loop, and wait for it."""
    results: list[T] = []
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            results.append(run())
        except BaseException as error:  # noqa: BLE001, it is raised again in the thread that waits
            raised.append(error)

    thread = Thread(target=guarded, name="everytick simulation")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return results[0]
