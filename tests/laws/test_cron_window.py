"""Start and end of a cron schedule: a window on its instants, both ends included."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from everytick import cron
from tests.oracle.cron import by_dates, read
from tests.oracle.moments import Place, jump_at
from tests.oracle.strategies import PLACE, five_fields

HOURS = st.integers(-40 * 60, 40 * 60).map(lambda minutes: timedelta(minutes=minutes))


@settings(max_examples=120, deadline=None)
@given(five_fields("vixie"), PLACE, HOURS, st.integers(0, 4000), HOURS)
def test_a_window_cuts_the_instants_and_moves_none(
    text: str, place: Place, opens: timedelta, minutes: int, asked: timedelta
) -> None:
    """S0-047, S0-048, S0-049: start <= t <= end, on the instants as daylight saving left them."""
    jump = jump_at(place)
    start, end = jump + opens, jump + opens + timedelta(minutes=minutes)
    windowed = cron(text, tz=place.zone, start=start, end=end)
    inside = by_dates(read(text), ZoneInfo(place.zone), start - timedelta(microseconds=1), end)
    at = jump + asked

    assert list(windowed.instants(start - timedelta(days=9), end + timedelta(days=9))) == inside
    assert windowed.next_after(at) == min((i for i in inside if i > at), default=None)
    assert windowed.last_at(at) == max((i for i in inside if i <= at), default=None)


def test_start_is_when_the_schedule_becomes_active_not_its_first_instant() -> None:
    """S0-048: daily at 05:00 with a start at 14:00 begins the next morning."""
    windowed = cron("0 5 * * *", start=datetime(2025, 6, 1, 14, tzinfo=UTC))

    assert windowed.next_after(datetime(2025, 1, 1, tzinfo=UTC)) == datetime(2025, 6, 2, 5, tzinfo=UTC)


def test_an_instant_moved_out_of_a_gap_into_the_window_counts() -> None:
    """C-03: the window sees 03:00, where the missing 02:30 went."""
    three = datetime(2025, 3, 30, 1, tzinfo=UTC)
    windowed = cron("30 2 * * *", tz="Europe/Berlin", start=three, end=three)

    assert windowed.next_after(three - timedelta(days=1)) == three
    assert windowed.last_at(three + timedelta(days=1)) == three


def test_a_window_without_instants_names_none() -> None:
    windowed = cron("0 5 * * *", start=datetime(2025, 6, 1, 6, tzinfo=UTC), end=datetime(2025, 6, 2, 4, tzinfo=UTC))

    assert windowed.next_after(datetime(2025, 1, 1, tzinfo=UTC)) is None
    assert windowed.last_at(datetime(2026, 1, 1, tzinfo=UTC)) is None
