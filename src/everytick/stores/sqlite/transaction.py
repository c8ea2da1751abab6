"""The transaction a task writes in: its rows and the step of its success become true together, or neither does.

SQLite has one writer at a time, so a task that holds a transaction holds up every other
write. Hence there is one per process at a time, on a connection and a thread of its own,
and it may be open for ten seconds: then it is taken back, and the others go on.
"""

import asyncio
import re
import sqlite3
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from everytick.domain.steps import Step
from everytick.domain.values import value
from everytick.errors import StoreUnavailable, shown
from everytick.stores.base import Claim, Commit
from everytick.stores.sqlite import running
from everytick.stores.sqlite.failures import saying_which_file
from everytick.stores.sqlite.forks import ForkGuard
from everytick.stores.sqlite.opening import LOCK_SECONDS, MIGRATIONS, patiently
from everytick.stores.sqlite.thread_calls import Call, CallResult, call, deliver
from everytick.stores.sqlite.writer import FileAccess, Transaction, begin

T = TypeVar("T")

LONGEST_SECONDS = 10.0
"""How long a transaction may be open: less than the time after which a node without beats looks dead."""

_OURS = frozenset(
    name
    for migration in MIGRATIONS
    for name in re.findall(r"^create (?:table|view|index) (\w+)", migration.text, re.MULTILINE)
) | {"migration", "sqlite_sequence"}

_ENDS = {
    sqlite3.SQLITE_TRANSACTION: "begin, commit or roll back: leave that to everytick",
    sqlite3.SQLITE_ATTACH: "attach a database: open a connection of your own for it",
    sqlite3.SQLITE_DETACH: "detach a database",
    sqlite3.SQLITE_PRAGMA: "use a pragma: the settings of the connection are everytick's",
}
# Which of the authorizer's arguments names the table.
_CHANGES = {
    sqlite3.SQLITE_INSERT: 0,
    sqlite3.SQLITE_UPDATE: 0,
    sqlite3.SQLITE_DELETE: 0,
    sqlite3.SQLITE_DROP_TABLE: 0,
    sqlite3.SQLITE_DROP_VIEW: 0,
    sqlite3.SQLITE_ALTER_TABLE: 1,
    sqlite3.SQLITE_CREATE_INDEX: 1,
    sqlite3.SQLITE_DROP_INDEX: 1,
    sqlite3.SQLITE_CREATE_TRIGGER: 1,
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: 1,
}


class SqliteClaimTransaction:
    """A task's transaction: it writes the task's rows, reads all, and commits the success of the attempt with them."""

    def __init__(self, session: "Session", claim: Claim) -> None:
        self._session, self._claim = session, claim

    @property
    def connection(self) -> sqlite3.Connection:
        """The driver's connection, for what `execute` and `fetch` do not offer; it refuses to commit."""
        return self._session.connection

    async def execute(self, sql: str, *arguments: object) -> None:
        """Carry out one statement, with placeholders as `?`."""
        await self._session.ask(lambda connection: connection.execute(sql, arguments).close())

    async def fetch(self, sql: str, *arguments: object) -> Sequence[tuple[Any, ...]]:
        """Return the rows of one query, which sees the rows that the transaction wrote."""
        return await self._session.ask(lambda connection: connection.execute(sql, arguments).fetchall())

    async def commit(self, step: Step) -> Commit:
        """Write the step and commit it together with the task's rows. STALE: nothing was written."""
        return await self._session.commit(self._claim, step)


@value
class _End:
    """The end of a transaction: its reason, and the call that waits for it."""

    reason: Exception
    call: Call[sqlite3.Connection] | None = None


