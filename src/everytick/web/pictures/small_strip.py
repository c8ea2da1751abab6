"""The strip in lists: the same squares at a fixed width. All that went well is one path, so that a page is small."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.statuses import OccurrenceStatus
from everytick.web.pictures.elements import element, joined
from everytick.web.pictures.marks import num
from everytick.web.pictures.strip import AHEAD_IN_LISTS, PAST_IN_LISTS, columns_of, shape, strip_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup

    from everytick.web.pictures.strip import Square, StripColumn

_PITCH, _SIDE, _HEIGHT = 8, 6, 16
_GAP = 2
"""Between the now-line and the squares on both sides of it."""

_FAILED_WITH_TITLE = 4
"""So many of the latest failures say what went wrong. Forty jobs that always fail would be a page of 140 KB else."""

_TALL = 10
"""The height of a failure, a third more on both sides: it is taller than all others."""


def small_strip(past: Sequence[Square], planned: Sequence[Square]) -> Markup:
    """Draw the last 30 occurrences and the next two. Those that went well have no title of their own."""
    columns = columns_of(past, planned, PAST_IN_LISTS, AHEAD_IN_LISTS)
    total = PAST_IN_LISTS + AHEAD_IN_LISTS
    width = total * _PITCH
    well: list[StripColumn] = []
    others: list[StripColumn] = []
    for column in columns.past:
        (well if went_well(column.square) else others).append(column)
    failed = [column for column in others if _is_plain_failure(column.square)]
    untitled = failed[:-_FAILED_WITH_TITLE]
    now = num(columns.now * width + _GAP)
    parts = [
        _boxes("m-done", well, width),
        _boxes("m-ghost", columns.planned, width, 2 * _GAP),
        _boxes("m-wrong", untitled, width, height=_TALL),
        *(_mark(column, width) for column in others if column not in untitled),
        element("line", class_="nowline", x1=now, x2=now, y1=0, y2=_HEIGHT),
    ]
    return element(
        "svg",
        *parts,
        class_="strip-s",
        width=width + 2 * _GAP,
        height=_HEIGHT,
        viewBox=f"0 0 {width + 2 * _GAP} {_HEIGHT}",
        role="img",
        aria_label=strip_words(columns),
    )


def went_well(square: Square) -> bool:
    """Whether the square is one of those that are drawn as one path, without a title."""
    return square.status == OccurrenceStatus.COMPLETED and square.count == 1


def _is_plain_failure(square: Square) -> bool:
    return square.status == OccurrenceStatus.FAILED and square.count == 1


def _boxes(kind: str, columns: Iterable[StripColumn], width: int, shift: int = 0, *, height: int = _SIDE) -> Markup:
    top = (_HEIGHT - height) // 2
    drawn = "".join(
        f"M{num(column.at * width - _SIDE / 2 + shift)} {top}h{_SIDE}v{height}h-{_SIDE}z" for column in columns
    )
    return element("path", class_=kind, d=drawn) if drawn else joined(())


def _mark(column: StripColumn, width: int) -> Markup:
    square = column.square
    parts = shape(square, _SIDE / 2, _HEIGHT / 2)
    if square.status in (OccurrenceStatus.FAILED, OccurrenceStatus.RUNNING) and square.count == 1:
        # Failed is taller than all others. A cross or an arrow within six pixels would be a blot.
        parts = parts[:1]
    title = (element("title", square.title),) if square.title else ()
    return element("g", *parts, *title, transform=f"translate({num(column.at * width)} 0)")
