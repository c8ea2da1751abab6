"""Which instants were named in the past: each by the definition that was in force then."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from everytick.domain.durations import MICROSECOND
from everytick.domain.snapshots import Edition
from everytick.domain.upcoming import effective

_AT_ONCE = 100
"""Instants that a schedule is asked for at once: a reader that stops early has cost no more than these."""


def past_instants(
    editions: Sequence[Edition], after: datetime, through: datetime
) -> Iterator[tuple[datetime, datetime | None]]:
    """Give the instants in `(after, through]`, oldest first, each with the one before it by the same definition.

    What lies before the first edition is named by the first; an instant at the moment of an
    edit is still the old one's. Whether a definition was disabled or paused is not asked.
    """
    editions = effective(editions)
    for place, edition in enumerate(editions):
        begin, end = after, through
        if place and edition.in_force_after is not None:
            begin = max(after, edition.in_force_after)
        if place + 1 < len(editions):
            following = editions[place + 1].in_force_after
            end = through if following is None else min(through, following)
        if begin < end:
            yield from _named(edition, begin, end)


def past_instants_back(
    editions: Sequence[Edition], after: datetime, through: datetime
) -> Iterator[tuple[datetime, datetime | None]]:
    """Give the same instants, newest first."""
    editions = effective(editions)
    for place in reversed(range(len(editions))):
        begin, end = after, through
        since = editions[place].in_force_after if place else None
        if since is not None:
            begin = max(after, since)
        following = editions[place + 1].in_force_after if place + 1 < len(editions) else None
        if following is not None:
            end = min(through, following)
        schedule = editions[place].job.bound(None)
        instant = schedule.last_at(end) if begin < end else None
        while instant is not None and instant > begin:
            before = schedule.last_at(instant - MICROSECOND)
            yield instant, before
            instant = before


def _named(edition: Edition, after: datetime, through: datetime) -> Iterator[tuple[datetime, datetime | None]]:
    schedule = edition.job.bound(None)
    while instants := schedule.instants(after, through, _AT_ONCE):
        before = schedule.last_at(instants[0] - MICROSECOND)
        for instant in instants:
            yield instant, before
            before = instant
        after = instants[-1]
