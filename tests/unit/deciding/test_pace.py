"""The pace of a backfill: judged by a minute, halved in trouble, doubled after it, and never nothing."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.deciding.pace import allowance, next_at, paced, with_latency
from everytick.domain.backfills import BackfillOrder, OpenBackfill, Recent
from tests.unit.deciding.planning import at, job, snapshot_of

SECOND = timedelta(seconds=1)


def going(pace: int = 40, rate: int = 60, **more: Any) -> OpenBackfill:
    order = BackfillOrder("b", at("-1 00:00"), at("-1 10:00"), rate=rate)
    return replace(OpenBackfill("backfill_x", order, order.after, order.through, 0, pace, at("09:00")), **more)


def test_only_an_open_backfill_is_told_how_long_the_store_took() -> None:
    """A23."""
    plain = snapshot_of(job(), at("09:00"))
    assert with_latency(plain, 0.75) is plain
    told = with_latency(replace(plain, backfill=going()), 0.75)
    assert told == replace(plain, backfill=going(latency=timedelta(milliseconds=750)))


@pytest.mark.parametrize(
    ("recent", "latency", "now", "pace"),
    [
        (Recent(ended=8, failed=2), None, "09:01", 20),
        (Recent(ended=9, failed=2), None, "09:01", 60),
        (Recent(ended=8, failed=2), None, "09:00:59", 40),
        (Recent(ended=8), timedelta(seconds=1), "09:01", 20),
        (Recent(ended=8), timedelta(milliseconds=20), "09:01", 60),
        (Recent(), None, "09:30", 40),
        (Recent(), timedelta(seconds=1), "09:30", 20),
    ],
    ids=["failures", "few failures", "not a minute yet", "slow store", "well", "no news", "slow and no news"],
)
def test_the_pace_is_halved_in_trouble_and_doubled_up_to_the_rate_after_it(
    recent: Recent, latency: timedelta | None, now: str, pace: int
) -> None:
    """A23: it looks at what ended within a minute or more since it last looked."""
    assert paced(going(recent=recent, latency=latency), at(now))[0] == pace


def test_the_pace_never_falls_to_nothing() -> None:
    assert paced(going(1, recent=Recent(ended=5, failed=5)), at("09:01"))[0] == 1


def test_a_judgment_begins_a_new_minute_and_news_are_waited_for() -> None:
    assert paced(going(recent=Recent(ended=8)), at("09:05"))[1] == at("09:05")
    assert paced(going(), at("09:05"))[1] == at("09:00")


def test_what_began_and_what_has_not_begun_takes_room() -> None:
    assert allowance(going(recent=Recent(unstarted=30, started=10)), 40, at("09:01")) == 0
    assert allowance(going(recent=Recent(unstarted=30, started=9)), 40, at("09:01")) == 1


@pytest.mark.parametrize(("pace", "seconds", "most"), [(1, 59, 0), (1, 60, 1), (60, 1, 1), (60, 30, 10), (600, 1, 10)])
def test_a_planner_makes_what_the_time_since_the_last_one_brought(pace: int, seconds: int, most: int) -> None:
    """At most what ten seconds bring, and none before its time."""
    made = going(pace, 6_000, filled_at=at("09:00"))
    assert allowance(made, pace, at("09:00") + seconds * SECOND) == most


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    ahead = going(60, filled_at=at("12:00"), paced_at=at("12:00"))
    assert next_at(ahead, 60, at("09:00")) == at("09:00:01")
    assert paced(ahead, at("09:00")) == (60, at("09:00"))
