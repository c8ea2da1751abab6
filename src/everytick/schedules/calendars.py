"""Calendars: dates on which a schedule does not run, and where it goes instead.

A calendar is dates and weekdays by the time a schedule holds it. A country's holidays or
an ICS file are resolved when the job is defined, for ten years, and stored beside the
schedule's text: two nodes with different editions of a holiday package still agree.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from everytick.domain.schedule import Schedule, bound
from everytick.domain.values import value
from everytick.errors import InvalidSchedule, MissingExtra
from everytick.schedules.combine import Combinable, chain, in_zone, with_options
from everytick.schedules.ics import read_ics
from everytick.schedules.timezones import DAY, FIRST, LAST, MICROSECOND, Zone, utc

TEN_YEARS = timedelta(days=3653)
ROLLS = ("skip", "next", "previous")
_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
# The group of dates around an instant may hold nothing on its far side; the next one that holds anything does.
_GROUPS = 4
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@value
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
            found |= read_ics(Path(ics), since, until)
    return Calendar(name, frozenset(found), frozenset(_weekday(name, given) for given in weekdays))


@value
class Excluding(Combinable):
    """A schedule without the dates of a calendar; `roll` moves what fell on one to an open date."""

    schedule: Schedule
    calendar: Calendar
    roll: str = "skip"
    _zone: Zone | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        zones = {getattr(part, "tz", None) for part in getattr(self.schedule, "parts", ())} - {None}
        if len(zones) > 1:
            raise InvalidSchedule(str(self), "calendar", "must be excluded from each part: they are in different zones")
        object.__setattr__(self, "_zone", None if self.tz is None or self.tz.name == "UTC" else self.tz)

    @property
    def tz(self) -> Zone | None:
        """The zone of the schedule inside: its dates are the ones that count."""
        return getattr(self.schedule, "tz", None)

    def __str__(self) -> str:
        roll = None if self.roll == "skip" else self.roll
        return with_options(f"({self.schedule}) - {self.calendar.name}", roll=roll)

    def describe(self) -> str:
        """Say the rule in plain English."""
        instead = "" if self.roll == "skip" else f", on the {self.roll} open day instead"
        return f"{self.schedule.describe()}, except on {self.calendar.name}{instead}"

    def bound(self, job_id: str, last_end: datetime | None = None) -> "Excluding":
        """Return the exclusion from the schedule as this job has it."""
        return replace(self, schedule=bound(self.schedule, job_id, last_end))

    def in_zone(self, tz: Zone) -> "Excluding":
        """Return the exclusion from the schedule in this zone."""
        return replace(self, schedule=in_zone(self.schedule, tz))

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""
        instant = max(utc(instant), FIRST)
        if self.roll == "skip":
            return self._next_open(instant)
        day = self.calendar.next_open(self._day(instant))
        for _ in range(_GROUPS):
            later = [found for near in self._near(day) for found in self._rolled_to(near) if found > instant]
            if later:
                return min(later)
            following = self.schedule.next_after(self._group(day)[1])
            if following is None:
                return None
            day = self._target(self._day(following))
        raise AssertionError(f"{self}: a later group of dates held no later instant")

    def last_at(self, instant: datetime) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        instant = min(utc(instant), LAST)
        if self.roll == "skip":
            return self._last_open(instant)
        day = self.calendar.last_open(self._day(instant))
        for _ in range(_GROUPS):
            earlier = [found for near in self._near(day) for found in self._rolled_to(near) if found <= instant]
            if earlier:
                return max(earlier)
            former = self.schedule.last_at(self._group(day)[0])
            if former is None:
                return None
            day = self._target(self._day(former))
        raise AssertionError(f"{self}: an earlier group of dates held no earlier instant")

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""
        return chain(self, after, through, limit)

    def _next_open(self, instant: datetime) -> datetime | None:
        found = self.schedule.next_after(instant)
        for _ in range(self._tries):
            if found is None or self._day(found) not in self.calendar:
                return found
            opening = self._start_of(self.calendar.next_open(self._day(found)))
            found = self.schedule.next_after(max(found, opening - MICROSECOND))
        return None

    def _last_open(self, instant: datetime) -> datetime | None:
        found = self.schedule.last_at(instant)
        for _ in range(self._tries):
            if found is None or self._day(found) not in self.calendar:
                return found
            closing = self._start_of(self.calendar.last_open(self._day(found)) + DAY)
            found = self.schedule.last_at(min(found, closing) - MICROSECOND)
        return None

    @property
    def _tries(self) -> int:
        """How many closed spells in a row mean never: each listed date once, and sixty years of weekdays."""
        return len(self.calendar.dates) + 10_000

    def _near(self, day: date) -> tuple[date, ...]:
        """The open date, and its neighbours where a clock change may put one date's instants among another's."""
        if self._steady(self._start_of(day) - DAY, self._start_of(day) + 2 * DAY):
            return (day,)
        return self.calendar.last_open(day - DAY), day, self.calendar.next_open(day + DAY)

    def _rolled_to(self, day: date) -> set[datetime]:
        """The instants that come to stand on an open date: its own, and those rolled there."""
        after, through = self._group(day)
        if not self._steady(after, through):
            after, through = after - DAY, through + DAY
        found = self.schedule.instants(after, through)
        return {self._moved(instant, day) for instant in found if self._target(self._day(instant)) == day}

    def _steady(self, after: datetime, through: datetime) -> bool:
        """Whether the zone keeps one offset over a span and a day around it."""
        return self._zone is None or self._zone.stretch(after - DAY) is self._zone.stretch(through + DAY)

    def _group(self, day: date) -> tuple[datetime, datetime]:
        """The span `(after, through]` of instants whose date is this open one or rolls to it."""
        if self.roll == "next":
            first, last = self.calendar.last_open(day - DAY) + DAY, day
        else:
            first, last = day, self.calendar.next_open(day + DAY) - DAY
        return self._start_of(first) - MICROSECOND, self._start_of(last + DAY) - MICROSECOND

    def _target(self, day: date) -> date:
        return self.calendar.next_open(day) if self.roll == "next" else self.calendar.last_open(day)

    def _moved(self, instant: datetime, day: date) -> datetime:
        if self._day(instant) == day:
            return instant
        wall = datetime.combine(day, self._wall(instant).time(), UTC)
        return self._zone.resolve(wall) if self._zone else wall

    def _wall(self, instant: datetime) -> datetime:
        return self._zone.wall(instant) if self._zone else instant

    def _day(self, instant: datetime) -> date:
        return self._wall(instant).date()

    def _start_of(self, day: date) -> datetime:
        """The first instant of a date; where midnight does not exist, the first after the gap."""
        midnight = datetime.combine(day, datetime.min.time(), UTC)
        if self._zone is None:
            return midnight
        start = self._zone.resolve(midnight)
        return start if self._zone.wall(start) == midnight else self._zone.stretch(start).start


def checked_roll(roll: object) -> str:
    """Return the roll rule; an unknown one is refused."""
    if roll not in ROLLS:
        raise InvalidSchedule(roll, "roll", f"must be one of {', '.join(ROLLS)}")
    return str(roll)


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
