"""The foreground: an application that runs until somebody says stop, by Ctrl-C or SIGTERM."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from typing import Protocol

from everytick.node.node import Node, StopMode

_log = logging.getLogger("everytick")

INTERRUPTED = 130
"""The exit code of a process that was told twice to leave."""


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


def run(app: Runnable, *, drain: bool = False) -> None:
    """Run until told to stop: the first signal stops cleanly, a second leaves at once."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("run() hears signals and needs the main thread: call start_background() here")
    calm_collector()
    loop = asyncio.new_event_loop()
    try:
        stuck = loop.run_until_complete(_until_told(app, drain))
        if stuck:
            # A loop cannot be closed around a coroutine that refuses to be canceled.
            _log.error("%d tasks do not stop although they were told to: leaving without them", stuck)
            _leave(1)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def calm_collector() -> None:
    """Let the garbage collector look less often, in a process that is ours: every occurrence makes a few values.

    They are freed by their counts; looking for cycles among them every 700 costs a fifth of the processor.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _until_told(app: Runnable, drain: bool) -> int:
    """Return once it has stopped, with the number of attempts that did not stop."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    is_told = False

    def stop(number: int, frame: object) -> None:
        nonlocal is_told
        if is_told:
            _leave(INTERRUPTED)
        is_told = True
        _log.info("%s: stopping; once more leaves at once", signal.Signals(number).name)
        loop.call_soon_threadsafe(told.set)

    # Python's own handlers and not the loop's: a task may hold the loop, and just then leaving at once must work.
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    node: Node | None = None
    try:
        await app.start()
        node = app.node
        await told.wait()
    finally:
        await app.stop("drain" if drain else "cancel")
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0 if node is None else node.executor.stuck


def _leave(code: int) -> None:
    """Leave now: whatever runs here is settled by another node, or by this one when it is started again."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
