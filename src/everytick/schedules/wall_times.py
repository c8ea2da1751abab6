"""The wall times that a cron expression matches, computed with bit masks: no zone, no clock.

`after` and `through` walk from field to field, never from minute to minute: the next set
bit of a mask is `mask & -mask`, the last one its `bit_length`. A month's matching days are
one integer, made of the day mask and the week's pattern shifted to the month's first weekday.
"""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from everytick.domain.durations import MICROSECOND
from everytick.schedules.cron_fields import Masks, Special, read

MINUTE = timedelta(minutes=1)
CYCLE_YEARS = 400
"""After so many years the Gregorian calendar repeats its weekdays: a date that none of them has never comes."""
_FIRST_YEAR, _LAST_YEAR = 1, 9999
# Seven bits of weekdays times this are six weeks of them, enough for any month.
_WEEKS = sum(1 << 7 * week for week in range(6))


def _months(january_first: int, leap: bool) -> tuple[tuple[int, int], ...]:
    """For each month 1 to 12: the weekday of its first day (Sunday is 0) and the mask of its days."""
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    firsts = [(january_first + sum(lengths[:month])) % 7 for month in range(12)]
    return ((0, 0), *((first, (2 << length) - 2) for first, length in zip(firsts, lengths, strict=True)))


def _years() -> tuple[tuple[tuple[int, int], ...], ...]:
    kinds = {(first, leap): _months(first, leap) for first in range(7) for leap in (False, True)}
    starts = [date(2000 + year, 1, 1) for year in range(CYCLE_YEARS + 1)]
    return tuple(
        kinds[start.isoweekday() % 7, (following - start).days == 366] for start, following in pairwise(starts)
    )


# The months of year y are _YEARS[y % 400].
_YEARS = _years()


