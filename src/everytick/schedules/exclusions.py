"""A schedule without the dates of a calendar, and where the instants on them go instead.

Dates are those of the schedule's zone. A rolled instant keeps its time of day; nothing here
lists the instants of a day, since there may be millions.

Half days cut every day into bands. Within a band whole dates are open or closed, and instants roll from
date to date. The closed dates of the last band include all others: between two dates that are open all
day, every instant stays in the block of dates around one of them, whatever its band.
"""

from collections.abc import Iterator
from dataclasses import field, replace
from datetime import UTC, date, datetime, timedelta

from everytick.domain.durations import FIRST, LAST, MICROSECOND
from everytick.domain.schedule import Schedule, bound
from everytick.domain.values import value
from everytick.errors import InvalidSchedule
from everytick.schedules.calendars import Band, Calendar
from everytick.schedules.combine import Combinable, chain, in_zone, with_options
from everytick.schedules.timezones import ALWAYS_UTC, DAY, Stretch, Zone, utc

ROLLS = ("skip", "next", "previous", "modified_following")
_INSTEAD = {
    "next": "on the next open day",
    "previous": "on the previous open day",
    "modified_following": "on the next open day of the same month, else on the previous one,",
}
_BLOCKS_TRIED = 4
"""The block of dates around an instant may hold no later one; the next block with an instant does."""
# A year is kept free at both ends of the calendar for dates to roll into.
_EARLY, _LATE = FIRST.replace(year=FIRST.year + 1), LAST.replace(year=LAST.year - 1)


