"""By when an instant is promised: a length of time after it, or the next time of day in a zone."""

from datetime import datetime, timedelta
from functools import lru_cache

from everytick.domain.durations import MICROSECOND, format_duration
from everytick.domain.job import Job
from everytick.domain.promise_policies import Promised, WallTime
from everytick.domain.schedule import Schedule
from everytick.domain.values import value
from everytick.schedules.cron import cron
from everytick.schedules.timezones import Zone, zone


@value
class Deadlines:
    """The moment by which each instant is promised. A later instant is never promised earlier."""

    promised: Promised
    daily: Schedule | None = None

    def of(self, instant: datetime) -> datetime:
        """Return by when the instant is promised: a time of day is the first one after it."""
        if self.daily is not None:
            due_at = self.daily.next_after(instant)
            return instant if due_at is None else due_at
        assert isinstance(self.promised, timedelta), "a time of day has a schedule"
        return instant + self.promised

    def passed(self, now: datetime) -> datetime:
        """Return the last instant whose moment lies before now."""
        if self.daily is not None:
            last = self.daily.last_at(now - MICROSECOND)
            return datetime.min.replace(tzinfo=now.tzinfo) if last is None else last - MICROSECOND
        assert isinstance(self.promised, timedelta), "a time of day has a schedule"
        return now - self.promised - MICROSECOND

    def __str__(self) -> str:
        return str(self.promised) if isinstance(self.promised, WallTime) else format_duration(self.promised)


def deadlines(promised: Promised, job: Job) -> Deadlines:
    """Return by when the instants of the job are promised. A time of day is one of its schedule's zone."""
    if isinstance(promised, timedelta):
        return Deadlines(promised)
    return Deadlines(promised, _daily(str(promised), zone_of_job(job)))


def zone_of_job(job: Job) -> Zone:
    """Return the zone of the job's schedule, or of the job where the schedule has none."""
    own = getattr(job.schedule, "tz", None)
    return own if isinstance(own, Zone) else zone(job.settings.timezone)


@lru_cache(maxsize=256)
def _daily(clock: str, tz: Zone) -> Schedule:
    """Return the schedule of a time of day. In the night of a clock change it names that night's moment once."""
    hour, minute = clock.split(":")
    return cron(f"{int(minute)} {int(hour)} * * *", tz=tz)
