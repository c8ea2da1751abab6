"""Questions are bounded where they are built, and all stores make their answers by the same functions."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from everytick.domain.headlines import fingerprint
from everytick.domain.questions import (
    Alike,
    Buckets,
    By,
    Days,
    FailureKind,
    LastRuns,
    Lengths,
    TimeWindow,
    buckets_of,
    days_of,
    failures_of,
    lengths_of,
    tally_of,
)
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import InvalidPolicies

NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
_S = OccurrenceStatus


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: TimeWindow(NOON, NOON), "must be later than after, 2026-03-05T12"),
        (lambda: TimeWindow(NOON, NOON + HOUR, 5_001), "limit '5001' must be from 1 to 5,000"),
        (lambda: TimeWindow(NOON, NOON + HOUR, True), "must be a whole number"),
        (lambda: LastRuns(("a",), 201), "count '201' must be from 1 to 200"),
        (lambda: LastRuns(("a",) * 201, 100), "jobs '201 names' must be at most 200 here"),
        (lambda: Lengths(("a",) * 20_001), "at most 20,000"),
        (lambda: Buckets(NOON, NOON + HOUR, timedelta(minutes=1)), "step '1m' must be whole days or a part of a day"),
        (lambda: Buckets(NOON, NOON + HOUR, timedelta(minutes=35)), "must be whole days or a part of a day"),
        (lambda: Buckets(NOON, NOON + 200 * HOUR), "makes 2,400 steps, and 2,000 is the most"),
        (lambda: Buckets(NOON, NOON + HOUR, by=By.JOB), "and jobs go together"),
        (lambda: Buckets(NOON, NOON + HOUR, by=By.JOB, job_ids=("a",) * 51), "at most 50"),
        (lambda: Days("a", 1969), "year '1969' must be from 1,970"),
        (lambda: Alike(NOON, limit=201), "limit '201'"),
    ],
)
def test_what_is_too_much_is_refused_before_a_store_is_asked(ask: Callable[[], object], said: str) -> None:
    """S20: every list that a page may ask for is capped."""
    with pytest.raises(InvalidPolicies, match=said):
        ask()


def test_steps_begin_on_the_clock_and_hold_both_ends_of_the_question() -> None:
    asked = Buckets(NOON + timedelta(minutes=7), NOON + timedelta(minutes=21), timedelta(minutes=15))
    assert (asked.first, asked.end) == (NOON, NOON + timedelta(minutes=30))
    assert not asked.is_of_days
    assert Buckets(NOON, NOON + 900 * HOUR, timedelta(days=1)).is_of_days


def test_counts_are_added_up_by_step_group_and_status() -> None:
    cells = [
        (NOON + timedelta(minutes=5), "b", _S.FAILED, 1),
        (NOON, "b", _S.COMPLETED, 2),
        (NOON, "a", _S.COMPLETED, 3),
        (NOON + timedelta(minutes=59), "b", _S.COMPLETED, 4),
    ]
    found = [(each.at, each.group, each.tally.counts, each.tally.total) for each in buckets_of(cells, HOUR)]
    assert found == [
        (NOON, "a", ((_S.COMPLETED, 3),), 3),
        (NOON, "b", ((_S.COMPLETED, 6), (_S.FAILED, 1)), 7),
    ]
    assert tally_of([(_S.FAILED, 1), (_S.COMPLETED, 0)]).of(_S.FAILED, _S.MISSED) == 1


def test_percentiles_lie_between_the_lengths_that_are_known() -> None:
    assert lengths_of([]) is None
    found = lengths_of(timedelta(seconds=each) for each in range(21))
    assert found is not None
    assert (found.count, found.p5, found.p50, found.p95) == (
        21,
        timedelta(seconds=1),
        timedelta(seconds=10),
        timedelta(seconds=19),
    )
    assert lengths_of([HOUR, 2 * HOUR]) is not None
    two = lengths_of([2 * HOUR, HOUR])
    assert two is not None
    assert two.p50 == 1.5 * HOUR


def test_a_day_has_the_mean_length_of_what_completed() -> None:
    day, none = date(2026, 3, 5), timedelta(0)
    cells = [
        (day, _S.COMPLETED, 2, 3 * HOUR),
        (day, _S.FAILED, 1, none),
        (day - timedelta(days=1), _S.MISSED, 5, none),
    ]
    before, own = days_of(cells)
    assert (before.day, before.tally.total, before.took) == (date(2026, 3, 4), 5, None)
    assert (own.day, own.tally.total, own.took) == (day, 3, 1.5 * HOUR)


def test_failures_of_one_kind_are_one_entry_most_frequent_first() -> None:
    ends = [
        FailureKind("x", "", 1, ("job_b",), NOON, NOON, "occ_1"),
        FailureKind("y", "", 1, ("job_a",), NOON + HOUR, NOON + HOUR, "occ_2"),
        FailureKind("x", "", 1, ("job_a",), NOON + HOUR, NOON + HOUR, "occ_3"),
    ]
    first, second = failures_of(ends, 10)
    assert first == FailureKind("x", "", 2, ("job_a", "job_b"), NOON, NOON + HOUR, "occ_3")
    assert second.count == 1
    assert failures_of(ends, 1) == (first,)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("ConnectionError: host db-3 port 5432", "ConnectionError: host db-14 port 5433", True),
        ("KeyError: 'customer'", "KeyError: 'order'", True),
        ("boom at 0x7f3a", "boom at 0x11", True),
        ("no row 6f1c0e52-89ab-4c1d-9d5e-0123456789ab", "no row 00000000-0000-4000-8000-000000000000", True),
        ("ValueError: boom", "TypeError: boom", False),
        ("the feed is gone", "the face is gone", False),
    ],
)
def test_a_fingerprint_leaves_out_what_varies(one: str, other: str, alike: bool) -> None:
    assert (fingerprint(one) == fingerprint(other)) is alike
    assert len(fingerprint(one)) == 16
