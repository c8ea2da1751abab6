"""The one transaction of an attempt, for both colours: `async with` in a coroutine, `with` in a thread.

A thread's transaction lives in one task on the event loop, which the thread asks to do
one thing after another. If the thread is abandoned, that task is canceled, and what the
thread wrote is taken back.

It does not import asyncio before a loop runs: a program that only defines jobs needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Future
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import TypeAlias


class TaskTransaction(Protocol):
    """A transaction of the store: the task's writes and the success of its attempt commit together."""

    @property
    def connection(self) -> Any:
        """The driver's connection; it must not commit."""
        ...

    async def execute(self, sql: str, *arguments: object) -> None:
        """Carry out one statement."""
        ...

    async def fetch(self, sql: str, *arguments: object) -> Any:
        """Return the rows of one question."""
        ...

    def result(self, value: object) -> None:
        """Make this the task's result; what the function returns afterwards is not looked at."""
        ...


if TYPE_CHECKING:
    _Begin: TypeAlias = Callable[[], AbstractAsyncContextManager[TaskTransaction]]
    _Request: TypeAlias = Callable[[TaskTransaction], Awaitable[Any]]


class ThreadSide:
    """The thread's side of a transaction that runs on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._open: Future[None] | None = None
        self._why_not: Exception | None = None

    def serve(self, bridge: _Bridge) -> Future[None]:
        """Begin the transaction on the loop."""
        if self._why_not is not None:
            raise self._why_not
        import asyncio

        self._open = asyncio.run_coroutine_threadsafe(bridge.serve(), self.loop)
        return self._open

    def abandon(self, why: Exception) -> None:
        """Roll the transaction back, and let the thread write nothing more."""
        self._why_not = why
        if self._open is not None:
            self._open.cancel()


class TransactionBlock:
    """What `ctx.transaction()` returns: entered once, by `async with` in a coroutine or by `with` in a thread."""

    def __init__(self, begin: _Begin, side: ThreadSide | None) -> None:
        self._begin, self._side = begin, side
        self._entered: AbstractAsyncContextManager[TaskTransaction] | None = None
        self._bridge: _Bridge | None = None

    async def __aenter__(self) -> TaskTransaction:
        if self._side is not None:
            raise RuntimeError("this task runs in a thread: write `with ctx.transaction()`, without async")
        self._entered = self._begin()
        return await self._entered.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._entered is not None, "a transaction is entered before it is left"
        return await self._entered.__aexit__(kind, error, trace)

    def __enter__(self) -> ThreadTransaction:
        if self._side is None:
            raise RuntimeError("this task runs on the event loop: write `async with ctx.transaction()`")
        self._bridge = _Bridge(self._begin)
        return ThreadTransaction(self._bridge, self._bridge.enter(self._side))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._bridge is not None, "a transaction is entered before it is left"
        self._bridge.leave(error)


class ThreadTransaction:
    """The transaction in a thread: the same methods, which block until the event loop has carried them out."""

    def __init__(self, bridge: _Bridge, transaction: TaskTransaction) -> None:
        self._bridge, self._transaction = bridge, transaction

    def execute(self, sql: str, *arguments: object) -> None:
        """Carry out one statement."""
        self._bridge.ask(lambda transaction: transaction.execute(sql, *arguments))

    def fetch(self, sql: str, *arguments: object) -> Any:
        """Return the rows of one question."""
        return self._bridge.ask(lambda transaction: transaction.fetch(sql, *arguments))

    def result(self, value: object) -> None:
        """Make this the task's result; what the function returns afterwards is not looked at."""
        self._transaction.result(value)


class _Bridge:
    """Passes statements from a thread to the transaction, which is served by one task on the event loop."""

    def __init__(self, begin: _Begin) -> None:
        import asyncio
        from concurrent.futures import Future

        self._begin, self._future = begin, Future
        self._entered: Future[TaskTransaction] = Future()
        self._requests: asyncio.Queue[tuple[_Request, Future[Any]] | None] = asyncio.Queue()
        self._error: BaseException | None = None
        self._side: ThreadSide | None = None
        self._ended: Future[None] | None = None
        self._awaited: Future[Any] = self._entered

    # In the thread

    def enter(self, side: ThreadSide) -> TaskTransaction:
        self._side, self._ended = side, side.serve(self)
        # If the transaction ends, the answer that the thread waits for does not come.
        self._ended.add_done_callback(lambda ended: self._awaited.cancel())
        transaction: TaskTransaction = self._answer(self._entered)
        return transaction

    def ask(self, request: _Request) -> Any:
        assert self._ended is not None, "asked before it was entered"
        answer: Future[Any] = self._future()
        self._awaited = answer
        if self._ended.done():
            answer.cancel()
        self._send((request, answer))
        return self._answer(answer)

    def leave(self, error: BaseException | None) -> None:
        """End the transaction. Raise the error of its commit; the thread's own error is raised by the `with` block."""
        assert self._ended is not None, "left before it was entered"
        self._error = error
        self._send(None)
        try:
            self._ended.result()
        except BaseException as raised:
            if raised is not error:
                raise

    def _answer(self, answer: Future[Any]) -> Any:
        """Wait for the answer. If the transaction ended instead, raise the reason."""
        try:
            return answer.result()
        except BaseException:
            if answer.cancelled() and self._ended is not None:
                self._ended.result()
            raise

    def _send(self, request: tuple[_Request, Future[Any]] | None) -> None:
        assert self._side is not None, "sent before it was entered"
        self._side.loop.call_soon_threadsafe(self._requests.put_nowait, request)

    # On the loop

    async def serve(self) -> None:
        async with self._begin() as transaction:
            self._entered.set_result(transaction)
            while (queued := await self._requests.get()) is not None:
                request, answer = queued
                try:
                    result = await request(transaction)
                except Exception as error:  # noqa: BLE001 - the thread handles the error of its statement
                    answer.set_exception(error)
                else:
                    answer.set_result(result)
            if self._error is not None:
                raise self._error