@value
class Excluding(Combinable):
    """A schedule without the dates of a calendar; `roll` moves instants on these dates to an open date."""

    schedule: Schedule
    calendar: Calendar
    roll: str = "skip"
    _zone: Zone | None = field(init=False, compare=False, repr=False)
    _bands: tuple[Band, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        zones = {getattr(part, "tz", None) for part in getattr(self.schedule, "parts", ())} - {None}
        if len(zones) > 1:
            raise InvalidSchedule(str(self), "calendar", "must be excluded from each part: they are in different zones")
        object.__setattr__(self, "_zone", None if self.tz is None or self.tz.name == "UTC" else self.tz)
        object.__setattr__(self, "_bands", self.calendar.bands())

    @property
    def tz(self) -> Zone | None:
        """The zone of the schedule inside: its dates are the ones that count."""
        return getattr(self.schedule, "tz", None)

    def __str__(self) -> str:
        roll = None if self.roll == "skip" else self.roll
        return with_options(f"({self.schedule}) - {self.calendar.name}", roll=roll)

    def describe(self) -> str:
        """Say the rule in plain English."""
        instead = "" if self.roll == "skip" else f", {_INSTEAD[self.roll]} instead"
        halves = " and from their time on its half days" if self.calendar.half_days else ""
        return f"{self.schedule.describe()}, except on {self.calendar.name}{halves}{instead}"

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
        day = self._target(self._strict, self._day(instant))
        for _ in range(_BLOCKS_TRIED):
            later = [instant_near for near in self._near(day) if (instant_near := self._first_after(near, instant))]
            if later:
                return min(later)
            following = self.schedule.next_after(self._end_of(self._group(self._strict, day)[-1]) - MICROSECOND)
            if following is None:
                return None
            day = self._target(self._strict, self._day(following))
        raise AssertionError(f"{self}: a later block of dates held no later instant")

    def _last_rolled(self, instant: datetime) -> datetime | None:
        if instant < _EARLY:
            return None
        day = self._target(self._strict, self._day(instant))
        for _ in range(_BLOCKS_TRIED):
            earlier = [instant_near for near in self._near(day) if (instant_near := self._last_through(near, instant))]
            if earlier:
                return max(earlier)
            former = self.schedule.last_at(self._start_of(self._group(self._strict, day)[0]) - MICROSECOND)
            if former is None:
                return None
            day = self._target(self._strict, self._day(former))
        raise AssertionError(f"{self}: an earlier block of dates held no earlier instant")

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""
        return chain(self, after, through, limit)

    def _next_open(self, instant: datetime) -> datetime | None:
        open_instant = self.schedule.next_after(instant)
        for _ in range(self._tries):
            if open_instant is None or self._is_open(open_instant):
                return open_instant
            open_instant = self.schedule.next_after(max(open_instant, self._opening(open_instant) - MICROSECOND))
        return None

    def _last_open(self, instant: datetime) -> datetime | None:
        open_instant = self.schedule.last_at(instant)
        for _ in range(self._tries):
            if open_instant is None or self._is_open(open_instant):
                return open_instant
            open_instant = self.schedule.last_at(min(open_instant, self._closing(open_instant)) - MICROSECOND)
        return None

    def _is_open(self, instant: datetime) -> bool:
        wall = self._wall(instant)
        return wall.date() not in self.band_of(wall).calendar

    def _opening(self, closed: datetime) -> datetime:
        """A moment after a closed instant before which nothing is open.

        A change of the clock may lead back to an open date, or to a time before the end of a half day.
        """
        day, stretch = self._day(closed), self._stretch(closed)
        following = self.calendar.next_open(day) if day in self.calendar else day + DAY
        return min(_midnight(following) - stretch.offset, stretch.end)

    def _closing(self, closed: datetime) -> datetime:
        """A moment not after a closed instant from which on, up to it, nothing is open."""
        day, stretch = self._day(closed), self._stretch(closed)
        if day in self.calendar:
            began = _midnight(self.calendar.last_open(day) + DAY)
        else:
            until = next(until for half_day, until in self.calendar.half_days if half_day == day)
            began = datetime.combine(day, until, tzinfo=UTC)
        return max(began - stretch.offset, stretch.start)

    @property
    def _tries(self) -> int:
        """How many closed spells in a row mean never: each listed date once, and sixty years of weekdays."""
        return len(self.calendar.dates) + 2 * len(self.calendar.half_days) + 10_000

    @property
    def _strict(self) -> Calendar:
        """The dates that are not open all day."""
        return self._bands[-1].calendar

    def band_of(self, wall: datetime) -> Band:
        """Return the band of a wall time."""
        since = wall - wall.replace(hour=0, minute=0, second=0, microsecond=0)
        return next(band for band in self._bands if since < band.high)

    def rolled(self, wall: datetime) -> datetime:
        """Return the wall time to which one on a closed date rolls."""
        return wall + (self._target(self.band_of(wall).calendar, wall.date()) - wall.date())

    def _near(self, day: date) -> Iterator[date]:
        """Give the dates on which instants of the block around a date may come to stand.

        With those of its neighbours, where a clock change may put one date's instants among another's.
        """
        block = self._group(self._strict, day)
        days = [day]
        if self._zone is not None:
            first, last = self._start_of(block[0]) - DAY, self._start_of(block[-1]) + 2 * DAY
            if self._zone.stretch(first) is not self._zone.stretch(last):
                days = [self._strict.last_open(day - DAY), day, self._strict.next_open(day + DAY)]
        for middle in days:
            group = block if middle == day else self._group(self._strict, middle)
            yield from (date_ for date_ in group if date_ not in self.calendar)

    def _first_after(self, day: date, instant: datetime) -> datetime | None:
        """The first instant that comes to stand on an open date after a moment: its own, or rolled there."""
        instants = [
            at + shift
            for low, high, shift in self._ways_to(day)
            if (at := self.schedule.next_after(max(low - MICROSECOND, instant - shift))) and at < high
        ]
        return min(instants, default=None)

    def _last_through(self, day: date, instant: datetime) -> datetime | None:
        """The last instant that comes to stand on an open date through a moment: its own, or rolled there."""
        instants = [
            at + shift
            for low, high, shift in self._ways_to(day)
            if (at := self.schedule.last_at(min(high - MICROSECOND, instant - shift))) and at >= low
        ]
        return max(instants, default=None)

    def _ways_to(self, day: date) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """Give spans `[low, high)` of instants that come to stand on an open date, each moved by one length.

        Within such a span order is kept, so that its first and last need no list of the others.
        """
        for band in self._bands:
            if day in band.calendar:
                continue
            for date_ in self._group(band.calendar, day):
                for low, high, offset in self._passes(date_, band):
                    if date_ == day:
                        yield low, high, DAY * 0
                        continue
                    moved = (day - date_) + offset
                    for wall_low, wall_high, target in self._resolved(day):
                        first, last = max(low, wall_low - moved), min(high, wall_high - moved)
                        if first < last:
                            yield first, last, moved - target

    def _group(self, calendar: Calendar, day: date) -> list[date]:
        """The open date and the closed ones that roll to it, in order."""
        first = last = day
        if self.roll != "previous":
            first = calendar.last_open(day - DAY) + DAY
        if self.roll != "next":
            last = calendar.next_open(day + DAY) - DAY
        if self.roll == "modified_following":
            # Of the closed dates between two open ones, those in the month of the later one roll to it.
            first = max(first, day.replace(day=1))
            last = max(day, min(last, (last + DAY).replace(day=1) - DAY))
        return [first + n * DAY for n in range((last - first).days + 1)]

    def _passes(self, day: date, band: Band) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """Give spans `[low, high)` of the instants of a date within a band, each with its offset."""
        midnight = _midnight(day)
        for stretch in self._stretches(midnight):
            low, high = max(midnight + band.low, stretch.wall_start), min(midnight + band.high, stretch.wall_end)
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

    def _target(self, calendar: Calendar, day: date) -> date:
        """The open date to which a date rolls."""
        if self.roll == "previous":
            return calendar.last_open(day)
        following = calendar.next_open(day)
        if self.roll == "next" or (following.year, following.month) == (day.year, day.month):
            return following
        return calendar.last_open(day)

    def _wall(self, instant: datetime) -> datetime:
        return self._zone.wall(instant) if self._zone else instant

    def _day(self, instant: datetime) -> date:
        return self._wall(instant).date()

    def _stretch(self, instant: datetime) -> Stretch:
        return self._zone.stretch(instant) if self._zone else ALWAYS_UTC

    def _start_of(self, day: date) -> datetime:
        """The first instant of a date; where midnight does not exist, the first after the gap."""
        midnight = _midnight(day)
        if self._zone is None:
            return midnight
        start = self._zone.resolve(midnight)
        return start if self._zone.wall(start) == midnight else self._zone.stretch(start).start

    def _end_of(self, day: date) -> datetime:
        """The moment after the last instant of a date; where the clock goes back over midnight, of its second pass."""
        midnight, end = _midnight(day + DAY), self._start_of(day + DAY)
        after = None if self._zone is None else self._zone.after(self._zone.stretch(end))
        return end if after is None or after.wall_start >= midnight else midnight - after.offset


def checked_roll(roll: object) -> str:
    """Return the roll rule; an unknown one is refused."""
    if roll not in ROLLS:
        raise InvalidSchedule(roll, "roll", f"must be one of {', '.join(ROLLS)}")
    return str(roll)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
