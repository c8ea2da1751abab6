"""The one thread that writes, with group commit, and the threads that read.

Whatever has queued while the last transaction was written is the next one: each call in
it stands alone behind a savepoint, and all are answered once their commit has returned.
"""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from everytick.domain.values import value
from everytick.errors import StoreUnavailable
from everytick.stores.sql.statements import Query, Statement
from everytick.stores.sqlite.bell import Bell
from everytick.stores.sqlite.clock import StoreClock
from everytick.stores.sqlite.failures import ends_transaction, named, saying_which_file
from everytick.stores.sqlite.file_lock import Turn
from everytick.stores.sqlite.forks import ForkGuard
from everytick.stores.sqlite.opening import StoreFile, patiently
from everytick.stores.sqlite.thread_calls import Call, CallResult, call, deliver

T = TypeVar("T")

Connect = Callable[[], sqlite3.Connection]

MOST_CALLS = 500
"""Most calls that share a commit."""

IDLE_SECONDS = 0.2
"""After this long without a write the log is moved into the file, and memory is given back."""

LARGEST_LOG_BYTES = 64 * 1024 * 1024
"""A log of this size is moved into the file even if the store is never idle."""


class Transaction:
    """The transaction of one call: its statements, its time, and whether the bell rings after the commit.

    If it fails while it is not `is_alone`, everything is undone and it is run again, alone
    behind a savepoint.
    """

    __slots__ = ("connection", "execute", "executemany", "is_alone", "now", "rang")

    def __init__(self, connection: sqlite3.Connection, now: int, *, is_alone: bool = True) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.now = now
        self.is_alone = is_alone
        self.rang = False

    def run(self, query: Query) -> int:
        """Carry out a statement with named parameters; return how many rows it changed."""
        return self.connection.execute(query.statement.sql, query.arguments).rowcount

    def run_each(self, statement: Statement, given: Iterable[Mapping[str, Any]]) -> None:
        """Carry out a statement once for each of these sets of arguments."""
        if arguments := [statement(**row).arguments for row in given]:
            self.connection.executemany(statement.sql, arguments)


@value
class FileAccess:
    """What a thread needs to use the file: how to connect, the store's clock, its turn, and which file it is."""

    path: Path
    connect: Connect
    clock: StoreClock
    turn: Turn
    file: StoreFile


_Call = Call[Transaction]


def begin(connection: sqlite3.Connection, turn: Turn, is_left: Callable[[], bool] = lambda: False) -> None:
    """Begin to write once this process may. `is_left` says that the caller no longer waits."""

    def ask() -> None:
        if is_left():
            raise StoreUnavailable("a transaction", "its caller no longer waits for it")
        connection.execute("begin immediate")

    with turn.line():
        patiently(ask)


