"""Rare and impossible dates: found however far away, and never searched for without an end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta

import pytest

from everytick import cron
from tests.oracle.cron import by_dates, read

EARLY = datetime(1999, 12, 31, 23, 59, tzinfo=UTC)
LEAP_CORNERS = [
    datetime(year, month, day, hour, minute, tzinfo=UTC)
    for year in (1996, 1999, 2000, 2001, 2023, 2024, 2096, 2100, 2101, 2104, 2200)
    for month, day in ((2, 28), (3, 1), (12, 31), (1, 1))
    for hour, minute in ((0, 0), (23, 59))
] + [datetime(year, 2, 29, 12, tzinfo=UTC) for year in (1996, 2000, 2024, 2096, 2104, 2400)]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block used more processor time than this; waiting for other processes does not count."""
    start = time.thread_time()
    yield
    assert time.thread_time() - start < seconds


def exists_in_some_year(month: int, day: int) -> bool:
    try:
        date(2024, month, day)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("month", range(1, 13))
def test_every_pair_of_day_and_month_is_answered_at_once(month: int) -> None:
    """A1, A2, A3, A5: a date, or None where the calendar has no such day."""
    for day in range(1, 32):
        schedule = cron(f"0 0 {day} {month} *")
        with within(1):
            found = schedule.next_after(EARLY)
            before = schedule.last_at(EARLY)
        if exists_in_some_year(month, day):
            assert found == datetime(2000, month, day, tzinfo=UTC)
            year = 1996 if (month, day) == (2, 29) else 1999
            assert before == datetime(year, month, day, tzinfo=UTC)
        else:
            assert (found, before) == (None, None)


@pytest.mark.parametrize("at", LEAP_CORNERS, ids=str)
def test_a_leap_day_is_found_from_every_corner_of_the_calendar(at: datetime) -> None:
    """A6, A7, A9: from 2096 the next one is 2104, since 2100 is no leap year."""
    leap_days = [datetime(y, 2, 29, tzinfo=UTC) for y in range(1600, 2500) if exists(y)]
    schedule = cron("0 0 29 2 *")

    assert schedule.next_after(at) == min(day for day in leap_days if day > at)
    assert schedule.last_at(at) == max(day for day in leap_days if day <= at)


def exists(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@pytest.mark.parametrize("at", LEAP_CORNERS, ids=str)
@pytest.mark.parametrize("text", ["0 0 29 2 1", "0 12 31 * *", "0 0 1 3 *", "30 6 28-29 feb sun", "0 0 * 2 *"])
def test_months_of_every_length_end_where_they_should(text: str, at: datetime) -> None:
    """A6, A8: with the clock at the corners of leap, common and century years."""
    schedule, rule = cron(text), read(text)

    expected = by_dates(rule, UTC, at, at + timedelta(days=400))

    assert list(schedule.instants(at, at + timedelta(days=400))) == expected


def test_a_leap_day_on_a_given_weekday_is_found_decades_away() -> None:
    """A7: 29 February on a Monday, both fields required, is up to forty years away."""
    schedule = cron("0 0 29 2 1", day_match="and")
    mondays = [y for y in range(2000, 2500) if exists(y) and date(y, 2, 29).isoweekday() == 1]

    answers = [schedule.next_after(datetime(y, 3, 1, tzinfo=UTC)) for y in mondays[:-1]]

    assert answers == [datetime(y, 2, 29, tzinfo=UTC) for y in mondays[1:]]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("0 0 30 2 *", "vixie"),
        ("0 0 31 4,6,9,11 *", "vixie"),
        ("0 0 30-31 2 *", "posix"),
        ("* * 31 2,4,6,9,11 *", "posix"),
        ("0 0 0 31 2 ?", "quartz"),
        ("0 0 0 31W 4 ?", "quartz"),
        ("0 0 0 L-30 2 ?", "quartz"),
        ("* * * 30 2 ? *", "quartz"),
        ("0 0 0 29 2 ? 2023", "quartz"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Apia"])
def test_what_can_never_fire_is_answered_with_none_within_a_second(text: str, dialect: str, zone: str) -> None:
    """A1, A2, A5: never a hang, never an exception."""
    schedule = cron(text, tz=zone, dialect=dialect)

    with within(1):
        assert schedule.next_after(EARLY) is None
        assert schedule.last_at(EARLY) is None
        assert list(schedule.instants(EARLY, EARLY + timedelta(days=36500))) == []


def test_an_impossible_day_does_not_veto_its_weekday() -> None:
    """J9: day 31 of April and February, or a Wednesday or Friday."""
    schedule = cron("20,25 1 31 4,2 3,3,5")

    assert schedule.next_after(datetime(2025, 1, 1, tzinfo=UTC)) == datetime(2025, 2, 5, 1, 20, tzinfo=UTC)


@pytest.mark.parametrize("dialect", ["posix", "vixie", "quartz"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_edges_of_the_calendar_are_answers_not_overflows(dialect: str, zone: str) -> None:
    """A5: at the first and last moments a datetime can hold the answer is an instant or None."""
    schedule = cron("0 0 0 1 1 ?" if dialect == "quartz" else "0 0 1 1 *", tz=zone, dialect=dialect)
    last = datetime.max.replace(tzinfo=UTC)
    first = datetime.min.replace(tzinfo=UTC)

    following, latest = schedule.next_after(first), schedule.last_at(last)

    assert schedule.next_after(last) is None
    assert schedule.last_at(first) in (None, first)
    assert following is None or following > first
    assert latest is None or latest <= last
