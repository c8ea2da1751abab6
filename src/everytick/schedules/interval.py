"""Repeating intervals: the k-th instant is start + k × period, always counted from the start.

Years and months are added first (the day clamped to the month's length), then weeks and
days on the wall clock, then the wall time is resolved in the zone, then hours, minutes and
seconds pass as exact elapsed time. Counting from the start is why 31 January plus months
comes back to the 31st, and why any k is found without walking there.
"""

import re
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from everytick.domain.durations import LAST, Moment, Period, period
from everytick.domain.values import value
from everytick.errors import InvalidDuration, InvalidInstant, InvalidSchedule, shown
from everytick.schedules.combine import Combinable, checked_limit, in_window, with_options
from everytick.schedules.timezones import DAY, Zone, fixed, instant_of, read_moment, utc, zone_of

EPOCH = Moment(datetime(1970, 1, 1))  # noqa: DTZ001 - a wall time, in whatever zone
_MAX_CHARACTERS = 300
_MOMENT = r"[^/\[]*(?:\[[^\]]*\])?"
_REPEAT = rf"(R[^/]*)/({_MOMENT})/({_MOMENT})"
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTH = timedelta(days=30.436875)
# How far the k-th instant may lie from k average periods: clamped days, the leap-year cycle, a skipped day.
_DRIFT = timedelta(days=9)


def every(given: object, *, start: object = None, tz: object = None, end: object = None) -> Combinable:
    """Return the schedule that fires every period, counted from `start` (or from 1970 in its zone).

    The period is text like "90s" or "P1M" or a timedelta; years, months, weeks and days are
    counted on the calendar of the zone, hours and less as elapsed time.
    """
    zone = zone_of(tz)
    length = _period(given, given)
    if start is None:
        return in_window(Every(length, EPOCH, zone), None, end)
    if zone is None and isinstance(start, datetime) and isinstance(start.tzinfo, ZoneInfo):
        zone = zone_of(start.tzinfo)
    moment, zone = _start(start, start, zone)
    return in_window(Every(length, moment, zone), None, end)


def repeat(text: object, *, tz: object = None, start: object = None) -> Combinable:
    """Return the schedule of an ISO-8601 repeating interval: `R5/2024-01-31T09:00:00/P1M`.

    Also `R/start/end`, and a bare period with `start` given apart.
    """
    zone = zone_of(tz)
    if not isinstance(text, str) or len(text) > _MAX_CHARACTERS:
        raise InvalidSchedule(text, "repeat", f"must be ISO-8601 text of at most {_MAX_CHARACTERS} characters")
    if not text.startswith("R"):
        moment, zone = (EPOCH, zone) if start is None else _start(start, start, zone)
        return Repeat(_period(text, text), moment, zone)
    match = re.fullmatch(_REPEAT, text, re.DOTALL)
    if match is None or start is not None:
        raise InvalidSchedule(text, "repeat", "must be R, a start and a period or an end: R5/2024-01-31T09:00:00Z/P1M")
    repeats, begin, end = match.groups()
    count = _count(text, repeats)
    moment, zone = _start(text, begin, zone)
    if end.startswith("P"):
        return Repeat(_period(text, end), moment, zone, count)
    return _through(text, moment, end, zone, count)


def _count(text: str, repeats: str) -> int | None:
    if repeats in ("R", "R-1"):
        return None
    digits = repeats[1:]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise InvalidSchedule(text, "repeat", f"must begin with R, R-1 or R and a number, got {shown(repeats)}")
    return int(digits)


def _period(text: object, given: object) -> Period:
    try:
        length = period(given)
    except InvalidDuration as error:
        raise InvalidSchedule(text, "period", error.reason) from error
    if not length:
        raise InvalidSchedule(text, "period", "must be longer than nothing")
    return length


def _start(text: object, given: object, zone: Zone | None) -> tuple[Moment, Zone | None]:
    try:
        moment, zone = read_moment(given, zone)
        instant_of(moment, zone)
    except InvalidInstant as error:
        raise InvalidSchedule(text, "start", error.reason) from error
    return moment, zone


def _through(text: str, start: Moment, given: str, zone: Zone | None, count: int | None) -> "Repeat":
    """The start/end form: its period is the exact elapsed time between the two."""
    end, named = _start(text, given, zone)
    if named != zone:
        raise InvalidSchedule(text, "end", "must not be in another zone than the start")
    if end.offset is None and zone is None:
        end = Moment(end.wall, start.offset)
    elapsed = instant_of(end, zone) - instant_of(start, zone)
    if elapsed <= timedelta(0):
        raise InvalidSchedule(text, "end", "must come after the start")
    floating = zone is None and start.offset is None
    return Repeat(Period(elapsed=elapsed), start, zone, count, end if floating else None)


