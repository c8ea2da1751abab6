"""Celery's schedules as ours: what `beat_schedule` means, read from the objects that Celery made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery import schedules as theirs

from everytick.domain.durations import format_duration
from everytick.errors import shown
from everytick.schedules.codec import schedule
from everytick.schedules.combine import any_of
from everytick.sources.importing.findings import Unsayable
from everytick.sources.importing.wall_rule import DAYS, HOURS, MINUTES, MONTHS, WEEKDAYS, FieldNumbers, WallRule

if TYPE_CHECKING:
    from datetime import timedelta

    from everytick.domain.schedule import Schedule


def schedule_of(given: Any) -> Schedule:
    """Return our schedule that names the same instants. Raise Unsayable, with the reason, if there is none."""
    if isinstance(given, theirs.solar):
        raise Unsayable("solar: there is no schedule that follows the sun")
    if getattr(given, "nowfun", None) is not None:
        raise Unsayable("nowfun: the time is always the store's")
    if isinstance(given, theirs.crontab):
        return _crontab(given)
    if type(given) is theirs.schedule:
        return _interval(given.run_every)
    raise Unsayable(
        f"{shown(type(given).__name__)}: only crontab, timedelta, schedule and numbers of seconds are known"
    )


def _interval(length: timedelta) -> Schedule:
    if length.total_seconds() <= 0:
        raise Unsayable("its schedule has no length")
    return schedule(f"every {format_duration(length)}")


def _crontab(given: Any) -> Schedule:
    """Celery wants every field to match, days of month and of week too."""
    rule = WallRule(
        minute=_numbers(given.minute, MINUTES),
        hour=_numbers(given.hour, HOURS),
        day=_numbers(given.day_of_month, DAYS),
        month=_numbers(given.month_of_year, MONTHS),
        weekday=_numbers(given.day_of_week, WEEKDAYS),
    )
    texts = [schedule(text) for text in rule.texts()]
    return texts[0] if len(texts) == 1 else any_of(*texts)


def _numbers(numbers: set[int], bounds: tuple[int, int]) -> FieldNumbers:
    least, most = bounds
    return None if len(numbers) == most - least + 1 else frozenset(numbers)
