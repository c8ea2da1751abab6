"""Capture: the printed and logged lines of a task are stored with its attempt, in threads and in coroutines.

`sys.stdout`, `sys.stderr` and the factory of log records are replaced by ones that look up the attempt in which the
code runs, by the variable that `current()` reads. A task may print, flood or close its stream without harm to the
node's. Its lines also go to the original stream; on a terminal each begins with the name of its job.
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
"""Whether this thread is writing a task's text to the original stream, which may be a captured stream too."""


class CapturedStream:
    """A stream that stores the text of a task with its attempt, and passes all other text to the original.

    It is not derived from `io.TextIOBase`, which closes itself and the original when it is garbage collected.
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
        """Write the text to the original too. If that fails, stop doing so: the task must not fail of it."""
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
        """Close the original, unless a task calls this."""
        if _speaker() is None:
            self.original.close()

    @property
    def closed(self) -> bool:
        return _speaker() is None and self.original.closed

    @property
    def buffer(self) -> Any:
        """The stream for bytes."""
        context = _speaker()
        return _CapturedBytes(context.output) if context is not None else self.original.buffer

    def detach(self) -> Any:
        raise io.UnsupportedOperation("detach: this stream belongs to the node")

    def isatty(self) -> bool:
        return _speaker() is None and self.original.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class _CapturedBytes(io.RawIOBase):
    """`sys.stdout.buffer` in a task."""

    def __init__(self, keep: Callable[[bytes], None]) -> None:
        self._keep = keep

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self._keep(raw)
        return len(raw)


class JobLabels:
    """Puts the name of the job before each line, so that people can tell the jobs in one terminal apart.

    `sys.stdout` and `sys.stderr` share one object: they are two streams to the same terminal.
    """

    def __init__(self) -> None:
        self._open: Context | None = None  # the attempt whose line has no end yet
        self._cut: Context | None = None  # the attempt whose line was ended by another's
        # Reentrant: a signal handler may print in between.
        self._lock = threading.RLock()

    def show(self, context: Context, text: str, terminal: TextIO) -> None:
        """Write the text with its labels and flush it, so that the other stream's next text comes after it."""
        with self._lock:
            terminal.write(self._labelled(context, text))
            terminal.flush()

    def _labelled(self, context: Context, text: str) -> str:
        """Return the text with the label wherever a line of it begins."""
        if text == "\n" and self._cut is context:
            # `print` writes the text and its newline separately. Another job has ended this line since.
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
    """Tell whether `logging` writes to the stream: RecordFactory has stored its record already."""
    return sys._getframe(2).f_globals.get("__name__") == "logging"


class RecordFactory:
    """Makes log records, and stores those of a task's code with its attempt.

    Records of everytick's own loggers belong to the node; `ctx.log` stores its own. With a handler on the root logger
    instead, `logging.basicConfig` and Python's handler of last resort would not work.
    """

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self.make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record, context = self.make(*args, **kwargs), _speaker()
        # A record that `logging.makeLogRecord` makes has no name yet: it was not logged here.
        if context is not None and record.name and record.name.partition(".")[0] != _OURS:
            mark(record, context)
            try:
                line = _LINE.format(record)
            except Exception:  # noqa: BLE001 - arguments that do not fit the message: the handlers say so
                return record
            context.output(line.encode("utf-8", "backslashreplace") + b"\n")
        return record


class RecordOrigin(str):
    """The name of the job in whose attempt a record was made, with its task, occurrence and attempt for formatters."""

    __slots__ = ("attempt", "occurrence", "task")

    task: str
    occurrence: str
    attempt: int


def mark(record: logging.LogRecord, context: Context) -> None:
    """Set the record's origin: `%(everytick)s` in a format is the name of the job."""
    origin = RecordOrigin(context.job)
    origin.task, origin.occurrence, origin.attempt = context.task, context.occurrence_id, context.attempt
    record.everytick = origin


class Installation:
    """Replaces the streams and the record factory of the process while at least one node uses them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._labels = JobLabels()

    def enter(self) -> None:
        """Install the streams for one more user."""
        with self._lock:
            self._users += 1
            self._install()

    def renew(self) -> None:
        """Install the streams again if another library has replaced them."""
        if all(isinstance(getattr(sys, name), CapturedStream) for name in _NAMES):
            return
        with self._lock:
            if self._users:
                self._install()

    def leave(self) -> None:
        """Restore the originals after the last user."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            for name in _NAMES:
                while isinstance(stream := getattr(sys, name), CapturedStream):
                    setattr(sys, name, stream.original)
            factory = logging.getLogRecordFactory()
            if isinstance(factory, RecordFactory):
                logging.setLogRecordFactory(factory.make)

    def _install(self) -> None:
        for name in _NAMES:
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, CapturedStream):  # without a terminal there may be none
                setattr(sys, name, CapturedStream(stream, self._labels))
        factory = logging.getLogRecordFactory()
        if not isinstance(factory, RecordFactory):
            logging.setLogRecordFactory(RecordFactory(factory))


streams = Installation()
