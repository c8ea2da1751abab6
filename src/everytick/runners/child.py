"""The child: what runs in a process of the process runner.

It reads one request a line, calls the function and answers with one line: JSON, never
pickle. What the function tells its context goes the same way while it runs. A child is
used again and again; everything a function may have done to its surroundings that can be
undone is undone before the next.
"""

import asyncio
import faulthandler
import importlib
import json
import locale
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from logging import Handler, Logger, LogRecord
from types import FrameType, MappingProxyType
from typing import Any, TextIO

from everytick.domain.config import UNSET
from everytick.domain.notes import Progress
from everytick.domain.occurrence import Cause
from everytick.domain.outcome import Failed, Outcome, Succeeded
from everytick.runners import django_project
from everytick.runners.context import Context, Halt, enter
from everytick.runners.function import raised
from everytick.runners.outcomes import bounded, succeeded
from everytick.runners.signature import is_async, signature_of
from everytick.runners.transaction import TransactionBlock

_MAIN = "__everytick_main__"
_PR_SET_PDEATHSIG = 1
"""The option of `prctl` that names the signal for a process whose parent has died (linux/prctl.h)."""

_LONGEST_LINE_BYTES = 64 * 1024
"""Longest log line or note that is sent to the node."""

is_serving = False
"""Whether this process is a child: an application that is imported here must not start a node."""


class ChildContext(Context):
    """The context of a function in a child process: the same facts, received in one message."""

    __slots__ = ("_channel", "_told")

    def __init__(self, told: Mapping[str, Any], channel: "Channel") -> None:
        self._told, self._channel = told, channel
        self.attempt, self.fence = told["attempt"], told["fence"]
        self._previous = UNSET if told["previous"] is False else _moment(told["previous"])
        self._halt: Halt | None = None

    def _refuse_on_loop(self) -> None:
        raise LookupError(
            f"the store did not answer when task '{self.task}' began: which occurrence ended before is not known"
        )

    async def look_up_previous(self) -> datetime | None:
        """Return `previous`, which was in the message: a child cannot ask the store."""
        return self.previous

    @property
    def traceparent(self) -> str:
        """The place of this attempt in the trace of its occurrence."""
        return str(self._told["traceparent"])

    @property
    def job(self) -> str:
        """The job's name."""
        return str(self._told["job"])

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self._told["task"])

    @property
    def occurrence_id(self) -> str:
        """The occurrence this attempt belongs to."""
        return str(self._told["occurrence_id"])

    @property
    def run_id(self) -> str:
        """The task's run within the occurrence; equal over all attempts."""
        return str(self._told["run_id"])

    @property
    def attempt_id(self) -> str:
        """This attempt alone."""
        return str(self._told["attempt_id"])

    @property
    def scheduled_for(self) -> datetime:
        """The instant this occurrence stands for."""
        return datetime.fromisoformat(self._told["scheduled_for"])

    @property
    def started_at(self) -> datetime:
        """When this attempt began, by the store's clock."""
        return datetime.fromisoformat(self._told["started_at"])

    @property
    def covers(self) -> tuple[datetime | None, datetime]:
        """The instants `(after, through]` this occurrence stands for; after None means from the beginning."""
        return _moment(self._told["covers_after"]), datetime.fromisoformat(self._told["covers_through"])

    @property
    def cause(self) -> Cause:
        """Why the occurrence exists."""
        return Cause(self._told["cause"])

    @property
    def late(self) -> bool:
        """Whether it was created late."""
        return bool(self._told["late"])

    @property
    def payload(self) -> Any:
        """What the occurrence was given; a fresh copy."""
        return json.loads(self._told["payload"])

    @property
    def results(self) -> Mapping[str, Any]:
        """What the tasks before this one returned, by task name; one that did not succeed is absent."""
        return MappingProxyType(json.loads(self._told["results"]))

    @property
    def log(self) -> Logger:
        """A logger whose lines are kept with the attempt's output."""
        logger = Logger(f"everytick.tasks.{self.job}")
        logger.addHandler(_Relay(self._channel))
        return logger

    def progress(self, done: float, total: float | None = None, *, note: str = "") -> None:
        """Show people how far this attempt has come."""
        told = Progress(done, total, note)
        self._channel.send({"progress": [told.done, told.total, bounded(told.text, _LONGEST_LINE_BYTES)]})

    def output(self, data: bytes) -> None:
        """Keep this with the attempt's output."""
        os.write(1, data)

    def transaction(self) -> TransactionBlock:
        """Refuse: a process has no connection to the store."""
        raise RuntimeError("ctx.transaction() is for async functions and threads: a process cannot share a connection")