class WriterThread:
    """Runs every write of this process, one transaction after the other, on a connection of its own."""

    def __init__(self, access: FileAccess, bell: Bell) -> None:
        self._access, self._path, self._bell = access, access.path, bell
        self._queue: SimpleQueue[_Call | None] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread: Thread | None = None
        self._is_stopping = False
        self._log_is_dirty = True
        self._wrote_at = 0.0
        self._seen = 0
        self._fork_guard = ForkGuard(access.path, self._drop_connection)

    def start(self) -> None:
        """Begin to serve calls."""
        self._is_stopping = False
        self._thread = Thread(target=self._serve, name=f"everytick writer of {self._path.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Carry out the queued calls, move the log into the file and close the connection."""
        if self._thread is not None:
            self._is_stopping = True
            self.nudge()
            self._thread.join()
            self._thread = None

    def nudge(self) -> None:
        """Wake the thread, so that it computes its next wait again."""
        self._queue.put(None)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Return the result of `work` once it is committed. An error of it rolls back its own writes only."""
        if self._thread is None or self._is_stopping:
            raise StoreUnavailable(str(self._path), "the store is not open")
        asked: _Call = call(work)
        self._queue.put(asked)
        result: T = await asked.future
        return result

    def wrote_beside(self) -> None:
        """Note that another connection of this process wrote: its log is to be moved into the file too."""
        self._log_is_dirty, self._wrote_at = True, time.monotonic()
        self.nudge()

    def _serve(self) -> None:
        while not (self._is_stopping and self._queue.empty()):
            calls = self._gather()
            with self._fork_guard:
                if calls:
                    self._serve_calls(calls)
                self._look_around()
        with self._fork_guard:
            if self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._checkpoint(self._connection)
                self._drop_connection()

    def _gather(self) -> list[_Call]:
        """Wait for a call or for the next check, and take all calls that are queued."""
        waits = [wait for wait in (self._bell.poll_interval(), IDLE_SECONDS if self._log_is_dirty else None) if wait]
        calls: list[_Call] = []
        with contextlib.suppress(Empty):
            asked = self._queue.get(timeout=min(waits, default=None))
            while True:
                if asked is not None:
                    calls.append(asked)
                if len(calls) >= MOST_CALLS:
                    break
                asked = self._queue.get_nowait()
        return calls

    def _serve_calls(self, calls: Sequence[_Call]) -> None:
        try:
            with saying_which_file(self._path):
                answers = self._transact(calls)
        except Exception as error:  # noqa: BLE001  whatever it is, those who wait must hear of it
            self._drop_connection()
            answers = [CallResult(error=error)] * len(calls)
        if any(answer.rang for answer in answers):
            self._bell.ring()
        deliver(calls, answers)

    def _transact(self, calls: Sequence[_Call]) -> Sequence[CallResult]:
        """Run the calls in one transaction. An error of the disk ends it for all of them.

        Savepoints copy every page they touch, so calls that share a transaction first run
        without: only if one of them fails is all undone and run again, each behind its own.
        """
        self._access.file.check()
        connection = self._ready()
        begin(connection, self._access.turn)
        answers = self._run_together(connection, calls)
        if answers is None:
            connection.execute("rollback")
            begin(connection, self._access.turn)
            answers = self._run_apart(connection, calls)
        patiently(lambda: connection.execute("commit"))
        self._log_is_dirty, self._wrote_at = True, time.monotonic()
        return answers

    def _run_together(self, connection: sqlite3.Connection, calls: Sequence[_Call]) -> list[CallResult] | None:
        """Return the results of the calls. None as soon as one of them fails."""
        answers: list[CallResult] = []
        for current in calls:
            answer = self._run(connection, current, is_alone=False)
            if answer.error is not None:
                return None
            answers.append(answer)
        return answers

    def _run_apart(self, connection: sqlite3.Connection, calls: Sequence[_Call]) -> list[CallResult]:
        """Return the results of the calls. The writes of a failed one are rolled back."""
        answers: list[CallResult] = []
        for current in calls:
            connection.execute("savepoint one_call")
            answers.append(self._run(connection, current, is_alone=True))
            if answers[-1].error is not None:
                connection.execute("rollback to one_call")
            connection.execute("release one_call")
        return answers

    def _run(self, connection: sqlite3.Connection, asked: _Call, *, is_alone: bool) -> CallResult:
        transaction = Transaction(connection, self._access.clock.now(), is_alone=is_alone)
        try:
            result = asked.work(transaction)
        except sqlite3.Error as error:
            if ends_transaction(error):
                raise
            return CallResult(error=named(error, self._path) or error)
        except Exception as error:  # noqa: BLE001  handed to the caller, who asked for this work
            return CallResult(error=error)
        return CallResult(result, rang=transaction.rang)

    def _ready(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._access.connect()
            self._seen = self._data_version(self._connection)
        return self._connection

    def _drop_connection(self) -> None:
        """Close the connection in any state, which rolls back. The next call opens another."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _look_around(self) -> None:
        """Ring if another process wrote, and move the log into the file when the store is idle."""
        try:
            connection = self._ready()
            seen = self._data_version(connection)
            if seen != self._seen:
                self._seen = seen
                self._bell.ring()
            is_idle = time.monotonic() - self._wrote_at > IDLE_SECONDS
            if self._log_is_dirty and (is_idle or self._log_size() > LARGEST_LOG_BYTES):
                self._checkpoint(connection)
                if is_idle:
                    # Free the page cache: an idle node needs none of it.
                    connection.execute("pragma shrink_memory")
                    give_back()
        except (sqlite3.Error, OSError):
            # The next call meets the same error and raises it to its caller.
            self._drop_connection()
            self._log_is_dirty = False

    def _data_version(self, connection: sqlite3.Connection) -> int:
        """A number that changes when another connection has written, and not by our own writes."""
        found: int = connection.execute("pragma data_version").fetchone()[0]
        return found

    def _log_size(self) -> int:
        return os.stat(f"{self._path}-wal").st_size

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Move the log into the file and truncate it, which blocks writers. A reader may block it until later."""
        [is_blocked, *_] = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
        self._log_is_dirty = bool(is_blocked)
        self._wrote_at = time.monotonic()


class Reader:
    """Reads on a connection and a thread of its own: a long question holds up no write and no other reader."""

    def __init__(self, access: FileAccess) -> None:
        self._access, self._path = access, access.path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"everytick reader of {access.path.name}")
        self._connection: sqlite3.Connection | None = None
        self._fork_guard = ForkGuard(access.path, self._drop_connection)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of `work`, which reads the store as of one moment."""
        try:
            asked = asyncio.get_running_loop().run_in_executor(self._thread, self._read, work)
        except RuntimeError:
            raise StoreUnavailable(str(self._path), "the store is not open") from None
        return await asked

    def stop(self) -> None:
        """Give the connection back."""
        self._thread.submit(self._leave)
        self._thread.shutdown()

    def _leave(self) -> None:
        with self._fork_guard:
            self._drop_connection()

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with saying_which_file(self._path), self._fork_guard:
            self._access.file.check()
            try:
                return patiently(lambda: self._in_one_moment(work))
            except sqlite3.Error:
                self._drop_connection()
                raise

    def _in_one_moment(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = self._access.connect()
        connection = self._connection
        connection.execute("begin")
        try:
            return work(connection)
        finally:
            connection.execute("rollback")

    def _drop_connection(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def give_back() -> bool:
    """Return freed memory to the system; return whether the C library can be told to.

    SQLite frees its pages one by one, and the C library keeps such pieces for later: after thousands of jobs were
    stored, an idle process would hold a fifth more than it needs.
    """
    trim = _trim()
    if trim is None:
        return False
    trim(0)
    return True


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        # Half a megabyte, and only some C libraries have it: loaded when there is something to give back.
        import ctypes

        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    return found
