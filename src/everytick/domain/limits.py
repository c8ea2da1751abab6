"""Limits and brakes: how many occurrences may run or start at once, across all nodes that share a store.

A limit or a brake has a reach, which is a text: `all`, `queue:slow`, `tag:crm` or `job:report`. An occurrence may start
if every reach that it belongs to has room. A claim decides that, and it alone.

An occurrence of a limited tag or job waits in a lane of its own: its needs name the reach, in lines that begin with
`limit:` and come first. So a claim finds what is free to start without walking past thousands that are not. The
queue is among the needs anyhow, and `all` needs no name.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from math import ceil
from typing import NamedTuple, Protocol, TypeVar

from everytick.domain.durations import MICROSECOND, duration, format_duration
from everytick.domain.names import checked_name, did_you_mean, kept_once
from everytick.domain.needs import DEFAULT_QUEUE
from everytick.domain.schedule import Schedule
from everytick.domain.values import value
from everytick.errors import InvalidLimit

ALL = "all"
"""The reach that has every occurrence."""

KINDS = ("queue", "tag", "job")

LARGEST_NUMBER = 1_000_000
"""The largest number of runs or starts that a limit may name."""

LONGEST_RATE = timedelta(days=31)

SORTED_AT_ONCE = 1_000
"""How many occurrences a claim sorts into their lanes at a time, once it has met one in the wrong lane."""

ROUNDS = 10
"""How often one claim does so. What is left then is sorted by the next claim, and the bell rings for it."""

CHANGES_SHOWN = 100
"""How many of the newest changes of limits and brakes a store tells."""

_LANE = "limit:"
_RATE = re.compile(r"(\d{1,9})\s*/\s*(.+)", re.ASCII)
_SECOND = timedelta(seconds=1)


@value(frozen=True)
class Rate:
    """At most `count` starts in any stretch of time as long as `per`.

    Without `burst` they are spread: about as many in each second, or one in each share of `per`.
    """

    count: int
    per: timedelta
    burst: bool = False

    def __str__(self) -> str:
        return f"{self.count}/{format_duration(self.per)}{' burst' if self.burst else ''}"


@value(frozen=True)
class LimitRecord:
    """What people have set: at most so many at once, or at most so many starts in a time; who, when and why."""

    most: int | None
    rate: Rate | None
    reason: str
    by: str
    at: datetime

    def __str__(self) -> str:
        parts = [] if self.most is None else [f"{self.most} at once"]
        return ", ".join(parts if self.rate is None else [*parts, str(self.rate)])


@value(frozen=True)
class BrakeRecord:
    """From `since` on nothing starts, until `until` or until people release it.

    One that comes again has the schedules of its beginnings and its ends: each window begins with an instant of
    `begins` and ends with the first of `ends` after it. `since` and `until` are then the window of when it was written,
    or the next one; no window that began before `since` holds.
    """

    since: datetime
    until: datetime | None
    reason: str
    by: str
    begins: Schedule | None = None
    ends: Schedule | None = None

    def at(self, now: datetime) -> "BrakeRecord | None":
        """Return it with the window that holds now, or with the next one; None if none is to come."""
        if self.begins is None or self.ends is None:
            return self
        begin = self.begins.last_at(now)
        until = None if begin is None else self.ends.next_after(begin)
        if begin is None or begin < self.since or (until is not None and until <= now):
            begin = self.begins.next_after(max(now, self.since - MICROSECOND))
            until = None if begin is None else self.ends.next_after(begin)
        return None if begin is None else replace(self, since=begin, until=until)

    def holds(self, now: datetime) -> bool:
        """Whether nothing starts now."""
        at_now = self.at(now)
        return at_now is not None and at_now.since <= now and (at_now.until is None or now < at_now.until)

    def is_over(self, now: datetime) -> bool:
        """Whether its end has come."""
        return self.until is not None and self.until <= now


@value(frozen=True)
class Releasing:
    """What waited for a brake starts at this rate. `left` are yet to start; it and the rate are None until counted."""

    since: datetime
    rate: Rate | None
    left: int | None
    by: str


@value(frozen=True)
class Reach:
    """All that holds for one reach: its limit, its brakes by their beginning, and the release of an earlier brake."""

    name: str
    limit: LimitRecord | None = None
    brakes: tuple[BrakeRecord, ...] = ()
    release: Releasing | None = None

    def brake(self, now: datetime) -> BrakeRecord | None:
        """Return the brake that holds now, with the window that it is in."""
        return next((brake.at(now) for brake in self.brakes if brake.holds(now)), None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing holds for it any more."""
        return self.limit is None and not self.brakes and self.release is None


@value(frozen=True)
class ReachRecord:
    """A reach as people see it: how many of it run and wait now, and when the next may start, where time decides.

    `waiting` counts what is ready and in its lane. `closed` says why none of it may start now; it is empty if one may.
    """

    reach: Reach
    running: int
    waiting: int
    closed: str = ""
    opens_at: datetime | None = None


