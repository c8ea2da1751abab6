"""The foreground: an application that runs until it is told to stop, by Ctrl-C, SIGTERM or a closed terminal."""

import _thread
import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn, Protocol, Self

from everytick.app.notices import Notices
from everytick.errors import StoreBroken, StoreGone, StoreUnavailable
from everytick.node.backoff import Backoff
from everytick.node.node import Node
from everytick.node.stopping import StopMode

_log = logging.getLogger("everytick")

INTERRUPTED = 130
"""The exit code of a process that was told twice to leave."""

_STOPS = (signal.SIGINT, signal.SIGTERM)
_SELDOM = 20_000, 20, 20
_TURN = 0.001
_SETTLED_AFTER = 1.0
_PATIENCE = 3.0
_FLUSH_WITHIN = 0.2


class Runnable(Protocol):
    """An application, as far as the foreground knows it."""

    @property
    def node(self) -> Node | None:
        """The node, while it runs."""
        ...

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self, mode: StopMode = "cancel") -> None:
        """End."""
        ...


class Signals:
    """Hears Ctrl-C, SIGTERM and SIGHUP: the first sets `told`, a second Ctrl-C or SIGTERM leaves at once.

    Python's own handlers and not the loop's: a task may hold the loop, and just then leaving
    at once must work. They interrupt whatever runs, so they neither log nor raise. Where the
    main thread does not come to them, blocked in a call that began a moment after the signal,
    a thread hears the second one too.

    SIGHUP comes when a terminal closes, often twice: from the kernel and from the shell. So a second
    one is ignored. Under nohup, and where the program has a handler of its own, it is left alone.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.told = asyncio.Event()
        self._loop, self._is_told = loop, False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._hear) for number in stop_signals()}
        ear, self._mouth = os.pipe()
        os.set_blocking(self._mouth, False)
        self._woken_before = signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
        threading.Thread(target=_leave_at_second, args=(ear,), name="everytick signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            # None is a handler that was not made by Python, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._woken_before)
        os.close(self._mouth)

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
        _log.info("%s: stopping; %s leaves at once", signal.Signals(number).name, again)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that stop this process cleanly; SIGHUP only where nothing else is done about it."""
    return (*_STOPS, signal.SIGHUP) if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL else _STOPS


def _leave_at_second(ear: int) -> None:
    """Count the signals, which come as bytes, until nobody can send any more."""
    heard = 0
    while came := os.read(ear, 64):
        heard += sum(number in _STOPS for number in came)
        if heard > 1:
            _leave(INTERRUPTED)
    os.close(ear)


def run(app: Runnable, *, drain: bool = False) -> None:
    """Run until told to stop: the first signal stops cleanly, a second leaves at once."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("run() hears signals and needs the main thread: call start_background() here")
    gc.set_threshold(*_SELDOM)
    share_interpreter()
    notices = Notices.asked_for()
    loop = asyncio.new_event_loop()
    try:
        with Signals(loop) as signals:
            stuck = loop.run_until_complete(_until_told(app, drain, signals.told, notices))
            if stuck or not loop.run_until_complete(_is_wound_up()):
                # A loop cannot be closed around a coroutine that refuses to be canceled.
                _log.error("leaving without %s: told to stop and did not", stuck or "what tasks have left behind")
                _leave(1)
    finally:
        loop.close()


def calm_collector() -> None:
    """Let the garbage collector look less often, in a process that is ours: every occurrence makes a few values.

    They are freed by their counts; looking for cycles among them every 700 costs a fifth of the processor. What
    stands now, modules and thousands of definitions above all, is never looked at again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SELDOM)


def share_interpreter() -> None:
    """Let threads take turns five times as often, in a process that is ours.

    The thread that writes to a store needs the interpreter back after each statement, and
    would wait for a busy loop to let go of it longer than the statement took.
    """
    sys.setswitchinterval(_TURN)


async def _until_told(app: Runnable, drain: bool, told: asyncio.Event, notices: Notices) -> str:
    """Return once it has stopped, and what did not stop."""
    starting, waiting = asyncio.ensure_future(_started(app)), asyncio.ensure_future(told.wait())
    gone: asyncio.Future[Any] | None = None
    try:
        await asyncio.wait([starting, waiting], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return await _gave_up(app, starting)
        await starting
        node = app.node
        notices.running()
        # A moment later, so that what was due at the start need not wait for it.
        asyncio.get_running_loop().call_later(_SETTLED_AFTER, calm_collector)
        assert node is not None, "what has started has a node"
        gone = asyncio.ensure_future(node.gone.wait())
        await asyncio.wait([waiting, gone], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        if gone is not None:
            gone.cancel()
        notices.stopping()
        await app.stop("drain" if drain else "cancel")
        notices.over()
    if node.health.gone is not None:
        raise node.health.gone
    return f"{node.engine.stuck} tasks" if node.engine.stuck else ""


async def _started(app: Runnable) -> None:
    """Start; a store that is away is waited for, as a node that runs would wait for it.

    A store that is broken, and an address that leads nowhere, are told at once.
    """
    backoff, is_told = Backoff(), False
    while True:
        try:
            await app.start()
        except (StoreBroken, StoreGone):
            raise
        except StoreUnavailable as error:
            if not is_told:
                _log.error("the start waits until the store answers: %s", error)
            is_told = True
        else:
            return
        await app.stop()
        await asyncio.sleep(backoff.failed())


async def _gave_up(app: Runnable, starting: "asyncio.Future[None]") -> str:
    """End a start that is under way; a store that does not answer must not keep the process."""
    stopping = asyncio.ensure_future(app.stop())
    done, _ = await asyncio.wait([stopping], timeout=_PATIENCE)
    if not done:
        _log.error("the store does not answer: leaving without it")
        _leave(1)
    # It may be resting between two tries.
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    return ""


async def _is_wound_up() -> bool:
    """End what tasks have left behind, and say whether all of it ended."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    ended, going_on = await asyncio.wait([*left, asyncio.ensure_future(_close_threads())], timeout=_PATIENCE)
    for task in ended:
        if not task.cancelled() and task.exception() is not None:
            _log.error("what a task left behind failed", exc_info=task.exception())
    return not going_on


async def _close_threads() -> None:
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


def _leave(code: int) -> NoReturn:
    """Leave now: whatever runs here is settled by another node, or by this one when it is started again.

    What was printed goes out if it can, in a thread: its reader may be gone, or not read, or
    the very thread that this interrupts may be in the middle of printing.
    """
    flushed = _thread.allocate_lock()
    flushed.acquire()
    with suppress(RuntimeError):  # no thread can be had
        _thread.start_new_thread(_flush, (flushed,))
        flushed.acquire(timeout=_FLUSH_WITHIN)
    os._exit(code)


def _flush(flushed: "_thread.LockType") -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    flushed.release()
