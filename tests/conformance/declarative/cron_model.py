"""POSIX cron as the specification's grammar reads it, written down once more and as plainly as possible.

It shares no line with the implementation: expressions are read by the five productions of
the grammar, and the minutes of a span are found by looking at every one of them.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
MINUTE = timedelta(minutes=1)

_ELEMENT = re.compile(r"([0-9]+)(?:-([0-9]+))?")


class Refused(Exception):
    """The expression is not in the language; `field` is the first one at fault, or None if there are not five."""

    def __init__(self, field: str | None) -> None:
        super().__init__(field)
        self.field = field


@dataclass(frozen=True)
class Expression:
    """The values of each field, and which of the two day fields are restricted."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    day_is_restricted: bool
    weekday_is_restricted: bool

    def names_date(self, wall: datetime) -> bool:
        """Day-of-Month/Day-of-Week Semantics, the truth table."""
        by_day, by_weekday = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        if self.day_is_restricted and self.weekday_is_restricted:
            return by_day or by_weekday
        return by_day and by_weekday

    def names(self, wall: datetime) -> bool:
        """Say whether a clock on the wall that shows this shows a minute of the expression."""
        is_time = wall.minute in self.minutes and wall.hour in self.hours and wall.month in self.months
        return is_time and self.names_date(wall)


def read(text: str) -> Expression:
    """cron-expr = SP* minute SP+ hour SP+ day SP+ month SP+ weekday SP*, where SP is a blank or a tab."""
    parts = re.split(r"[ \t]+", text.strip(" \t"))
    if len(parts) != len(FIELDS):
        raise Refused(None)
    minutes, hours, days, months, weekdays = (_field(part, *field) for part, field in zip(parts, FIELDS, strict=True))
    return Expression(minutes, hours, days, months, weekdays, parts[2] != "*", parts[4] != "*")


def _field(text: str, name: str, low: int, high: int) -> frozenset[int]:
    """field-content = "*" / element-list; every number within the field's range."""
    if text == "*":
        return frozenset(range(low, high + 1))
    found: set[int] = set()
    for element in text.split(","):
        read_as = _ELEMENT.fullmatch(element)
        if read_as is None:
            raise Refused(name)
        first = int(read_as[1])
        last = first if read_as[2] is None else int(read_as[2])
        if not low <= first <= last <= high:
            raise Refused(name)
        found.update(range(first, last + 1))
    return frozenset(found)


def occurrences(text: str, zone: str, after: datetime, through: datetime) -> list[datetime]:
    """Return every minute in `(after, through]` whose local wall clock the expression names.

    Each minute of elapsed time is looked at once: a wall minute that a clock change skips is
    never seen, and one that it repeats is seen twice.
    """
    expression, local = read(text), ZoneInfo(zone)
    at = after.astimezone(UTC).replace(second=0, microsecond=0)
    found = []
    while (at := at + MINUTE) <= through:
        wall = at.astimezone(local)
        if wall.second == 0 and expression.names(wall):
            found.append(at)
    return found
