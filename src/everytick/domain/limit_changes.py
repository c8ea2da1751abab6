"""What people's wishes and the passing of time make of a reach. Every store writes what these functions return."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from everytick.domain.durations import MICROSECOND
from everytick.domain.facts import DropLimit, Limiting, PutBrake, ReleaseBrake, SetLimit
from everytick.domain.limits import BrakeRecord, LimitRecord, Reach, Releasing, soft_rate
from everytick.domain.schedule import Schedule
from everytick.errors import InvalidLimit

ENDED_BY_TIME = "release: the end of the brake has come"
"""The change when a brake ends by itself."""

WILL_HOLD = "brake will hold from"
"""How the change begins that puts a brake which does not hold yet."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

MOST_BRAKES = 100
"""How many brakes one reach may have, with those that are still to come."""


def wished(reach: Reach, fact: Limiting, now: datetime) -> tuple[Reach, str]:
    """Return the reach as the fact wants it from now on, and the change in a few words; no words if nothing changes."""
    match fact:
        case SetLimit():
            if fact.most is None and fact.rate is None:
                raise InvalidLimit(reach.name, "has neither a number nor a rate: give at least one of them")
            limit = LimitRecord(fact.most, fact.rate, fact.reason, fact.by, now)
            return replace(reach, limit=limit), f"limit {limit}"
        case DropLimit():
            return replace(reach, limit=None), "" if reach.limit is None else "limit removed"
        case PutBrake():
            return _braked(reach, fact, now)
        case ReleaseBrake():
            return _released(reach, fact, now)


def _frozen(reach: Reach, fact: PutBrake, begins: Schedule, ends: Schedule, now: datetime) -> tuple[Reach, str]:
    """Add a brake that comes again. It holds at once if a window of it is open."""
    others = tuple(brake for brake in reach.brakes if (brake.begins, brake.ends) != (begins, ends))
    if len(others) >= MOST_BRAKES:
        raise InvalidLimit(reach.name, f"has {MOST_BRAKES} brakes already: release some of them")
    brake_to_come = BrakeRecord(_LONG_AGO, None, fact.reason, fact.by, begins, ends).at(now)
    if brake_to_come is None or brake_to_come.until is None:
        raise InvalidLimit(str(begins), f"names no window that is to come and ends by '{ends}'")
    brakes = tuple(sorted((*others, brake_to_come), key=lambda brake: brake.since))
    words = WILL_HOLD if brake_to_come.since > now else "brake from"
    return replace(reach, brakes=brakes), f"{words} each '{begins}' to '{ends}'"


def _braked(reach: Reach, fact: PutBrake, now: datetime) -> tuple[Reach, str]:
    if fact.begins is not None and fact.ends is not None:
        return _frozen(reach, fact, fact.begins, fact.ends, now)
    since = now if fact.since is None else max(fact.since, now)
    if fact.until is not None and fact.until <= since:
        raise InvalidLimit(fact.until.isoformat(), f"is not after the beginning, {since.isoformat()}")
    others = tuple(brake for brake in reach.brakes if since > now or brake.begins is not None or not brake.holds(now))
    if len(others) >= MOST_BRAKES:
        raise InvalidLimit(reach.name, f"has {MOST_BRAKES} brakes already: release some of them")
    new_brake = BrakeRecord(since, fact.until, fact.reason, fact.by)
    brakes = tuple(sorted((*others, new_brake), key=lambda brake: brake.since))
    words = "brake" if since == now else f"{WILL_HOLD} {since.isoformat()}"
    return (
        replace(reach, brakes=brakes, release=None if since == now else reach.release),
        words if fact.until is None else f"{words} until {fact.until.isoformat()}",
    )


def _released(reach: Reach, fact: ReleaseBrake, now: datetime) -> tuple[Reach, str]:
    if reach.brake(now) is None:
        to_come = tuple(brake for brake in reach.brakes if brake.is_over(now) and brake.begins is None)
        return replace(reach, brakes=to_come), "" if to_come == reach.brakes else "brakes to come removed"
    # Of one that comes again only the window that is open ends.
    left_over = tuple(left for left in (_after(brake, now) for brake in reach.brakes) if left is not None)
    if fact.at_once:
        return replace(reach, brakes=left_over, release=None), "release at once"
    release = Releasing(now, fact.rate, None, fact.by)
    return replace(reach, brakes=left_over, release=release), "release" if fact.rate is None else f"release {fact.rate}"


def _after(brake: BrakeRecord, now: datetime) -> BrakeRecord | None:
    """Return what is left of a brake that is released now."""
    if not brake.holds(now):
        return brake
    return None if brake.begins is None else replace(brake, since=now + MICROSECOND, until=None).at(now)


def settled(reach: Reach, now: datetime, waiting: Callable[[], int]) -> Reach:
    """Return the reach as time has left it: a brake whose end has come is released; `waiting` counts for a release."""
    over = [brake.until for brake in reach.brakes if brake.until is not None and brake.is_over(now)]
    if over:
        later = (_rolled(brake, now) if brake.is_over(now) else brake for brake in reach.brakes)
        left = tuple(sorted((brake for brake in later if brake is not None), key=lambda brake: brake.since))
        # People who released it sooner have said how.
        release = Releasing(max(over), None, None, "") if reach.release is None else reach.release
        reach = replace(reach, brakes=left, release=release)
    known = reach.release
    if known is None or reach.brake(now) is not None:
        return reach
    if known.left is None:
        count = waiting()
        known = replace(known, left=count, rate=soft_rate(count) if known.rate is None else known.rate)
    return replace(reach, release=known if known.left else None)


def _rolled(brake: BrakeRecord, now: datetime) -> BrakeRecord | None:
    """Return a brake whose window is over with the next one, if it comes again."""
    return None if brake.begins is None else brake.at(now)


def is_unsettled(reach: Reach, now: datetime) -> bool:
    """Whether `settled` changes the reach: the end of a brake has come, or what waited for it is not counted yet."""
    release = reach.release
    is_uncounted = release is not None and not release.left and reach.brake(now) is None
    return is_uncounted or any(brake.is_over(now) for brake in reach.brakes)


def spent(reach: Reach, started: int) -> Reach:
    """Return the reach after so many starts: a release is over when as many have started as had waited."""
    release = reach.release
    if release is None or release.left is None:
        return reach
    left = release.left - started
    return replace(reach, release=replace(release, left=left) if left > 0 else None)
