"""What people and programs see: tables on a terminal, tab-separated lines in a pipe, JSON when asked; words on stderr.

Nothing that came from a store or a file reaches a terminal raw: an escape sequence in a
job's name could rewrite the screen, or the clipboard, of whoever looks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Any, TextIO

import click

from everytick.errors import shown

if TYPE_CHECKING:
    from everytick.cli.times import Times

_LONGEST_CELL = 300
_NARROW, _INDENT = 24, 4
"""A last column of fewer columns than 24 cannot be read: its text stands below the row, indented by 4."""
_PAINT = {
    "completed": "green",
    "success": "green",
    "enabled": "green",
    "running": "cyan",
    "completed_with_errors": "yellow",
    "skipped": "yellow",
    "missed": "yellow",
    "superseded": "yellow",
    "canceled": "yellow",
    "paused": "yellow",
    "awaiting_retry": "yellow",
    "failed": "red",
    "failed_stale": "red",
    "timeout": "red",
    "lost": "red",
    "silent": "red",
    "disabled": "red",
}


def is_terminal(stream: TextIO | None = None) -> bool:
    """Tell whether a person is looking."""
    return (sys.stdout if stream is None else stream).isatty()


def has_colour(stream: TextIO) -> bool:
    """Tell whether colour may be used there: on a terminal, unless NO_COLOR or TERM=dumb says otherwise."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def safe(text: str) -> str:
    """Return the text without control characters other than line ends, whole."""
    return "\n".join(shown(line, len(line) + 1) for line in text.split("\n"))


def say(text: str, *, mark: str | None = None) -> None:
    """Write words for people, beside the results."""
    said = safe(text)
    click.echo(click.style(said, fg=mark) if mark and has_colour(sys.stderr) else said, err=True, color=True)


def write(text: str) -> None:
    """Write one line of a result."""
    click.echo(safe(text), color=True)


def painted(text: str, status: str | None = None) -> str:
    """Return a word in the colour of its status, where colour may be used."""
    colour = _PAINT.get(text if status is None else status)
    return click.style(text, fg=colour) if colour and has_colour(sys.stdout) else text


def cell(value: object, times: Times) -> str:
    """Return a value as it stands in a table: short on a terminal, whole and empty for None in a pipe."""
    on_terminal = is_terminal()
    if value is None or value == "":
        return "-" if on_terminal else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return times.shown(value)
    if isinstance(value, timedelta):
        return length(value) if on_terminal else f"{value.total_seconds():.3f}"
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    text = str(value)
    return shown(text, _LONGEST_CELL if on_terminal else len(text) + 1)


