"""Repeating intervals by counting: every instant is worked out from the start, never from its neighbour."""

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from tests.oracle.zones import resolve, wall


@dataclass(frozen=True)
class Period:
    """Years, months, weeks and days of the calendar, then hours, minutes and seconds of elapsed time."""

    years: int = 0
    months: int = 0
    weeks: int = 0
    days: int = 0
    hours: int = 0
    minutes: int = 0
    seconds: int = 0

    def __str__(self) -> str:
        calendar_part = _written(((self.years, "Y"), (self.months, "M"), (self.weeks, "W"), (self.days, "D")))
        clock_part = _written(((self.hours, "H"), (self.minutes, "M"), (self.seconds, "S")))
        return "P" + calendar_part + ("T" + clock_part if clock_part else "")

    @property
    def elapsed(self) -> timedelta:
        """The part that is exact elapsed time."""
        return timedelta(hours=self.hours, minutes=self.minutes, seconds=self.seconds)

    @property
    def pure(self) -> bool:
        """Whether the period has no calendar part at all."""
        return not (self.years or self.months or self.weeks or self.days)


def _written(parts: tuple[tuple[int, str], ...]) -> str:
    return "".join(f"{count}{letter}" for count, letter in parts if count)


def add_months(shown: datetime, months: int) -> datetime:
    """Return the wall time so many months later, its day cut to the length of the month it lands in."""
    index = shown.year * 12 + shown.month - 1 + months
    year, month = index // 12, index % 12 + 1
    return shown.replace(year=year, month=month, day=min(shown.day, calendar.monthrange(year, month)[1]))


def kth(start: datetime, zone: tzinfo, period: Period, k: int) -> datetime:
    """Return start + k × period.

    `start` is an aware instant, or a wall time of the zone.
    """
    shown = start if start.tzinfo is None else wall(start, zone)
    first = resolve(shown, zone) if start.tzinfo is None else start.astimezone(UTC)
    if k == 0 or period.pure:
        return first + k * period.elapsed
    shown = add_months(shown, k * (period.years * 12 + period.months))
    shown += k * timedelta(weeks=period.weeks, days=period.days)
    return resolve(shown, zone) + k * period.elapsed


def count_up(start: datetime, zone: tzinfo, period: Period, times: int | None, through: datetime) -> list[datetime]:
    """Return every instant up to `through`, in order and each once; `times` is the n of `Rn`, None for no bound."""
    found = set()
    for k in _ks(times):
        try:
            at = kth(start, zone, period, k)
        except (OverflowError, ValueError):
            break  # beyond year 9999 there is no calendar
        if at > through:
            break
        found.add(at)
    return sorted(found)


def _ks(times: int | None) -> Iterator[int]:
    k = 0
    while times is None or k < times:
        yield k
        k += 1


def anchor(zone: tzinfo) -> datetime:
    """Return where `every` begins when no start is given: midnight of 1 January 1970 on the zone's wall."""
    return resolve(datetime.combine(date(1970, 1, 1), datetime.min.time()), zone)
