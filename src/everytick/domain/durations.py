"""The one parser of durations, periods and instants.

A *duration* is a fixed length (`timedelta`); a *period* may also hold years, months and
calendar days, whose length depends on where they are added. Outside, both are text:
`"90s"`, `"1h30m"`, or ISO-8601 `"PT90S"`, `"P1M"`. Bare numbers are refused, because
5 may mean seconds or minutes; naive datetimes, because their time zone is not known.
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from everytick.domain.values import value
from everytick.errors import InvalidDuration, InvalidInstant, shown

MICROSECOND = timedelta(microseconds=1)
"""The shortest time that the stores tell apart."""

LONGEST_DURATION = timedelta(days=365_000)
"""The longest wait, age or timeout that counts. So every moment stays within Python's calendar."""

FIRST, LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The first and the last moment that is taken. A year is left beside them for what is reckoned from one."""

_MAX_CHARACTERS = 200
_SECOND = 1_000_000
"""A second in microseconds, as all lengths of `_UNITS`."""

_UNITS = {"w": 0, "d": 0, "h": 3600 * _SECOND, "m": 60 * _SECOND, "s": _SECOND, "ms": 1000, "us": 1}
_ORDER = tuple(_UNITS)
# Texts, compiled by `re` when first used: most programs need one of them, and compiling costs as much as importing.
_PART = r"([0-9]+)(?:\.([0-9]+))?(ms|us|[wdhms]) ?"
_ISO = (
    r"P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)(?:[.,]([0-9]+))?H)?(?:([0-9]+)(?:[.,]([0-9]+))?M)?(?:([0-9]+)(?:[.,]([0-9]+))?S)?)?"
)
_ISO_SHAPE = "ISO-8601 is like P1Y2M10DT2H30M, with a fraction only on the last of hours, minutes and seconds"
_MOMENT = (
    r"(?:(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?"
    r"|(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(?:(\d\d)(?:[.,](\d+))?)?)?)"
    r"(Z|[+-]\d\d(?::?\d\d)?)?(?:\[([^\[\]]*)\])?"
)


@value
class Period:
    """A length on the calendar: months and days on the wall clock, then exact elapsed time."""

    months: int = 0
    days: int = 0
    elapsed: timedelta = timedelta(0)

    def __bool__(self) -> bool:
        return bool(self.months or self.days or self.elapsed)

    def __str__(self) -> str:
        """The shortest text that `period` reads back as this value: `1h30m`, `2d`, `P1MT5M`."""
        if not self.months:
            days = f"{self.days}d" if self.days else ""
            clock = _clock(self.elapsed) if self.elapsed or not days else ""
            return days + clock
        years, months = divmod(self.months, 12)
        date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (self.days, "D")) if n)
        return f"P{date}" + (f"T{_clock(self.elapsed).upper()}" if self.elapsed else "")

    def describe(self) -> str:
        """Say the length in words: `1 hour 30 minutes`."""
        years, months = divmod(self.months, 12)
        weeks, days = divmod(self.days, 7) if self.days % 7 == 0 else (0, self.days)
        seconds, micros = divmod(self.elapsed // timedelta(microseconds=1), _SECOND)
        hours, minutes = divmod(seconds // 60, 60)
        rest = f"{seconds % 60}.{micros:06}".rstrip("0") if micros else str(seconds % 60)
        counts = (
            (str(years), "year"),
            (str(months), "month"),
            (str(weeks), "week"),
            (str(days), "day"),
            (str(hours), "hour"),
            (str(minutes), "minute"),
            (rest, "second"),
        )
        return " ".join(f"{n} {unit}" if n == "1" else f"{n} {unit}s" for n, unit in counts if n != "0") or "0 seconds"


def period(given: object) -> Period:
    """Return the period that a text or timedelta describes; weeks and days are calendar days."""
    if isinstance(given, timedelta):
        if given < timedelta(0):
            raise InvalidDuration(given, "must not be negative")
        return Period(elapsed=given)
    if isinstance(given, Period):
        return given
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        raise InvalidDuration(given, _say_the_unit(given))
    if not isinstance(given, str):
        raise InvalidDuration(given, 'must be text like "90s" or "1h30m", ISO-8601 text or a timedelta')
    if len(given) > _MAX_CHARACTERS:
        raise InvalidDuration(given, f"is longer than {_MAX_CHARACTERS} characters")
    if given.startswith("P"):
        return _iso_period(given)
    return _unit_period(given)


def duration(given: object) -> timedelta:
    """Return the fixed length that a text or timedelta describes; a day is 24 hours here.

    Years and months are refused: their length depends on where they begin.
    """
    written = period(given)
    if written.months:
        raise InvalidDuration(given, "has years or months, whose length varies: write days or hours")
    try:
        return written.elapsed + timedelta(days=written.days)
    except OverflowError:
        raise InvalidDuration(given, "is longer than 999,999,999 days") from None


def format_duration(length: timedelta) -> str:
    """Return the text that `duration` reads back as this length: `1h30m`."""
    return _clock(length)


class Moment(NamedTuple):
    """A date and time as written: wall time, the offset if one was written, the zone in brackets if any."""

    wall: datetime
    offset: timedelta | None = None
    zone: str | None = None

    def __str__(self) -> str:
        wall = self.wall.isoformat()
        if self.offset is None:
            return wall
        return wall + ("Z" if not self.offset else self.wall.replace(tzinfo=timezone(self.offset)).isoformat()[-6:])


def moment(text: object) -> Moment:
    """Read an ISO-8601 date and time, with or without offset, and optionally a zone in brackets."""
    if not isinstance(text, str):
        raise InvalidInstant(text, "must be ISO-8601 text like 2026-01-31T09:00:00Z")
    match = re.fullmatch(_MOMENT, text, re.ASCII) if len(text) <= _MAX_CHARACTERS else None
    if match is None:
        raise InvalidInstant(text, "is not an ISO-8601 date and time like 2026-01-31T09:00:00Z")
    groups = match.groups()
    year, month, day, hour, minute, second, fraction = groups[:7] if groups[0] else groups[7:14]
    try:
        wall = datetime(  # noqa: DTZ001 - a wall time is naive by nature
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), _micros(fraction)
        )
    except ValueError as error:
        raise InvalidInstant(text, f"names no date or time: {error}") from None
    return Moment(wall, _offset(text, groups[14]), groups[15])


def instant(given: object) -> datetime:
    """Return the moment as an aware UTC datetime; naive datetimes and texts without offset are refused."""
    if isinstance(given, datetime):
        if given.utcoffset() is None:
            raise InvalidInstant(given, "has no time zone: use datetime(..., tzinfo=UTC) or another zone")
        at = given
    else:
        read = moment(given)
        if read.offset is None or read.zone is not None:
            raise InvalidInstant(given, "must carry its offset and no zone: add Z or an offset like +02:00")
        at = read.wall.replace(tzinfo=timezone(read.offset))
    return _within(given, at)


def later(now: datetime, length: timedelta) -> datetime:
    """Return the moment that comes so long after now; one beyond the calendar is refused."""
    try:
        then = now + length
    except OverflowError:
        raise InvalidDuration(length, "ends after the year 9998") from None
    return _within(length, then)


def _within(given: object, at: datetime) -> datetime:
    """Return the moment in UTC, if it is within the years that have one before and one after them."""
    try:
        moment = at.astimezone(UTC)
    except OverflowError:
        moment = None
    if moment is None or not FIRST <= moment <= LAST:
        raise InvalidInstant(given, "lies outside the years 2 to 9998")
    return moment


def _clock(length: timedelta) -> str:
    seconds, micros = divmod(length // timedelta(microseconds=1), _SECOND)
    hours, minutes = divmod(seconds // 60, 60)
    rest = f"{seconds % 60}.{micros:06}".rstrip("0") if micros else str(seconds % 60)
    parts = ((str(hours), "h"), (str(minutes), "m"), (rest, "s"))
    return "".join(n + unit for n, unit in parts if n != "0") or "0s"


def _say_the_unit(number: object) -> str:
    return f'has no unit: write "{shown(number)}s", "{shown(number)}m" or "{shown(number)}h"'


def _iso_period(text: str) -> Period:
    match = re.fullmatch(_ISO, text, re.ASCII)
    if match is None:
        raise InvalidDuration(text, f"is not a duration; {_ISO_SHAPE}")
    years, months, weeks, days, *clock = match.groups()
    if not any(part is not None for part in match.groups()):
        raise InvalidDuration(text, f"names no length; {_ISO_SHAPE}")
    written = [(clock[i], clock[i + 1], size) for i, size in ((0, 3600), (2, 60), (4, 1)) if clock[i] is not None]
    if any(fraction is not None for _, fraction, _ in written[:-1]):
        raise InvalidDuration(text, f"has a fraction that is not on its last part; {_ISO_SHAPE}")
    micros = sum(_scaled(text, whole, fraction, size * _SECOND) for whole, fraction, size in written)
    return _period(
        text, _number(text, years) * 12 + _number(text, months), _number(text, weeks) * 7 + _number(text, days), micros
    )


def _in_units(text: str) -> str | None:
    """Return the duration as it is to be written, if it is written in words: 5m for `5 minutes`."""
    match = re.fullmatch(r"(\d+)\s*(second|sec|minute|min|hour|day|week)s?", text.lower(), re.ASCII)
    return None if match is None else f"{match[1]}{match[2][0]}"


def _unit_period(text: str) -> Period:
    if text.isascii() and text.replace(".", "", 1).isdigit():
        raise InvalidDuration(text, _say_the_unit(text))
    part = re.compile(_PART, re.ASCII)
    position, days, micros, rank = 0, 0, 0, -1
    while position < len(text):
        match = part.match(text, position)
        if match is None:
            written = _in_units(text) or "it like 90s, 1h30m or PT90S"
            raise InvalidDuration(text, f"cannot be read at character {position + 1}: write {written}")
        whole, fraction, unit = match.groups()
        position = match.end()
        if _ORDER.index(unit) <= rank:
            raise InvalidDuration(text, f"has its units out of order or twice: {unit!r}")
        rank = _ORDER.index(unit)
        if fraction is not None and (unit in "wd" or position < len(text)):
            raise InvalidDuration(text, "may have a fraction only on its last part, and not on days or weeks")
        if unit in "wd":
            days += _number(text, whole) * (7 if unit == "w" else 1)
        else:
            micros += _scaled(text, whole, fraction, _UNITS[unit])
    if rank < 0 or text.endswith(" "):
        raise InvalidDuration(text, "is not a duration: write it like 90s, 1h30m or PT90S")
    return _period(text, 0, days, micros)


def _period(text: str, months: int, days: int, micros: int) -> Period:
    if months > 12 * 9999 or days > 999_999_999 or micros > 86_400 * _SECOND * 999_999_999:
        raise InvalidDuration(text, "is longer than the calendar: at most 9,999 years")
    return Period(months, days, timedelta(microseconds=micros))


def _number(text: str, digits: str | None) -> int:
    if digits is None:
        return 0
    digits = digits.lstrip("0") or "0"
    if len(digits) > 18:
        raise InvalidDuration(text, "has a number of more than 18 digits")
    return int(digits)


def _scaled(text: str, whole: str, fraction: str | None, unit: int) -> int:
    """The number of microseconds; what is finer than one is refused, since it could not be kept."""
    micros = _number(text, whole) * unit
    if fraction is None:
        return micros
    digits = fraction.rstrip("0")
    part, rest = divmod(_number(text, digits or "0") * unit, int(10 ** len(digits)))
    if rest:
        raise InvalidDuration(text, "is finer than a microsecond")
    return micros + part


def _micros(fraction: str | None) -> int:
    digits = (fraction or "").rstrip("0")
    if len(digits) > 6:
        raise ValueError("finer than a microsecond")
    return int(digits.ljust(6, "0"))


def _offset(text: str, written: str | None) -> timedelta | None:
    if written is None:
        return None
    if written == "Z":
        return timedelta(0)
    hours, minutes = int(written[1:3]), int(written[-2:]) if len(written) > 3 else 0
    if hours > 23 or minutes > 59:
        raise InvalidInstant(text, f"has an offset of more than a day: {written}")
    return timedelta(hours=hours, minutes=minutes) * (-1 if written[0] == "-" else 1)
