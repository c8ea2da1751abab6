"""The policies `start` and `end` around a schedule of any kind."""

from collections.abc import Sequence
from datetime import datetime

from everytick.domain.durations import MICROSECOND
from everytick.domain.schedule import Schedule
from everytick.domain.values import value


@value
class Within:
    """The instants of a schedule from `start` through `end`, both included; None leaves a side open."""

    schedule: Schedule
    start: datetime | None
    end: datetime | None

    def next_after(self, instant: datetime, /) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""
        if self.start is not None and instant < self.start:
            instant = self.start - MICROSECOND
        named = self.schedule.next_after(instant)
        return None if named is None or (self.end is not None and named > self.end) else named

    def last_at(self, instant: datetime, /) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        named = self.schedule.last_at(instant if self.end is None else min(instant, self.end))
        return None if named is None or (self.start is not None and named < self.start) else named

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> Sequence[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""
        after = after if self.start is None else max(after, self.start - MICROSECOND)
        through = through if self.end is None else min(through, self.end)
        return self.schedule.instants(after, through, limit)

    def describe(self) -> str:
        """Say the rule in plain English."""
        start = f", from {self.start:%Y-%m-%d %H:%M:%S} UTC" if self.start else ""
        end = f", until {self.end:%Y-%m-%d %H:%M:%S} UTC" if self.end else ""
        return self.schedule.describe() + start + end


def within(schedule: Schedule, start: datetime | None, end: datetime | None) -> Schedule:
    """Return the schedule inside the window; with neither side, the schedule itself."""
    return schedule if start is None and end is None else Within(schedule, start, end)