class WallTimes:
    """The wall times of one expression, to the minute."""

    __slots__ = (
        "days",
        "either",
        "first_hour",
        "first_minute",
        "hours",
        "minutes",
        "months",
        "never",
        "week",
        "wildcard",
    )

    unit = MINUTE

    def __init__(self, masks: Masks) -> None:
        self.minutes, self.hours, self.days, self.months = masks.minutes, masks.hours, masks.days, masks.months
        self.week = masks.weekdays * _WEEKS
        self.either, self.wildcard = masks.either, masks.wildcard
        self.first_minute = _lowest(masks.minutes)
        self.first_hour = _lowest(masks.hours)
        self.never = self._never()

    def after(self, wall: datetime) -> datetime | None:
        """Return the first matching wall time later than the minute of `wall`."""
        year, month, day = wall.year, wall.month, wall.day
        first, every_day = _YEARS[year % 400][month]
        if self.months >> month & 1:
            week = self.week >> first << 1
            days = every_day & (self.days | week if self.either else self.days & week)
            if days >> day & 1:
                hour, minute = wall.hour, wall.minute
                if self.hours >> hour & 1:
                    rest = self.minutes >> minute + 1
                    if rest:
                        minute += (rest & -rest).bit_length()
                        return datetime(year, month, day, hour, minute, 0, 0, UTC)
                rest = self.hours >> hour + 1
                if rest:
                    hour += (rest & -rest).bit_length()
                    return datetime(year, month, day, hour, self.first_minute, 0, 0, UTC)
            rest = days >> day + 1
            if rest:
                day += (rest & -rest).bit_length()
                return datetime(year, month, day, self.first_hour, self.first_minute, 0, 0, UTC)
        return self._later_month(year, month)

    def through(self, wall: datetime) -> datetime | None:
        """Return the last matching wall time not later than `wall`."""
        year, month, day, hour = wall.year, wall.month, wall.day, wall.hour
        days = self.days_of(year, month) & (2 << day) - 1
        if days >> day & 1:
            minutes = self.minutes & (2 << wall.minute) - 1
            if self.hours >> hour & 1 and minutes:
                return datetime(year, month, day, hour, minutes.bit_length() - 1, 0, 0, UTC)
            hours = self.hours & (1 << hour) - 1
            if hours:
                return self._late(year, month, day, hours)
            days ^= 1 << day
        if days:
            return self._late(year, month, days.bit_length() - 1, self.hours)
        return self._earlier_month(year, month)

    def days_of(self, year: int, month: int) -> int:
        """Return the mask of the month's matching days."""
        if not self.months >> month & 1:
            return 0
        first, every_day = _YEARS[year % 400][month]
        week = self.week >> first << 1
        return every_day & (self.days | week if self.either else self.days & week)

    def times(self) -> list[timedelta]:
        """Return the matching times of a day, as time since midnight."""
        return [timedelta(hours=hour, minutes=minute) for hour in bits(self.hours) for minute in bits(self.minutes)]

    def _later_month(self, year: int, month: int) -> datetime | None:
        if self.never:
            return None
        for following in range(year, min(year + CYCLE_YEARS, _LAST_YEAR) + 1):
            rest = self._months_of(following) >> month + 1
            while rest:
                month += (rest & -rest).bit_length()
                days = self.days_of(following, month)
                if days:
                    return datetime(following, month, _lowest(days), self.first_hour, self.first_minute, 0, 0, UTC)
                rest = self._months_of(following) >> month + 1
            month = 0
        return None

    def _earlier_month(self, year: int, month: int) -> datetime | None:
        if self.never:
            return None
        for former in range(year, max(year - CYCLE_YEARS, _FIRST_YEAR) - 1, -1):
            rest = self._months_of(former) & (1 << month) - 1
            while rest:
                month = rest.bit_length() - 1
                days = self.days_of(former, month)
                if days:
                    return self._late(former, month, days.bit_length() - 1, self.hours)
                rest ^= 1 << month
            month = 13
        return None

    def _late(self, year: int, month: int, day: int, hours: int) -> datetime:
        """Return the last matching time of a day within these hours."""
        return datetime(year, month, day, hours.bit_length() - 1, self.minutes.bit_length() - 1, 0, 0, UTC)

    def _months_of(self, year: int) -> int:
        return self.months

    def _never(self) -> bool:
        # Over the years each weekday falls on each date. Only a day that no named month has (30 February) never comes.
        return not self.either and not any(self.days & _YEARS[0][month][1] for month in bits(self.months))


_BEGINNING = datetime.min.replace(tzinfo=UTC)
# A quartz expression with a year matches later than the first and not later than the second.
_QUARTZ_FIRST = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
_QUARTZ_LAST = datetime(2199, 12, 31, 23, 59, 59, tzinfo=UTC)


