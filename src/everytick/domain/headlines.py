"""The headline of an error: the one line of a traceback that says what happened."""

import re
from dataclasses import fields
from datetime import timedelta
from hashlib import sha1
from itertools import dropwhile

from everytick.domain.config import Settings
from everytick.domain.durations import format_duration
from everytick.domain.texts import TASK_TIMEOUT

_DEFAULT_TASK_TIMEOUT = next(setting.default for setting in fields(Settings) if setting.name == "task_timeout")
_TRACEBACK = "Traceback (most recent call last):"
_LONGEST = 300
"""Characters of a headline. A log line or a table cell is for a glance; the whole text stands with the attempt."""

_VARYING = re.compile(
    r"""0x[0-9a-f]+|\b(?=[0-9a-f-]*\d)[0-9a-f]{4,}(?:-[0-9a-f]+)*\b|\d+|"[^"]*"|'[^']*'""", re.IGNORECASE
)
"""What differs between two errors of one kind: numbers, ids and what is quoted."""


def fingerprint(error: str) -> str:
    """Return the same 16 digits for errors whose headlines differ by numbers, ids and quoted texts only."""
    return sha1(_VARYING.sub("#", headline(error)).encode(), usedforsecurity=False).hexdigest()[:16]


def headline(error: str) -> str:
    """Return the line that names the error: `ValueError: boom` of a traceback, the first line of other text.

    Of chained exceptions the last counts, as in Python's own traceback: it is the one that was raised to us.
    """
    lines = error.splitlines()
    starts = [number for number, line in enumerate(lines) if line == _TRACEBACK]
    if starts:
        raised = list(dropwhile(_is_frame, lines[starts[-1] + 1 :]))
        lines = raised or lines[-1:]
    first = next((line.strip() for line in lines if line.strip()), "")
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1] + "…"


def _is_frame(line: str) -> bool:
    """Tell whether the line belongs to the frames of a traceback, or to the gap that a bounded text has."""
    return not line.strip() or line.startswith((" ", "… "))


def with_limit(error: str, limit: timedelta | None) -> str:
    """Return the error; that of a task that took too long also says how long it had, and whether that is the default.

    The attempt itself keeps the words of S0-066.
    """
    if error != TASK_TIMEOUT or limit is None:
        return error
    if limit == _DEFAULT_TASK_TIMEOUT:
        return f"{TASK_TIMEOUT} after {format_duration(limit)}, the default: task_timeout= sets another"
    return f"{TASK_TIMEOUT} after {format_duration(limit)}, its task_timeout"


def summary(error: str | None, attempts: int, limit: timedelta | None = None) -> str:
    """Return the headline, and how many attempts there were if more than one: `ValueError: boom (4 attempts)`.

    `limit` is the task_timeout that the task had.
    """
    line = with_limit(headline(error or ""), limit) or "it gave no reason"
    return f"{line} ({attempts} attempts)" if attempts > 1 else line
