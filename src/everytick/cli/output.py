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
    from shutil import get_terminal_size

    widths = [max(map(_width, column)) for column in zip(headings, *cells, strict=True)]
    room = get_terminal_size().columns - sum(widths[:-1]) - 2 * (len(widths) - 1)
    widths[-1] = max(min(widths[-1], room), 10)
    plain = [_line(headings, widths, paint=False), *(_line(line, widths, paint=True) for line in cells)]
    plain[0] = click.style(plain[0], bold=True) if has_colour(sys.stdout) else plain[0]
    return plain


def _line(line: Sequence[str], widths: Sequence[int], *, paint: bool) -> str:
    parts = []
    for text, width in zip(line, widths, strict=True):
        cut = text if _width(text) <= width else _cut(text, width)
        parts.append((painted(cut) if paint else cut) + " " * (width - _width(cut)))
    return "  ".join(parts).rstrip()


def _cut(text: str, width: int) -> str:
    while _width(text) >= width:
        text = text[:-1]
    return text + "…"


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


def listed(name: str, values: Iterable[object]) -> list[tuple[str, object]]:
    """Return pairs of one name and many values; on a terminal, the name stands only before the first."""
    on_terminal = is_terminal()
    return [(name if number == 0 or not on_terminal else "", value) for number, value in enumerate(values)]


def show_json(data: object) -> None:
    """Write one JSON document; times are UTC in ISO-8601, lengths are seconds, and every escape is spelled out."""
    import json

    click.echo(json.dumps(plain(data), indent=2, ensure_ascii=True, allow_nan=False))


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
