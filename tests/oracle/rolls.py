"""Excluded dates: instants on them vanish or go to a neighbouring business day at the same wall time."""

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta, tzinfo

from tests.oracle.zones import resolve, wall


def excluded(dates: frozenset[date], weekdays: frozenset[int]) -> Callable[[date], bool]:
    """Return the test whether a date is excluded; weekdays count from Monday = 1."""
    return lambda day: day in dates or day.isoweekday() in weekdays


def rolled(
    instants: Iterable[datetime], zone: tzinfo, is_excluded: Callable[[date], bool], roll: str
) -> list[datetime]:
    """Return the instants after the exclusion, in order and each once."""
    found = set()
    for at in instants:
        shown = wall(at, zone)
        if not is_excluded(shown.date()):
            found.add(at)
        elif roll != "skip":
            found.add(resolve(_business_day(shown, is_excluded, roll), zone))
    return sorted(found)


def _business_day(shown: datetime, is_excluded: Callable[[date], bool], roll: str) -> datetime:
    step = timedelta(days=1 if roll == "next" else -1)
    while is_excluded(shown.date()):
        shown += step
    return shown