class Session:
    """One transaction from its begin to its end. `left` is called after its locks are freed."""

    def __init__(
        self, access: FileAccess, longest: float, committed: Callable[[bool], None], left: Callable[[], None]
    ) -> None:
        self._access, self._path = access, access.path
        self._longest, self._committed, self._left = longest, committed, left
        self._queue: SimpleQueue[Call[sqlite3.Connection] | _End] = SimpleQueue()
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._over: Exception | None = None
        self._has_ended = False
        self._is_left = False
        self._is_ours = True
        self._refused: list[str] = []
        self._last: Call[sqlite3.Connection] | None = None
        self._thread = Thread(target=self._live, name=f"everytick transaction of {access.path.name}", daemon=True)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection while the transaction is open."""
        if self._over is not None:
            raise self._over
        assert self._connection is not None, "a transaction is handed out once it has begun"
        return self._connection

    async def begin(self) -> None:
        """Wait until this process may write, and begin."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self._over = error
            self._close()
            raise
        await self.ask(lambda _: None)

    async def commit(self, claim: Claim, step: Step) -> Commit:
        """Write the step and commit, on the condition that the claim's fence is still the occurrence's."""
        return await self.ask(lambda connection: self._commit(connection, claim, step))

    async def end(self) -> None:
        """Roll back, and return once all locks are freed."""
        self._is_left = True
        asked: Call[sqlite3.Connection] = call(lambda _: None)
        with self._lock:
            if self._has_ended:
                return
            self._queue.put(_End(RuntimeError(_OVER), asked))
        await asked.future

    def cut(self, reason: Exception) -> None:
        """Roll back for this reason, and return once all locks are freed."""
        self._is_left = True
        self._queue.put(_End(reason))
        self._thread.join()

    async def ask(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of the work. A statement of the task that would end the transaction is refused."""
        asked: Call[sqlite3.Connection] = call(work)
        with self._lock:
            if self._has_ended:
                assert self._over is not None, "what has ended says why"
                raise self._over
            self._queue.put(asked)
        result: T = await asked.future
        return result

    # ------------------------------------------------------------------------------------------------ in its thread

    def _live(self) -> None:
        with ForkGuard(self._path):
            try:
                connection, until = self._open()
                while self._over is None:
                    self._serve(connection, until)
            except Exception as error:  # noqa: BLE001  whatever it is, those who wait must hear of it
                self._over = error
            finally:
                self._close()

    def _open(self) -> tuple[sqlite3.Connection, float]:
        with saying_which_file(self._path):
            self._access.file.check()
            connection = self._connection = self._access.connect()
            begin(connection, self._access.turn, lambda: self._is_left)
        until = time.monotonic() + self._longest
        self._is_ours = False
        connection.set_authorizer(self._judge)
        # A statement that runs too long is interrupted.
        connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        return connection, until

    def _serve(self, connection: sqlite3.Connection, until: float) -> None:
        try:
            asked = self._queue.get(timeout=max(until - time.monotonic(), 0))
        except Empty:
            self._over = self._too_long()
            return
        if isinstance(asked, _End):
            self._over, self._last = asked.reason, asked.call
            return
        deliver([asked], [self._answer(asked, connection, until)])

    def _answer(self, asked: Call[sqlite3.Connection], connection: sqlite3.Connection, until: float) -> CallResult:
        self._refused.clear()
        if not connection.in_transaction:
            # "insert or rollback" ends it, and so does a full disk: later statements would commit on their own.
            self._over = RuntimeError("a statement took the whole transaction back: nothing of it was written")
            return CallResult(error=self._over)
        try:
            return CallResult(asked.work(connection))
        except Exception as error:  # noqa: BLE001  handed to the task, whose statement it was
            if time.monotonic() > until:
                self._over = self._too_long()
                return CallResult(error=self._over)
            if self._refused:
                return CallResult(error=RuntimeError(f"a transaction of a task must not {self._refused[0]}"))
            return CallResult(error=error)

    def _commit(self, connection: sqlite3.Connection, claim: Claim, step: Step) -> Commit:
        self._over, self._is_ours = RuntimeError(_OVER), True
        transaction = Transaction(connection, self._access.clock.now())
        with saying_which_file(self._path):
            self._access.file.check()
            if not running.commit_new(transaction, claim, step):
                return Commit.STALE
            patiently(lambda: connection.execute("commit"))
        self._committed(transaction.rang)
        return Commit.COMMITTED

    def _close(self) -> None:
        """Close the connection, which rolls back. Later calls raise the reason."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        with self._lock:
            self._has_ended = True
        self._left()
        if self._last is not None:
            deliver([self._last], [CallResult()])
        with suppress(Empty):
            while True:
                asked = self._queue.get_nowait()
                if not isinstance(asked, _End):
                    deliver([asked], [CallResult(error=self._over)])
                elif asked.call is not None:
                    deliver([asked.call], [CallResult()])

    def _judge(self, action: int, first: str | None, second: str | None, database: str | None, _: str | None) -> int:
        """Authorise the actions of a statement: SQLite calls this for each before it runs."""
        if self._is_ours:
            return sqlite3.SQLITE_OK
        if action in _ENDS:
            self._refused.append(_ENDS[action])
            return sqlite3.SQLITE_DENY
        place = _CHANGES.get(action)
        table = None if place is None else (first, second)[place]
        if table is not None and table.lower() in _OURS and not _is_harmless(action, table, database):
            self._refused.append(
                f"change {shown(table)}, which is everytick's own: keep your rows in tables of your own"
            )
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    def _too_long(self) -> TimeoutError:
        return TimeoutError(
            f"the transaction was open for more than {self._longest:g} s, in which no other process can write to "
            f"{self._path.name}: all of it was taken back; do slow work before the transaction"
        )


def _is_harmless(action: int, table: str, database: str | None) -> bool:
    """Whether the action is on a temporary table, or deletes the counter of a dropped one."""
    if database == "temp":
        return action != sqlite3.SQLITE_CREATE_TEMP_TRIGGER
    return action == sqlite3.SQLITE_DELETE and table.lower() == "sqlite_sequence"


_OVER = "this transaction is over: write before its commit, or in a transaction of your own"


@value
class _Waiting:
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[None]"


class Sessions:
    """Lets one transaction of this process be open at a time, in the order in which they were asked for."""

    def __init__(self, access: FileAccess, committed: Callable[[bool], None]) -> None:
        self._access, self._path, self._committed = access, access.path, committed
        self._lock = Lock()
        self._line: deque[_Waiting] = deque()
        self._is_taken = False
        self._current: Session | None = None
        self._is_open = False
        self.longest = LONGEST_SECONDS

    def open(self) -> None:
        """Allow transactions to begin."""
        self._is_open = True

    def close(self) -> None:
        """Roll back the open transaction, and return once its locks are freed."""
        self._is_open = False
        current = self._current
        if current is not None:
            current.cut(StoreUnavailable(str(self._path), "the store was closed"))

    @asynccontextmanager
    async def transaction(self, claim: Claim) -> AsyncIterator[SqliteClaimTransaction]:
        """Begin a transaction as soon as it may begin. Leaving without a commit rolls it back."""
        await self._enter()
        if not self._is_open:
            self._leave()
            raise StoreUnavailable(str(self._path), "the store is not open")
        session = self._current = Session(self._access, self.longest, self._committed, self._leave)
        try:
            await session.begin()
            yield SqliteClaimTransaction(session, claim)
        finally:
            await session.end()

    async def _enter(self) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            waiting = _Waiting(loop, loop.create_future())
            self._line.append(waiting)
        try:
            async with asyncio.timeout(LOCK_SECONDS):
                await waiting.future
        except BaseException as error:
            with self._lock:
                was_handed = waiting not in self._line
                if not was_handed:
                    self._line.remove(waiting)
            if was_handed:
                self._leave()
            if isinstance(error, TimeoutError):
                reason = "other tasks hold transactions of their own"
                raise StoreUnavailable(str(self._path), reason) from None
            raise

    def _leave(self) -> None:
        """Let the next waiting transaction begin. The thread of the ended one calls this."""
        with self._lock:
            while self._line:
                following = self._line.popleft()
                # The loop has ended, and its waiters with it.
                with suppress(RuntimeError):
                    following.loop.call_soon_threadsafe(_wake, following.future)
                    return
            self._is_taken = False


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
