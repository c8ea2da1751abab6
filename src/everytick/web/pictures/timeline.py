"""The timeline: which jobs have a lane of their own, and into which bands the others fall."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

T = TypeVar("T")

MOST_LANES = 24
MOST_LANES_OF_MANY = 8
MANY_JOBS = 1000
"""With more jobs than this, fewer have a lane of their own."""

MOST_BANDS = 12
OTHERS = "others"
_NEVER = datetime.max.replace(tzinfo=UTC)


class Urgency(IntEnum):
    """Why a job has a lane of its own, the most urgent last."""

    QUIET = 0
    LONG = 1
    RUNNING = 2
    OVERRUNNING = 3
    RETRYING = 4
    NEEDS_LOOK = 5


@value(frozen=True)
class LaneCandidate:
    """A job that may have a lane: how urgent it is, its `rank` among equally urgent ones, and when it runs next."""

    name: str
    urgency: Urgency = Urgency.QUIET
    next_at: datetime | None = None
    is_pinned: bool = False
    rank: int = 0


def most_lanes(jobs: int) -> int:
    """Return how many jobs of so many may have a lane."""
    return MOST_LANES_OF_MANY if jobs > MANY_JOBS else MOST_LANES


def chosen(candidates: Iterable[LaneCandidate], most: int) -> list[str]:
    """Return the names of the jobs that have a lane, the most urgent first. What is pinned has one in any case.

    If there is room for all, all have one. Else quiet ones are left to the bands.
    """
    ordered = sorted(
        candidates,
        key=lambda candidate: (-candidate.urgency, candidate.rank, candidate.next_at or _NEVER, candidate.name),
    )
    if len(ordered) <= most:
        return [candidate.name for candidate in ordered]
    pinned = [candidate for candidate in ordered if candidate.is_pinned][:most]
    urgent = [candidate for candidate in ordered if not candidate.is_pinned and candidate.urgency > Urgency.QUIET]
    taken = {candidate.name for candidate in (*pinned, *urgent[: most - len(pinned)])}
    return [candidate.name for candidate in ordered if candidate.name in taken]


def folded(groups: Mapping[str, Sequence[T]], most: int = MOST_BANDS) -> dict[str, list[T]]:
    """Return the jobs of each band, the fullest first. Of more than `most` bands, the last one is the rest."""
    ordered = sorted(groups, key=lambda band: (-len(groups[band]), band))
    kept = ordered if len(ordered) <= most else ordered[: most - 1]
    found: dict[str, list[T]] = {band: list(groups[band]) for band in kept}
    for band in ordered[len(kept) :]:
        found.setdefault(OTHERS, []).extend(groups[band])
    return found