class QuartzWallTimes(WallTimes):
    """The wall times of a quartz expression, to the second, with its special days and its years."""

    __slots__ = ("seconds", "specials", "years")

    unit = timedelta(seconds=1)

    def __init__(self, masks: Masks) -> None:
        self.seconds, self.specials, self.years = masks.seconds, masks.specials, masks.years
        super().__init__(masks)

    def after(self, wall: datetime) -> datetime | None:
        """Return the first matching wall time later than the second of `wall`."""
        if self.years is not None and wall < _QUARTZ_FIRST:
            wall = _QUARTZ_FIRST
        minute = wall.replace(second=0, microsecond=0)
        rest = self.seconds >> wall.second + 1
        if rest and self._names(minute):
            return minute.replace(second=wall.second + (rest & -rest).bit_length())
        minute_after = self._minute_after(minute)
        return None if minute_after is None else minute_after.replace(second=_lowest(self.seconds))

    def through(self, wall: datetime) -> datetime | None:
        """Return the last matching wall time not later than `wall`."""
        if self.years is not None and wall > _QUARTZ_LAST:
            wall = _QUARTZ_LAST
        seconds = self.seconds & (2 << wall.second) - 1
        minute = super().through(wall)
        if minute is not None and not seconds and minute == wall.replace(second=0, microsecond=0):
            minute = super().through(minute - MICROSECOND) if minute > _BEGINNING else None
        if minute is None:
            return None
        whole = minute != wall.replace(second=0, microsecond=0)
        return minute.replace(second=(self.seconds if whole else seconds).bit_length() - 1)

    def days_of(self, year: int, month: int) -> int:
        """Return the mask of the month's matching days."""
        if not self._months_of(year) >> month & 1:
            return 0
        days = super().days_of(year, month)
        for special in self.specials:
            days |= _special_day(special, *_YEARS[year % 400][month])
        return days

    def times(self) -> list[timedelta]:
        """Return the matching times of a day, as time since midnight."""
        seconds = [timedelta(seconds=second) for second in bits(self.seconds)]
        return [minute + second for minute in super().times() for second in seconds]

    def _names(self, minute: datetime) -> bool:
        """Whether the minute itself matches."""
        days = self.days_of(minute.year, minute.month)
        return bool(days >> minute.day & self.hours >> minute.hour & self.minutes >> minute.minute & 1)

    def _minute_after(self, wall: datetime) -> datetime | None:
        days = self.days_of(wall.year, wall.month)
        if days >> wall.day & 1:
            rest = self.minutes >> wall.minute + 1
            if self.hours >> wall.hour & 1 and rest:
                return wall.replace(minute=wall.minute + (rest & -rest).bit_length(), second=0, microsecond=0)
            rest = self.hours >> wall.hour + 1
            if rest:
                hour = wall.hour + (rest & -rest).bit_length()
                return wall.replace(hour=hour, minute=self.first_minute, second=0, microsecond=0)
        rest = days >> wall.day + 1
        if rest:
            day = wall.day + (rest & -rest).bit_length()
            return datetime(wall.year, wall.month, day, self.first_hour, self.first_minute, 0, 0, UTC)
        return self._later_month(wall.year, wall.month)

    def _months_of(self, year: int) -> int:
        if self.years is None:
            return self.months
        return self.months if self.years >> year & 1 else 0

    def _never(self) -> bool:
        years = bits(self.years) if self.years is not None else range(2000, 2000 + CYCLE_YEARS)
        return not any(self.days_of(year, month) for year in years for month in bits(self.months))


def wall_times(expression: str, dialect: str, day_match: str) -> WallTimes:
    """Return the wall times of an expression as `normal` writes it; equal expressions share one value."""
    # Long texts are not cached: 4096 of the longest would fill 400 MB.
    compiled = _shared if len(expression) <= _LONGEST_CACHED_CHARACTERS else _compiled
    return compiled(expression, dialect, day_match)


def _compiled(expression: str, dialect: str, day_match: str) -> WallTimes:
    masks = read(expression, dialect, day_match)
    return QuartzWallTimes(masks) if dialect == "quartz" else WallTimes(masks)


_LONGEST_CACHED_CHARACTERS = 200
_shared = lru_cache(maxsize=4096)(_compiled)


def bits(mask: int) -> list[int]:
    """Return the numbers that a mask holds, in order."""
    return [n for n in range(mask.bit_length()) if mask >> n & 1]


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _special_day(special: Special, first: int, every_day: int) -> int:
    """The mask of a special day in a month whose first day is the weekday `first`; zero if it has none."""
    last = every_day.bit_length() - 1
    match special.kind:
        case "L":
            day = last - special.number
        case "LW":
            day = _nearest(last, first, last)
        case "W":
            day = _nearest(special.number, first, last) if special.number <= last else 0
        case "nL":
            day = last - (first + last - 1 - special.number) % 7
        case _:
            day = 1 + (special.number - first) % 7 + 7 * (special.which - 1)
    return 1 << day if 1 <= day <= last else 0


def _nearest(day: int, first: int, last: int) -> int:
    """The weekday (Monday to Friday) of the same month that is nearest to a day."""
    weekday = (first + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < last else day - 2
    return day
