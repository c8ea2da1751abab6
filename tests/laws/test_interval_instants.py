"""Repeating intervals against counting from the start, over clock jumps and month ends."""

import time
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everytick import every, repeat
from everytick.domain.schedule import Schedule
from tests.oracle.interval import Period, anchor, count_up
from tests.oracle.moments import Place
from tests.oracle.strategies import CALM_ZONES, anywhen, around_a_jump, periods
from tests.oracle.zones import MINUTE, offset, wall

TIMES = st.sampled_from([None, None, None, 0, 1, 2, 3, 7])
ASKED = st.integers(-100, 2000).map(lambda hours: timedelta(hours=hours))


def written(instant: datetime, zone: ZoneInfo) -> str:
    """Return the instant with the zone's offset; in UTC where that has seconds, which ISO 8601 cannot write."""
    local = instant.astimezone(zone)
    return (instant if offset(instant, zone) % MINUTE else local).isoformat()


def counted(times: int | None) -> str:
    return "R" if times is None else f"R{times}"


@settings(max_examples=250, deadline=None)
@given(around_a_jump(hours=800), periods(), TIMES, ASKED)
def test_repetitions_from_an_offset_start_are_counted_from_it(
    began: tuple[Place, datetime], period: Period, times: int | None, asked: timedelta
) -> None:
    """S0-051: months clamp, days keep the wall time, hours are elapsed time."""
    place, start = began
    zone = ZoneInfo(place.zone)
    schedule = repeat(f"{counted(times)}/{written(start, zone)}/{period}", tz=place.zone)

    assert_counted(schedule, count_up(start, zone, period, times, start + timedelta(days=200)), start + asked, start)


@settings(max_examples=200, deadline=None)
@given(around_a_jump(hours=800), periods(), TIMES, ASKED)
def test_repetitions_from_a_wall_time_are_counted_from_it(
    began: tuple[Place, datetime], period: Period, times: int | None, asked: timedelta
) -> None:
    """A start without an offset is a wall time of the zone."""
    place, near = began
    zone = ZoneInfo(place.zone)
    start = wall(near, zone) + timedelta(minutes=30)
    schedule = repeat(f"{counted(times)}/{start.isoformat()}/{period}", tz=place.zone)

    assert_counted(schedule, count_up(start, zone, period, times, near + timedelta(days=200)), near + asked, near)


@settings(max_examples=100, deadline=None)
@given(anywhen(1990, 2030), periods(), st.integers(-14 * 60, 14 * 60), ASKED)
def test_without_a_zone_the_start_keeps_its_fixed_offset(
    start: datetime, period: Period, minutes: int, asked: timedelta
) -> None:
    zone = timezone(timedelta(minutes=minutes))
    schedule = repeat(f"R/{start.astimezone(zone).isoformat()}/{period}")

    assert_counted(schedule, count_up(start, zone, period, None, start + timedelta(days=200)), start + asked, start)


@settings(max_examples=80, deadline=None)
@given(CALM_ZONES, periods().filter(lambda period: not period.pure), st.integers(1, 900))
def test_every_without_a_start_counts_from_1970_on_the_wall_of_its_zone(zone: str, period: Period, days: int) -> None:
    """Every process agrees on the phase, and a restart keeps it."""
    at = datetime(1970, 1, 2, tzinfo=UTC) + timedelta(days=days)
    began = anchor(ZoneInfo(zone))
    expected = count_up(wall(began, ZoneInfo(zone)), ZoneInfo(zone), period, None, at + timedelta(days=4000))

    schedule = every(str(period), tz=zone)

    assert schedule.next_after(at) == min(i for i in expected if i > at)
    assert schedule.last_at(at) == max(i for i in expected if i <= at)
    assert schedule.next_after(began - timedelta(days=1)) == began
    assert schedule.last_at(began - timedelta(microseconds=1)) is None


@settings(max_examples=80, deadline=None)
@given(around_a_jump(hours=200), periods(), st.integers(0, 900), ASKED)
def test_every_with_start_and_end_is_cut_at_its_end(
    began: tuple[Place, datetime], period: Period, hours: int, asked: timedelta
) -> None:
    """The start is the anchor and the first instant; the end belongs to the window."""
    place, start = began
    end = start + timedelta(hours=hours)
    schedule = every(str(period), start=start, end=end, tz=place.zone)

    assert_counted(schedule, count_up(start, ZoneInfo(place.zone), period, None, end), start + asked, start)


@settings(max_examples=60, deadline=None)
@given(around_a_jump(hours=100), st.integers(1200, 500_000), TIMES, ASKED)
def test_start_and_end_give_the_period_as_elapsed_time(
    began: tuple[Place, datetime], seconds: int, times: int | None, asked: timedelta
) -> None:
    place, start = began
    zone = ZoneInfo(place.zone)
    end = start + timedelta(seconds=seconds)
    schedule = repeat(f"{counted(times)}/{written(start, zone)}/{written(end, zone)}", tz=place.zone)
    period = Period(seconds=seconds)

    assert_counted(schedule, count_up(start, zone, period, times, start + timedelta(days=30)), start + asked, start)


def assert_counted(schedule: Schedule, expected: list[datetime], at: datetime, start: datetime) -> None:
    """Hold next, last and the list against what was counted; the count ends where its last entry does."""
    if not expected:
        assert (schedule.next_after(at), schedule.last_at(at)) == (None, None)
        return
    reach = expected[-1]
    assert list(schedule.instants(start - timedelta(days=300), reach)) == expected
    if at < reach:
        assert schedule.next_after(at) == min(i for i in expected if i > at)
    if at <= reach:
        assert schedule.last_at(at) == max((i for i in expected if i <= at), default=None)


@pytest.mark.parametrize("text", ["PT1S", "PT0.5S", "PT7S", "P1D", "P1DT1S", "P1M", "P1Y2M10DT2H30M"])
def test_a_period_begun_long_ago_is_looked_up_not_walked(text: str) -> None:
    """Processor time of each answer stays under 50 ms."""
    schedule = repeat(f"R/1970-01-01T00:00:00/{text}", tz="America/New_York")
    at = datetime(2037, 8, 9, 10, 11, 12, 345678, tzinfo=UTC)
    schedule.next_after(at - timedelta(days=1))

    began = time.thread_time()
    following, last = schedule.next_after(at), schedule.last_at(at)
    used = time.thread_time() - began

    assert last is not None
    assert following is not None
    assert last <= at < following
    assert used < 0.1


@pytest.mark.parametrize("text", ["P9999Y", "P5000Y", "P100000M", "P3000000D", "PT70000000H"])
def test_a_period_that_leaves_the_calendar_ends_there(text: str) -> None:
    """A5: beyond year 9999 the answer is None, not an overflow."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    schedule = repeat(f"R/2024-01-01T00:00:00Z/{text}")
    last = schedule.last_at(datetime(9999, 12, 31, tzinfo=UTC))

    assert schedule.next_after(start - timedelta(days=1)) == start
    assert last is not None
    assert last >= start
    assert schedule.next_after(datetime.max.replace(tzinfo=UTC)) is None