@value(frozen=True)
class LimitChange:
    """One change of a limit or brake: when, of which reach, what, why and by whom. Numbers rise."""

    at: datetime
    reach: str
    what: str
    reason: str
    by: str
    number: int = field(default=0, compare=False)


@value(frozen=True)
class Limits:
    """Every reach with a limit or brake, by name, as of `now`, and the newest changes, newest first."""

    now: datetime
    reaches: tuple[ReachRecord, ...] = ()
    changes: tuple[LimitChange, ...] = ()

    def frozen_at(self, names: Collection[str], at: datetime) -> BrakeRecord | None:
        """Return the brake of these reaches that will hold at a moment to come, as far as is known now."""
        brakes = (limited.reach.brake(at) for limited in self.reaches if limited.reach.name in names)
        return next((brake for brake in brakes if brake is not None), None)

    def held_back(self, names: Collection[str]) -> ReachRecord | None:
        """Return the first of these reaches of which nothing may start now: a brake before a limit."""
        closed = [limited for limited in self.reaches if limited.closed and limited.reach.name in names]
        return min(closed, key=lambda limited: limited.reach.brake(self.now) is None, default=None)


# ------------------------------------------------------------------------------------------------------- reading texts


def reach_name(given: object) -> str:
    """Return the reach that a text names: `all`, `queue:NAME`, `tag:NAME` or `job:NAME`."""
    if given == ALL:
        return ALL
    kind, colon, name = str(given).partition(":")
    if not isinstance(given, str) or not colon or kind not in KINDS:
        near = did_you_mean(kind, (ALL, *KINDS))
        raise InvalidLimit(given, f"is no reach{near}: write all, queue:NAME, tag:NAME or job:NAME")
    return kept_once(f"{kind}:{checked_name(kind, name)}")


def rate_of(given: object, *, burst: bool = False) -> Rate:
    """Return the rate that a text such as `60/1m` means."""
    if isinstance(given, Rate):
        return given
    read = _RATE.fullmatch(given.strip()) if isinstance(given, str) else None
    if read is None:
        raise InvalidLimit(given, "is no rate: write a number of starts and a time, like 60/1m")
    count, per = int(read[1]), duration(read[2])
    if not 1 <= count <= LARGEST_NUMBER:
        raise InvalidLimit(given, f"must name 1 to {LARGEST_NUMBER:,} starts; to let none start there is the brake")
    if not _SECOND <= per <= LONGEST_RATE:
        raise InvalidLimit(given, "must name a time from 1s to 31d")
    return Rate(count, per, burst)


def checked_most(given: object) -> int | None:
    """Return how many may run at once; None means any number."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= LARGEST_NUMBER:
        raise InvalidLimit(
            given, f"must be a whole number from 1 to {LARGEST_NUMBER:,}; to let none start there is the brake"
        )
    return given


# --------------------------------------------------------------------------------------------------------------- lanes


def plain_needs(needs: str) -> str:
    """Return the needs without the lines that name a lane."""
    if not needs.startswith(_LANE):
        return needs
    return kept_once("\n".join(line for line in needs.split("\n") if not line.startswith(_LANE)))


def in_lane(needs: str, tags: Iterable[str], job: str, limited: Collection[str]) -> str:
    """Return the needs of an occurrence with these tags in its lane: that of the limited reaches it belongs to."""
    plain = plain_needs(needs)
    named = [name for name in (f"job:{job}", *(f"tag:{tag}" for tag in tags)) if name in limited]
    lines = [f"{_LANE}{name}" for name in sorted(named)]
    return kept_once("\n".join([*lines, plain] if plain else lines)) if lines else plain


def is_lane(needs: str) -> bool:
    """Whether the needs are those of a lane."""
    return needs.startswith(_LANE)


def reaches_of(needs: str) -> list[str]:
    """Return the reaches to which occurrences of these needs belong: those of its lane, its queue, and all."""
    lines = needs.split("\n")
    named = [line[len(_LANE) :] for line in lines if line.startswith(_LANE)]
    queue = next((line for line in lines if line.startswith("queue:")), f"queue:{DEFAULT_QUEUE}")
    return [*named, queue, ALL]


def reaches_of_job(tags: Iterable[str], job: str, queue: str) -> list[str]:
    """Return every reach to which an occurrence of this job in this queue belongs."""
    return [f"job:{job}", *(f"tag:{tag}" for tag in tags), f"queue:{queue}", ALL]


def met_lanes(met: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the needs in `met`, and those lanes among the known needs in which occurrences of such needs wait."""
    plain = {plain_needs(needs) for needs in met}
    return sorted({*met, *(needs for needs in known if is_lane(needs) and plain_needs(needs) in plain)})


# ---------------------------------------------------------------------------------------------------------------- room


