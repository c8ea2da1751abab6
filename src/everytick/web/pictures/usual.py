"""What is usual: the middle and the edges of the lengths of earlier runs; and steps that people count in."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST_RUNS = 3
"""Fewer runs than this say nothing about what is usual."""

_STEPS = (
    *(timedelta(milliseconds=number) for number in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(timedelta(seconds=number) for number in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=number) for number in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=number) for number in (1, 2, 3, 6, 12)),
    *(timedelta(days=number) for number in (1, 2, 7, 14, 30, 90, 365)),
)


@value
class UsualBand:
    """Half of the runs took less than `p50`; of twenty, one took less than `p5` and one more than `p95`."""

    p5: timedelta
    p50: timedelta
    p95: timedelta


def usual(lengths: Sequence[timedelta]) -> UsualBand | None:
    """Return what is usual among these lengths, None if they are too few."""
    if len(lengths) < FEWEST_RUNS:
        return None
    ordered = sorted(lengths)
    return UsualBand(_at(ordered, 0.05), _at(ordered, 0.5), _at(ordered, 0.95))


def step_of(whole: timedelta, most: int) -> timedelta:
    """Return the smallest step that people count in and that divides the whole into at most so many parts."""
    for step in _STEPS:
        if whole <= most * step:
            return step
    years = whole // (most * timedelta(days=365)) + 1
    return years * timedelta(days=365)


def _at(ordered: Sequence[timedelta], share: float) -> timedelta:
    """Return the length below which this share lies, between the two nearest."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
