"""A schedule without the dates of a calendar, and where the instants on them go instead.

Dates are those of the schedule's zone. A rolled instant keeps its time of day; nothing here
lists the instants of a day, since there may be millions.
"""

from collections.abc import Iterator
from dataclasses import field, replace
from datetime import UTC, date, datetime, timedelta

from everytick.domain.schedule import Schedule, bound
from everytick.domain.values import value
from everytick.errors import InvalidSchedule
from everytick.schedules.calendars import Calendar
from everytick.schedules.combine import Combinable, chain, in_zone, with_options
from everytick.schedules.timezones import ALWAYS_UTC, DAY, FIRST, LAST, MICROSECOND, Stretch, Zone, utc

ROLLS = ("skip", "next", "previous")
_GROUPS_TRIED = 4
"""The group of dates around an instant may hold no later one; the next group with an instant does."""
# A year is kept free at both ends of the calendar for dates to roll into.
_EARLY, _LATE = FIRST.replace(year=FIRST.year + 1), LAST.replace(year=LAST.year - 1)


@value
class Excluding(Combinable):
    """A schedule without the dates of a calendar; `roll` moves instants on these dates to an open date."""

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
        instant = utc(instant)
        try:
            return self._next_open(instant) if self.roll == "skip" else self._next_rolled(max(instant, _EARLY))
        except OverflowError:
            # Beyond the calendar there is nothing to find.
            return None

    def last_at(self, instant: datetime) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        instant = utc(instant)
        try:
            return self._last_open(instant) if self.roll == "skip" else self._last_rolled(min(instant, _LATE))
        except OverflowError:
            return None

    def _next_rolled(self, instant: datetime) -> datetime | None:
        if instant > _LATE:
            return None
        day = self.calendar.next_open(self._day(instant))
        for _ in range(_GROUPS_TRIED):
            later = [found for near in self._near(day) if (found := self._first_after(near, instant))]
            if later:
                return min(later)
            following = self.schedule.next_after(self._start_of(self._group(day)[-1] + DAY) - MICROSECOND)
            if following is None:
                return None
            day = self._target(self._day(following))
        raise AssertionError(f"{self}: a later group of dates held no later instant")

    def _last_rolled(self, instant: datetime) -> datetime | None:
        if instant < _EARLY:
            return None
        day = self.calendar.last_open(self._day(instant))
        for _ in range(_GROUPS_TRIED):
            earlier = [found for near in self._near(day) if (found := self._last_through(near, instant))]
            if earlier:
                return max(earlier)
            former = self.schedule.last_at(self._start_of(self._group(day)[0]) - MICROSECOND)
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
        start = self._start_of(day)
        if self._zone is None or self._zone.stretch(start - DAY) is self._zone.stretch(start + 2 * DAY):
            return (day,)
        return self.calendar.last_open(day - DAY), day, self.calendar.next_open(day + DAY)

    def _first_after(self, day: date, instant: datetime) -> datetime | None:
        """The first instant that comes to stand on an open date after a moment: its own, or rolled there."""
        found = [
            at + shift
            for low, high, shift in self._ways_to(day)
            if (at := self.schedule.next_after(max(low - MICROSECOND, instant - shift))) and at < high
        ]
        return min(found, default=None)

    def _last_through(self, day: date, instant: datetime) -> datetime | None:
        """The last instant that comes to stand on an open date through a moment: its own, or rolled there."""
        found = [
            at + shift
            for low, high, shift in self._ways_to(day)
            if (at := self.schedule.last_at(min(high - MICROSECOND, instant - shift))) and at >= low
        ]
        return max(found, default=None)

    def _ways_to(self, day: date) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """Give spans `[low, high)` of instants that come to stand on an open date, each moved by one length.

        Within such a span order is kept, so that its first and last need no list of the others.
        """
        for date_ in self._group(day):
            for low, high, offset in self._passes(date_):
                if date_ == day:
                    yield low, high, DAY * 0
                    continue
                moved = (day - date_) + offset
                for wall_low, wall_high, target in self._resolved(day):
                    first, last = max(low, wall_low - moved), min(high, wall_high - moved)
                    if first < last:
                        yield first, last, moved - target

    def _group(self, day: date) -> list[date]:
        """The open date and the closed ones that roll to it, in order."""
        if self.roll == "next":
            first, last = self.calendar.last_open(day - DAY) + DAY, day
        else:
            first, last = day, self.calendar.next_open(day + DAY) - DAY
        return [first + n * DAY for n in range((last - first).days + 1)]

    def _passes(self, day: date) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """Give spans `[low, high)` of the instants of a date, each with its offset."""
        midnight = _midnight(day)
        for stretch in self._stretches(midnight):
            low, high = max(midnight, stretch.wall_start), min(midnight + DAY, stretch.wall_end)
            if low < high:
                yield low - stretch.offset, high - stretch.offset, stretch.offset

    def _resolved(self, day: date) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """Give spans `[low, high)` of the wall times of a date, each with the offset that resolves them.

        A wall time that comes twice is its first pass; one in a gap moves on by the gap.
        """
        midnight = _midnight(day)
        seen = midnight
        before: timedelta | None = None
        for stretch in self._stretches(midnight):
            if before is not None and seen < min(stretch.wall_start, midnight + DAY):
                yield seen, min(stretch.wall_start, midnight + DAY), before
                seen = stretch.wall_start
            low, high = max(seen, stretch.wall_start), min(midnight + DAY, stretch.wall_end)
            if low < high:
                yield low, high, stretch.offset
            seen, before = max(seen, stretch.wall_end), stretch.offset

    def _stretches(self, midnight: datetime) -> Iterator[Stretch]:
        """Give the stretches of constant offset around a date."""
        if self._zone is None:
            yield ALWAYS_UTC
            return
        stretch: Stretch | None = self._zone.stretch(self._zone.resolve(midnight) - DAY)
        while stretch is not None and stretch.start < midnight + 3 * DAY:
            yield stretch
            stretch = self._zone.after(stretch)

    def _target(self, day: date) -> date:
        return self.calendar.next_open(day) if self.roll == "next" else self.calendar.last_open(day)

    def _wall(self, instant: datetime) -> datetime:
        return self._zone.wall(instant) if self._zone else instant

    def _day(self, instant: datetime) -> date:
        return self._wall(instant).date()

    def _start_of(self, day: date) -> datetime:
        """The first instant of a date; where midnight does not exist, the first after the gap."""
        midnight = _midnight(day)
        if self._zone is None:
            return midnight
        start = self._zone.resolve(midnight)
        return start if self._zone.wall(start) == midnight else self._zone.stretch(start).start


def checked_roll(roll: object) -> str:
    """Return the roll rule; an unknown one is refused."""
    if roll not in ROLLS:
        raise InvalidSchedule(roll, "roll", f"must be one of {', '.join(ROLLS)}")
    return str(roll)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