def length(span: timedelta) -> str:
    """Return a length of time as people say it: 35ms, 2.5s, 12s, 3m 5s, 2h 10m, 4d 3h."""
    seconds = span.total_seconds()
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    if seconds < 1:
        return f"{sign}{seconds * 1000:.0f}ms"
    if seconds < 10:
        return f"{sign}{seconds:.1f}s"
    for large, small, size, unit in (("d", "h", 86400, 3600), ("h", "m", 3600, 60), ("m", "s", 60, 1)):
        if seconds >= size:
            rest = int(seconds % size // unit)
            return f"{sign}{int(seconds // size)}{large}" + (f" {rest}{small}" if rest else "")
    return f"{sign}{seconds:.0f}s"


def show_table(headings: Sequence[str], rows: Iterable[Sequence[object]], times: Times) -> None:
    """Write rows: aligned under headings on a terminal, else tab-separated without headings."""
    cells = [[cell(value, times) for value in row] for row in rows]
    if not is_terminal():
        for row in cells:
            click.echo("\t".join(row))
        return
    if cells:
        for line in _aligned(headings, cells):
            click.echo(line, color=True)


def _aligned(headings: Sequence[str], cells: list[list[str]]) -> Iterable[str]:
    """Give the lines of a table. The last column holds the text that people read: it is wrapped, never cut."""
    widths = [max(map(_width, column)) for column in zip(headings, *cells, strict=True)]
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    heading = _line(headings, widths, paint=False)
    yield click.style(heading, bold=True) if has_colour(sys.stdout) else heading
    for line in cells:
        yield from _row(line, widths, before)


def _row(line: Sequence[str], widths: Sequence[int], before: int) -> Iterable[str]:
    """Give one row; a last cell that is too long goes on in its column, or below the row where that is too narrow."""
    room = columns() - before
    if _width(line[-1]) <= room:
        yield _line(line, widths, paint=True)
        return
    is_below = room < _NARROW
    indent = _INDENT if is_below else before
    first, *rest = ["", *wrapped(line[-1], columns() - indent)] if is_below else wrapped(line[-1], room)
    yield _line([*line[:-1], first], widths, paint=True)
    for text in rest:
        yield " " * indent + text


def _line(line: Sequence[str], widths: Sequence[int], *, paint: bool) -> str:
    pairs = zip(line, widths, strict=True)
    parts = [(painted(text) if paint else text) + " " * (width - _width(text)) for text, width in pairs]
    return "  ".join(parts).rstrip()


def columns() -> int:
    """Return how wide the terminal is."""
    from shutil import get_terminal_size

    return get_terminal_size().columns


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of at most so many columns, broken between words where that is possible."""
    width = max(width, _NARROW)
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and _width(longer) > width >= _width(word):
            lines.append(line)
            line = word
        else:
            line = longer
        while _width(line) > width:
            start = _start(line, width)
            lines.append(start)
            line = line[len(start) :]
    return [*lines, line]


def _start(text: str, width: int) -> str:
    """Return as much of the beginning as so many columns hold."""
    while _width(text) > width:
        text = text[:-1]
    return text


def _width(text: str) -> int:
    """How many columns a text takes: wide letters take two, marks that sit on others none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def show_pairs(pairs: Iterable[tuple[str, object]], times: Times) -> None:
    """Write what is known of one thing, a line each; on a terminal, only what says something."""
    known = [(name, cell(value, times)) for name, value in pairs]
    if not is_terminal():
        for name, text in known:
            click.echo(f"{name}\t{text}")
        return
    width = max(len(name) for name, _ in known)
    for name, text in known:
        if text != "-":
            click.echo(f"{name:{width}}  {painted(text)}", color=True)


def show_text(text: str) -> None:
    """Write text of several lines, such as a traceback; on a terminal, what is too long goes on in the next line."""
    for line in safe(text).split("\n"):
        if not is_terminal() or _width(line) <= columns():
            click.echo(line, color=True)
            continue
        indent = " " * (len(line) - len(line.lstrip()))
        first, *rest = wrapped(line.strip(), columns() - len(indent) - _INDENT)
        click.echo("\n".join([indent + first, *(indent + " " * _INDENT + more for more in rest)]), color=True)


def listed(name: str, values: Iterable[object]) -> list[tuple[str, object]]:
    """Return pairs of one name and many values; on a terminal, the name stands only before the first."""
    on_terminal = is_terminal()
    return [(name if number == 0 or not on_terminal else "", value) for number, value in enumerate(values)]


def show_json(data: object) -> None:
    """Write one JSON document; times are UTC in ISO-8601, lengths are seconds, and every escape is spelled out."""
    import json

    click.echo(json.dumps(plain(data), indent=2, ensure_ascii=True, allow_nan=False))


def as_json_text(data: object) -> str | None:
    """Return a payload or a result in one line of JSON; None for none."""
    import json

    return None if data is None else json.dumps(data, ensure_ascii=False)


def plain(data: object) -> Any:
    """Return the value as JSON can carry it."""
    if data is None or isinstance(data, (bool, int)):
        return data
    if isinstance(data, float):
        # JSON has no word for what is endless or no number at all.
        return data if isfinite(data) else str(data)
    if isinstance(data, StrEnum):
        return str(data)
    if isinstance(data, str):
        return data
    if isinstance(data, datetime):
        return data.isoformat().replace("+00:00", "Z")
    if isinstance(data, timedelta):
        return data.total_seconds()
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, Iterable):
        return [plain(item) for item in data]
    return str(data)