class RateWindow(NamedTuple):
    """At most `most` starts in any stretch of this length, of those since `since` if that is given."""

    most: int
    span: timedelta
    since: datetime | None = None

    def begins(self, now: datetime) -> datetime:
        """Return the moment after which starts count that are not over for this window now."""
        return now - self.span if self.since is None else max(now - self.span, self.since - MICROSECOND)


def windows_of(rate: Rate, since: datetime | None = None) -> tuple[RateWindow, ...]:
    """Return the windows in which a rate counts starts. Without `burst` a short one comes first."""
    whole = RateWindow(rate.count, rate.per, since)
    at_once = max(1, round(rate.count * (_SECOND / rate.per)))
    if rate.burst or at_once >= rate.count:
        return (whole,)
    return RateWindow(at_once, rate.per * at_once / rate.count, since), whole


def windows(reach: Reach) -> tuple[RateWindow, ...]:
    """Return every window in which starts of this reach count."""
    rate_windows: tuple[RateWindow, ...] = ()
    if reach.limit is not None and reach.limit.rate is not None:
        rate_windows = windows_of(reach.limit.rate)
    if reach.release is not None and reach.release.rate is not None:
        rate_windows += windows_of(reach.release.rate, reach.release.since)
    return rate_windows


def forgotten_at(reach: Reach, now: datetime) -> datetime:
    """Return the moment up to which no start counts any more for a rate."""
    return min((window.begins(now) for window in windows(reach)), default=now)


def room(reach: Reach, now: datetime, running: int, started: Mapping[RateWindow, int]) -> int:
    """Return how many of this reach may start now, by how many run and have started in each window."""
    if reach.brake(now) is not None:
        return 0
    most = LARGEST_NUMBER
    if reach.limit is not None and reach.limit.most is not None:
        most = reach.limit.most - running
    return max(0, min([most, *(window.most - started[window] for window in windows(reach))]))


def closed_because(reach: Reach, now: datetime, running: int, started: Mapping[RateWindow, int]) -> str:
    """Return why nothing of this reach may start now, in a few words; nothing if one may."""
    brake, limit, release = reach.brake(now), reach.limit, reach.release
    if brake is not None:
        until = "" if brake.until is None else f" until {brake.until.isoformat()}"
        return f"brake of {named(reach.name)}{until}{f' ({brake.reason})' if brake.reason else ''}"
    if limit is not None and limit.most is not None and running >= limit.most:
        return f"limit of {named(reach.name)} ({running} of {limit.most})"
    if (
        limit is not None
        and limit.rate is not None
        and any(_is_full(window, started) for window in windows_of(limit.rate))
    ):
        return f"rate of {named(reach.name)} ({limit.rate})"
    if release is not None and any(_is_full(window, started) for window in windows(reach)):
        return f"release of {named(reach.name)} ({release.rate}, {release.left} left)"
    return ""


def opening(reach: Reach, now: datetime, last: Mapping[RateWindow, datetime | None]) -> datetime | None:
    """Return when the next of this reach may start, if only time keeps it from starting now; else None.

    `last` has for each window the start that must leave it first: of at most 3, the third of the newest.
    """
    brake, moments = reach.brake(now), []
    if brake is not None:
        if brake.until is None:
            return None
        moments.append(brake.until)
    for window in windows(reach):
        first = last[window]
        if first is not None and first > window.begins(now):
            moments.append(first + window.span)
    return max((at for at in moments if at > now), default=None)


def _is_full(window: RateWindow, started: Mapping[RateWindow, int]) -> bool:
    return started[window] >= window.most


def named(reach: str) -> str:
    """Return the reach as people say it: `tag crm`, or `all`."""
    return reach.replace(":", " ", 1)


def soft_rate(waiting: int) -> Rate:
    """Return the rate of a release for which people gave none: ten minutes for all that waits, at least 1 a second."""
    return Rate(max(60, ceil(waiting / 10)), timedelta(minutes=1))


# -------------------------------------------------------------------------------------------------------------- choice


class Waiting(Protocol):
    """One of those that a claim chooses from."""

    @property
    def needs(self) -> str:
        """Its needs, in its lane."""
        ...


W = TypeVar("W", bound=Waiting)


def chosen(waiting: Iterable[W], rooms: Mapping[str, int], limit: int) -> list[W]:
    """Return the first of these, up to the limit, for which every reach has room. `rooms` has the limited reaches."""
    left, taken = dict(rooms), list[W]()
    names = cached_names(left)
    for item in waiting:
        if len(taken) == limit:
            break
        limited = names(item.needs)
        if all(left[name] > 0 for name in limited):
            taken.append(item)
            for name in limited:
                left[name] -= 1
    return taken


def cached_names(limited: Collection[str]) -> Callable[[str], list[str]]:
    """Return a function from needs to the limited reaches among theirs."""
    known: dict[str, list[str]] = {}

    def names(needs: str) -> list[str]:
        names_of = known.get(needs)
        if names_of is None:
            known[needs] = names_of = [name for name in reaches_of(needs) if name in limited]
        return names_of

    return names
