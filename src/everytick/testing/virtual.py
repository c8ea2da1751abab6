"""An event loop on virtual time: nothing waits, and everything happens in its order.

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
    """Jumps over every wait for a timer, except while a thread of its own works: then time stands still.

    A socket is not waited for where a timer is set as well: what talks to a network belongs
    on an ordinary loop.
    """

    def __init__(self) -> None:
        self._virtual = 0.0
        self._elsewhere = 0
        super().__init__(_Jumping(self))
        # A timer rings once it is nearer than this. By default that is a nanosecond, which vanishes beside the
        # seconds of a year in a float: the timer would never be reached.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Return the virtual seconds since this loop was made."""
        return self._virtual

    def jump(self, seconds: float) -> None:
        """Let that much virtual time pass."""
        # To whole microseconds, but never short of the timer by a rounding: it would be wound again, for ever.
        reached = self._virtual + seconds
        self._virtual = max(reached, round(reached, 6))

    @property
    def is_alone(self) -> bool:
        """Whether nothing this loop waits for runs outside of it."""
        return self._elsewhere == 0

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let no timer ring inside: something outside of this loop is waited for."""
        self._elsewhere += 1
        try:
            yield
        finally:
            self._elsewhere -= 1

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        """Run the function in a thread; no timer rings before it is done."""
        self._elsewhere += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._is_back)
        return future

    def _is_back(self, _: object) -> None:
        self._elsewhere -= 1


class _Jumping(selectors.DefaultSelector):
    """A selector that lets the loop's time pass instead of waiting for it."""

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
    """Run the coroutine on a virtual loop of its own, also where a loop is running already, and return what it does."""
    loop = VirtualLoop()

    def run() -> T:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main(loop))

    # Not inside an `except`: the error that says that no loop runs would become the context of every error of a task.
    return _in_thread(run) if _is_in_loop() else run()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(run: Callable[[], T]) -> T:
    """Run the function in a thread of its own and wait for it: a thread has no loop yet."""
    found: list[T] = []
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            found.append(run())
        except BaseException as error:  # noqa: BLE001, it is raised again by whoever waits
            raised.append(error)

    thread = Thread(target=guarded, name="everytick simulation")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
