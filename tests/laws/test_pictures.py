"""Laws of the pictures of a job: nothing is lost by folding, and time only goes to the right."""

import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from everytick.domain.statuses import OccurrenceStatus
from everytick.web.pictures.gantt import folded_scale
from everytick.web.pictures.strip import Square, columns_of, folded
from everytick.web.pictures.usual import usual

ZERO = datetime(2026, 1, 1, tzinfo=UTC)
STATUSES = st.sampled_from([str(status) for status in OccurrenceStatus])
SQUARES = st.lists(st.builds(Square, STATUSES, count=st.sampled_from([1, 1, 1, 4, 300])), max_size=150)
SECONDS = st.integers(0, 100_000)


@given(SQUARES)
def test_folding_keeps_every_instant_and_their_order(squares: list[Square]) -> None:
    found = folded(squares)

    assert sum(square.count for _, square in found) == sum(square.count for square in squares)
    assert [index for index, _ in found] == sorted(index for index, _ in found)
    for (_, before), (_, after) in itertools.pairwise(found):
        if before.count > 5 and before.status in ("skipped", "missed"):
            assert before.status != after.status


@given(SQUARES, SQUARES)
def test_columns_never_overlap_and_stay_on_their_side_of_now(past: list[Square], planned: list[Square]) -> None:
    columns = columns_of(past, planned)
    edges = [(column.at - column.width / 2, column.at + column.width / 2) for column in columns.all]

    assert all(left[1] <= right[0] + 1e-9 for left, right in itertools.pairwise(edges))
    assert all(left >= -1e-9 and right <= 1 + 1e-9 for left, right in edges)
    assert all(column.at < columns.now for column in columns.past)
    assert all(column.at > columns.now for column in columns.planned)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=12), st.lists(SECONDS, min_size=2, max_size=12))
def test_a_later_moment_is_never_further_left(pairs: list[tuple[int, int]], moments: list[int]) -> None:
    busy = [(ZERO + timedelta(seconds=min(pair)), ZERO + timedelta(seconds=max(pair) + 1)) for pair in pairs]
    scale = folded_scale(ZERO, max(end for _, end in busy), busy)
    places = [scale(ZERO + timedelta(seconds=moment)) for moment in sorted(moments)]

    assert all(0 <= place <= 1 + 1e-9 for place in places)
    assert all(before <= after + 1e-9 for before, after in itertools.pairwise(places))
    assert abs(scale(scale.through) - 1) < 1e-9


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=12))
def test_what_ran_is_never_folded_and_keeps_its_proportion(pairs: list[tuple[int, int]]) -> None:
    busy = [(ZERO + timedelta(seconds=min(pair)), ZERO + timedelta(seconds=max(pair) + 1)) for pair in pairs]
    scale = folded_scale(ZERO, max(end for _, end in busy), busy)
    rates = [(scale(end) - scale(start)) / (end - start).total_seconds() for start, end in busy]

    assert all(not (fold.start < start < fold.end) for fold in scale.folds for start, _ in busy)
    assert max(rates) - min(rates) < 1e-9


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=12), st.floats(0, 0.25))
def test_the_room_behind_the_last_end_is_what_was_asked_for_and_is_never_folded(
    pairs: list[tuple[int, int]], share: float
) -> None:
    busy = [(ZERO + timedelta(seconds=min(pair)), ZERO + timedelta(seconds=max(pair) + 1)) for pair in pairs]
    last = max(end for _, end in busy)
    scale = folded_scale(ZERO, last, busy).with_room_behind(share)

    assert abs(scale(last) - (1 - share)) < 1e-3
    assert all(fold.end < last for fold in scale.folds)


@given(st.lists(st.integers(0, 10**9), min_size=3, max_size=30))
def test_what_is_usual_lies_between_the_shortest_and_the_longest(lengths: list[int]) -> None:
    found = usual([timedelta(microseconds=each) for each in lengths])

    assert found is not None
    tick = timedelta(microseconds=1)
    assert min(lengths) * tick <= found.p5 <= found.p50 <= found.p95 <= max(lengths) * tick
