"""Capture: what a task prints in its thread is kept with its attempt.

`sys.stdout` and `sys.stderr` are replaced by streams that ask who is printing. Only the
thread of a running task is answered differently: it may print, flood or close its stream
without touching the node's. What it prints is also shown where it always was, unless
`echo` is off.
"""

import io
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, TextIO

_here = threading.local()
_NAMES = ("stdout", "stderr")


class CapturedStream:
    """A stream that keeps what a task's thread writes, and hands everything else to the original.

    Not derived from `io.TextIOBase`, which closes itself, and with it the original, when it
    is thrown away.
    """

    def __init__(self, original: TextIO) -> None:
        self.original = original

    def write(self, text: str) -> int:
        keep = _keeper()
        if keep is None:
            return self.original.write(text)
        keep(text.encode("utf-8", "backslashreplace"))
        if _here.echo:
            self._echo(text)
        return len(text)

    def _echo(self, text: str) -> None:
        """Show it too; a terminal that is gone is not the task's problem."""
        # The original may be one that hands on to another of ours.
        keep, _here.keep = _here.keep, None
        try:
            self.original.write(text)
        except (OSError, ValueError):
            _here.echo = False
        finally:
            _here.keep = keep

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if _keeper() is None or _here.echo:
            try:
                self.original.flush()
            except (OSError, ValueError):
                if _keeper() is None:
                    raise

    def close(self) -> None:
        """A task closes nothing of the node's."""
        if _keeper() is None:
            self.original.close()

    @property
    def closed(self) -> bool:
        return _keeper() is None and self.original.closed

    @property
    def buffer(self) -> Any:
        """For those who write bytes."""
        keep = _keeper()
        return _CapturedBytes(keep) if keep is not None else self.original.buffer

    def detach(self) -> Any:
        raise io.UnsupportedOperation("detach: this stream belongs to the node")

    def isatty(self) -> bool:
        return _keeper() is None and self.original.isatty()

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


def _keeper() -> Callable[[bytes], None] | None:
    return getattr(_here, "keep", None)


def begin(keep: Callable[[bytes], None], *, echo: bool) -> None:
    """From here on this thread's prints are kept."""
    _here.keep, _here.echo = keep, echo
    for name in _NAMES:
        # Others replace these streams too, and may have done so since.
        if not isinstance(getattr(sys, name), CapturedStream):
            streams.renew()


def end() -> None:
    """This thread prints for itself again."""
    _here.keep = None


class Installation:
    """The streams stand in for the process's own while at least one pool uses them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def enter(self) -> None:
        """Put the streams in place for one more user."""
        with self._lock:
            self._users += 1
            self._install()

    def renew(self) -> None:
        """Put them in place again, before whatever stands there now."""
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

    def _install(self) -> None:
        for name in _NAMES:
            found = getattr(sys, name)
            if found is not None and not isinstance(found, CapturedStream):  # without a terminal there may be none
                setattr(sys, name, CapturedStream(found))


streams = Installation()
