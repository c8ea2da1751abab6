"""A job that begins `if_matching_now` and has never run: its own minute counts, and nothing is made up for."""

from datetime import datetime

import pytest

from everytick.deciding.plan import plan, plan_in_full
from everytick.domain.snapshots import Ended
from tests.unit.deciding.planning import active, at, instants, job, skipped, snapshot_of

STRATEGIES = ("execute_last", "execute_all", "compressed", "mark_as_missed")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_it_missed_before_its_first_run_is_missed(strategy: str) -> None:
    """S2-019: case B does not hold for a task that has never run."""
    snapshot = snapshot_of(job(on_create="if_matching_now", grace="365d", recovery=strategy), at("09:30"))

    decided = plan(snapshot, at("12:30"))

    assert instants(decided) == []
    assert skipped(decided) == [(at("09:30"), at("12:00"), "missed: missed, before its first run", 3)]
    assert (decided.watermark, decided.wake_at) == (at("12:30"), at("13:00"))


@pytest.mark.parametrize(("now", "runs"), [("10:00:00", True), ("10:00:59", True), ("10:01:00", False)])
def test_its_first_run_is_in_a_minute_that_matches(now: str, runs: bool) -> None:
    """S2-012, S2-019: case A, also for one that is late within the minute; both ways to plan agree."""
    snapshot = snapshot_of(job(on_create="if_matching_now", grace="365d"), at("09:30"))

    assert instants(plan(snapshot, at(now))) == ([at("10:00")] if runs else [])
    assert plan(snapshot, at(now)) == plan_in_full(snapshot, at(now))


def test_the_minute_counts_although_earlier_ones_were_missed() -> None:
    snapshot = snapshot_of(job(on_create="if_matching_now"), at("07:30"))

    decided = plan(snapshot, at("10:00:30"))

    assert instants(decided) == [at("10:00")]
    assert skipped(decided) == [(at("07:30"), at("09:00"), "missed: missed, before its first run", 2)]


def ended(started: datetime | None) -> Ended:
    return Ended(at("09:00"), started, at("09:05"))


@pytest.mark.parametrize(
    ("known", "runs"),
    [
        ({"last_end": ended(at("09:00"))}, True),
        ({"last_end": ended(None)}, False),
        ({"last_end": ended(None), "last_success": ended(at("08:00"))}, True),
    ],
)
def test_it_has_run_once_something_of_it_was_started(known: dict[str, Ended], runs: bool) -> None:
    """S2-011, S2-019: from then on one run makes up for everything; what never began does not count."""
    snapshot = snapshot_of(job(on_create="if_matching_now"), at("09:30"), **known)

    assert instants(plan(snapshot, at("12:30"))) == ([at("12:00")] if runs else [])


def test_it_has_run_while_its_first_run_is_not_over() -> None:
    """S2-019, case B: one that was lost in its first run is busy, and the schedule goes on behind it."""
    first = active("first", at("09:00"))
    snapshot = snapshot_of(
        job(on_create="if_matching_now", overlap="queue_latest", grace="365d"), at("09:30"), active=(first,)
    )

    assert instants(plan(snapshot, at("12:30"))) == [at("12:00")]
