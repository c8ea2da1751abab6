"""A year of a job: a column a week, a row a weekday, each day by its worst outcome or by how long its runs took."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from everytick.domain.statuses import FINISHED, OccurrenceStatus
from everytick.domain.values import value
from everytick.web.pictures.elements import NOTHING, element, linked
from everytick.web.pictures.marks import percent
from everytick.web.words import MONTHS, WEEKDAYS, count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from markupsafe import Markup

WEEKS, DAYS = 54, 7
"""A year touches 53 weeks, a leap year that begins on the last day of a week 54."""

_LABEL = 0.035
"""The part of the width that the names of the days take."""

_TOP, _CELL, _GAP = 20, 14, 3
_S = OccurrenceStatus
_WORST = (
    _S.FAILED,
    _S.FAILED_STALE,
    _S.MISSED,
    _S.COMPLETED_WITH_ERRORS,
    _S.CANCELED,
    _S.COMPLETED,
    _S.SUPERSEDED,
    _S.SKIPPED,
)
"""Ends from the worst on. A day is drawn by the first that it has."""

STEPS = ((0.5, "under half"), (0.8, "shorter"), (1.25, "as usual"), (2.0, "longer"), (float("inf"), "over twice"))
"""The tones of a day's length: up to these times the median, and the words of each. A steady job has the middle one."""

_CROSS = "M-2.6 4.4l5.2 5.2M2.6 4.4l-5.2 5.2"


@value(frozen=True)
class YearDay:
    """One day: how many ended in each status, and how long those that completed took; `planned` starts are to come."""

    day: date
    counts: tuple[tuple[OccurrenceStatus, int], ...] = ()
    took: timedelta | None = None
    planned: bool = False
    href: str | None = None

    @property
    def worst(self) -> OccurrenceStatus | None:
        """The worst end of the day; None if nothing ended."""
        known = {status for status, many in self.counts if many}
        return next((status for status in _WORST if status in known), None)

    def of(self, *statuses: OccurrenceStatus) -> int:
        """Return how many ended so."""
        return sum(many for status, many in self.counts if status in statuses)


@value(frozen=True)
class YearMonth:
    """One month of the table behind the picture."""

    name: str
    counts: Mapping[OccurrenceStatus, int]
    took: timedelta | None
    worst_day: date | None

    @property
    def total(self) -> int:
        """How many ended in this month."""
        return sum(self.counts.values())


def year_days(year: int, known: Iterable[YearDay]) -> list[YearDay]:
    """Return every day of the year in order; days without an end are empty."""
    by_day = {year_day.day: year_day for year_day in known}
    first = date(year, 1, 1)
    length = (date(year + 1, 1, 1) - first).days
    return [
        by_day.get(first + timedelta(days=number)) or YearDay(first + timedelta(days=number))
        for number in range(length)
    ]


def place_of(day: date, first_weekday: int = 0) -> tuple[int, int]:
    """Return the column and row of a day; weeks begin on this weekday, 0 is Monday."""
    first = date(day.year, 1, 1)
    shift = (first.weekday() - first_weekday) % DAYS
    number = (day - first).days + shift
    return number // DAYS, number % DAYS


