"""The strip: one square for each of the last occurrences, then hollow ones for those that are planned."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.web.pictures.elements import NOTHING, element, joined, linked
from everytick.web.pictures.marks import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup

PLANNED, PAUSED = "planned", "paused"
"""Words for what has not been decided yet. They stand beside the statuses in pictures only."""

PAST, AHEAD = 60, 6
"""Columns of the strip on the page of a job: before now, and after it."""

PAST_IN_LISTS, AHEAD_IN_LISTS = 30, 2

_UNFOLDED = 5
"""Longest run of skipped or missed instants that is drawn one by one."""

_FOLDED = frozenset({OccurrenceStatus.SKIPPED, OccurrenceStatus.MISSED})
_WIDE = 3
"""Columns that a folded run takes, so that its count can be read."""

_HEIGHT, _HEIGHT_IN_LISTS = 22, 16


@value
class Square:
    """One occurrence, or `count` instants that did not run; `title` is read when the pointer rests on it."""

    status: str
    title: str = ""
    href: str | None = None
    count: int = 1


@value
class StripColumn:
    """Where a square stands: its middle and its width as shares of the picture. `index` is its place among those given.

    Those that are planned are counted on from the past ones.
    """

    square: Square
    at: float
    width: float
    index: int


@value
class StripColumns:
    """The columns of a strip and of the pictures that share them, and where now is."""

    past: tuple[StripColumn, ...]
    planned: tuple[StripColumn, ...]
    now: float

    @property
    def all(self) -> tuple[StripColumn, ...]:
        """Every column, oldest first."""
        return (*self.past, *self.planned)


def folded(squares: Iterable[Square]) -> list[tuple[int, Square]]:
    """Return the squares with every long run of skipped or missed instants as one, each with the index of its last."""
    found: list[tuple[int, Square]] = []
    for (status, _), group in groupby(enumerate(squares), key=lambda pair: (pair[1].status, pair[1].status in _FOLDED)):
        run = list(group)
        if status not in _FOLDED or sum(square.count for _, square in run) <= _UNFOLDED:
            found += [(index, square) for index, square in run]
            continue
        index, last = run[-1]
        count = sum(square.count for _, square in run)
        title = run[0][1].title if len(run) == 1 else f"{count:,} instants {status}; the last: {last.title}"
        found.append((index, replace(last, title=title, count=count)))
    return found


def columns_of(
    past: Sequence[Square], planned: Sequence[Square], places: int = PAST, ahead: int = AHEAD
) -> StripColumns:
    """Return where each square stands. The newest that fit are drawn, ending at now; `past` begins with the oldest."""
    total, free = places + ahead, places
    found: list[StripColumn] = []
    for index, square in reversed(folded(past)):
        width = _WIDE if square.count > 1 else 1
        if width > free:
            break
        found.append(StripColumn(square, (free - width / 2) / total, width / total, index))
        free -= width
    coming = tuple(
        StripColumn(square, (places + number + 0.5) / total, 1 / total, len(past) + number)
        for number, square in enumerate(planned[:ahead])
    )
    return StripColumns(tuple(reversed(found)), coming, places / total)


def strip(columns: StripColumns, *, label: str | None = None, small: bool = False) -> Markup:
    """Draw the strip."""
    height = _HEIGHT_IN_LISTS if small else _HEIGHT
    side = 8 if small else 12
    squares = [_square(column, side, height) for column in columns.all]
    now = percent(columns.now)
    line = element("line", class_="nowline", x1=now, x2=now, y1=0, y2=height)
    told = strip_words(columns) if label is None else label
    return element(
        "svg",
        *squares,
        line,
        class_="strip strip-s" if small else "strip",
        height=height,
        role="img",
        aria_label=told,
    )


def strip_words(columns: StripColumns) -> str:
    """Return what the strip shows as a sentence: it is read aloud instead of the picture."""
    counts: Counter[str] = Counter()
    for column in columns.past:
        counts[str(column.square.status)] += column.square.count
    known = [str(status) for status in OccurrenceStatus if counts[str(status)]]
    told = ", ".join(f"{counts[status]:,} {status}" for status in known) or "none yet"
    planned = f"; {len(columns.planned)} planned" if columns.planned else ""
    return f"The last {counts.total():,} occurrences: {told}{planned}"


def _square(column: StripColumn, side: int, height: int) -> Markup:
    square = column.square
    parts = shape(square, side / 2, height / 2)
    title = element("title", square.title) if square.title else NOTHING
    return element("svg", linked(joined((*parts, title)), square.href), x=percent(column.at), width=1, height=height)


def shape(square: Square, half: float, middle: float) -> tuple[Markup, ...]:
    """Return the mark of a square around the origin: its status, or the count of a run that is folded."""
    return _folded_shape(square, middle) if square.count > 1 else _shape(square.status, half, middle)


def _folded_shape(square: Square, middle: float) -> tuple[Markup, ...]:
    box = element("rect", class_="fold", x=-21, y=middle - 8, width=42, height=16, rx=2)
    kind = "t-look m" if square.status == OccurrenceStatus.MISSED else "ink m"
    return box, element("text", f"×{_short(square.count)}", class_=kind, x=0, y=middle + 4)


def _short(count: int) -> str:
    return f"{count}" if count < 10_000 else f"{count // 1000}k"


def _shape(status: str, half: float, y: float) -> tuple[Markup, ...]:
    """Return the mark of a status: its colour says when, its shape says what."""
    match status:
        case OccurrenceStatus.COMPLETED:
            return (_box("m-done", half, y),)
        case OccurrenceStatus.COMPLETED_WITH_ERRORS:
            return _box("m-look", half, y), _path("cut", "M-3 0l2.2 2.2 4-4.6", y)
        case OccurrenceStatus.FAILED:
            return _tall("m-wrong", half, y), _cross("cut", y)
        case OccurrenceStatus.FAILED_STALE:
            return _box("o-wrong", half, y), _cross("x-wrong", y)
        case OccurrenceStatus.RUNNING:
            return _box("m-present", half, y), _path("on-present", "M-1.8-3v6L3.2 0z", y)
        case OccurrenceStatus.AWAITING_RETRY:
            return _box("o-look", half, y), _path("hatch-look", "M-5 1l6-6M-5 5L5-5M-1 5l6-6", y)
        case OccurrenceStatus.PENDING:
            return (_box("o-present", half, y),)
        case OccurrenceStatus.QUEUED:
            return (_box("o-rest dotted", half, y),)
        case OccurrenceStatus.CANCELED:
            return _box("o-rest", half, y), _path("o-rest", "M-3 3l6-6", y)
        case OccurrenceStatus.SKIPPED:
            return (element("line", class_="m-lag", x1=-half + 2, x2=half - 2, y1=y, y2=y),)
        case OccurrenceStatus.MISSED:
            return (_path("o-look", f"M0 {-half}L{half} 0 0 {half}{-half} 0z", y),)
        case OccurrenceStatus.SUPERSEDED:
            return (element("line", class_="m-tail", x1=-half, x2=half, y1=y, y2=y),)
        case _ if status == PAUSED:
            return (_box("m-ghost paused", half - 0.5, y),)
        case _:
            return (_box("m-ghost", half - 0.5, y),)


def _box(kind: str, half: float, y: float) -> Markup:
    return element("rect", class_=kind, x=-half, y=y - half, width=2 * half, height=2 * half, rx=2)


def _tall(kind: str, half: float, y: float) -> Markup:
    """Failed stands out by its height too: a third more on both sides."""
    high = half + half * 2 / 3
    return element("rect", class_=kind, x=-half, y=y - high, width=2 * half, height=2 * high, rx=2)


def _cross(kind: str, y: float) -> Markup:
    return _path(kind, "M-2.2-2.2l4.4 4.4M2.2-2.2l-4.4 4.4", y)


def _path(kind: str, shape: str, y: float) -> Markup:
    return element("path", class_=kind, d=shape, transform=f"translate(0 {y:g})")
