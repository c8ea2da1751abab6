"""Why a schedule does not name an instant."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from everytick import any_of, calendar, cron, every
from everytick.deciding.unnamed_instants import TakenBy, moved_here, why_unnamed, window_of
from everytick.domain.window import Within
from everytick.schedules.combine import Shifted
from tests.unit.deciding.planning import at, job

BERLIN = ZoneInfo("Europe/Berlin")
GAP = datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN).astimezone(UTC)
AFTER_GAP = datetime(2026, 3, 29, 3, 0, tzinfo=BERLIN).astimezone(UTC)
NIGHTLY = cron("30 2 * * *", tz="Europe/Berlin")
WEEKEND = calendar("weekend", weekdays=("sat", "sun"))


def test_what_was_never_there_has_no_reason() -> None:
    """Neither on a calm day nor near a change of the clock, nor for a schedule that nothing takes away from."""
    for schedule in (cron("0 9 * * *"), NIGHTLY, every("1h"), cron("0 9 * * *").excluding(WEEKEND)):
        assert why_unnamed(schedule, at("09:17")) is None
    assert why_unnamed(NIGHTLY, datetime(2026, 3, 29, 1, 17, tzinfo=UTC)) is None


def test_the_window_of_a_policy_is_told_by_the_edge_that_cut() -> None:
    inside = Within(cron("0 * * * *"), at("10:00"), at("12:00"))
    early, late = why_unnamed(inside, at("09:00")), why_unnamed(inside, at("13:00"))
    assert early is not None
    assert late is not None
    assert (early.taken, early.text) == (TakenBy.WINDOW, "the schedule starts later, at 2026-11-16T10:00:00+00:00")
    assert late.text == "the schedule has ended before, at 2026-11-16T12:00:00+00:00"
    assert why_unnamed(inside, at("09:01")) is None


def test_a_clock_change_inside_other_parts_is_found() -> None:
    """In a union, behind a window, behind a calendar, and with the offset of a spread job."""
    for schedule in (
        any_of(cron("0 12 * * *"), NIGHTLY),
        Within(NIGHTLY, None, None),
        NIGHTLY.excluding(calendar("none", dates=["2020-01-01"])),
        cron("30 2 * * *", tz="Europe/Berlin", start="2020-01-01T00:00:00"),
    ):
        found = why_unnamed(schedule, GAP)
        assert found is not None
        assert (found.taken, found.moved_to) == (TakenBy.MOVED, AFTER_GAP)
    offset = at("00:05") - at("00:00")
    shifted = why_unnamed(Shifted(NIGHTLY, offset), GAP + offset)
    assert shifted is not None
    assert shifted.moved_to == AFTER_GAP + offset
    assert why_unnamed(Shifted(NIGHTLY, offset), at("09:00")) is None


def test_a_schedule_that_follows_elapsed_time_drops_what_the_clock_skips() -> None:
    """C-03: nothing is moved out of a gap."""
    found = why_unnamed(cron("30 2 * * *", tz="Europe/Berlin", dst_gap="skip"), GAP)
    assert found is not None
    assert (found.taken, found.moved_to) == (TakenBy.DROPPED, None)


@pytest.mark.parametrize("roll", ["next", "previous"])
def test_what_a_calendar_rolls_is_told_where_it_goes(roll: str) -> None:
    saturday = datetime(2026, 11, 21, 9, tzinfo=UTC)
    found = why_unnamed(cron("0 9 * * *").excluding(WEEKEND, roll=roll), saturday)
    assert found is not None
    day = {"next": 23, "previous": 20}[roll]
    assert (found.taken, found.moved_to) == (TakenBy.CALENDAR, saturday.replace(day=day))


def test_what_a_clock_change_moved_is_told_at_its_new_place() -> None:
    """Only there, and only for schedules that have wall times."""
    assert (
        moved_here(NIGHTLY, AFTER_GAP)
        == "moved here from 2026-03-29 02:30:00, which the clock skipped (dst_gap=fire_after)"
    )
    assert moved_here(Within(NIGHTLY, None, None), AFTER_GAP) is not None
    assert moved_here(NIGHTLY, at("01:30")) is None
    assert moved_here(cron("30 2 * * *", tz="Europe/Berlin", dst_gap="skip"), AFTER_GAP) is None
    assert moved_here(every("1h"), AFTER_GAP) is None


def test_the_window_of_a_schedule_is_found_behind_its_other_parts() -> None:
    windowed = cron("0 * * * *", start=at("10:00"), end=at("12:00"))
    assert window_of(windowed.excluding(WEEKEND)) == (at("10:00"), at("12:00"))
    assert window_of(job("cron: 0 * * * *; start=2026-11-16T10:00:00Z", spread="10m").schedule) == (at("10:00"), None)
    assert window_of(cron("0 * * * *", end=at("12:00"))) == (None, at("12:00"))
    assert window_of(every("1h")) == (None, None)
