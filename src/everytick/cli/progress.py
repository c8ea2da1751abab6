"""Progress of long work: a line on a terminal after the first second, nothing in a pipe."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from everytick.cli.output import is_terminal, length
from everytick.cli.waiting import TerminalLine

if TYPE_CHECKING:
    from collections.abc import Callable

_AFTER_SECONDS, _EVERY_SECONDS = 1.0, 0.1
"""When the line appears, and how often it is rewritten."""

_BAR_COLUMNS = 20


class ProgressDisplay:
    """Shows the work and how much of it is done, from its own thread: the work may block the main one.

    `done` may be set, counted up by `step`, or asked for by `look` each time it is shown.
    """

    def __init__(self, what: str, total: int | None = None, *, look: Callable[[], int] | None = None) -> None:
        self.what, self.total, self.done = what, total, 0
        self._look, self._ended = look, Event()
        self._begun = time.monotonic()
        self._thread = Thread(target=self._show, name="everytick progress", daemon=True)

    def __enter__(self) -> Self:
        if is_terminal(sys.stderr):
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def step(self, count: int = 1) -> None:
        """Count so much as done."""
        self.done += count

    def words(self) -> str:
        """Return the line: a bar if the total is known, else the count, and the time so far."""
        done = self.done if self._look is None else self._look()
        took = length(timedelta(seconds=time.monotonic() - self._begun))
        if not self.total:
            return f"{self.what} {f'{done:,}  ' if done else ''}{took}"
        part = min(max(done / self.total, 0.0), 1.0)
        return f"{self.what} [{'#' * round(part * _BAR_COLUMNS):.<{_BAR_COLUMNS}}] {done:,}/{self.total:,}  {took}"

    def _show(self) -> None:
        line = TerminalLine()
        if self._ended.wait(_AFTER_SECONDS):
            return
        while not self._ended.wait(_EVERY_SECONDS):
            line.show(self.words())
        line.clear()
