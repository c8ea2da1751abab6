"""Celery's schedules as ours: the same minutes, and a word for what cannot be said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery.schedules import BaseSchedule, crontab, schedule

from everytick import every
from everytick.beat.celery_schedules import schedule_of
from everytick.sources.importing.findings import Unsayable

BEGIN = datetime(2026, 1, 20, 23, 59, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"minute": 30, "hour": "2"},
        {"minute": "*/17", "hour": "8-18/3"},
        {"minute": "0", "hour": "0", "day_of_week": "mon,wed"},
        {"minute": "5,10", "hour": 3, "day_of_month": "1-7", "day_of_week": "sunday"},
        {"minute": "59", "hour": "23", "day_of_month": "28-31", "month_of_year": "*/2"},
        {"hour": "22-2"},
    ],
)
def test_a_crontab_names_the_minutes_that_celery_would(fields: dict[str, Any]) -> None:
    """Every field must match, days of month and of week too."""
    theirs = crontab(**fields)
    minutes = [BEGIN + number * MINUTE for number in range(1, 45 * 24 * 60)]
    wanted = [
        at
        for at in minutes
        if at.minute in theirs.minute
        and at.hour in theirs.hour
        and at.day in theirs.day_of_month
        and at.month in theirs.month_of_year
        and at.isoweekday() % 7 in theirs.day_of_week
    ]

    assert wanted
    assert list(schedule_of(theirs).instants(BEGIN, minutes[-1])) == wanted


def test_a_length_is_an_interval() -> None:
    assert schedule_of(schedule(timedelta(seconds=90))) == every("90s")
    assert schedule_of(schedule(2.5)) == every("2.5s")


class Moon(BaseSchedule):  # type: ignore[misc]
    """A schedule of the user's own."""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Moon(), "Moon: only crontab"),
        (crontab(nowfun=lambda: BEGIN), "the time is always the store's"),
        (schedule(0), "no length"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_reason(given: object, why: str) -> None:
    with pytest.raises(Unsayable, match=why):
        schedule_of(given)
