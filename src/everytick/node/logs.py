"""Captured output: one bounded file per attempt, readable while it runs. Secrets are redacted before it is kept."""

import logging
import os
import re
import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock, Thread

from everytick.domain.notes import Log
from everytick.domain.redaction import RedactedLines
from everytick.node.occurrence import OpenAttempt
from everytick.runners.capture import mark

_log = logging.getLogger("everytick.logs")
_tasks = logging.getLogger("everytick.task")

LIMIT = 10 * 1024 * 1024
"""Most bytes of an attempt's output that are kept. The rest is dropped, and the file says so."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_CUT = b"\n[everytick: more output was dropped, the limit is reached]\n"
_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(message)s")


class _LogFile:
    __slots__ = ("descriptor", "left", "lines", "logger")

    def __init__(self, descriptor: int, left: int) -> None:
        self.descriptor, self.left = descriptor, left
        self.lines = RedactedLines()
        self.logger: logging.Logger | None = None

    def keep(self, data: bytes) -> None:
        """Write this, as far as there is room."""
        if self.left <= 0 or not data:
            return
        written = data[: self.left]
        self.left -= len(written)
        os.write(self.descriptor, written if len(written) == len(data) else written + _CUT)
        if len(written) < len(data):
            self.left = 0


class AttemptLogger(logging.Logger):
    """The logger of one attempt: keeps from INFO on, and shows from the level of `everytick.task` on.

    Python's root logger drops records below WARNING. The attempt's own output keeps them from INFO on.
    """

    def __init__(self, logs: "Logs", attempt: OpenAttempt) -> None:
        super().__init__(f"{_tasks.name}.{attempt.context.job}", min(logging.INFO, _tasks.getEffectiveLevel()))
        self.parent = _tasks
        self._logs, self._attempt, self._context = logs, attempt, attempt.context

    def callHandlers(self, record: logging.LogRecord) -> None:
        """Keep the record, and hand it on to the application's handlers if they want its level."""
        mark(record, self._context)
        self._logs.write(self._attempt, _FORMAT.format(record).encode("utf-8", "backslashreplace") + b"\n")
        if _tasks.isEnabledFor(record.levelno):
            super().callHandlers(record)


class Logs:
    """Keeps output in a folder per day and occurrence; without a folder it keeps none."""

    def __init__(self, folder: Path | None, node: str, limit: int = LIMIT) -> None:
        self._folder, self._node, self._limit = folder, node, limit
        self._files: dict[OpenAttempt, _LogFile] = {}
        self._loggers: dict[OpenAttempt, logging.Logger] = {}
        # One thread may come twice: an error of ours is logged in here, and a handler may print it in a task.
        self._lock = RLock()
        self._is_broken = False
        self._sweeper = Thread()

    def write(self, attempt: OpenAttempt, data: bytes) -> None:
        """Keep this; may be called from any thread."""
        if self._folder is None or not data:
            return
        with self._lock:
            if attempt.is_over:
                return
            try:
                file = self._files.get(attempt) or self._open(attempt)
                if file.left > 0:
                    file.keep(file.lines.take(data))
            except OSError as error:
                self._say_once(error)

    def logger(self, attempt: OpenAttempt) -> logging.Logger:
        """Return the attempt's logger: its lines go to its output, and on to `everytick.task`.

        A line that is logged after the end of the attempt goes to `everytick.task` alone.
        """
        if attempt.is_over:
            return _tasks
        logger = self._loggers.get(attempt)
        if logger is None:
            logger = self._loggers[attempt] = AttemptLogger(self, attempt)
        return logger

    def close(self, attempt: OpenAttempt) -> None:
        """Write no more for this attempt."""
        if self._loggers:
            self._loggers.pop(attempt, None)
        with self._lock:
            attempt.is_over = True
            if self._files and attempt in self._files:
                file = self._files.pop(attempt)
                with suppress(OSError):
                    file.keep(file.lines.rest())
                with suppress(OSError):
                    os.close(file.descriptor)

    def forget_before(self, moment: datetime) -> None:
        """Remove the folders of days that lie before the moment's, in a thread: each may hold very many files."""
        if self._folder is None or not self._folder.is_dir() or self._sweeper.is_alive():
            return
        # Names of days sort as the days do.
        first = f"{moment:%Y-%m-%d}"
        old = [day for day in self._folder.iterdir() if _DAY.fullmatch(day.name) and day.name < first]
        if old:
            self._sweeper = Thread(target=_remove, args=(old,), name="everytick old output", daemon=True)
            self._sweeper.start()

    def _open(self, attempt: OpenAttempt) -> _LogFile:
        assert self._folder is not None, "output is kept only in a folder"
        started = attempt.context.started_at.astimezone(UTC)
        name = re.sub(r"[^\w.-]", "_", attempt.task)[:80]
        if name != attempt.task:
            # Another task may look the same as the name of a file: its place tells them apart.
            name += f"~{attempt.place + 1}"
        path = f"{started:%Y-%m-%d}/{attempt.context.occurrence_id}/{name}.{attempt.number}.log"
        full = self._folder / path
        full.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = _LogFile(os.open(full, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), self._limit)
        self._files[attempt] = file
        attempt.log_place = Log(self._node, path)
        return file

    def _say_once(self, error: OSError) -> None:
        if not self._is_broken:
            self._is_broken = True
            _log.error("output cannot be kept in %s: %s; tasks go on without it", self._folder, error)


OUTPUT_KEPT = timedelta(days=90)
"""How long output is kept: as long as the longest default retention."""


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
