"""Wall clocks and the moments at which they jump, asked of zoneinfo one value at a time."""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def wall(instant: datetime, zone: tzinfo) -> datetime:
    """Return what a clock on the wall shows at this instant, without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


@lru_cache(maxsize=50_000)
def passes(shown: datetime, zone: tzinfo) -> tuple[datetime, ...]:
    """Return every instant at which the wall shows this: none in a gap, two in a fold, else one."""
    candidates = {shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return tuple(sorted(instant for instant in candidates if wall(instant, zone) == shown))


def offset(instant: datetime, zone: tzinfo) -> timedelta:
    """Return how far the wall is ahead of UTC at this instant."""
    ahead = instant.astimezone(zone).utcoffset()
    assert ahead is not None
    return ahead


def jump_within(before: datetime, at: datetime, zone: tzinfo) -> datetime | None:
    """Return the first second of the new offset in `(before, at]`, or None if the offset is the same at both ends."""
    old = offset(before, zone)
    if offset(at, zone) == old:
        return None
    while at - before > SECOND:
        middle = before + (at - before) // SECOND // 2 * SECOND
        if offset(middle, zone) == old:
            before = middle
        else:
            at = middle
    return at


def jumps(zone: tzinfo, after: datetime, through: datetime, stride: timedelta = timedelta(hours=6)) -> list[datetime]:
    """Return the moments in `(after, through]` at which the zone's offset changes.

    Two changes within one stride that cancel each other would go unseen; none is known since 1970.
    """
    found = []
    at = after
    while at < through:
        following = min(at + stride, through)
        jump = jump_within(at, following, zone)
        while jump is not None:
            found.append(jump)
            jump = jump_within(jump, following, zone)
        at = following
    return found


def gap_end(shown: datetime, zone: tzinfo, unit: timedelta) -> datetime:
    """Return the first instant after the gap around a missing wall time that shows a whole minute or second."""
    early, late = sorted(shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    jump = jump_within(early, late, zone)
    assert jump is not None, f"{shown} exists in {zone}"
    while unit == MINUTE and wall(jump, zone).second != 0:
        jump += SECOND
    return jump


def resolve(shown: datetime, zone: tzinfo) -> datetime:
    """Return the instant of a wall time: its first pass, or moved forward by the gap's length if it is missing."""
    found = passes(shown, zone)
    if found:
        return found[0]
    old, new = (shown.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    assert old is not None
    assert new is not None
    return passes(shown + (new - old), zone)[0]
