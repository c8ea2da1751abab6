"""The process runner: functions in child processes, which can be ended whatever they do.

Children are kept warm and used again. Each has a session of its own: a timeout or cancel
ends it with everything it started, and another takes its place. A function that ends its
process (os._exit, a fault in C) has failed; the node has not.
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
_CHUNK = 256 * 1024
_LARGEST_MESSAGE = 4 * 1024 * 1024
"""No honest child sends a larger one: a result has 256 KB at most, an error 64."""

_TAIL = 4 * 1024
_TRIES = 3


class ProcessBody:
    """Calls a function by its import path in a child process (S0-026); its end by timeout is S0-066."""

    __slots__ = ("_main", "_pool", "_target", "wants_previous")

    begins_later = True

    def __init__(self, function: Callable[..., Any], target: str, pool: "ProcessPool") -> None:
        self._target, self._main, self._pool = target, main_script(target), pool
        # A child cannot ask its node: it is told before it begins.
        self.wants_previous = True

    async def run(self, context: Context) -> Outcome:
        """Have the function called in the next free child."""
        request = {"target": self._target, "main": self._main, "context": told(context)}
        reason = ""
        for _ in range(_TRIES):
            try:
                served = await self._pool.borrow()
            except OSError as error:
                reason = str(error)
                break
            context.begin()
            try:
                return await served.carry_out(request, context)
            except NeverBegan as error:
                # It ended between two tasks, so this one has done nothing yet.
                reason = str(error)
            except asyncio.CancelledError:
                outcome = served.answered()
                if outcome is not None:
                    return outcome
                await served.stop(getattr(context, "grace_seconds", self._pool.grace))
                raise
            finally:
                self._pool.give_back(served)
        return Failed(bounded(f"no process could be started for the task: {reason}"))


class NeverBegan(Exception):
    """The child ended before it began with the request."""


class Served:
    """One child process: carries out one request after another until it ends."""

    def __init__(self, child: Child, line: socket.socket) -> None:
        self._child, self._line = child, line
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._context: Context | None = None
        self._answer: asyncio.Future[Outcome] | None = None
        self._last = b""
        self._has_begun = False
        self.is_alive = True
        child.keep = self._keep
        line.setblocking(False)
        self._loop.add_reader(line.fileno(), self._read)
        child.exited.add_done_callback(self._exited)

    @classmethod
    def start(cls, guard: Guard) -> "Served":
        """Start a child and give it its line."""
        ours, theirs = socket.socketpair()
        number = theirs.fileno()
        # With the node's own arguments: a module that reads them finds there what it found here.
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
            await self._loop.sock_sendall(self._line, json.dumps(request).encode() + b"\n")
        except OSError:
            # It ended while nobody looked: how, its exit code says.
            await asyncio.wait((self._child.exited,))
        # Shielded: what it has answered when it is told to stop still counts.
        outcome = await asyncio.shield(self._answer)
        self._finish()
        return outcome

    def answered(self) -> Outcome | None:
        """Return the answer if it has come meanwhile; the child can then serve another request."""
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
        """End the child and all it started."""
        self.is_alive = False
        await self._child.stop(grace)
        self._let_go()

    def kill(self) -> None:
        """End the child and all it started, now."""
        self.is_alive = False
        self._child.kill()
        self._let_go()

    def _keep(self, data: bytes) -> None:
        self._last = (self._last + data[-_TAIL:])[-_TAIL:]
        if self._context is not None:
            self._context.output(data)

    def _read(self) -> bool:
        """Take in what came over the line; say whether there may be more."""
        if self._line.fileno() < 0:
            return False
        try:
            data = self._line.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            # It has closed the line: it is gone, or of no use any more.
            self._loop.remove_reader(self._line.fileno())
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
            if len(rest) > _LARGEST_MESSAGE:
                raise ValueError("a message without end")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # The function wrote to a line that is not its own.
            _log.warning("a child process sent what cannot be read, and is ended: %s", shown(str(error)))
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
        self._let_go()

    def _let_go(self) -> None:
        if self._line.fileno() >= 0:
            self._loop.remove_reader(self._line.fileno())
            self._line.close()


class ProcessPool:
    """At most `size` children; as many as there are cores stay warm when nobody needs them."""

    def __init__(self, size: int, guard: Guard, grace: timedelta) -> None:
        self._size, self._guard, self.grace = size, guard, grace.total_seconds()
        self._warm = min(size, os.cpu_count() or 1)
        self._idle: list[Served] = []
        self._all: set[Served] = set()
        self._line: deque[asyncio.Future[None]] = deque()
        self._lent = 0
        self._closed = False

    async def borrow(self) -> Served:
        """Return a child for one request, once there is one; first come, first served."""
        if self._lent >= self._size:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._line.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        else:
            self._lent += 1
        try:
            return self._ready()
        except BaseException:
            self._pass_on()
            raise

    def give_back(self, served: Served) -> None:
        """Keep the child for the next request, if it can still serve one."""
        if served.is_alive and not self._closed and len(self._idle) < max(self._warm, len(self._line)):
            self._idle.append(served)
        else:
            served.kill()
            self._all.discard(served)
        self._pass_on()

    def close(self) -> None:
        """End every child."""
        self._closed = True
        for served in self._all:
            served.kill()
        self._all.clear()
        self._idle.clear()

    def _ready(self) -> Served:
        if self._closed:
            raise OSError("the node has stopped: nothing is begun any more")
        while self._idle:
            served = self._idle.pop()
            if served.is_alive:
                return served
            self._all.discard(served)
        served = Served.start(self._guard)
        self._all.add(served)
        return served

    def _pass_on(self) -> None:
        """Let the next in line have the turn that became free."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._lent -= 1


def told(context: Context) -> dict[str, object]:
    """Return everything a child knows about its attempt."""
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
        "previous": _written(context.previous) if context.is_previous_known else False,
        "covers_after": _written(after),
        "covers_through": through.isoformat(),
        "cause": context.cause.value,
        "late": context.late,
        "payload": json.dumps(context.payload),
        "results": json.dumps(dict(context.results)),
    }


def main_script(target: str) -> str | None:
    """Return the file of the script that was started, if the target is in it."""
    if not target.startswith("__main__:"):
        return None
    file = getattr(sys.modules["__main__"], "__file__", None)
    return None if file is None else os.path.abspath(file)


def unreachable(target: str) -> str | None:
    """Say why a child process could not import this function, or None."""
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