def year_grid(
    days: Sequence[YearDay],
    today: date,
    words: Callable[[timedelta], str],
    said: str,
    *,
    by_length: bool = False,
    first_weekday: int = 0,
) -> Markup:
    """Draw the year by the worst outcome of each day, or by how long its runs took."""
    took = sorted(year_day.took for year_day in days if year_day.took is not None)
    longest, median = (took[-1], took[len(took) // 2]) if took else (None, None)
    wide = (1 - _LABEL) / WEEKS
    boxes: list[Markup] = []
    marks: list[Markup] = []
    for year_day in days:
        column, row = place_of(year_day.day, first_weekday)
        x, y = percent(_LABEL + (column + 0.5) * wide), _TOP + row * (_CELL + _GAP)
        kind, mark = _by_length(year_day, median) if by_length else _by_outcome(year_day, longest, today)
        title = element("title", day_words(year_day, words)) if year_day.counts or year_day.planned else NOTHING
        boxes.append(linked(element("rect", title, class_=kind, x=x, y=y), year_day.href))
        if mark:
            marks.append(element("svg", mark, x=x, y=y, width=1, height=_CELL))
        if year_day.day == today:
            boxes.append(element("rect", class_="cellnow", x=x, y=y))
    # A box begins left of the middle of its column by half of its side, which is in pixels.
    shifted = element("g", *boxes, transform=f"translate({-_CELL // 2})")
    height = _TOP + DAYS * (_CELL + _GAP)
    parts = (*_labels(days, wide, first_weekday), shifted, *marks)
    return element("svg", *parts, class_="year", height=height, role="img", aria_label=said)


def _labels(days: Sequence[YearDay], wide: float, first_weekday: int) -> Iterable[Markup]:
    for row in (0, 2, 4, 6):
        name = WEEKDAYS[(row + first_weekday) % DAYS]
        yield element("text", name, x=0, y=_TOP + row * (_CELL + _GAP) + 11)
    for year_day in days:
        if year_day.day.day == 1:
            column, row = place_of(year_day.day, first_weekday)
            at = column + (1 if row else 0)
            yield element("text", MONTHS[year_day.day.month - 1], x=percent(_LABEL + at * wide), y=13)


def _by_outcome(day: YearDay, longest: timedelta | None, today: date) -> tuple[str, Markup]:
    """Return the box of a day and the mark in it: the shapes of the strip, and a dot that grows with the length."""
    match day.worst:
        case None:
            return ("m-ghost" if day.planned and day.day >= today else "h0"), NOTHING
        case _S.COMPLETED:
            return "m-done", _length_dot(day, longest)
        case _S.COMPLETED_WITH_ERRORS:
            return "m-look", _path("cut", "M-3 7l2.2 2.2 4-4.6")
        case _S.FAILED:
            return "m-wrong", _path("cut", _CROSS)
        case _S.FAILED_STALE:
            return "o-wrong", _path("x-wrong", _CROSS)
        case _S.MISSED:
            return "h0", _path("o-look", "M0 1.5L5.5 7 0 12.5-5.5 7z")
        case _S.CANCELED:
            return "o-rest", _path("o-rest", "M-3 10l6-6")
        case _:
            return "h0", element("line", class_="m-lag", x1=-4, x2=4, y1=7, y2=7)


def _length_dot(day: YearDay, longest: timedelta | None) -> Markup:
    if day.took is None or not longest:
        return NOTHING
    # The area of the dot grows with the length.
    return element("circle", class_="halo", cy=7, r=round(1 + 3.6 * (day.took / longest) ** 0.5, 1))


def _by_length(day: YearDay, median: timedelta | None) -> tuple[str, Markup]:
    if day.took is None or median is None:
        return ("m-ghost" if day.planned else "h0"), NOTHING
    times = day.took / median if median else 1.0
    return next(f"h{number}" for number, (most, _) in enumerate(STEPS, 1) if times <= most), NOTHING


def _path(kind: str, shape: str) -> Markup:
    return element("path", class_=kind, d=shape)


def day_words(day: YearDay, words: Callable[[timedelta], str]) -> str:
    """Return what a day was in one line."""
    name = f"{WEEKDAYS[day.day.weekday()]} {day.day.day} {MONTHS[day.day.month - 1]}"
    told = ", ".join(f"{many:,} {status}" for status, many in day.counts if many)
    if not told:
        return f"{name}: planned" if day.planned else f"{name}: nothing"
    return f"{name}: {told}; {words(day.took)}" if day.took is not None else f"{name}: {told}"


def months_of(days: Sequence[YearDay]) -> list[YearMonth]:
    """Return the months that have an end, in order: the table behind the picture."""
    found = []
    for month in range(1, 13):
        own = [year_day for year_day in days if year_day.day.month == month and year_day.counts]
        if own:
            found.append(_month(MONTHS[month - 1], own))
    return found


def _month(name: str, days: Sequence[YearDay]) -> YearMonth:
    counts = {status: many for status in OccurrenceStatus if (many := sum(day.of(status) for day in days))}
    weighed = [(day.took, day.of(_S.COMPLETED)) for day in days if day.took is not None]
    runs = sum(many for _, many in weighed)
    took = sum((length * many for length, many in weighed), timedelta(0)) / runs if runs else None
    wrong = max(days, key=lambda day: day.of(_S.FAILED, _S.FAILED_STALE))
    return YearMonth(name, counts, took, wrong.day if wrong.of(_S.FAILED, _S.FAILED_STALE) else None)


def year_words(days: Sequence[YearDay]) -> str:
    """Return the year as a sentence."""
    ran = [day for day in days if day.of(*FINISHED)]
    bad = sum(day.worst in (_S.FAILED, _S.FAILED_STALE) for day in ran)
    missed = sum(bool(day.of(_S.MISSED)) for day in days)
    parts = [count(len(ran), "day") + " with a run", f"{bad:,} with a failure", f"{missed:,} with a miss"]
    return ", ".join(parts)
