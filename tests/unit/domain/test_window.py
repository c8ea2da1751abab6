"""The policies `start` and `end` around any schedule."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from everytick.domain.schedule import Schedule
from everytick.domain.window import within
from everytick.schedules.interval import every

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
minutes = st.integers(-300, 300).map(lambda count: EPOCH + timedelta(minutes=count))
QUARTERS = every("15m")


@given(st.none() | minutes, st.none() | minutes, minutes, minutes)
def test_the_instants_are_those_of_the_schedule_from_start_through_end(
    start: datetime | None, end: datetime | None, at: datetime, through: datetime
) -> None:
    """S0-048, S0-049: both ends included; outside nothing is named."""
    bounded = within(QUARTERS, start, end)
    lists = QUARTERS.instants(EPOCH - timedelta(days=2), EPOCH + timedelta(days=2))
    inside = [one for one in lists if (start is None or one >= start) and (end is None or one <= end)]

    assert bounded.next_after(at) == next((one for one in inside if one > at), None)
    assert bounded.last_at(at) == next((one for one in reversed(inside) if one <= at), None)
    assert list(bounded.instants(at, through)) == [one for one in inside if at < one <= through]
    assert list(bounded.instants(at, through, 2)) == [one for one in inside if at < one <= through][:2]


def test_a_window_open_on_both_sides_is_the_schedule_itself() -> None:
    """An unused window costs nothing."""
    assert within(QUARTERS, None, None) is QUARTERS


def test_a_window_is_a_schedule_and_says_its_ends() -> None:
    """For people: where it begins and ends."""
    bounded = within(QUARTERS, EPOCH, EPOCH + timedelta(days=1))
    assert isinstance(bounded, Schedule)
    assert bounded.describe().endswith(", from 2024-01-01 00:00:00 UTC, until 2024-01-02 00:00:00 UTC")
    assert within(QUARTERS, EPOCH, None).describe().endswith(", from 2024-01-01 00:00:00 UTC")
    assert within(QUARTERS, None, EPOCH).describe().endswith(", until 2024-01-01 00:00:00 UTC")
