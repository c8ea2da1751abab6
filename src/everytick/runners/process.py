"""The process runner: functions in child processes, which can be ended at any time.

Child processes are reused. Each has its own session: a timeout or cancel ends it with every process it started, and
another takes its place. A function that ends its process (os._exit, a fault in C) fails its attempt, not the node.
"""

import asyncio
import json
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from logging import getLogger
from typing import Any

from everytick.domain.outcome import Failed, Outcome
from everytick.errors import shown
from everytick.runners import django_project, tracing
from everytick.runners.children import Child, ending
from everytick.runners.context import Context
from everytick.runners.guard import Guard
from everytick.runners.outcomes import NOTHING, bounded, last_lines, succeeded

_log = getLogger("everytick.runners.process")

_START = """
import sys, json
number, sys.path[:], sys.argv[:] = map(json.loads, sys.argv[1:])
from everytick.runners.child import main
main(number)
"""
_CHUNK_BYTES = 256 * 1024
"""How much of a message of a child is read at once."""

_LARGEST_MESSAGE_BYTES = 4 * 1024 * 1024
"""A larger message is refused: a result has at most 256 KB, an error 64 KB."""

_TAIL_BYTES = 4 * 1024
"""How much of the last output stands in the error of a process that ended before its task."""

_TRIES = 3
"""How many child processes are tried if they end before the task begins."""


class ProcessBody:
    """Calls a function by its import path in a child process (S0-026); its end by timeout is S0-066."""

    __slots__ = ("_main", "_pool", "_target", "wants_previous")

    begins_later = True

    def __init__(self, function: Callable[..., Any], target: str, pool: "ProcessPool") -> None:
        self._target, self._main, self._pool = target, main_script(target), pool
        # A child process cannot ask the store: `previous` is sent to it before the task begins.
        self.wants_previous = True

    async def run(self, context: Context) -> Outcome:
        """Call the function in the next free child process."""
        request = {
            "target": self._target,
            "main": self._main,
            "django": django_project.is_set_up(),
            "context": context_message(context),
        }
        reason = ""
        for _ in range(_TRIES):
            try:
                worker = await self._pool.borrow()
            except OSError as error:
                reason = str(error)
                break
            context._begin()
            try:
                return await worker.carry_out(request, context)
            except NeverBegan as error:
                # The child ended before the task began: another child may be tried.
                reason = str(error)
            except asyncio.CancelledError:
                outcome = worker.answered()
                if outcome is not None:
                    return outcome
                await worker.stop(getattr(context, "_grace_seconds", self._pool.grace))
                raise
            finally:
                self._pool.give_back(worker)
        return Failed(bounded(f"no process could be started for the task: {reason}"))


class NeverBegan(Exception):
    """The child ended before it began with the request."""


class ProcessWorker:
    """One child process, which carries out one request after another, and the channel to it."""

    def __init__(self, child: Child, channel: socket.socket) -> None:
        self._child, self._channel = child, channel
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._context: Context | None = None
        self._answer: asyncio.Future[Outcome] | None = None
        self._last = b""
        self._has_begun = False
        self.is_alive = True
        child.keep = self._keep
        channel.setblocking(False)
        self._loop.add_reader(channel.fileno(), self._read)
        child.exited.add_done_callback(self._exited)

    @classmethod
    def start(cls, guard: Guard) -> "ProcessWorker":
        """Start a child process with a channel to it."""
        ours, theirs = socket.socketpair()
        number = theirs.fileno()
        # With the node's own sys.argv: a module that reads it must find the same in the child.
        words = json.dumps(sys.path), json.dumps([str(argument) for argument in sys.argv])
        arguments = [sys.executable, "-c", _START, str(number), *words]
        try:
            child = Child.start(arguments, lambda data: None, guard, pass_fds=(number,))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(child, ours)

    async def carry_out(self, request: Mapping[str, object], context: Context) -> Outcome:
        """Send the request and wait for its answer, or for the end of the child."""
        self._context, self._last, self._has_begun = context, b"", False
        self._answer = self._loop.create_future()
        try:
            await self._loop.sock_sendall(self._channel, json.dumps(request).encode() + b"\n")
        except OSError:
            # The child has ended. `_exited` sets the answer from its exit code.
            await asyncio.wait((self._child.exited,))
        # Shielded: an answer that arrives together with a cancel still counts.
        outcome = await asyncio.shield(self._answer)
        self._finish()
        return outcome

    def answered(self) -> Outcome | None:
        """Return the answer if it has arrived. The child can then carry out another request."""
        while self._read():
            continue
        if self._answer is None or not self._answer.done() or self._answer.exception() is not None:
            return None
        outcome = self._answer.result()
        self._finish()
        return outcome

    def _finish(self) -> None:
        self._child.drain()
        self._answer = self._context = None

    async def stop(self, grace: float) -> None:
        """End the child and all processes it started, after the grace period in seconds."""
        self.is_alive = False
        await self._child.stop(grace)
        self._close_channel()

    def kill(self) -> None:
        """Kill the child and all processes it started, now."""
        self.is_alive = False
        self._child.kill()
        self._close_channel()

    def _keep(self, data: bytes) -> None:
        self._last = (self._last + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        if self._context is not None:
            self._context.output(data)

    def _read(self) -> bool:
        """Read messages from the channel. Return whether there may be more."""
        if self._channel.fileno() < 0:
            return False
        try:
            data = self._channel.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            # The child has closed the channel: it has ended, or cannot be used any more.
            self._loop.remove_reader(self._channel.fileno())
            self.is_alive = False
            if not self._child.exited.done():
                self._loop.call_soon(self._child.kill)
            return False
        self._buffer += data
        self._take_messages()
        return True

    def _take_messages(self) -> None:
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        try:
            for line in lines:
                self._take(json.loads(line))
            if len(rest) > _LARGEST_MESSAGE_BYTES:
                raise ValueError("a message without end")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # The function has written to the channel.
            _log.warning(
                "a child process sent a message that cannot be read (%s): it is killed, and its attempt fails",
                shown(str(error)),
            )
            self.is_alive = False
            self._loop.call_soon(self._child.kill)

    def _take(self, message: Mapping[str, Any]) -> None:
        context = self._context
        if context is None:
            return
        if "began" in message:
            self._has_begun = True
        elif "progress" in message:
            done, total, text = message["progress"]
            context.progress(done, total, note=text)
        elif "log" in message:
            level, line = message["log"]
            context.log.log(level, "%s", line)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(_outcome(message["outcome"]))

    def _exited(self, exited: "asyncio.Future[int]") -> None:
        self.is_alive = False
        while self._read():
            continue
        if self._answer is not None and not self._answer.done():
            self._child.drain()
            lines = last_lines(self._last)
            how = f"{ending(exited.result())}\n{lines}".rstrip()
            if self._has_begun:
                error = f"the process of the task ended before the task did: {how}"
                self._answer.set_result(Failed(bounded(error)))
            else:
                self._answer.set_exception(NeverBegan(how))
        self._child.kill()
        self._close_channel()

    def _close_channel(self) -> None:
        if self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel.fileno())
            self._channel.close()


