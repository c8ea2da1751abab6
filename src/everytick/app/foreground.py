"""The foreground: an application that runs until it is told to stop, by Ctrl-C, SIGTERM or a closed terminal."""

import _thread
import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NoReturn, Protocol, Self

from everytick.app.console_lines import tell, waiting_for
from everytick.app.sd_notify import Supervisor
from everytick.errors import StoreBroken, StoreGone, StoreUnavailable
from everytick.node.health import Backoff
from everytick.node.node import Node
from everytick.node.stopping import StopMode

_log = logging.getLogger("everytick")

INTERRUPTED = 130
"""The exit code of a process that got a second signal."""

_STOPS = (signal.SIGINT, signal.SIGTERM)

_GC_THRESHOLDS = 20_000, 20, 20
"""Arguments of gc.set_threshold: `calm_collector` says why."""

_SWITCH_SECONDS = 0.001
"""How long a thread may keep the interpreter: `share_interpreter` says why."""

_CALM_AFTER_SECONDS = 1.0
"""How long after the start `calm_collector` is called: jobs that are due at the start do not wait for it."""

_STOP_SECONDS = 3.0
"""How long to wait for a store or for coroutines that do not end, before the process leaves without them."""

_FLUSH_SECONDS = 0.2
"""How long to wait for standard output before the process leaves: its reader may be gone."""


class Runnable(Protocol):
    """What the foreground needs of an application."""

    @property
    def node(self) -> Node | None:
        """The node, while it runs."""
        ...

    async def start(self) -> None:
        """Start the node."""
        ...

    async def stop(self, mode: StopMode = "cancel") -> None:
        """Stop the node."""
        ...


class Signals:
    """Handles Ctrl-C, SIGTERM and SIGHUP: the first sets `told`, a second Ctrl-C or SIGTERM leaves at once.

    These are Python's own handlers, not the loop's: a task may block the loop, and leaving at once must work then.
    They interrupt any code, so they neither log nor raise. If the main thread is blocked in a call and does not run
    them, a thread reads the second signal too.

    SIGHUP comes when a terminal closes, often twice: from the kernel and from the shell. So a second
    one is ignored. Under nohup, and if the program has a handler of its own, SIGHUP is not handled.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, waits_for: Callable[[], str] = str) -> None:
        self.told = asyncio.Event()
        self._loop, self._is_told, self._waits_for = loop, False, waits_for

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._hear) for number in stop_signals()}
        reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup_before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        threading.Thread(target=_leave_at_second, args=(reading,), name="everytick signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            # None stands for a handler that was not set by Python: it cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._writing)

    def _hear(self, number: int, frame: object) -> None:
        if self._is_told:
            if number == signal.SIGHUP:
                return
            _leave(INTERRUPTED)
        self._is_told = True
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._tell, number)

    def _tell(self, number: int) -> None:
        self.told.set()
        again = "SIGTERM" if number == signal.SIGHUP else "once more"
        tell(f"{signal.Signals(number).name}: stopping; {again} leaves at once{self._waits_for()}")


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that stop this process cleanly. SIGHUP is one unless it is ignored or handled already."""
    return (*_STOPS, signal.SIGHUP) if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL else _STOPS


def _leave_at_second(reading: int) -> None:
    """Count the signals, which come as bytes, until the other end of the pipe is closed."""
    stops = 0
    while numbers := os.read(reading, 64):
        stops += sum(number in _STOPS for number in numbers)
        if stops > 1:
            _leave(INTERRUPTED)
    os.close(reading)


def run(app: Runnable, *, drain: bool = False, started: Callable[[], Awaitable[None]] | None = None) -> None:
    """Run until a signal comes: the first stops cleanly, a second leaves at once. Call `started` once it runs."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("run() hears signals and needs the main thread: call start_background() here")
    gc.set_threshold(*_GC_THRESHOLDS)
    share_interpreter()
    supervisor = Supervisor.from_environment()
    loop = asyncio.new_event_loop()
    try:
        with Signals(loop, lambda: _waits_for(app, drain)) as signals:
            stuck = loop.run_until_complete(_run_until_told(app, drain, signals.told, supervisor, started))
            if stuck or not loop.run_until_complete(_cancel_leftovers()):
                # A loop cannot be closed while a coroutine ignores its cancel.
                _log.error(
                    "%s did not stop when told to: the process ends without waiting for them",
                    stuck or "coroutines that tasks have left behind",
                )
                _leave(1)
    finally:
        loop.close()


def until_told(work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run the coroutine on a loop of its own. Its event is set by the first signal; a second leaves at once."""
    loop = asyncio.new_event_loop()
    try:
        with Signals(loop) as signals:
            loop.run_until_complete(asyncio.ensure_future(work(signals.told), loop=loop))
            if not loop.run_until_complete(_cancel_leftovers()):
                _leave(1)
    finally:
        loop.close()


