"""Capture: what a task prints and logs is kept with its attempt, in threads and in coroutines.

`sys.stdout`, `sys.stderr` and the factory of log records are replaced by ones that ask which
attempt the code runs in: the same variable that `current()` reads. A task may print, flood or
close its stream without touching the node's. What it prints is also shown where it was before;
on a terminal each line begins with the name of its job.
"""

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from everytick.runners.context import Context, entered

_NAMES = ("stdout", "stderr")
_OURS = "everytick"
_LINE = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")

_echoing = threading.local()
"""Whether this thread is showing what a task printed: the stream may hand on to another of ours."""


class CapturedStream:
    """A stream that keeps what a task writes, and hands everything else to the original.

    Not derived from `io.TextIOBase`, which closes itself, and with it the original, when it
    is thrown away.
    """

    def __init__(self, original: TextIO, labels: "JobLabels") -> None:
        self.original = original
        self._labels = labels if _is_terminal(original) else None
        self._is_gone = False

    def write(self, text: str) -> int:
        context = _speaker()
        if context is None:
            return self.original.write(text)
        if not _is_log_line():
            context.output(text.encode("utf-8", "backslashreplace"))
        self._echo(context, text)
        return len(text)

    def _echo(self, context: Context, text: str) -> None:
        """Show it too; a terminal that is gone is not the task's problem."""
        if self._is_gone:
            return
        _echoing.is_on = True
        try:
            if self._labels is None:
                self.original.write(text)
            else:
                self._labels.show(context, text, self.original)
        except (OSError, ValueError):
            self._is_gone = True
        finally:
            _echoing.is_on = False

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self.original.flush()
        except (OSError, ValueError):
            if _speaker() is None:
                raise

    def close(self) -> None:
        """A task closes nothing of the node's."""
        if _speaker() is None:
            self.original.close()

    @property
    def closed(self) -> bool:
        return _speaker() is None and self.original.closed

    @property
    def buffer(self) -> Any:
        """For those who write bytes."""
        context = _speaker()
        return _CapturedBytes(context.output) if context is not None else self.original.buffer

    def detach(self) -> Any:
        raise io.UnsupportedOperation("detach: this stream belongs to the node")

    def isatty(self) -> bool:
        return _speaker() is None and self.original.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class _CapturedBytes(io.RawIOBase):
    """What `sys.stdout.buffer` is to a task."""

    def __init__(self, keep: Callable[[bytes], None]) -> None:
        self._keep = keep

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self._keep(raw)
        return len(raw)


class JobLabels:
    """Puts the name of its job before each line, so that a person can tell the jobs of one terminal apart.

    `sys.stdout` and `sys.stderr` share one: they are two streams and the same terminal.
    """

    def __init__(self) -> None:
        self._open: Context | None = None  # whose line has no end yet
        self._cut: Context | None = None  # whose line was ended by another's
        # A signal handler may come in between.
        self._lock = threading.RLock()

    def show(self, context: Context, text: str, terminal: TextIO) -> None:
        """Write the text with its labels at once, so that what the other stream writes next stands behind it."""
        with self._lock:
            terminal.write(self._labelled(context, text))
            terminal.flush()

    def _labelled(self, context: Context, text: str) -> str:
        """Return the text with the label wherever a line of it begins."""
        if text == "\n" and self._cut is context:
            # `print` writes the text and the end of its line apart: another job came between.
            self._cut = None
            return ""
        parts = []
        for line in text.splitlines(keepends=True):
            if self._open is not context:
                if self._open is not None:
                    self._cut = self._open
                    parts.append("\n")
                parts.append(f"{context.job} | ")
            parts.append(line)
            self._open = None if line.endswith(("\n", "\r")) else context
        return "".join(parts)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # closed, or a stand-in of another program
        return False


def _speaker() -> Context | None:
    """Return the attempt that this code runs in."""
    return None if getattr(_echoing, "is_on", False) else entered()


def _is_log_line() -> bool:
    """Tell whether `logging` writes to the stream: its record is kept already, when it is made."""
    return sys._getframe(2).f_globals.get("__name__") == "logging"


class RecordFactory:
    """Makes log records, and keeps those of a task's code with its attempt.

    Records of everytick's own loggers are the node's; `ctx.log` keeps its own. A handler on the
    root logger would keep `logging.basicConfig` and Python's last resort from working.
    """

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self.make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record, context = self.make(*args, **kwargs), _speaker()
        if context is not None and record.name.partition(".")[0] != _OURS:
            mark(record, context)
            try:
                line = _LINE.format(record)
            except Exception:  # noqa: BLE001 - arguments that do not fit the message: the handlers say so
                return record
            context.output(line.encode("utf-8", "backslashreplace") + b"\n")
        return record


class Speaker(str):
    """The name of the job in whose attempt a record was made, with the rest of what formatters may want to say."""

    __slots__ = ("attempt", "occurrence", "task")

    task: str
    occurrence: str
    attempt: int


def mark(record: logging.LogRecord, context: Context) -> None:
    """Let the record say which job it comes from: `%(everytick)s` in a format."""
    speaker = Speaker(context.job)
    speaker.task, speaker.occurrence, speaker.attempt = context.task, context.occurrence_id, context.attempt
    record.everytick = speaker


class Installation:
    """The streams and the factory stand in for the process's own while at least one node uses them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._labels = JobLabels()

    def enter(self) -> None:
        """Put the streams in place for one more user."""
        with self._lock:
            self._users += 1
            self._install()

    def renew(self) -> None:
        """Put them in place again, before whatever stands there now: other programs replace streams too."""
        if all(isinstance(getattr(sys, name), CapturedStream) for name in _NAMES):
            return
        with self._lock:
            if self._users:
                self._install()

    def leave(self) -> None:
        """Put the originals back after the last user."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            for name in _NAMES:
                while isinstance(found := getattr(sys, name), CapturedStream):
                    setattr(sys, name, found.original)
            factory = logging.getLogRecordFactory()
            if isinstance(factory, RecordFactory):
                logging.setLogRecordFactory(factory.make)

    def _install(self) -> None:
        for name in _NAMES:
            found = getattr(sys, name)
            if found is not None and not isinstance(found, CapturedStream):  # without a terminal there may be none
                setattr(sys, name, CapturedStream(found, self._labels))
        factory = logging.getLogRecordFactory()
        if not isinstance(factory, RecordFactory):
            logging.setLogRecordFactory(RecordFactory(factory))


streams = Installation()
