"""The thread runner: plain functions, in a pool of daemon threads.

A thread cannot be ended from outside. One that outlives its attempt is abandoned: the attempt gets an outcome without
it, it can record nothing more, and another thread takes its place, so that the pool keeps its size. The pool of the
standard library cannot abandon a thread, and its threads keep a process alive that wants to end.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from inspect import isawaitable
from logging import getLogger
from queue import SimpleQueue
from typing import Any

from everytick.domain.outcome import Failed, Outcome
from everytick.runners import capture
from everytick.runners.context import Context, Halt, enter
from everytick.runners.django_project import close_old_connections
from everytick.runners.forks import generation, leave_copy
from everytick.runners.function import ContextCall, call_of, raised
from everytick.runners.outcomes import NOTHING, succeeded
from everytick.runners.signature import signature_of
from everytick.runners.transaction import ThreadSide

_log = getLogger("everytick.runners.thread")

STUCK_LIMIT = 500
"""Most abandoned threads that may run. Beyond that, thread tasks fail at once instead of filling the memory."""


class ThreadBody:
    """Calls a plain function in a thread (S0-026).

    A timeout abandons the thread at once (S0-066): it had its time. A cancel shows in
    `ctx.canceled`, and the thread has the grace period to look at it.
    """

    __slots__ = ("_call", "_grace", "_pool", "wants_previous")

    begins_later = True

    def __init__(self, function: Callable[..., Any], pool: "ThreadPool", grace: timedelta) -> None:
        signature = signature_of(function)
        self._call: ContextCall = call_of(function, signature)
        self._pool, self._grace = pool, grace.total_seconds()
        # A thread can ask the store itself.
        self.wants_previous = False

    async def run(self, context: Context) -> Outcome:
        """Call the function in a thread and wait for it."""
        loop = asyncio.get_running_loop()
        context._thread = ThreadSide(loop)
        call = ThreadCall(self._call, context, loop)
        try:
            self._pool.begin(call)
        except NoThread as error:
            return Failed(str(error))
        try:
            return await call.future
        except asyncio.CancelledError:
            outcome = await self._stop(call)
            if outcome is None or getattr(context, "_saw_cancel", False):
                raise
            return outcome

    async def _stop(self, call: "ThreadCall") -> Outcome | None:
        """Return the outcome if the task ended on its own. None: the call never began, or its thread is abandoned."""
        if self._pool.drop(call):
            return None
        try:
            if call.context._halt in (Halt.CANCEL, Halt.SHUTDOWN):
                await call.ended_within(getattr(call.context, "_grace_seconds", self._grace))
        finally:
            abandoned = self._pool.abandon(call)
        if abandoned:
            return None
        if call.outcome is None:  # it has ended in the thread, and the loop has not got the outcome yet
            await call.ended_within(None)
        return call.outcome


class CallState(Enum):
    """The state of one call."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    ABANDONED = "abandoned"
    DROPPED = "dropped"


