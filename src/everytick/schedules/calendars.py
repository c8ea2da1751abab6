"""Calendars: named dates on which a schedule does not run.

A calendar is dates and weekdays by the time a schedule holds it. A country's holidays or
an ICS file are resolved when the job is defined, for ten years, and stored beside the
schedule's text: two nodes with different editions of a holiday package still agree.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from everytick.domain.values import value
from everytick.errors import InvalidSchedule, MissingExtra
from everytick.schedules.timezones import DAY

TEN_YEARS = timedelta(days=3653)
_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@value(frozen=True)
class Calendar:
    """A named set of dates, and weekdays (Monday is 1, Sunday 7) that count as such dates for ever."""

    name: str
    dates: frozenset[date] = frozenset()
    weekdays: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise InvalidSchedule(
                self.name, "calendar", "must have a name of letters, digits, dots, dashes and underscores"
            )
        if not self.weekdays <= set(range(1, 8)):
            raise InvalidSchedule(self.name, "weekdays", "must be numbers from 1 (Monday) to 7 (Sunday)")
        if len(self.weekdays) == 7:
            raise InvalidSchedule(self.name, "weekdays", "must leave at least one day of the week")

    def __contains__(self, day: date) -> bool:
        return day.isoweekday() in self.weekdays or day in self.dates

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
        return {"name": self.name, "dates": sorted(map(str, self.dates)), "weekdays": sorted(self.weekdays)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Iterable[str]]) -> "Calendar":
        """Return the calendar that `to_json` gave."""
        dates = frozenset(map(date.fromisoformat, stored["dates"]))
        return cls(str(stored["name"]), dates, frozenset(map(int, stored["weekdays"])))


def calendar(
    name: str,
    *,
    dates: Iterable[date | str] = (),
    weekdays: Iterable[str | int] = (),
    country: str | None = None,
    region: str | None = None,
    ics: str | Path | None = None,
    since: date | None = None,
) -> Calendar:
    """Return a calendar of the given dates, weekdays, a country's holidays and an ICS file's events.

    Holidays and events are resolved for ten years from `since`, which they therefore need.
    """
    found = {_date(name, given) for given in dates}
    if country is not None or ics is not None:
        if since is None:
            raise InvalidSchedule(name, "since", "must say from which date on holidays or events are resolved")
        until = since + TEN_YEARS
        if country is not None:
            found |= _holidays(country, region, since, until)
        if ics is not None:
            # Imported here: few calendars come from such a file.
            from everytick.schedules.ics import read_ics

            found |= read_ics(Path(ics), since, until)
    return Calendar(name, frozenset(found), frozenset(_weekday(name, given) for given in weekdays))


def _date(name: str, given: date | str) -> date:
    if isinstance(given, datetime):
        raise InvalidSchedule(name, "dates", f"must be dates, not times: {given}")
    if isinstance(given, date):
        return given
    try:
        return datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except (TypeError, ValueError):
        raise InvalidSchedule(name, "dates", f"must be dates like 2026-12-24, got {given!r}") from None


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
        found = holidays.country_holidays(country, subdiv=region, years=range(since.year, until.year + 1))
    except NotImplementedError:
        where = f"{country}, {region}" if region else country
        raise InvalidSchedule(where, "country", "is not a country or region whose holidays are known") from None
    return {day for day in found if since <= day < until}
