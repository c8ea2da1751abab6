"""How many starts each hour of the coming week has on the viewer's clock, also where the clock changes in it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from everytick.domain.agenda import EPOCH, QUARTER
from everytick.domain.durations import MICROSECOND
from everytick.domain.values import value
from everytick.web.pictures.loadmap import HOURS, HourPart
from everytick.web.words import WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import date, datetime

    from everytick.domain.agenda import AgendaGroup, FleetAgenda
    from everytick.web.words import Viewer

_WEEK = timedelta(days=7)
_IN_AN_HOUR = 4
"""Quarters."""

_WORKDAYS = 5


@value(frozen=True)
class WeekLoad:
    """The starts of each hour of seven days, Monday first.

    `changed` has the hours that a change of the clock repeats, shortens or leaves out, by weekday and hour: each with
    its parts in order of time. `counts` has the sum of those.
    """

    counts: tuple[tuple[int, ...], ...]
    changed: Mapping[tuple[int, int], tuple[HourPart, ...]]

    @property
    def peaks(self) -> tuple[tuple[int, ...], ...]:
        """The counts, and of a repeated hour that of its fuller pass: two hours are not one full hour."""
        peaks = [list(row) for row in self.counts]
        for (day, hour), parts in self.changed.items():
            peaks[day][hour] = max(part.starts or 0 for part in parts)
        return tuple(map(tuple, peaks))

    @property
    def left_out(self) -> frozenset[tuple[int, int]]:
        """The hours that do not come at all."""
        return frozenset(at for at, parts in self.changed.items() if all(part.starts is None for part in parts))

    @property
    def said(self) -> str:
        """What the change of the clock does to the week, in words: `Sun 02:00 comes twice`. Nothing without one."""
        told = []
        for (day, _), parts in self.changed.items():
            gone = [part for part in parts if part.starts is None]
            hour = (gone or parts[1:])[0].said.partition(" ")[0]
            told.append(f"{WEEKDAYS[day]} {hour} {'is left out' if gone else 'comes twice'}")
        return "; ".join(told)


def by_hour(agenda: FleetAgenda, viewer: Viewer) -> WeekLoad:
    """Return the load of seven days on the viewer's clock: from now until the clock shows this time again."""
    end = _week_end(viewer, agenda.now)
    quarters, passes = _quarters(agenda, end), _passes(viewer, agenda.now, end)
    counts = [[0] * HOURS for _ in WEEKDAYS]
    changed: dict[tuple[int, int], tuple[HourPart, ...]] = {}
    for day, row in enumerate(counts):
        for hour in range(HOURS):
            here = passes.get((day, hour), [])
            row[hour] = sum(quarters.get(quarter, 0) for one_pass in here for quarter in one_pass.quarters)
            if len(here) != 1 or len(here[0].minutes) != _IN_AN_HOUR:
                changed[day, hour] = tuple(_parts(hour, here, quarters))
    return WeekLoad(tuple(map(tuple, counts)), changed)


def _week_end(viewer: Viewer, now: datetime) -> datetime:
    """Return when the clock shows this time in a week; if it leaves that time out, when it jumps over it."""
    wall = (viewer.local(now) + _WEEK).replace(fold=0)
    end = wall.astimezone(UTC)
    if viewer.local(end).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return end
    end = EPOCH + (end - EPOCH) // QUARTER * QUARTER
    while viewer.local(end - MICROSECOND).utcoffset() == viewer.local(end).utcoffset():
        end -= QUARTER
    return end


def _quarters(agenda: FleetAgenda, end: datetime) -> Mapping[int, int]:
    """Return the starts of each quarter of an hour until `end`: a week in which the clock changes has other ends."""
    if end == agenda.through:
        return agenda.quarters
    found = Counter(agenda.quarters)
    first, last = sorted((end, agenda.through))
    for group in agenda.groups:
        for quarter, number in _between(group, first, last):
            found[quarter] = max(found[quarter] + (number if end > agenda.through else -number), 0)
    return found