class ThreadCall:
    """One call of a function in a thread."""

    __slots__ = ("_call", "_carried", "_loop", "context", "future", "outcome", "state", "thread")

    def __init__(self, call: ContextCall, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._call, self.context, self._loop = call, context, loop
        self._carried = contextvars.copy_context()
        self.future: asyncio.Future[Outcome] = loop.create_future()
        self.outcome: Outcome | None = None
        self.state = CallState.WAITING
        self.thread: threading.Thread | None = None

    def carry_out(self) -> Outcome:
        """Make the call, in this thread."""
        self._say_begun()
        born = generation.number
        capture.streams.renew()
        outcome = self._carried.run(self._called)
        if generation.number != born:
            leave_copy()
        return outcome

    def _called(self) -> Outcome:
        enter(self.context)
        close_old_connections()
        try:
            result = self._call(self.context)
        except BaseException as error:  # noqa: BLE001 - sys.exit in a task ends the task, not the thread
            return raised(error)
        finally:
            close_old_connections()
        if result is None:
            return NOTHING
        return _never_awaited(result) if isawaitable(result) else succeeded(result)

    def _say_begun(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.context._begin)

    def tell(self, outcome: Outcome) -> None:
        """Pass the outcome to the loop, from the thread."""
        try:
            self._loop.call_soon_threadsafe(self._told, outcome)
        except RuntimeError:  # the loop is closed
            return

    def _told(self, outcome: Outcome) -> None:
        self.outcome = outcome
        if not self.future.done():
            self.future.set_result(outcome)

    async def ended_within(self, seconds: float | None) -> None:
        """Wait until the loop has the outcome, at most `seconds`. It needs a new future: a cancel ended the first."""
        if self.outcome is None:
            self.future = self._loop.create_future()
            await asyncio.wait((self.future,), timeout=seconds)


class NoThread(Exception):
    """No thread can take the call."""


class ThreadPool:
    """At most `size` threads that take calls. They are started when needed and kept for the next call.

    `abandoned` counts the threads abandoned since the start, `stuck` those of them that still run.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._calls: SimpleQueue[ThreadCall | None] = SimpleQueue()
        # Both change under the lock, together with the queue: a thread that will take a waiting call is not counted
        # as idle for the next one.
        self._waiting = 0
        self._idle = 0
        self._alive = 0
        self._begun = 0
        self._closed = False
        self.stuck = 0
        self.abandoned = 0
        capture.streams.enter()

    def begin(self, call: ThreadCall) -> None:
        """Queue the call for the next free thread."""
        with self._lock:
            if self._closed:
                raise NoThread("the node has stopped: nothing is begun any more")
            if self.stuck >= STUCK_LIMIT:
                raise NoThread(
                    f"{self.stuck} threads of timed-out or canceled tasks still run on this node, no more are begun: "
                    'end them by a restart, and give such tasks runner="process", which can be ended'
                )
            if self._waiting >= self._idle and self._alive < self._size:
                self._add_thread()
            self._waiting += 1
            self._calls.put(call)

    def drop(self, call: ThreadCall) -> bool:
        """Remove a call that has not begun. Return whether it was removed."""
        with self._lock:
            if call.state is not CallState.WAITING:
                return False
            call.state = CallState.DROPPED
            return True

    def abandon(self, call: ThreadCall) -> bool:
        """Abandon the thread of a call that still runs, and start another if one is needed. Return whether it runs."""
        with self._lock:
            if call.state is not CallState.RUNNING:
                return False
            call.state = CallState.ABANDONED
            self.stuck += 1
            self.abandoned += 1
            self._alive -= 1
            if self._waiting > self._idle and not self._closed:
                self._replace()
        context = call.context
        context._abandon()
        if call.thread is not None:
            call.thread.name = f"everytick abandoned: {context.job}, {context.task}"
        _log.warning(
            "the thread of job '%s', task '%s' did not end with attempt %d, and abandoned threads that run are now %d: "
            "it runs on, and nothing it does is recorded",
            context.job,
            context.task,
            context.attempt,
            self.stuck,
            extra={"job": context.job, "task": context.task, "occurrence": context.occurrence_id},
        )
        return True

    def close(self) -> None:
        """Take no more calls. Idle threads end now, busy ones after their call."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for _ in range(self._alive):
                self._calls.put(None)
        capture.streams.leave()

    def _add_thread(self) -> None:
        self._begun += 1
        thread = threading.Thread(target=self._work, name=f"everytick thread {self._begun}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the machine has no more
            if self._alive == 0:
                raise NoThread(f"no thread can be started on this node: {error}") from error
        else:
            self._alive += 1
            self._idle += 1

    def _replace(self) -> None:
        try:
            self._add_thread()
        except NoThread:
            _log.exception("no thread can be started in place of an abandoned one: calls wait until one is free")

    def _work(self) -> None:
        """Make calls until the pool is closed or this thread is abandoned."""
        while (call := self._calls.get()) is not None:
            if self._began(call):
                outcome = call.carry_out()
                if not self._ended(call):
                    return
                call.tell(outcome)

    def _began(self, call: ThreadCall) -> bool:
        with self._lock:
            self._waiting -= 1
            if call.state is not CallState.WAITING:
                return False
            self._idle -= 1
            call.state, call.thread = CallState.RUNNING, threading.current_thread()
            return True

    def _ended(self, call: ThreadCall) -> bool:
        """Record the end of the call. Return False in an abandoned thread, which then ends."""
        with self._lock:
            if call.state is CallState.ABANDONED:
                self.stuck -= 1
                return False
            call.state = CallState.ENDED
            self._idle += 1
            return True


def _never_awaited(result: Any) -> Failed:
    if hasattr(result, "close"):
        result.close()
    return Failed(
        f"the function returned a {type(result).__name__} that was not awaited: write it as `async def`, "
        'or set runner="function"',
        give_up=True,
    )