class ProcessPool:
    """At most `size` child processes. As many as there are cores are kept while they are idle."""

    def __init__(self, size: int, guard: Guard, grace: timedelta) -> None:
        self._size, self._guard, self.grace = size, guard, grace.total_seconds()
        self._most_idle = min(size, os.cpu_count() or 1)
        self._idle: list[ProcessWorker] = []
        self._all: set[ProcessWorker] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._in_use = 0
        self._closed = False

    async def borrow(self) -> ProcessWorker:
        """Return a child for one request as soon as one is free. Callers get one in the order they asked."""
        if self._in_use >= self._size:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        else:
            self._in_use += 1
        try:
            return self._ready()
        except BaseException:
            self._pass_on()
            raise

    def give_back(self, worker: ProcessWorker) -> None:
        """Keep the child for the next request, if it can still serve one."""
        if worker.is_alive and not self._closed and len(self._idle) < max(self._most_idle, len(self._waiting)):
            self._idle.append(worker)
        else:
            worker.kill()
            self._all.discard(worker)
        self._pass_on()

    def close(self) -> None:
        """End every child."""
        self._closed = True
        for worker in self._all:
            worker.kill()
        self._all.clear()
        self._idle.clear()

    def _ready(self) -> ProcessWorker:
        if self._closed:
            raise OSError("the node has stopped: nothing is begun any more")
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            self._all.discard(worker)
        worker = ProcessWorker.start(self._guard)
        self._all.add(worker)
        return worker

    def _pass_on(self) -> None:
        """Let the next waiting caller have the child that became free."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._in_use -= 1


def context_message(context: Context) -> dict[str, object]:
    """Return the context of an attempt as it is sent to a child process."""
    after, through = context.covers
    return {
        "job": context.job,
        "task": context.task,
        "occurrence_id": context.occurrence_id,
        "run_id": context.run_id,
        "attempt_id": context.attempt_id,
        "attempt": context.attempt,
        "fence": context.fence,
        "scheduled_for": context.scheduled_for.isoformat(),
        "started_at": context.started_at.isoformat(),
        "previous": _written(context.previous) if context._is_previous_known else False,
        "covers_after": _written(after),
        "covers_through": through.isoformat(),
        "cause": context.cause.value,
        "late": context.late,
        "payload": json.dumps(context.payload),
        "results": json.dumps(dict(context.results)),
        "traceparent": tracing.traceparent_of(context),
    }


def main_script(target: str) -> str | None:
    """Return the file of the started script if the target is in it, else None."""
    if not target.startswith("__main__:"):
        return None
    file = getattr(sys.modules["__main__"], "__file__", None)
    return None if file is None else os.path.abspath(file)


def unreachable(target: str) -> str | None:
    """Return why a child process cannot import this function, None if it can."""
    if not sys.executable:
        return "this interpreter does not know its own program, so it cannot start processes"
    module, _, names = target.partition(":")
    if "<" in names:
        return f"'{shown(target)}' is no function at the top of a module, and a process must import it by its name"
    if module == "__main__" and main_script(target) is None:
        return f"'{shown(target)}' was typed in rather than loaded from a file, and a process must import it"
    return None


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _outcome(message: Mapping[str, Any]) -> Outcome:
    if "error" in message:
        wait = message["try_again_after"]
        return Failed(
            bounded(str(message["error"])),
            tuple(str(kind) for kind in message["error_types"]),
            bool(message["give_up"]),
            None if wait is None else timedelta(seconds=float(wait)),
        )
    result = message["result"]
    return NOTHING if result is None else succeeded(json.loads(result))