def _between(group: AgendaGroup, first: datetime, last: datetime) -> Iterator[tuple[int, int]]:
    for instant in group.between(first, last):
        yield (instant - EPOCH) // QUARTER, group.starting(instant)
    at = max(first, group.instants[-1])
    while group.is_cut and at < last:
        quarter = (at - EPOCH) // QUARTER
        until = min(EPOCH + (quarter + 1) * QUARTER, last)
        yield quarter, group.count(at, until) * group.starting(until)
        at = until


# ------------------------------------------------------------------------------------------------ hours of the clock


@value
class _Pass:
    """One time that the clock goes through an hour: in which zone's letters, its quarters, and where they begin."""

    letters: str
    quarters: list[int]
    minutes: set[int]


def _passes(viewer: Viewer, now: datetime, end: datetime) -> dict[tuple[int, int], list[_Pass]]:
    """Return how often the clock goes through each hour, by weekday and hour.

    The week ends in the hour in which it begins: what is left of that hour today and the rest of it are one pass.
    """
    found: dict[tuple[int, int], dict[tuple[date, int], _Pass]] = {}
    for quarter in range((now - EPOCH) // QUARTER, (end - MICROSECOND - EPOCH) // QUARTER + 1):
        local = viewer.local(EPOCH + quarter * QUARTER)
        here, today = found.setdefault((local.weekday(), local.hour), {}), local.date()
        key = (today, local.fold)
        if here and next(iter(here))[0] != today:
            key = next(iter(here))
        one = here.setdefault(key, _Pass(f"{local:%Z}", [], set()))
        one.quarters.append(quarter)
        one.minutes.add(local.minute)
    return {at: list(here.values()) for at, here in found.items()}


def _parts(hour: int, passes: Sequence[_Pass], quarters: Mapping[int, int]) -> Iterator[HourPart]:
    """Give the parts of an hour that comes twice, in part or not at all, in order of time."""
    if len(passes) < 2:
        begin = min(passes[0].minutes) if passes else 60
        if begin:
            yield HourPart(f"{hour:02}:00", None)
    for hour_pass in passes:
        letters = f" {hour_pass.letters}" if len(passes) > 1 else ""
        starts = sum(quarters.get(quarter, 0) for quarter in hour_pass.quarters)
        yield HourPart(f"{hour:02}:{min(hour_pass.minutes):02}{letters}", starts)
        if len(passes) < 2 and (ends := max(hour_pass.minutes) + 15) < 60:
            yield HourPart(f"{hour:02}:{ends:02}", None)


# -------------------------------------------------------------------------------------------- the fullest, the emptiest


def fullest(counts: Sequence[Sequence[int]]) -> tuple[int, int, int] | None:
    """Return the fullest hour of the week: weekday, hour, starts. None if nothing is planned."""
    number, day, hour = max((count, -day, -hour) for day, some in enumerate(counts) for hour, count in enumerate(some))
    return (-day, -hour, number) if number else None


def emptiest(
    counts: Sequence[Sequence[int]], left_out: Collection[tuple[int, int]] = ()
) -> tuple[int, int, int] | None:
    """Return the longest stretch of hours in which least starts from Monday to Friday: begin, end, starts in them.

    An hour that the clock leaves out on one day is judged by the other days. None if every hour is as full as the
    others.
    """
    sums = [_of_workdays(counts, hour, left_out) for hour in range(HOURS)]
    least = min(sums)
    is_empty = [count <= least * 1.1 for count in sums]
    best = max(range(HOURS), key=lambda hour: (_run(is_empty, hour), -hour))
    length = _run(is_empty, best)
    if length == HOURS:
        return None
    return best, (best + length) % HOURS, sum(sums[(best + offset) % HOURS] for offset in range(length))


def _of_workdays(counts: Sequence[Sequence[int]], hour: int, left_out: Collection[tuple[int, int]]) -> int:
    days = [day for day in range(_WORKDAYS) if (day, hour) not in left_out]
    return round(sum(counts[day][hour] for day in days) * _WORKDAYS / len(days))


def _run(is_empty: Sequence[bool], first: int) -> int:
    """Return how many empty hours follow each other from this one on, around midnight too."""
    return next((length for length in range(HOURS) if not is_empty[(first + length) % HOURS]), HOURS)
