"""Forks: no connection to a file is open in the moment of one, so that both processes begin anew.

SQLite remembers in the memory of a process which locks it holds. A fork copies that memory, but not the locks: in the
copy, SQLite would take locks for held that are not, lose what it writes, and read what is just being overwritten. So a
fork waits until every thread has ended its transaction, and closes the connections. The next call opens another.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from types import TracebackType
from weakref import WeakSet

from everytick.errors import StoreBroken

WAIT_SECONDS = 2.0
"""A transaction of a task may last 10 seconds, and the fork may come from that very task: it is not waited for."""


class ForkGuard:
    """Held around each use of a connection; at a fork between two uses, `close` gives the connection back."""

    __slots__ = ("__weakref__", "_close", "_lock", "path")

    def __init__(self, path: Path, close: Callable[[], None] = lambda: None) -> None:
        self.path, self._close, self._lock = path, close, Lock()
        with _forks.adding:
            _forks.guards.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def stop(self, seconds: float) -> bool:
        """Close the connection until `go_on`. Return whether that was done in time: it may be in use for longer."""
        if not self._lock.acquire(timeout=seconds):
            return False
        self._close()
        return True

    def go_on(self) -> None:
        """Let the connection be opened again."""
        self._lock.release()


class _Forks:
    """All guards of this process, and the files that were in use when it was forked from another."""

    def __init__(self) -> None:
        self.in_use: frozenset[tuple[int, int]] = frozenset()
        self._forget()

    def _forget(self) -> None:
        self.adding = Lock()
        self.guards: WeakSet[ForkGuard] = WeakSet()
        self._stopped: list[ForkGuard] = []
        self._going_on: list[ForkGuard] = []

    def before(self) -> None:
        """Close every connection that is not in use for longer than the wait, until the fork is over."""
        self.adding.acquire()
        until = time.monotonic() + WAIT_SECONDS
        self._stopped, self._going_on = [], []
        for guard in tuple(self.guards):
            is_stopped = guard.stop(max(until - time.monotonic(), 0))
            (self._stopped if is_stopped else self._going_on).append(guard)

    def in_original(self) -> None:
        """Go on."""
        for guard in self._stopped:
            guard.go_on()
        self._stopped, self._going_on = [], []
        self.adding.release()

    def in_copy(self) -> None:
        """Forget the threads of the original, which are not here, and which files they were using."""
        self.in_use |= frozenset(filter(None, (_identity(guard.path) for guard in self._going_on)))
        self._forget()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def refuse_in_use(path: Path) -> None:
    """Raise unless this process may open the file: it must not have been forked during a transaction."""
    if _forks.in_use and _identity(path) in _forks.in_use:
        reason = "this process was forked in the middle of a transaction, so that SQLite cannot open the file here"
        raise StoreBroken(str(path), reason, "fork outside of ctx.transaction()")


_forks = _Forks()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forks.before, after_in_parent=_forks.in_original, after_in_child=_forks.in_copy)
