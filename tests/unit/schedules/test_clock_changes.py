"""What the clock changes of a zone do to a schedule, named for people (`explain` will show it)."""

from datetime import UTC, datetime

import pytest

from everytick import cron
from everytick.schedules.cron import Cron

YEAR = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


def changes(expression: str, **policies: str) -> list[tuple[str, str, str, str]]:
    found = cron(expression, tz="America/New_York", **policies)
    assert isinstance(found, Cron)
    return [
        (each.what, f"{each.wall:%m-%d %H:%M}", f"{each.instant:%m-%d %H:%M}", each.rule)
        for each in found.clock_changes(*YEAR)
    ]


def test_a_fixed_time_in_the_gap_is_moved_and_in_the_repeated_hour_silenced() -> None:
    assert changes("30 1,2 * * *") == [
        ("moved", "03-14 02:30", "03-14 07:00", "dst_gap=fire_after"),
        ("silenced", "11-07 01:30", "11-07 06:00", "dst_fold=first"),
    ]


def test_under_the_other_policies_it_is_skipped_and_doubled() -> None:
    assert changes("30 1,2 * * *", dialect="posix") == [
        ("skipped", "03-14 02:30", "03-14 07:00", "dst_gap=skip"),
        ("doubled", "11-07 01:30", "11-07 06:00", "dst_fold=both"),
    ]


def test_a_wildcard_follows_elapsed_time() -> None:
    assert [(what, rule) for what, _, _, rule in changes("*/30 * * * *")] == [
        ("skipped", "follows elapsed time"),
        ("doubled", "follows elapsed time"),
    ]


@pytest.mark.parametrize("expression", ["0 12 * * *", "30 2 1 1 *"])
def test_a_schedule_that_no_change_touches_has_none(expression: str) -> None:
    assert changes(expression) == []


def test_without_a_zone_there_are_no_changes() -> None:
    found = cron("* * * * *")
    assert isinstance(found, Cron)
    assert list(found.clock_changes(*YEAR)) == []
