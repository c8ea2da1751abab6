"""Excluded dates and half days: instants on them vanish or go to another business day at the same wall time."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta, tzinfo

from tests.oracle.zones import resolve, wall

Excluded = Callable[[datetime], bool]


def excluded(dates: frozenset[date], weekdays: frozenset[int], half_days: Mapping[date, time] = {}) -> Excluded:
    """Return the test whether a wall time is excluded; weekdays count from Monday = 1."""

    def is_excluded(shown: datetime) -> bool:
        day = shown.date()
        until = half_days.get(day)
        return day in dates or day.isoweekday() in weekdays or (until is not None and shown.time() >= until)

    return is_excluded


def rolled(instants: Iterable[datetime], zone: tzinfo, is_excluded: Excluded, roll: str) -> list[datetime]:
    """Return the instants after the exclusion, in order and each once."""
    found = set()
    for at in instants:
        shown = wall(at, zone)
        if not is_excluded(shown):
            found.add(at)
        elif roll != "skip":
            found.add(resolve(_business_day(shown, is_excluded, roll), zone))
    return sorted(found)


def _business_day(shown: datetime, is_excluded: Excluded, roll: str) -> datetime:
    if roll == "modified_following":
        following = _business_day(shown, is_excluded, "next")
        is_same_month = (following.year, following.month) == (shown.year, shown.month)
        return following if is_same_month else _business_day(shown, is_excluded, "previous")
    step = timedelta(days=1 if roll == "next" else -1)
    while is_excluded(shown):
        shown += step
    return shown
