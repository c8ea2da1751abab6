"""A line of processes that wait to write: each locks a lock file in turn, so that none of them starves.

SQLite itself lets the process that asks at the right moment write next. So only the first in line
asks it, every fraction of a millisecond, and leaves the line once it may write: a process
that has just written stands behind all that wait. The system frees the place of a process
that dies. The line is a courtesy and no lock: a process that froze in it is passed after a second, and
the others do without the line until it has left.
"""

import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TypeAlias

try:
    import fcntl
except ImportError:  # a system without this kind of lock
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)

IN_LINE_SECONDS = 1.0
"""How long a thread waits in line. A process that is first for longer is frozen or cannot write."""


_Wait: TypeAlias = "tuple[int, Future[None], Event]"
"""The file to lock, the waiting future, and the event that is set once an abandoned wait has ended."""


class Turn:
    """The line for one file. The threads of this process share one place in it, and wait for each other first."""

    def __init__(self, database: Path) -> None:
        self._path = Path(f"{database}-turn")
        self._own = Lock()
        self._file: int | None = None
        self._asked: SimpleQueue[_Wait | None] | None = None
        self._passed: Event | None = None
        """Set once the frozen process at the front has left; None if there is none."""
        self._is_unsupported = False

    @contextmanager
    def line(self) -> Iterator[None]:
        """Wait in line until this process is the first, and leave the line at the end of the block."""
        until = time.monotonic() + IN_LINE_SECONDS
        is_first_here = self._own.acquire(timeout=IN_LINE_SECONDS)
        is_first = is_first_here and not self._is_unsupported and self._stand(until)
        try:
            yield
        finally:
            if is_first:
                self._leave()
            if is_first_here:
                self._own.release()

    def close(self) -> None:
        """Give the lock file back."""
        if self._asked is not None:
            self._asked.put(None)
            self._asked = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _stand(self, until: float) -> bool:
        """Return whether this is the first in line; False if there is no line, or a process in it is frozen."""
        if self._passed is not None:
            if not self._passed.is_set():
                return False
            self._passed = None
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            assert self._file is not None, "a lock file that was not opened blocks no process"
            return self._wait(self._file, until)
        except (OSError, AttributeError) as error:
            self._go_without(error)
            return False
        return True

    def _wait(self, file: int, until: float) -> bool:
        """Wait in a thread, which can be left behind: the system's own call knows no end."""
        if self._asked is None:
            self._asked = SimpleQueue()
            name = f"everytick line of {self._path.name}"
            Thread(target=_wait_in_turn, args=(self._asked,), name=name, daemon=True).start()
        first: Future[None] = Future()
        passed = Event()
        self._asked.put((file, first, passed))
        try:
            first.result(max(until - time.monotonic(), 0))
        except TimeoutError:
            if first.cancel():
                # The waiting thread closes its file once it gets the lock. The next wait has its own file and thread.
                self._asked.put(None)
                self._file = self._asked = None
                self._passed = passed
                return False
        except OSError as error:
            self._go_without(error)
            return False
        return True

    def _leave(self) -> None:
        assert self._file is not None, "a process leaves only a line in which it has stood"
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def _go_without(self, error: Exception) -> None:
        self._is_unsupported = True
        _log.warning(
            "%s cannot be locked (%s): processes that write to one store take turns at random, and may wait longer",
            self._path,
            error,
        )


def _wait_in_turn(asked: "SimpleQueue[_Wait | None]") -> None:
    while (wait := asked.get()) is not None:
        _wait_for(*wait)


def _wait_for(file: int, first: "Future[None]", passed: Event) -> None:
    error = None
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as found:
        error = found
    if not first.set_running_or_notify_cancel():
        os.close(file)
        passed.set()
    elif error is None:
        first.set_result(None)
    else:
        first.set_exception(error)