def calm_collector() -> None:
    """Let the garbage collector run less often. Only for a process that belongs to everytick.

    Every occurrence makes a few values, which are freed by reference counting. A search for cycles after every 700 of
    them costs a fifth of the processor. Objects that exist now, mostly modules and definitions, are never searched.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def share_interpreter() -> None:
    """Let threads switch five times as often. Only for a process that belongs to everytick.

    The thread that writes to a store needs the interpreter back after each statement. With the default interval it
    would wait for a busy event loop longer than the statement took.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)


def _waits_for(app: Runnable, drain: bool) -> str:
    """Say what a stop that begins now waits for, and how long at most."""
    node = app.node
    return "" if node is None else waiting_for(node.engine.running, None if drain else node.grace_period)


async def _run_until_told(
    app: Runnable,
    drain: bool,
    told: asyncio.Event,
    supervisor: Supervisor,
    started: Callable[[], Awaitable[None]] | None,
) -> str:
    """Return once the application has stopped: how many tasks did not stop, in words, or an empty text."""
    starting, waiting = asyncio.ensure_future(_started(app)), asyncio.ensure_future(told.wait())
    gone: asyncio.Future[Any] | None = None
    try:
        await asyncio.wait([starting, waiting], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return await _stop_starting(app, starting)
        await starting
        node = app.node
        supervisor.ready()
        asyncio.get_running_loop().call_later(_CALM_AFTER_SECONDS, calm_collector)
        assert node is not None, "an application that has started has a node"
        if started is not None:
            await started()
        gone = asyncio.ensure_future(node.gone.wait())
        await asyncio.wait([waiting, gone], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        if gone is not None:
            gone.cancel()
        supervisor.stopping()
        await app.stop("drain" if drain else "cancel")
        supervisor.stopped()
    if node.health.gone is not None:
        raise node.health.gone
    return f"{node.engine.stuck} tasks" if node.engine.stuck else ""


async def _started(app: Runnable) -> None:
    """Start the application. While the store is away, try again, as a running node does.

    A broken store and a wrong address are raised at once.
    """
    backoff, is_told = Backoff(), False
    while True:
        try:
            await app.start()
        except (StoreBroken, StoreGone):
            raise
        except StoreUnavailable as error:
            if not is_told:
                _log.error("%s; the start waits until the store answers", error)
            is_told = True
        else:
            return
        await app.stop()
        await asyncio.sleep(backoff.failed())


async def _stop_starting(app: Runnable, starting: "asyncio.Future[None]") -> str:
    """End a start that is under way. A store that does not answer must not keep the process alive."""
    stopping = asyncio.ensure_future(app.stop())
    done, _ = await asyncio.wait([stopping], timeout=_STOP_SECONDS)
    if not done:
        _log.error("the store does not answer: the process ends without it")
        _leave(1)
    # It may be waiting between two tries.
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    return ""


async def _cancel_leftovers() -> bool:
    """Cancel the coroutines that tasks have left behind. Return whether all of them ended."""
    leftovers = asyncio.all_tasks() - {asyncio.current_task()}
    for task in leftovers:
        task.cancel()
    ended, running = await asyncio.wait([*leftovers, asyncio.ensure_future(_close_threads())], timeout=_STOP_SECONDS)
    for task in ended:
        if not task.cancelled() and task.exception() is not None:
            _log.error("a coroutine that a task left behind failed: the stop goes on", exc_info=task.exception())
    return not running


async def _close_threads() -> None:
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


def _leave(code: int) -> NoReturn:
    """End the process now. Another node takes over what runs here, or this one when it is started again.

    Standard output is flushed in a thread: its reader may be gone or not read, or the thread that this interrupts
    may be printing.
    """
    flushed = _thread.allocate_lock()
    flushed.acquire()
    with suppress(RuntimeError):  # no thread can be had
        _thread.start_new_thread(_flush, (flushed,))
        flushed.acquire(timeout=_FLUSH_SECONDS)
    os._exit(code)


def _flush(flushed: "_thread.LockType") -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    flushed.release()
