"""Schedules of one instant, `once` and `after_completion`, whose instant follows the last end; and of none."""

from dataclasses import replace
from datetime import datetime, timedelta

from everytick.domain.durations import Moment, Period, duration, format_duration
from everytick.domain.values import value
from everytick.errors import InvalidDuration, InvalidInstant, InvalidSchedule
from everytick.schedules.combine import Combinable, checked_limit, with_options
from everytick.schedules.timezones import Zone, instant_of, read_moment, utc, zone_of


def once(at: object, *, tz: object = None) -> "Once":
    """Return the schedule of one instant: an aware datetime, or ISO-8601 text with an offset or a zone."""
    zone = zone_of(tz)
    try:
        moment, zone = read_moment(at, zone)
        if zone is None and moment.offset is not None:
            moment = Moment(instant_of(moment, None).replace(tzinfo=None), timedelta(0))
        return Once(moment, zone)
    except InvalidInstant as error:
        raise InvalidSchedule(at, "once", error.reason) from error


def after_completion(delay: object) -> "AfterCompletion":
    """Return the schedule that names an instant `delay` after the last occurrence ended."""
    try:
        return AfterCompletion(duration(delay))
    except InvalidDuration as error:
        raise InvalidSchedule(delay, "delay", error.reason) from error


def on_request() -> "OnRequest":
    """Return the schedule of a job that runs only when it is asked for: now, or later with `trigger(…, at=…)`."""
    return OnRequest()


@value
class Once(Combinable):
    """One instant, and then the schedule is complete."""

    at: Moment
    tz: Zone | None

    def __post_init__(self) -> None:
        instant_of(self.at, self.tz)

    def __str__(self) -> str:
        return with_options(f"once: {self.at}", tz=self.tz)

    def describe(self) -> str:
        """Say the rule in plain English."""
        where = "" if self.at.offset is not None and self.tz is None else self._zone_words()
        return f"once, at {str(self.at).replace('T', ' ')}{where}"

    def in_zone(self, tz: Zone) -> "Once":
        """Return the schedule in this zone, unless its instant is already settled."""
        return self if self.tz is not None or self.at.offset is not None else replace(self, tz=tz)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the instant if it is later than `instant`."""
        at = instant_of(self.at, self.tz)
        return at if at > utc(instant) else None

    def last_at(self, instant: datetime) -> datetime | None:
        """Return the instant if it is not later than `instant`."""
        at = instant_of(self.at, self.tz)
        return at if at <= utc(instant) else None

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return the instant if it lies in `(after, through]`."""
        at = instant_of(self.at, self.tz)
        return [at] if utc(after) < at <= utc(through) and checked_limit(limit) else []


@value
class AfterCompletion(Combinable):
    """A fixed delay after the last occurrence ended: nothing is named before one has."""

    delay: timedelta

    @property
    def tz(self) -> Zone | None:
        """None: an end and a delay need no zone."""
        return None

    @property
    def waits_for_end(self) -> bool:
        """Always: that is what it is for."""
        return True

    def __str__(self) -> str:
        return f"after: {format_duration(self.delay)}"

    def describe(self) -> str:
        """Say the rule in plain English."""
        return f"{Period(elapsed=self.delay).describe()} after the last occurrence ended"

    def bound(self, job_id: str, last_end: datetime | None = None) -> "Once | AfterCompletion":
        """Return the one instant that follows from the last end, or the schedule itself before any."""
        if last_end is None:
            return self
        return Once(Moment((utc(last_end) + self.delay).replace(tzinfo=None), timedelta(0)), None)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return None: without a last end it names nothing."""
        return None

    def last_at(self, instant: datetime) -> datetime | None:
        """Return None: without a last end it names nothing."""
        return None

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return nothing: without a last end it names nothing."""
        checked_limit(limit)
        return []


@value
class OnRequest(Combinable):
    """No instant at all: the job runs only when it is asked for."""

    @property
    def tz(self) -> Zone | None:
        """None: there is no time to be read in a zone."""
        return None

    @property
    def is_on_request(self) -> bool:
        """Always: that is what it is for."""
        return True

    def __str__(self) -> str:
        return "on request"

    def describe(self) -> str:
        """Say the rule in plain English."""
        return "only when it is asked for"

    def next_after(self, instant: datetime) -> datetime | None:
        """Return None."""
        return None

    def last_at(self, instant: datetime) -> datetime | None:
        """Return None."""
        return None

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return nothing."""
        checked_limit(limit)
        return []
