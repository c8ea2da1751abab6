"""What the agenda page says and lists, made of the agenda of all jobs. Nothing here asks a store."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from heapq import nlargest
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from everytick.domain.agenda import EPOCH, QUARTER
from everytick.domain.values import value
from everytick.web import words
from everytick.web.pictures.agenda_bar import agenda_bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from markupsafe import Markup

    from everytick.domain.agenda import AgendaJob, Crowd, FleetAgenda, ZoneChange
    from everytick.domain.upcoming import ComingRun
    from everytick.web.words import Viewer

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
_MOST_CROWDS = 6
_EVEN = 0.8
"""A job starts evenly if so many of its starts are equally far apart, and none twice as far.

A change of the clock moves one of them.
"""

_ALIKE = 0.2
"""Two instants are as full as each other if they differ by this share at most."""


@value(frozen=True)
class ListSpan:
    """What the list shows: so much time, in rows by the hour or by the day, at most so many rows each.

    A job with more starts than `often` in that time is listed once.
    """

    key: str
    said: str
    length: timedelta
    by: timedelta
    often: int
    rows: int


SPANS = {
    "24h": ListSpan("24h", "Next 24 hours", DAY, HOUR, 6, 6),
    "7d": ListSpan("7d", "Next 7 days", 7 * DAY, DAY, 7, 12),
}


@value(frozen=True)
class ListedStart:
    """A row of the list: a start, or the first of many if the job starts often, and how often in words.

    `starts` are those of its hour.
    """

    at: datetime
    job: AgendaJob
    starts: tuple[datetime, ...]
    often: str = ""


@value(frozen=True)
class AgendaPart:
    """The rows of an hour or a day, and how many more there would be."""

    begins: datetime
    rows: tuple[ListedStart, ...]
    more: int


def listed(agenda: FleetAgenda, viewer: Viewer, span: ListSpan) -> list[AgendaPart]:
    """Return the starts to come by hour or day on the viewer's clock; of many, those of the longest jobs."""
    after, through = viewer.now, min(viewer.now + span.length, agenda.through)
    found: dict[datetime, list[ListedStart]] = {}
    counts: dict[datetime, int] = {}
    for group in agenda.groups:
        instants = group.between(after, through)
        is_often = len(instants) > span.often
        often = _often(instants, span) if is_often else ""
        longest = nlargest(span.rows, group.jobs, key=_usual)
        for begins, starts in _by_part(instants, viewer, span):
            counts[begins] = counts.get(begins, 0) + len(group.jobs) * (1 if is_often else len(starts))
            found.setdefault(begins, []).extend(_rows(starts, longest, often))
            if is_often:
                break
    return [_part(begins, found[begins], counts[begins], span) for begins in sorted(found)]


def _by_part(
    instants: Sequence[datetime], viewer: Viewer, span: ListSpan
) -> Iterator[tuple[datetime, tuple[datetime, ...]]]:
    begins: dict[int, datetime] = {}

    def begins_of(instant: datetime) -> datetime:
        # Hours and days of all zones begin with a quarter of an hour in UTC: a busy job has many instants in each.
        quarter = (instant - EPOCH) // QUARTER
        return begins.get(quarter) or begins.setdefault(quarter, begins_at(viewer, instant, span.by))

    for begin, some in groupby(instants, begins_of):
        yield begin, tuple(some)


def begins_at(viewer: Viewer, instant: datetime, by: timedelta) -> datetime:
    """Return when the hour or the day of an instant begins on the viewer's clock."""
    local = viewer.local(instant)
    whole = local.replace(minute=0, second=0, microsecond=0)
    return (whole if by == HOUR else whole.replace(hour=0, fold=0)).astimezone(instant.tzinfo)


def _often(instants: Sequence[datetime], span: ListSpan) -> str:
    """Return how often a job starts: `every 30 min` where nearly all its starts are so far apart, else a number."""
    apart = Counter(after - before for before, after in pairwise(instants))
    length, many = apart.most_common(1)[0]
    if many < _EVEN * (len(instants) - 1) or max(apart) > 2 * length:
        return f"{words.number(len(instants))} starts in {span.key[:-1]} {span.key[-1]}"
    return "every hour" if length == HOUR else f"every {words.length(length)}"


def _rows(starts: tuple[datetime, ...], jobs: Sequence[AgendaJob], often: str) -> Iterator[ListedStart]:
    for job in jobs:
        if often:
            yield ListedStart(starts[0], job, starts, often)
        else:
            yield from (ListedStart(at, job, (at,)) for at in starts)


def _part(begins: datetime, rows: list[ListedStart], count: int, span: ListSpan) -> AgendaPart:
    kept = nlargest(span.rows, rows, key=lambda row: (_usual(row.job), -row.at.timestamp()))
    kept.sort(key=lambda row: (row.at, row.job.job.name))
    return AgendaPart(begins, tuple(kept), count - len(kept))


