"""ManualClock: it stands still, moves as it is told, and is the time of any store."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick.errors import InvalidDuration, InvalidInstant
from everytick.testing import ManualClock
from tests.stores.acting import AnyStore

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def test_it_stands_still_until_it_is_moved() -> None:
    clock = ManualClock()

    assert clock() == clock() == clock.now == NEW_YEAR
    assert clock.advance("90m") == clock() == NEW_YEAR + timedelta(minutes=90)
    assert clock.advance(timedelta(microseconds=1)) == NEW_YEAR + timedelta(minutes=90, microseconds=1)
    assert clock.set("2025-06-01T12:00:00+02:00") == clock() == datetime(2025, 6, 1, 10, tzinfo=UTC)
    assert repr(clock) == "ManualClock('2025-06-01T10:00:00+00:00')"


def test_it_begins_where_it_is_told() -> None:
    assert ManualClock("2030-01-01T00:00:00Z")() == ManualClock(datetime(2030, 1, 1, tzinfo=UTC))()


@pytest.mark.parametrize("naive", ["2026-01-01T00:00:00", datetime(2026, 1, 1)])  # noqa: DTZ001
def test_a_time_without_a_zone_is_refused(naive: datetime | str) -> None:
    clock = ManualClock()

    with pytest.raises(InvalidInstant):
        ManualClock(naive)
    with pytest.raises(InvalidInstant):
        clock.set(naive)


@pytest.mark.parametrize("length", ["-1s", timedelta(seconds=-1), "90", "P1M"])
def test_a_length_that_does_not_pass_is_refused(length: timedelta | str) -> None:
    clock = ManualClock()

    with pytest.raises(InvalidDuration):
        clock.advance(length)
    assert clock() == NEW_YEAR


async def test_it_is_the_time_of_any_store(store: AnyStore, clock: ManualClock) -> None:
    """S4-048, C-05: C-45: what a test may replace; a store follows it, also back."""
    assert await store.now() == NEW_YEAR
    clock.advance("1h")
    assert await store.now() == NEW_YEAR + timedelta(hours=1)
    clock.set(NEW_YEAR)
    assert await store.now() == NEW_YEAR
