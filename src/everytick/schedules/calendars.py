"""Calendars: named dates on which a schedule does not run, and half days on which it runs until a time.

A calendar is dates and weekdays by the time a schedule holds it. A country's holidays or
an ICS file are resolved when the job is defined, for ten years, and stored beside the
schedule's text: two nodes with different editions of a holiday package still agree.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from everytick.domain.values import value
from everytick.errors import InvalidSchedule, MissingExtra
from everytick.schedules.timezones import DAY

TEN_YEARS = timedelta(days=3653)
NOON = time(12)
_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@value(frozen=True)
class Calendar:
    """A named set of dates, and weekdays (Monday is 1, Sunday 7) that count as such dates for ever.

    A half day is one of them from its time on, and open before it.
    """

    name: str
    dates: frozenset[date] = frozenset()
    weekdays: frozenset[int] = frozenset()
    half_days: frozenset[tuple[date, time]] = frozenset()

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise InvalidSchedule(
                self.name, "calendar", "must have a name of letters, digits, dots, dashes and underscores"
            )
        if not self.weekdays <= set(range(1, 8)):
            raise InvalidSchedule(self.name, "weekdays", "must be numbers from 1 (Monday) to 7 (Sunday)")
        if len(self.weekdays) == 7:
            raise InvalidSchedule(self.name, "weekdays", "must leave at least one day of the week")
        if len({day for day, _ in self.half_days}) < len(self.half_days):
            raise InvalidSchedule(self.name, "half_days", "must name a date once")
        if any(until == time() or until.tzinfo is not None for _, until in self.half_days):
            raise InvalidSchedule(self.name, "half_days", "must be open for a while: give a time like 12:00, or a date")

    def __contains__(self, day: date) -> bool:
        """Whether the whole date is one of them; a half day is not."""
        return day.isoweekday() in self.weekdays or day in self.dates

    def bands(self) -> "tuple[Band, ...]":
        """Return the day cut at the times of half days: within each band whole dates are open or not."""
        if not self.half_days:
            return (Band(timedelta(0), DAY, self),)
        cuts = [timedelta(0), *sorted({_since_midnight(until) for _, until in self.half_days}), DAY]
        return tuple(Band(low, high, self._from(low)) for low, high in pairwise(cuts))

    def _from(self, since: timedelta) -> "Calendar":
        """Return the calendar of whole dates that holds from this time of day on."""
        closed = {day for day, until in self.half_days if _since_midnight(until) <= since}
        return Calendar(self.name, self.dates | closed, self.weekdays)

    def next_open(self, day: date) -> date:
        """Return this date or the first later one that the calendar does not hold."""
        while day in self:
            day += DAY
        return day

    def last_open(self, day: date) -> date:
        """Return this date or the last earlier one that the calendar does not hold."""
        while day in self:
            day -= DAY
        return day

    def to_json(self) -> dict[str, object]:
        """Return the calendar as JSON values, for the store."""
        content: dict[str, object] = {
            "name": self.name,
            "dates": sorted(map(str, self.dates)),
            "weekdays": sorted(self.weekdays),
        }
        if self.half_days:
            content["half_days"] = {str(day): until.isoformat() for day, until in sorted(self.half_days)}
        return content

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Calendar":
        """Return the calendar that `to_json` gave."""
        dates = frozenset(map(date.fromisoformat, stored["dates"]))
        half_days = frozenset(
            (date.fromisoformat(day), time.fromisoformat(until)) for day, until in stored.get("half_days", {}).items()
        )
        return cls(str(stored["name"]), dates, frozenset(map(int, stored["weekdays"])), half_days)


class Band(NamedTuple):
    """A part of every day, from `low` on and before `high` by the wall clock, and the dates that are closed in it."""

    low: timedelta
    high: timedelta
    calendar: Calendar


def calendar(
    name: str,
    *,
    dates: Iterable[date | str] = (),
    weekdays: Iterable[str | int] = (),
    half_days: Mapping[date | str, time | str] | Iterable[date | str] = (),
    country: str | None = None,
    region: str | None = None,
    ics: str | Path | None = None,
    since: date | None = None,
) -> Calendar:
    """Return a calendar of the given dates, weekdays, a country's holidays and an ICS file's events.

    Half days count until noon, or until the time that is given for each.
    Holidays and events are resolved for ten years from `since`, which they therefore need.
    """
    days = {_date(name, day) for day in dates}
    if country is not None or ics is not None:
        if since is None:
            raise InvalidSchedule(name, "since", "must say from which date on holidays or events are resolved")
        until = since + TEN_YEARS
        if country is not None:
            days |= _holidays(country, region, since, until)
        if ics is not None:
            # Imported here: few calendars come from such a file.
            from everytick.schedules.ics import read_ics

            days |= read_ics(Path(ics), since, until)
    return Calendar(
        name,
        frozenset(days),
        frozenset(_weekday(name, weekday) for weekday in weekdays),
        frozenset(_half_days(name, half_days)),
    )


def _date(name: str, given: date | str, what: str = "dates") -> date:
    if isinstance(given, datetime):
        raise InvalidSchedule(name, what, f"must be dates, not times: {given}")
    if isinstance(given, date):
        return given
    try:
        return datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except (TypeError, ValueError):
        raise InvalidSchedule(name, what, f"must be dates like 2026-12-24, got {given!r}") from None


def _half_days(name: str, given: Mapping[date | str, time | str] | Iterable[date | str]) -> Iterator[tuple[date, time]]:
    if isinstance(given, str):
        raise InvalidSchedule(name, "half_days", f"must be a list of dates, or dates with a time each, got {given!r}")
    pairs = given.items() if isinstance(given, Mapping) else ((day, NOON) for day in given)
    for day, until in pairs:
        yield _date(name, day, "half_days"), _time(name, until)


def _time(name: str, given: time | str) -> time:
    if isinstance(given, time):
        return given
    try:
        return datetime.strptime(given, "%H:%M").replace(tzinfo=UTC).time()
    except (TypeError, ValueError):
        raise InvalidSchedule(name, "half_days", f"must end at a time like 13:00, got {given!r}") from None


def _since_midnight(until: time) -> timedelta:
    return timedelta(hours=until.hour, minutes=until.minute, seconds=until.second, microseconds=until.microsecond)


def _weekday(name: str, given: str | int) -> int:
    if isinstance(given, int):
        return given
    if given.lower()[:3] in _WEEKDAYS and given.isalpha():
        return _WEEKDAYS.index(given.lower()[:3]) + 1
    raise InvalidSchedule(name, "weekdays", f"must be among {', '.join(_WEEKDAYS)}, got {given!r}")


def _holidays(country: str, region: str | None, since: date, until: date) -> set[date]:
    try:
        import holidays
    except ImportError:
        raise MissingExtra("a country's holidays", "holidays") from None
    try:
        days = holidays.country_holidays(country, subdiv=region, years=range(since.year, until.year + 1))
    except NotImplementedError:
        where = f"{country}, {region}" if region else country
        raise InvalidSchedule(where, "country", "is not a country or region whose holidays are known") from None
    return {day for day in days if since <= day < until}