def _usual(planned: AgendaJob) -> timedelta:
    return timedelta(0) if planned.lengths is None else planned.lengths.p50


# ----------------------------------------------------------------------------------------------------------- a row


@value(frozen=True)
class ShownStart:
    """A row as the page shows it: the bar, what is said of it, and whether that needs a look."""

    at: datetime
    job: str
    bar: Markup
    said: str
    is_look: bool = False


def shown(
    row: ListedStart, viewer: Viewer, by_hand: Mapping[str, Sequence[ComingRun]], changes: Sequence[ZoneChange]
) -> ShownStart:
    """Return a row of the list with its bar."""
    hour = begins_at(viewer, row.at, HOUR)
    marks = {run.instant: run for run in by_hand.get(row.job.job.id, ())}
    mark, is_paused = marks.get(row.at), row.job.pauses(row.at)
    is_off = is_paused or (mark is not None and mark.mark in ("skipped", "moved"))
    within = [start - hour for start in row.starts if start - hour < HOUR]
    now = viewer.now - hour if hour <= viewer.now < hour + HOUR else None
    bar = agenda_bar(within, row.job.lengths, now=now, is_paused=is_off)
    clock = "" if is_off else clock_said(row.at, row.job.job.name, changes)
    said = clock or _said(row, viewer, mark, is_paused)
    return ShownStart(row.at, row.job.job.name, bar, said, bool(clock))


def _said(row: ListedStart, viewer: Viewer, mark: ComingRun | None, is_paused: bool) -> str:
    if is_paused:
        return "paused: will be skipped"
    if mark is not None:
        to = f" to {viewer.when(mark.at)}" if mark.at != mark.instant else ""
        return " ".join(filter(None, (f"{mark.mark}{to}", mark.detail)))
    if row.often:
        return row.often
    lengths = row.job.lengths
    if lengths is None:
        return ""
    if row.at + lengths.p95 >= begins_at(viewer, row.at, HOUR) + HOUR:
        end = row.at + lengths.p95
        is_same_day = viewer.local(end).date() == viewer.local(row.at).date()
        return f"may take until {viewer.clock(end) if is_same_day else viewer.when(end)}"
    return f"usually {words.length(lengths.p50)}"


_CLOCK_WORDS = {
    "doubled": "both passes run",
    "silenced": "comes twice, runs once",
    "moved": "moved by the clock",
    "skipped": "left out by the clock",
}


def clock_said(at: datetime, job: str, changes: Sequence[ZoneChange]) -> str:
    """Say what a change of the clock does to this start; nothing if it is far from one."""
    from everytick.schedules.timezones import zone

    for change in changes:
        near = change.last - change.first
        if not change.at - near <= at <= change.at + near:
            continue
        wall = zone(change.zone).wall(at)
        if not change.first <= wall <= change.last:
            continue
        for (what, _), names in change.jobs.items():
            if job in names:
                return _CLOCK_WORDS.get(what, what)
    return ""


# ------------------------------------------------------------------------------------------------------ collisions


@value(frozen=True)
class CrowdRow:
    """A line of the collisions: when, and the fullest instant that it stands for."""

    when: str
    crowd: Crowd


def crowd_rows(crowds: Sequence[Crowd], viewer: Viewer, most: int = _MOST_CROWDS) -> list[CrowdRow]:
    """Return the fullest instants, one line for those that come at the same time of every day or weekday."""
    at_time: dict[str, list[Crowd]] = {}
    for crowd in crowds:
        if crowd.at > viewer.now:
            at_time.setdefault(f"{viewer.local(crowd.at):%H:%M:%S}", []).append(crowd)
    rows = [row for same in at_time.values() for row in _repeated(sorted(same, key=lambda crowd: crowd.at), viewer)]
    rows.sort(key=lambda row: (-row.crowd.waiting, -row.crowd.starts, row.crowd.at))
    return rows[:most]


def _repeated(same: Sequence[Crowd], viewer: Viewer) -> Iterator[CrowdRow]:
    days = {viewer.local(crowd.at).weekday() for crowd in same}
    most = max(same, key=lambda crowd: crowd.starts)
    usual = [crowd for crowd in same if crowd.starts >= most.starts * (1 - _ALIKE)]
    clock = viewer.planned_clock(most.at)
    if len(usual) == len(same) and len(days) == 7:
        yield CrowdRow(f"every day {clock}", most)
    elif len(usual) == len(same) and days == {0, 1, 2, 3, 4}:
        yield CrowdRow(f"Mon to Fri {clock}", most)
    else:
        rest = [crowd for crowd in same if crowd not in usual]
        yield from (CrowdRow(f"{viewer.day(crowd.at)} {viewer.planned_clock(crowd.at)}", crowd) for crowd in usual)
        if rest:
            yield from _repeated(rest, viewer)
