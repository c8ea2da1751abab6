"""Output: tables on a terminal, tab-separated lines in a pipe, JSON with --json; messages on stderr.

Nothing that came from a store or a file reaches a terminal raw: an escape sequence in a
job's name could rewrite the screen, or the clipboard, of the reader.
"""

from __future__ import annotations

import os
import sys
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING, TextIO

import click

from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from everytick.cli.times import Times

_GAP_COLUMNS = 2
_NARROW, _INDENT = 24, 4
"""A last column narrower than 24 characters cannot be read: its text goes below the row, indented by 4."""
_LEAST_BESIDE = 12
"""Where most of the last column goes below its rows, so much room is left beside them: short texts stay there."""
_LONGEST_WORD, _BROKEN_WORD = 16, 8
"""Words of more than 16 columns are broken in a table that is too wide, those of more than 8 if nothing else helps."""
_MARKS = "-_/;,.=:"
"""A word that is too long for its column is broken at such a character, if one is after the first third of the line."""
_PAINT = {
    "completed": "green",
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
    """Return a word in the colour of its status, if colours are on."""
    colour = _PAINT.get(text if status is None else status)
    return click.style(text, fg=colour) if colour and has_colour(sys.stdout) else text


def cell(value: object, times: Times) -> str:
    """Return the whole value for people. In a pipe None is empty, and a duration is in seconds."""
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
    return shown(text, len(text) + 1)


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
    rows = list(rows)
    if not is_terminal():
        for row in rows:
            click.echo("\t".join(cell(value, times) for value in row))
    elif rows:
        for line in _laid_out(headings, rows, times).lines():
            click.echo(line, color=True)


def _laid_out(headings: Sequence[str], rows: Sequence[Sequence[object]], times: Times) -> Layout:
    """Return the table with whole dates; with short ones where whole dates leave its last column too little room."""
    whole = Layout(headings, rows, times)
    return whole if whole.has_room else Layout(headings, rows, times, short=True)


class Layout:
    """A table that fits the terminal: text goes on in its column, and nothing is cut.

    The last column holds the text that people read. Where too little room is left for it, it
    stands below its row.
    """

    def __init__(
        self, headings: Sequence[str], rows: Sequence[Sequence[object]], times: Times, *, short: bool = False
    ) -> None:
        self._headings = headings
        self._rows = [[_table_cell(value, times, short) for value in row] for row in rows]
        texts = list(zip(headings, *self._rows, strict=True))
        room = columns() - _GAP_COLUMNS * (len(headings) - 1)
        last = max(map(_width, texts[-1]))
        wanted = room - min(last, _NARROW)
        has_times = [any(isinstance(value, datetime) for value in column) for column in zip(*rows, strict=True)]
        widths = [max(map(_width, column)) for column in texts[:-1]]
        # Headings go on in a second line first, then text does, and only in the end long words are broken.
        widths = _shrunk(widths, [_without_heading(column) for column in texts], wanted)
        widths = _shrunk(widths, _least(texts, has_times, _LONGEST_WORD), wanted)
        if short:
            needed = last if last < _NARROW else max(_width(headings[-1]), _LEAST_BESIDE)
            widths = _shrunk(widths, _least(texts, has_times, _BROKEN_WORD), room - needed)
        self.has_room = sum(widths) <= wanted
        self._widths = [*widths, max(room - sum(widths), _width(headings[-1]))]

    def lines(self) -> Iterator[str]:
        """Give the lines, the heading first."""
        for heading in self._beside(self._headings, paint=False):
            yield click.style(heading, bold=True) if has_colour(sys.stdout) else heading
        for row in self._rows:
            if self.has_room or _width(row[-1]) <= self._widths[-1]:
                yield from self._beside(row)
                continue
            yield from self._beside([*row[:-1], ""])
            for text in wrapped(row[-1], max(columns() - _INDENT, _NARROW)):
                yield " " * _INDENT + text

    def _beside(self, row: Sequence[str], *, paint: bool = True) -> Iterator[str]:
        """Give the lines of one row, each cell in its column."""
        parts = [wrapped(text, width) for text, width in zip(row, self._widths, strict=True)]
        for line in zip_longest(*parts, fillvalue=""):
            shown_parts = [
                (painted(part, text) if paint else part) + " " * (width - _width(part))
                for part, text, width in zip(line, row, self._widths, strict=True)
            ]
            yield (" " * _GAP_COLUMNS).join(shown_parts).rstrip()


def _table_cell(value: object, times: Times, short: bool) -> str:
    return times.in_table(value, short=short) if isinstance(value, datetime) else cell(value, times)


def _without_heading(column: Sequence[str]) -> int:
    """Return how wide a column is whose heading may go on in a second line."""
    heading, *cells = column
    return max(*map(_width, cells), _longest_word(heading))


def _least(texts: Sequence[Sequence[str]], has_times: Sequence[bool], longest: int) -> list[int]:
    """Return how narrow each column may be: times stay whole, and so do words that are not longer than this."""
    return [
        max(min(_longest_word(column[0]), longest), *map(_width, column[1:]))
        if is_time
        else min(max(map(_longest_word, column)), longest)
        for column, is_time in zip(texts, has_times, strict=True)
    ]


def _longest_word(text: str) -> int:
    return max(map(_width, text.split(" ")))


def _shrunk(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths that fit into the room, the widest narrowed first. They may be wider than the room."""
    fitted = list(widths)
    while sum(fitted) > room:
        wide = [number for number, width in enumerate(fitted) if width > least[number]]
        if not wide:
            break
        fitted[max(wide, key=fitted.__getitem__)] -= 1
    return fitted


def columns() -> int:
    """Return how wide the terminal is."""
    from shutil import get_terminal_size

    return get_terminal_size().columns


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of at most this width, broken between words if possible."""
    width = max(width, 2)  # the widest letters take two
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
    """Return as much of the beginning as fits into this width. It ends with a character like - or / if one is near."""
    while _width(text) > width:
        text = text[:-1]
    mark = max(map(text.rfind, _MARKS)) + 1
    return text[:mark] if 3 * mark >= len(text) else text


def _width(text: str) -> int:
    """How many columns a text takes: wide letters take two, marks that sit on others none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def show_pairs(pairs: Iterable[tuple[str, object]], times: Times) -> None:
    """Write name and value pairs, one per line. On a terminal, empty values are left out."""
    known = [(name, cell(value, times)) for name, value in pairs]
    if not is_terminal():
        for name, text in known:
            click.echo(f"{name}\t{text}")
        return
    width = max(len(name) for name, _ in known)
    indent = " " * (width + _GAP_COLUMNS)
    for name, text in known:
        if text != "-":
            first, *rest = wrapped(text, max(columns() - len(indent), _NARROW))
            lines = [f"{name:{width}}{' ' * _GAP_COLUMNS}{painted(first, text)}", *(indent + more for more in rest)]
            click.echo("\n".join(lines), color=True)


def show_text(text: str) -> None:
    """Write text of several lines, such as a traceback. On a terminal, long lines are wrapped."""
    for line in safe(text).split("\n"):
        if not is_terminal() or _width(line) <= columns():
            click.echo(line, color=True)
            continue
        indent = " " * (len(line) - len(line.lstrip()))
        first, *rest = wrapped(line.strip(), max(columns() - len(indent) - _INDENT, _NARROW))
        click.echo("\n".join([indent + first, *(indent + " " * _INDENT + more for more in rest)]), color=True)


def listed(name: str, values: Iterable[object]) -> list[tuple[str, object]]:
    """Return pairs of one name and many values. On a terminal, only the first pair has the name."""
    on_terminal = is_terminal()
    return [(name if number == 0 or not on_terminal else "", value) for number, value in enumerate(values)]


def show_json(data: object) -> None:
    """Write one JSON document: times in UTC as ISO-8601, durations in seconds, control characters escaped."""
    import json

    from everytick.answers.wire import plain

    click.echo(json.dumps(plain(data), indent=2, ensure_ascii=True, allow_nan=False))


def as_json_text(data: object) -> str | None:
    """Return a payload or a result in one line of JSON; None for none."""
    import json

    return None if data is None else json.dumps(data, ensure_ascii=False)