@value
class Interval(Combinable):
    """Instants at `start` and every `period` after it, `count` of them or without end."""

    period: Period
    start: Moment
    tz: Zone | None
    count: int | None = None
    _anchor: datetime = field(init=False, compare=False, repr=False)
    _zone: Zone | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = self.tz
        if where is None and self.start.offset is not None:
            where = fixed(self.start.offset)
        object.__setattr__(self, "_zone", where)
        object.__setattr__(self, "_anchor", instant_of(self.start, self.tz))

    def in_zone(self, tz: Zone) -> "Interval":
        """Return the schedule in this zone, unless it has one of its own or its start an offset."""
        return self if self.tz is not None or self.start.offset is not None else replace(self, tz=tz)

    def nth(self, k: int) -> datetime | None:
        """Return start + k × period, or None beyond the calendar."""
        try:
            if k == 0 or not (self.period.months or self.period.days):
                instant = self._anchor + k * self.period.elapsed
            else:
                wall = _added(self.start.wall.replace(tzinfo=UTC), k * self.period.months, k * self.period.days)
                instant = (self._zone.resolve(wall) if self._zone else wall) + k * self.period.elapsed
        except (OverflowError, ValueError):
            return None
        return instant if instant <= LAST else None

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""
        k = self._first_k_after(utc(instant))
        return self.nth(k) if self.count is None or k < self.count else None

    def last_at(self, instant: datetime) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        k = self._first_k_after(utc(instant))
        if self.count is not None:
            k = min(k, self.count)
        return self.nth(k - 1) if k > 0 else None

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""
        through, room = utc(through), checked_limit(limit)
        instants: list[datetime] = []
        k = self._first_k_after(utc(after))
        while len(instants) < room and (self.count is None or k < self.count):
            instant = self.nth(k)
            if instant is None or instant > through:
                break
            if not instants or instant > instants[-1]:
                instants.append(instant)
            k += 1
        return instants

    def _place_words(self) -> str:
        """The zone, where it matters: elapsed time from an instant is the same everywhere."""
        settled = self.tz is None and (self.start == EPOCH or self.start.offset is not None)
        return "" if settled and not (self.period.months or self.period.days) else self._zone_words()

    def _first_k_after(self, instant: datetime) -> int:
        """The smallest k whose instant is later than `instant`."""
        if instant < self._anchor:
            return 0
        if not (self.period.months or self.period.days):
            return (instant - self._anchor) // self.period.elapsed + 1
        average = self.period.months * _MONTH + self.period.days * DAY + self.period.elapsed
        guess, slack = (instant - self._anchor) // average, _DRIFT // average + 2
        low, high = max(guess - slack, 0), guess + slack
        while low < high:
            middle = (low + high) // 2
            at = self.nth(middle)
            low, high = (low, middle) if at is None or at > instant else (middle + 1, high)
        return low


@value
class Every(Interval):
    """An interval as people say it: `every("90s")`; without a start it counts from 1970 in its zone."""

    def __str__(self) -> str:
        start = None if self.start == EPOCH else self.start
        return with_options(f"every: {self.period}", tz=self.tz, start=start)

    def describe(self) -> str:
        """Say the rule in plain English."""
        since = "" if self.start == EPOCH else f", from {str(self.start).replace('T', ' ')}"
        return f"every {_spoken(self.period)}{since}{self._place_words()}"


@value
class Repeat(Interval):
    """An ISO-8601 repeating interval: `R5/2024-01-31T09:00:00/P1M`."""

    until: Moment | None = None
    """The end as written, while the zone that says how long that is is not settled."""

    def __str__(self) -> str:
        repeats = "R" if self.count is None else f"R{self.count}"
        period = self.until or _iso(self.period)
        return with_options(f"repeat: {repeats}/{self.start}/{period}", tz=self.tz)

    def describe(self) -> str:
        """Say the rule in plain English."""
        times = "" if self.count is None else f", {self.count} time{'' if self.count == 1 else 's'} in all"
        start = str(self.start).replace("T", " ")
        return f"every {_spoken(self.period)} from {start}{times}{self._place_words()}"

    def in_zone(self, tz: Zone) -> "Interval":
        """Return the schedule in this zone, unless it has one of its own or its start an offset."""
        if self.until is None or self.tz is not None or self.start.offset is not None:
            return Interval.in_zone(self, tz)
        elapsed = instant_of(self.until, tz) - instant_of(self.start, tz)
        return replace(self, tz=tz, period=Period(elapsed=elapsed), until=None)


def _added(wall: datetime, months: int, days: int) -> datetime:
    """A wall time some months on, its day clamped to the month's length, and then some days on."""
    year, month = divmod(wall.year * 12 + wall.month - 1 + months, 12)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    day = min(wall.day, 29 if month == 1 and leap else _LENGTHS[month])
    return wall.replace(year=year, month=month + 1, day=day) + timedelta(days=days)


def _iso(period: Period) -> str:
    text = str(period)
    if text.startswith("P"):
        return text
    days, _, clock = text.rpartition("d")
    return f"P{days + 'D' if days else ''}{'T' + clock.upper() if clock else ''}"


def _spoken(period: Period) -> str:
    return period.describe().removeprefix("1 ") if " " not in period.describe()[2:] else period.describe()
