"""The headline of an error: the one line of a traceback that says what happened."""

from itertools import dropwhile

_TRACEBACK = "Traceback (most recent call last):"
_LONGEST = 300
"""Characters of a headline. A log line or a table cell is for a glance; the whole text stands with the attempt."""


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


def summary(error: str | None, attempts: int) -> str:
    """Return the headline, and how many attempts there were if more than one: `ValueError: boom (4 attempts)`."""
    line = headline(error or "") or "it gave no reason"
    return f"{line} ({attempts} attempts)" if attempts > 1 else line