class _Relay(Handler):
    """Sends log records to the node, which has the real logger."""

    def __init__(self, channel: "Channel") -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: LogRecord) -> None:
        """Send the finished line."""
        self._channel.send({"log": [record.levelno, bounded(self.format(record), _LONGEST_LINE_BYTES)]})


class Channel:
    """The channel to the node."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.lines = end.makefile("rb")

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message."""
        self._end.sendall(json.dumps(message).encode() + b"\n")


class ProcessState:
    """The state of the process that a function may change, and how it is restored for the next one."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._folder = os.getcwd()
        self._environment = dict(os.environ)
        self._locale = locale.setlocale(locale.LC_ALL)
        self._umask = os.umask(0)
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._output = os.dup(1)
        self.context: ChildContext | None = None
        self.is_stopping = False

    def set_up(self, context: ChildContext) -> None:
        """Restore the current folder, the environment, the outputs and the signals."""
        self.context = context
        os.chdir(self._folder)
        os.umask(self._umask)
        if os.environ != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
            time.tzset()
        os.environ["TRACEPARENT"] = context.traceparent
        locale.setlocale(locale.LC_ALL, self._locale)
        for number in (1, 2):
            os.dup2(self._output, number)
        sys.stdout = _stream(1)
        sys.stderr = _stream(2)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._handlers.items():
            if signal.getsignal(number) is not handler and handler is not None:
                signal.signal(number, handler)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        enter(context)

    def clear(self) -> None:
        """Flush the outputs, and end this process if it is a fork that the function made."""
        if os.getpid() != self._pid:
            os._exit(0)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # closed, or replaced by something that is no stream
                continue

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Raise in the function on SIGTERM: its `finally` blocks have the grace period."""
        self.is_stopping = True
        if self.context is not None:
            self.context._halt = Halt.CANCEL
        raise SystemExit(128 + number)


def main(descriptor: int) -> None:
    """Carry out requests until the node closes the channel or ends."""
    global is_serving
    is_serving = True
    _die_with_parent()
    faulthandler.enable(2)
    channel, stage = Channel(socket.socket(fileno=descriptor)), ProcessState()
    for line in channel.lines:
        request = json.loads(line)
        context = ChildContext(request["context"], channel)
        stage.set_up(context)
        channel.send({"began": True})
        try:
            outcome = _carry_out(request, context)
        finally:
            stage.clear()
        if stage.is_stopping:
            break
        channel.send({"outcome": as_message(outcome)})
    # Threads that a function left behind must not keep this process alive.
    os._exit(0)


def _carry_out(request: Mapping[str, Any], context: ChildContext) -> Outcome:
    try:
        if request.get("django"):
            django_project.set_up()
        django_project.close_old_connections()
        function = _found(request["target"], request.get("main"))
        signature = signature_of(function)
        arguments = signature.arguments(context, context.payload if signature.takes_payload else None)
        result = asyncio.run(function(**arguments)) if is_async(function) else function(**arguments)
    except BaseException as error:  # noqa: BLE001 - sys.exit in a task ends the task, not the process
        return raised(error)
    finally:
        django_project.close_old_connections()
    return succeeded(result)


_mains: dict[str, dict[str, Any]] = {}


def _found(target: str, main: str | None) -> Callable[..., Any]:
    """Import the function. For a function of the main script, run that script under another module name."""
    module, _, names = target.partition(":")
    if module == "__main__" and main is not None:
        if main not in _mains:
            _mains[main] = runpy.run_path(main, run_name=_MAIN)
        first, *rest = names.split(".")
        function: Any = _mains[main][first]
    else:
        function, rest = importlib.import_module(module), names.split(".")
    for name in rest:
        function = getattr(function, name)
    return function  # type: ignore[no-any-return]


def as_message(outcome: Outcome) -> dict[str, object]:
    """Return the outcome as values for JSON."""
    if isinstance(outcome, Succeeded):
        return {"result": None if outcome.result is None else outcome.result.text}
    assert isinstance(outcome, Failed), f"a function in a process cannot end as {outcome}"
    wait = outcome.try_again_after
    return {
        "error": outcome.error,
        "error_types": list(outcome.error_types),
        "give_up": outcome.give_up,
        "try_again_after": None if wait is None else wait.total_seconds(),
    }


def _stream(number: int) -> TextIO:
    return open(number, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _die_with_parent() -> None:
    """Ask the kernel to kill this process with the node. Without that call the closed channel ends it."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
