"""The agenda: what comes, where is room, which jobs start at once and what a change of the clock moves."""

from asyncio import to_thread
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from everytick.access.people import Role
from everytick.domain.agenda import FleetAgenda, ZoneChange
from everytick.domain.upcoming import ComingRun
from everytick.web import words
from everytick.web.agenda_cache import agenda_cache
from everytick.web.agenda_view import (
    DAY,
    HOUR,
    SPANS,
    AgendaPart,
    ListSpan,
    crowd_rows,
    listed,
    shown,
)
from everytick.web.asking import Tick, needs
from everytick.web.csv_answers import csv_answer
from everytick.web.framing import viewer_of
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.pictures.loadmap import LoadMap, load_map
from everytick.web.problems import Problem
from everytick.web.rendering import page
from everytick.web.week_load import WeekLoad, by_hour, emptiest, fullest
from everytick.web.words import WEEKDAYS, Viewer

router = APIRouter(include_in_schema=False)

_MOST_ROWS = 500
_MOST_CSV_ROWS = 20_000


@router.get("/agenda", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def agenda(request: Request, tick: Tick, w: str = "24h") -> HTMLResponse:
    """Show the starts to come, the load of the week, collisions and clock changes."""
    found, viewer, span = await agenda_now(request, w)
    # In a thread: with 10,000 jobs this takes a tenth of a second, and the loop has occurrences to start.
    parts, values = await to_thread(_values, found, viewer, span)
    by_hand = await tick.set_by_hand(sorted({row.job.job.id for part in parts for row in part.rows}))
    shown_parts = [_shown(part, viewer, span, by_hand, found.changes) for part in parts]
    return await page(request, "agenda.html", viewer=viewer, span=span, found=found, parts=shown_parts, **values)


def _values(found: FleetAgenda, viewer: Viewer, span: ListSpan) -> tuple[list[AgendaPart], dict[str, Any]]:
    """Return the list, and the other values of the page."""
    load = by_hour(found, viewer)
    peaks = load.peaks
    return listed(found, viewer, span), {
        "spans": SPANS,
        "said": _said(found, viewer),
        "full": fullest(peaks),
        "empty": emptiest(peaks, load.left_out),
        "weekdays": WEEKDAYS,
        "planned": found.starts(viewer.now, viewer.now + span.length),
        "map": week_map(load, viewer),
        "crowds": crowd_rows(found.crowds, viewer),
        "changes": [change_view(change, viewer) for change in found.changes],
        "waits_said": waits_said,
        "hour": HOUR,
        "is_estimated": any(group.is_cut for group in found.groups),
    }


async def agenda_now(request: Request, w: str) -> tuple[FleetAgenda, Viewer, ListSpan]:
    """Return the agenda, the viewer at the store's time, and how much of it is to be shown."""
    span = SPANS.get(w)
    if span is None:
        raise Problem(422, "invalid_value", f"w is '{words.cut(w, 40)}': write 24h or 7d")
    found, now = await agenda_cache(request).get()
    return found, viewer_of(request, now), span


def _said(found: FleetAgenda, viewer: Viewer) -> str:
    """Return the heading: how much starts in the next hour, and what starts next."""
    nearest = [(group.between(viewer.now, found.through), group) for group in found.groups]
    coming = [(instants[0], group.jobs[0].job.name) for instants, group in nearest if instants]
    if not coming and found.uncounted:
        return f"The starts of {words.count(found.uncounted, 'job')} take longer to count. Look again in some seconds."
    if not coming:
        return "Nothing is planned for the next seven days."
    at, name = min(coming)
    soon = found.starts(viewer.now, viewer.now + HOUR)
    next_said = (
        f"the next is {name} {viewer.ago(at)}" if at - viewer.now < DAY else f"the next is {name}, {viewer.when(at)}"
    )
    return words.sentence(f"{words.count(soon, 'start')} in the next hour; {next_said}")


def _shown(
    part: AgendaPart,
    viewer: Viewer,
    span: ListSpan,
    by_hand: Mapping[str, Sequence[ComingRun]],
    changes: Sequence[ZoneChange],
) -> dict[str, Any]:
    """Return an hour or a day of the list as the page shows it."""
    is_now = part.begins <= viewer.now
    title = viewer.when(part.begins) if span.by == HOUR else viewer.day(part.begins)
    note = ("this hour" if span.by == HOUR else "today") if is_now else ""
    changed = [change for change in changes if part.begins <= change.at < part.begins + span.by]
    if changed:
        way = "back" if changed[0].is_fold else "forward"
        note = f"the clock goes {way} in {changed[0].zone} at {viewer.clock(changed[0].at)}"
    return {
        "title": title,
        "note": note,
        "begins": part.begins,
        "rows": [shown(row, viewer, by_hand, changes) for row in part.rows],
        "more": part.more,
        "through": part.begins + span.by,
    }


def week_map(load: WeekLoad, viewer: Viewer) -> dict[str, Any]:
    """Return the load map of the coming seven days, with the numbers at which its steps begin."""
    now = viewer.local(viewer.now)
    drawn = LoadMap(load.peaks, now=(now.weekday(), now.hour), changed=load.changed)
    sums = ", ".join(f"{name} {words.number(sum(row))}" for name, row in zip(WEEKDAYS, load.counts, strict=True))
    said = f"Planned starts by day: {sums}." + (f" {load.said}." if load.said else "")
    return {"svg": load_map(drawn, said), "steps": list(dict.fromkeys(drawn.steps)), "clock": load.said}


def waits_said(waiting: int, longest: timedelta) -> str:
    """Say who waits for a slot, and how long the last of them does."""
    if not waiting:
        return "nobody"
    about = f"the last about {words.length(longest)}" if longest else "how long is not known"
    return f"{words.count(waiting, 'job')}, {about}"


_CHANGE_WORDS = {
    "doubled": ("completed", "run in both hours"),
    "silenced": ("completed", "run once"),
    "moved": ("completed", "run right after the hour that is left out"),
    "skipped": ("skipped", "do not run: their time is left out"),
}


def change_view(change: ZoneChange, viewer: Viewer) -> dict[str, Any]:
    """Return a change of the clock in words."""
    what = "comes twice" if change.is_fold else "is left out"
    hours = f"{change.first:%H:%M}–{change.last:%H:%M}"
    return {
        "title": f"The clock changes on {viewer.day(change.at)}",
        "at": change.at,
        "said": f"{hours} {what} in {change.zone}:",
        "jobs": change.job_count,
        "effects": [
            {
                "mark": _CHANGE_WORDS.get(what, ("late", what))[0],
                "said": _CHANGE_WORDS.get(what, ("late", what))[1],
                "rule": rule,
                "count": len(names),
                "names": words.listed(sorted(names), 5),
            }
            for (what, rule), names in sorted(change.jobs.items())
        ],
    }


# ---------------------------------------------------------------------------------------------------- as a table


@router.get("/agenda/table", dependencies=[needs(Role.VIEWER)])
async def table(
    request: Request,
    w: str = "24h",
    after: Annotated[datetime | None, Query()] = None,
    through: Annotated[datetime | None, Query()] = None,
    form: Annotated[str, Query(alias="format")] = "html",
) -> Response:
    """Show every planned start of a time as a table or as CSV, and the load of the week as numbers."""
    found, viewer, span = await agenda_now(request, w)
    begin, end = _within(found, viewer, span, after, through)
    rows = _starts(found, begin, end)
    if form == "csv":
        return csv_answer("agenda.csv", ("at", "job", "usually_seconds", "paused"), _csv_rows(rows))
    counted = found.starts(begin, end)
    first = [row for row, _ in zip(rows, range(_MOST_ROWS), strict=False)]
    return await page(
        request,
        "agenda_table.html",
        viewer=viewer,
        span=span,
        begin=begin,
        end=end,
        rows=first,
        counted=counted,
        load=by_hour(found, viewer),
        weekdays=WEEKDAYS,
        asked={"w": w, "after": begin.isoformat(), "through": end.isoformat()},
    )


def _within(
    found: FleetAgenda, viewer: Viewer, span: ListSpan, after: datetime | None, through: datetime | None
) -> tuple[datetime, datetime]:
    """Return the time that is asked for, within what the agenda knows."""
    given = [moment for moment in (after, through) if moment is not None]
    if any(moment.tzinfo is None for moment in given):
        raise Problem(422, "invalid_value", "after and through need an offset, such as 2027-01-31T09:00:00Z")
    begin = min(max(after or viewer.now, viewer.now), found.through)
    return begin, max(begin, min(through or begin + span.length, found.through))


def _starts(
    found: FleetAgenda, begin: datetime, end: datetime
) -> Iterator[tuple[datetime, str, timedelta | None, bool]]:
    """Give every planned start in order: when, which job, how long it usually takes, and whether a pause holds it."""
    from heapq import merge

    def of(group: Any) -> Iterator[tuple[datetime, int]]:
        return ((at, place[id(group)]) for at in group.between(begin, end))

    place = {id(group): number for number, group in enumerate(found.groups)}
    for at, number in merge(*(of(group) for group in found.groups)):
        for agenda_job in found.groups[number].jobs:
            usual = None if agenda_job.lengths is None else agenda_job.lengths.p50
            yield at, agenda_job.job.name, usual, agenda_job.pauses(at)


def _csv_rows(rows: Iterator[tuple[datetime, str, timedelta | None, bool]]) -> Iterator[tuple[object, ...]]:
    for (at, name, usual, is_paused), _ in zip(rows, range(_MOST_CSV_ROWS), strict=False):
        yield at.isoformat(), name, "" if usual is None else round(usual.total_seconds(), 3), is_paused
