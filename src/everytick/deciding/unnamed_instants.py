"""Why a schedule does not name an instant that it would name but for one of its parts.

A window, a calendar and a change of the clock take instants away or move them; each is
asked whether the instant would stand without it.
"""

from datetime import date, datetime, timedelta
from enum import StrEnum

from everytick.domain.durations import MICROSECOND
from everytick.domain.schedule import Schedule
from everytick.domain.values import value
from everytick.domain.window import Within
from everytick.schedules.calendars import Calendar
from everytick.schedules.combine import Shifted, Spread, Union, Window
from everytick.schedules.cron import Cron
from everytick.schedules.exclusions import Excluding
from everytick.schedules.timezones import Zone, instant_of
from everytick.schedules.wall_times import wall_times


class TakenBy(StrEnum):
    """What took an instant away."""

    WINDOW = "window"
    CALENDAR = "calendar"
    MOVED = "moved"
    DROPPED = "dropped"


@value
class Unnamed:
    """What took the instant away, in words, and where it went if it went anywhere."""

    taken: TakenBy
    text: str
    moved_to: datetime | None = None


def names(schedule: Schedule, instant: datetime) -> bool:
    """Tell whether the schedule names this very instant."""
    return schedule.last_at(instant) == instant


def why_unnamed(schedule: Schedule, instant: datetime) -> Unnamed | None:
    """Return what took the instant away; None if no part of the schedule ever named it."""
    match schedule:
        case Within() | Window():
            return _outside(schedule, instant) or why_unnamed(schedule.schedule, instant)
        case Excluding():
            return _excluded(schedule, instant) or why_unnamed(schedule.schedule, instant)
        case Shifted():
            unnamed = why_unnamed(schedule.schedule, instant - schedule.offset)
            if unnamed is None or unnamed.moved_to is None:
                return unnamed
            return Unnamed(unnamed.taken, unnamed.text, unnamed.moved_to + schedule.offset)
        case Union():
            return next(filter(None, (why_unnamed(part, instant) for part in schedule.parts)), None)
        case Cron(tz=Zone() as zone) if zone.name != "UTC":
            return _changed_clock(schedule, zone, instant)
    return None


def moved_here(schedule: Schedule, instant: datetime) -> str | None:
    """Say from which time a change of the clock has moved the instant here; None if it was not moved."""
    while isinstance(schedule, (Within, Window, Excluding)):
        schedule = schedule.schedule
    if not isinstance(schedule, Cron):
        return None
    for change in schedule.clock_changes(instant - timedelta(days=1), instant):
        if change.what == "moved" and change.instant == instant:
            return f"moved here from {change.wall.isoformat(' ')}, which the clock skipped ({change.rule})"
    return None


def window_of(schedule: Schedule) -> tuple[datetime | None, datetime | None]:
    """Return the start and the end that the schedule itself was given."""
    while isinstance(schedule, (Excluding, Spread, Shifted)):
        schedule = schedule.schedule
    if not isinstance(schedule, Window):
        return None, None
    zone = schedule.tz
    return (
        None if schedule.start is None else instant_of(schedule.start, zone),
        None if schedule.end is None else instant_of(schedule.end, zone),
    )


def _outside(schedule: Within | Window, instant: datetime) -> Unnamed | None:
    if not names(schedule.schedule, instant):
        return None
    start, end = (schedule.start, schedule.end) if isinstance(schedule, Within) else window_of(schedule)
    if start is not None and instant < start:
        return Unnamed(TakenBy.WINDOW, f"the schedule starts later, at {start.isoformat()}")
    return Unnamed(TakenBy.WINDOW, f"the schedule has ended before, at {end.isoformat() if end else 'its end'}")


def _excluded(schedule: Excluding, instant: datetime) -> Unnamed | None:
    if not names(schedule.schedule, instant):
        return None
    calendar, tz = schedule.calendar, schedule.tz
    wall = instant if tz is None else tz.wall(instant)
    day = f"{wall.date().isoformat()} is {_among(calendar, wall.date())}"
    if schedule.roll == "skip":
        return Unnamed(TakenBy.CALENDAR, day)
    rolled = schedule.rolled(wall)
    to = rolled if tz is None else tz.resolve(rolled)
    way = "next" if rolled > wall else "previous"
    rule = f" ({schedule.roll})" if schedule.roll not in ("next", "previous") else ""
    return Unnamed(TakenBy.CALENDAR, f"{day}, and it rolls to the {way} open day{rule}", to)


def _among(calendar: Calendar, day: date) -> str:
    if day in calendar:
        return f"among {calendar.name}"
    until = next(until for half_day, until in calendar.half_days if half_day == day)
    return f"a half day of {calendar.name}, until {until.isoformat('minutes')}"


def _changed_clock(schedule: Cron, zone: Zone, instant: datetime) -> Unnamed | None:
    """What a change of the clock did to the wall time of this instant, read by the offset before or after it."""
    matching = wall_times(schedule.expression, schedule.dialect, schedule.day_match)
    stretch = zone.stretch(instant)
    before = zone.before(stretch)
    if before is not None and before.offset < stretch.offset:
        skipped = instant + before.offset
        if skipped < stretch.wall_start and matching.after(skipped - MICROSECOND) == skipped:
            return _in_gap(schedule, stretch.start, skipped)
    wall = instant + stretch.offset
    if matching.after(wall - MICROSECOND) == wall:
        text = f"the clock shows {_shown(wall)} twice, and only the {schedule.dst_fold} time counts"
        return Unnamed(TakenBy.DROPPED, f"{text} (dst_fold={schedule.dst_fold})")
    return None


def _in_gap(schedule: Cron, changed_at: datetime, skipped: datetime) -> Unnamed:
    """The clock was set forward over this wall time."""
    change = next(schedule.clock_changes(changed_at - MICROSECOND, changed_at), None)
    gap = f"the clock skips {_shown(skipped)} when it is set forward at {changed_at.isoformat()}"
    if change is not None and change.what == "moved":
        return Unnamed(TakenBy.MOVED, f"{gap}; it comes right after ({change.rule})", change.instant)
    return Unnamed(TakenBy.DROPPED, f"{gap} ({'dst_gap=skip' if change is None else change.rule})")


def _shown(wall: datetime) -> str:
    return wall.replace(tzinfo=None).isoformat(" ", "minutes")
