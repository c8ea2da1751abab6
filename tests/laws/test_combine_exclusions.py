"""Calendars: instants on excluded dates vanish or move to a business day, against the plain rule."""

from datetime import UTC, date, datetime, time, timedelta
from time import thread_time
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everytick import cron, every
from everytick.errors import InvalidSchedule
from everytick.schedules.calendars import Calendar
from tests.oracle.cron import by_dates, read
from tests.oracle.rolls import excluded, rolled
from tests.oracle.strategies import days_off, half_days

EVERY_ROLL = ["skip", "next", "previous", "modified_following"]
ROLLS = st.sampled_from(EVERY_ROLL)
ZONES = st.sampled_from(["UTC", "Asia/Kolkata", "America/Phoenix", "Pacific/Kiritimati", "Europe/Berlin"])
TEXTS = st.sampled_from(
    ["0 9 * * *", "0 0 1,15 * *", "30 23 * * 5", "0 0 * * 1", "0 */8 * * *", "59 23 28-31 * *", "15 6 13 * 5"]
)
SPRING = datetime(2025, 3, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 90 * 24 * 60).map(lambda minutes: SPRING + timedelta(minutes=minutes))
FAR = timedelta(days=70)
REACH = timedelta(days=40)


@settings(max_examples=200, deadline=None)
@given(TEXTS, ZONES, days_off(), st.just({}) | half_days(), ROLLS, MOMENTS, st.integers(0, 30))
def test_exclusions_are_those_of_the_plain_rule(
    text: str,
    zone: str,
    off: tuple[frozenset[date], frozenset[int]],
    halves: dict[date, time],
    roll: str,
    after: datetime,
    days: int,
) -> None:
    """The date is the local one; an instant that moves keeps its wall time, and two that meet are one."""
    dates, weekdays = off
    through = after + timedelta(days=days)
    everything = by_dates(read(text), ZoneInfo(zone), after - FAR, through + FAR)
    left = rolled(everything, ZoneInfo(zone), excluded(dates, weekdays, halves), roll)

    closed = Calendar("off", dates=dates, weekdays=weekdays, half_days=frozenset(halves.items()))
    schedule = cron(text, tz=zone).excluding(closed, roll=roll)

    assert list(schedule.instants(after, through)) == [at for at in left if after < at <= through]
    assert in_reach(schedule.next_after(after), after) == min(
        (at for at in left if after < at <= after + REACH), default=None
    )
    assert in_reach(schedule.last_at(after), after) == max(
        (at for at in left if after - REACH <= at <= after), default=None
    )


def in_reach(answer: datetime | None, asked: datetime) -> datetime | None:
    """Return the answer if brute force looked that far."""
    return answer if answer is not None and abs(answer - asked) <= REACH else None


@pytest.mark.parametrize("roll", EVERY_ROLL)
def test_a_calendar_that_excludes_every_day_leaves_nothing(roll: str) -> None:
    """A schedule that can never fire ends with None, or is refused; it never hangs."""
    began = thread_time()
    try:
        schedule = cron("0 9 * * *").excluding(Calendar("never", weekdays=frozenset(range(1, 8))), roll=roll)
        answers = (schedule.next_after(SPRING), schedule.last_at(SPRING))
    except InvalidSchedule:
        answers = (None, None)

    assert answers == (None, None)
    assert thread_time() - began < 1


@pytest.mark.parametrize("roll", EVERY_ROLL)
@pytest.mark.parametrize(
    "dense", [every("1s"), cron("* * * ? * *", dialect="quartz"), cron("* * * ? * SUN", dialect="quartz")], ids=str
)
def test_many_instants_on_a_long_row_of_excluded_days_are_not_walked_one_by_one(dense: Any, roll: str) -> None:
    """A closed January: days may be walked, a million seconds may not."""
    january = Calendar("closed", dates=frozenset(date(2025, 1, 1) + timedelta(days=n) for n in range(31)))
    schedule = dense.excluding(january, roll=roll)

    began = thread_time()
    answers = [schedule.next_after(SPRING - timedelta(days=40)), schedule.last_at(SPRING - timedelta(days=28))]

    assert thread_time() - began < 1
    assert None not in answers


def test_two_exclusions_both_hold() -> None:
    weekends = Calendar("weekends", weekdays=frozenset({6, 7}))
    holidays = Calendar("holidays", dates=frozenset({date(2025, 12, 25), date(2025, 12, 26)}))
    schedule = cron("0 9 * * *").excluding(weekends, roll="next").excluding(holidays, roll="skip")

    found = schedule.instants(datetime(2025, 12, 24, tzinfo=UTC), datetime(2025, 12, 31, tzinfo=UTC))

    assert [at.day for at in found] == [24, 29, 30]
