"""Schedules made of schedules: unions, windows, spread, and exclusions by calendar.

What all schedules share stands here too: binding to a job, taking a zone, being excluded.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import TYPE_CHECKING

from everytick.domain.durations import Moment, Period, duration, format_duration
from everytick.domain.schedule import Schedule, bound, waits_for_end
from everytick.domain.values import value
from everytick.domain.window import within
from everytick.errors import InvalidDuration, InvalidInstant, InvalidSchedule, UnboundSchedule
from everytick.schedules.timezones import Zone, instant_of, placed, read_moment, utc

if TYPE_CHECKING:
    from everytick.schedules.calendars import Calendar

UNLIMITED = 2**63
"""How many schedules a schedule counts as whose parts cannot be counted: more than any limit."""

MAX_CHARACTERS = 100_000
"""The longest text of a schedule."""
MAX_PARTS = 1000
"""The most schedules in one union."""
BEGINNING = datetime.min.replace(tzinfo=UTC)


def hash_number(job_id: str, name: str, size: int) -> int:
    """Return a stable number below `size` for `H` and `spread`: the same on every node, and after a rename.

    It is the first eight bytes of SHA-1 of `<job id>:<name>`.
    """
    from hashlib import sha1  # loads the system's crypto library, which few schedules need

    digest = sha1(f"{job_id}:{name}".encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8]) % size


def checked_limit(limit: int | None) -> int:
    """Return how many instants may be listed; a negative number is refused."""
    if limit is None:
        return UNLIMITED
    if limit < 0:
        raise ValueError(f"limit must not be negative, got {limit}")
    return limit


def chain(schedule: Schedule, after: datetime, through: datetime, limit: int | None) -> list[datetime]:
    """List instants by asking for one after the other."""
    instants: list[datetime] = []
    room, through = checked_limit(limit), utc(through)
    while len(instants) < room:
        instant = schedule.next_after(after)
        if instant is None or instant > through:
            break
        instants.append(instant)
        after = instant
    return instants


def with_options(body: str, **options: object) -> str:
    """Return the text form: the body, then each option that is set."""
    return "".join([body, *(f"; {key}={given}" for key, given in options.items() if given is not None)])


class Combinable(ABC):
    """A schedule of everytick's own: beside naming instants it can be bound to a job, take a zone, and be combined."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def tz(self) -> Zone | None:
            """The zone the schedule was given, or None while it has none of its own."""

    @property
    def waits_for_end(self) -> bool:
        """Whether the next instant follows from the end of the job's last occurrence."""
        part: Schedule | None = getattr(self, "schedule", None)
        if part is not None:
            return waits_for_end(part)
        return any(map(waits_for_end, getattr(self, "parts", ())))

    @abstractmethod
    def next_after(self, instant: datetime, /) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""

    @abstractmethod
    def last_at(self, instant: datetime, /) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""

    @abstractmethod
    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> Sequence[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""

    @abstractmethod
    def describe(self) -> str:
        """Say the rule in plain English."""

    def bound(self, job_id: str, last_end: datetime | None = None) -> Schedule:
        """Return the schedule with this job's id and last end filled in; most schedules need neither."""
        return self

    def in_zone(self, tz: Zone) -> "Combinable":
        """Return the schedule in this zone, unless it has one of its own."""
        return self

    def excluding(self, calendar: "Calendar", roll: str = "skip") -> "Combinable":
        """Return the schedule without the calendar's dates; `roll` moves instants on these dates or drops them."""
        from everytick.schedules.exclusions import Excluding, checked_roll

        return Excluding(self, calendar, checked_roll(roll))

    def spread_over(self, length: object, offset: object = None) -> "Combinable":
        """Return the schedule moved by a stable offset below `length` that differs from job to job.

        With `offset`, it is moved by this one: it was chosen within that length.
        """
        return Spread(self, *checked_spread(str(self), length, offset))

    def _zone_words(self) -> str:
        return f", {self.tz} time" if self.tz is not None and self.tz.name != "UTC" else ", UTC"


class NeedsJob(Combinable):
    """A schedule that has no instants before it knows its job: it refuses to answer until it is bound."""

    __slots__ = ()

    @property
    @abstractmethod
    def _needs(self) -> str:
        """What is missing, and what to ask instead."""

    def next_after(self, instant: datetime) -> datetime | None:
        """Refuse: the instants depend on the job."""
        raise UnboundSchedule(str(self), self._needs)

    def last_at(self, instant: datetime) -> datetime | None:
        """Refuse: the instants depend on the job."""
        raise UnboundSchedule(str(self), self._needs)

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Refuse: the instants depend on the job."""
        raise UnboundSchedule(str(self), self._needs)


@value
class Union(Combinable):
    """The instants of any of several schedules; what two of them name at once is one instant."""

    parts: tuple[Schedule, ...]

    @property
    def tz(self) -> Zone | None:
        """The zone that all parts share, or None."""
        zones = {getattr(part, "tz", None) for part in self.parts}
        return zones.pop() if len(zones) == 1 else None

    def __str__(self) -> str:
        return " | ".join(f"({part})" for part in self.parts)

    def describe(self) -> str:
        """Say the rule in plain English."""
        return "; or ".join(part.describe() for part in self.parts)

    def bound(self, job_id: str, last_end: datetime | None = None) -> "Union":
        """Return the union with each part bound to the job."""
        return Union(tuple(bound(part, job_id, last_end) for part in self.parts))

    def in_zone(self, tz: Zone) -> "Union":
        """Return the union with each part in this zone, unless it has one of its own."""
        return Union(tuple(in_zone(part, tz) for part in self.parts))

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""
        return min(filter(None, (part.next_after(instant) for part in self.parts)), default=None)

    def last_at(self, instant: datetime) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        return max(filter(None, (part.last_at(instant) for part in self.parts)), default=None)

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""
        lists = (part.instants(after, through, limit) for part in self.parts)
        return list(dict.fromkeys(merge(*lists)))[:limit]


@value
class Window(Combinable):
    """The instants of a schedule from `start` through `end`, both included."""

    schedule: Schedule
    start: Moment | None
    end: Moment | None
    _inside: Schedule = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        start = instant_of(self.start, self.tz) if self.start else None
        end = instant_of(self.end, self.tz) if self.end else None
        if start is not None and end is not None and end < start:
            raise InvalidSchedule(str(self), "end", "must not come before start")
        object.__setattr__(self, "_inside", within(self.schedule, start, end))

    @property
    def tz(self) -> Zone | None:
        """The zone of the schedule inside."""
        return getattr(self.schedule, "tz", None)

    def __str__(self) -> str:
        return with_options(str(self.schedule), start=self.start, end=self.end)

    def describe(self) -> str:
        """Say the rule in plain English."""
        start = f", from {str(self.start).replace('T', ' ')}" if self.start else ""
        end = f", until {str(self.end).replace('T', ' ')}" if self.end else ""
        return self.schedule.describe() + start + end

    def bound(self, job_id: str, last_end: datetime | None = None) -> "Window":
        """Return the window around the schedule as this job has it."""
        return replace(self, schedule=bound(self.schedule, job_id, last_end))

    def in_zone(self, tz: Zone) -> "Window":
        """Return the window around the schedule in this zone, its ends read there too."""
        inside = in_zone(self.schedule, tz)
        where = getattr(inside, "tz", None)
        return Window(
            inside,
            placed(self.start, where) if self.start else None,
            placed(self.end, where) if self.end else None,
        )

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""
        return self._inside.next_after(utc(instant))

    def last_at(self, instant: datetime) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        return self._inside.last_at(utc(instant))

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> Sequence[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""
        return self._inside.instants(utc(after), utc(through), limit)


@value
class Spread(NeedsJob):
    """A schedule whose every instant is moved by an offset below `length`: a chosen one, or the job's own."""

    schedule: Schedule
    length: timedelta
    offset: timedelta | None = None

    @property
    def tz(self) -> Zone | None:
        """The zone of the schedule inside."""
        return getattr(self.schedule, "tz", None)

    def __str__(self) -> str:
        chosen = None if self.offset is None else format_duration(self.offset)
        return with_options(str(self.schedule), spread=format_duration(self.length), offset=chosen)

    def describe(self) -> str:
        """Say the rule in plain English."""
        moved = f"{self.schedule.describe()}, spread over {Period(elapsed=self.length).describe()}"
        return moved if self.offset is None else f"{moved}, {Period(elapsed=self.offset).describe()} later"

    def bound(self, job_id: str, last_end: datetime | None = None) -> "Shifted":
        """Return the schedule with the chosen offset, or this job's."""
        return Shifted(bound(self.schedule, job_id, last_end), self.offset_of(job_id))

    def offset_of(self, job_id: str) -> timedelta:
        """Return by how much the instants of this job are moved."""
        if self.offset is not None:
            return self.offset
        return timedelta(seconds=hash_number(job_id, "spread", self.length // timedelta(seconds=1)))

    def in_zone(self, tz: Zone) -> "Spread":
        """Return the schedule inside in this zone, unless it has one of its own."""
        return replace(self, schedule=in_zone(self.schedule, tz))

    @property
    def _needs(self) -> str:
        return "spread takes its offset from the job's id; ask bound(job_id)"


@value
class Shifted(Combinable):
    """A schedule whose every instant comes later by a fixed offset."""

    schedule: Schedule
    offset: timedelta

    @property
    def tz(self) -> Zone | None:
        """The zone of the schedule inside."""
        return getattr(self.schedule, "tz", None)

    def __str__(self) -> str:
        return f"{self.schedule} + {format_duration(self.offset)}"

    def describe(self) -> str:
        """Say the rule in plain English."""
        return f"{self.schedule.describe()}, {Period(elapsed=self.offset).describe()} later"

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""
        inner = self.schedule.next_after(earlier(instant, self.offset))
        return None if inner is None else inner + self.offset

    def last_at(self, instant: datetime) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        inner = self.schedule.last_at(earlier(instant, self.offset))
        return None if inner is None else inner + self.offset

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""
        inner = self.schedule.instants(earlier(after, self.offset), earlier(through, self.offset), limit)
        return [instant + self.offset for instant in inner]


def any_of(*schedules: Schedule) -> Combinable:
    """Return the union of schedules: due whenever any of them is; one alone is its own union."""
    if not 1 <= len(schedules) <= MAX_PARTS:
        raise InvalidSchedule("", "union", f"must have 1 to {MAX_PARTS} schedules, got {len(schedules)}")
    for part in schedules:
        if not isinstance(part, Schedule):
            raise InvalidSchedule(part, "union", "must be made of schedules; read text with schedule(…) first")
    parts = tuple(dict.fromkeys(schedules))
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Combinable) else Union(parts)


def in_window(schedule: Combinable, start: object, end: object) -> Combinable:
    """Return the schedule from `start` through `end`; with neither, the schedule itself."""
    if start is None and end is None:
        return schedule
    return Window(schedule, _edge(schedule, "start", start), _edge(schedule, "end", end))


def in_zone(schedule: Schedule, tz: Zone) -> Schedule:
    """Return the schedule in this zone where it has none; a user's own kind of schedule is left alone."""
    return schedule.in_zone(tz) if isinstance(schedule, Combinable) else schedule


def checked_spread(text: str, length: object, offset: object = None) -> tuple[timedelta, timedelta | None]:
    """Return the length to spread over and the offset that was chosen; both must be whole seconds."""
    whole_length = _whole_seconds(text, "spread", length)
    if not whole_length:
        raise InvalidSchedule(text, "spread", "must be at least one second")
    if offset is None:
        return whole_length, None
    chosen = _whole_seconds(text, "offset", offset)
    if chosen >= whole_length:
        raise InvalidSchedule(text, "offset", f"must be shorter than spread, which is {format_duration(whole_length)}")
    return whole_length, chosen


def _whole_seconds(text: str, name: str, given: object) -> timedelta:
    try:
        whole_length = duration(given)
    except InvalidDuration as error:
        raise InvalidSchedule(text, name, f"cannot be read: {error}") from error
    if whole_length % timedelta(seconds=1):
        raise InvalidSchedule(text, name, "must be whole seconds")
    return whole_length


def earlier(instant: datetime, offset: timedelta) -> datetime:
    """Return the moment that much earlier, or the first moment there is."""
    at = utc(instant)
    return at - offset if at - BEGINNING > offset else BEGINNING


def _edge(schedule: Schedule, name: str, given: object) -> Moment | None:
    if given is None:
        return None
    tz = getattr(schedule, "tz", None)
    try:
        moment, named = read_moment(given, tz)
    except InvalidInstant as error:
        raise InvalidSchedule(given, name, f"cannot be read: {error.reason}") from error
    if tz is None and named is not None:
        moment = Moment(*_utc_moment(moment, named))
    elif tz is None and moment.offset is not None:
        moment = Moment(*_utc_moment(moment, None))
    return moment


def _utc_moment(moment: Moment, tz: Zone | None) -> tuple[datetime, timedelta]:
    """Without a zone to be written in, an end of a window is written as a UTC instant."""
    return instant_of(moment, tz).replace(tzinfo=None), timedelta(0)


def calendars_of(rule: Schedule) -> Iterator["Calendar"]:
    """Give the calendars that a schedule names, at any depth."""
    for part in parts_of(rule):
        # getattr instead of isinstance: most programs need not load the class that has a calendar.
        named: Calendar | None = getattr(part, "calendar", None) if isinstance(part, Combinable) else None
        if named is not None:
            yield named


def parts_of(rule: Schedule) -> Iterator[Schedule]:
    """Give the schedule and all its parts, at any depth. A user's own schedule class is one part."""
    yield rule
    if isinstance(rule, Combinable):
        for part in (getattr(rule, "schedule", None), *getattr(rule, "parts", ())):
            if part is not None:
                yield from parts_of(part)
