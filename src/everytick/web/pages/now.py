"""The page Now: what needs a look, what runs, what has been and what comes, on one line of time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from everytick.access.people import Person, Role, tags_of
from everytick.domain.questions import CELL, step_of
from everytick.errors import EverytickError, NotFound, StoreUnavailable
from everytick.stores.base import JobRecord
from everytick.web import words
from everytick.web.asking import Who, needs
from everytick.web.framing import Badges, Frame, live_frame, viewer_of
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.lane_rows import LaneContext, lane_row
from everytick.web.needs_a_look import WRONG, LookLine, headline, needing
from everytick.web.now_board import Board, FleetState
from everytick.web.now_view import ANSWER_SECONDS, WINDOWS, AskedFor, NowAsked, View, view_of
from everytick.web.pages import away, empty
from everytick.web.paths import link
from everytick.web.pictures.axis import Axis
from everytick.web.pictures.trail import localized
from everytick.web.problems import status_of
from everytick.web.pulse import pulse_of
from everytick.web.rendering import html_answer, page, rendered, shapes
from everytick.web.streams import Hub
from everytick.web.tiles import tiles
from everytick.web.timeline_table import MOST_ROWS, table_rows, written_csv
from everytick.web.timelines import lens_of, other_bands, planned_by_band, timeline_of, up_gaps
from everytick.web.words import Viewer

router = APIRouter(include_in_schema=False)

_LOOKS_SHOWN, _LOOKS_MOST = 4, 30
"""How many causes are shown, so that the first lanes stand above the fold, and how many more behind a summary."""

_FEW_RUNS = 250
Planned: TypeAlias = dict[str, dict[datetime, int]]
"""How many runs each band plans, by step."""


@router.get("/", dependencies=[needs(Role.VIEWER, without_store=True)])
@kept_for_a_moment
async def now(request: Request, who: Who, asked: AskedFor) -> Response:
    """Show what needs a look, and the timeline; what was known last if the store is away."""
    board: Board = request.app.state.board
    rev = _hub(request).number
    pulse = pulse_of(request)
    try:
        await pulse.feel()
        view = await view_of(board, asked)
    except (EverytickError, TimeoutError) as error:
        if not isinstance(error, TimeoutError) and status_of(error) != 503:
            raise
        if isinstance(error, (StoreUnavailable, TimeoutError)):
            error = pulse.missed(error)
        return await away.answer(
            request, error, board.last_shown(asked), partial(_timeline_values, request, who, rev=rev)
        )
    _remember(request, view)
    if not view.fleet.records:
        return await empty.answer(request, view.fleet)
    etag = _etag(request, who, view)
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers={"etag": etag})
    values = {**_head_values(request, who, view), **await _timeline_values(request, who, view, rev=rev)}
    return html_answer(request, rendered(request, "now.html", **values), headers={"etag": etag})


@router.get("/timeline", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def timeline_table(request: Request, who: Who, asked: AskedFor) -> Response:
    """Show the timeline as a table."""
    view = await view_of(request.app.state.board, asked)
    viewer = viewer_of(request, view.fleet.now)
    rows = table_rows(view, _context(request, who, view, viewer))
    runs = sum(not row.is_now for row in rows)
    root = _root(request)
    return await page(
        request,
        "now_table.html",
        viewer=viewer,
        said=words.sentence(f"{words.spelled(runs, 'run')} of {words.spelled(len(view.job_ids), 'job')}"),
        more=f"{viewer.when(view.axis.after)} to {viewer.when(view.axis.through)}, {viewer.zone}",
        rows=rows,
        axis=view.axis,
        is_cut=view.sight.is_cut or runs >= MOST_ROWS,
        as_picture=link(root, "/", **view.asked.query()),
        as_csv=link(root, "/timeline.csv", **view.asked.query()),
    )


@router.get("/timeline.csv", dependencies=[needs(Role.VIEWER)])
async def timeline_csv(request: Request, who: Who, asked: AskedFor) -> Response:
    """Return the same table as CSV."""
    view = await view_of(request.app.state.board, asked)
    rows = table_rows(view, _context(request, who, view, viewer_of(request, view.fleet.now)))
    headers = {"content-disposition": 'attachment; filename="timeline.csv"'}
    return Response(written_csv(rows), media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/lanes/{job:name}", dependencies=[needs(Role.VIEWER)])
async def lane(
    request: Request,
    who: Who,
    job: str,
    after: Annotated[float, Query(ge=0, le=4e9)],
    through: Annotated[float, Query(ge=0, le=4e9)],
) -> HTMLResponse:
    """Return one lane of a page that shows this stretch of time."""
    board: Board = request.app.state.board
    rev = _hub(request).number
    async with asyncio.timeout(ANSWER_SECONDS):
        fleet = await board.fleet()
        axis = _given_axis(after, through, fleet)
        id_ = fleet.ids.get(job)
        if id_ is None:
            raise NotFound("job", job)
        sight = await board.sight(fleet, axis, [id_], with_bands=False)
    viewer = viewer_of(request, fleet.now)
    with_ = LaneContext(axis, lens_of(axis), viewer, shapes(_root(request)), partial(link, _root(request)), who, rev)
    row = lane_row(fleet, sight, id_, with_)
    text = rendered(request, "lane.html", viewer=viewer, row=row, has_lens=with_.lens is not None)
    return html_answer(request, text)


def _given_axis(after: float, through: float, fleet: FleetState) -> Axis:
    begin, end = datetime.fromtimestamp(after, UTC), datetime.fromtimestamp(through, UTC)
    longest = max(WINDOWS.values())
    return Axis(max(begin, end - longest), max(end, begin + timedelta(minutes=1)), fleet.now)


# ----------------------------------------------------------------------------------------------------------- values


def _head_values(request: Request, who: Person, view: View) -> dict[str, Any]:
    fleet, viewer = view.fleet, viewer_of(request, view.fleet.now)
    to_page = partial(link, _root(request))
    said = headline(fleet, view.looks)
    return {
        "viewer": viewer,
        "frame": _frame(request, viewer),
        "title": said.removesuffix("."),
        "said": said,
        "more": _more(view, viewer),
        "tiles": tiles(fleet, viewer, to_page),
        "looks": [_look_values(look, who, view, viewer, to_page) for look in view.looks[: _LOOKS_MOST + _LOOKS_SHOWN]],
        "looks_count": len(view.looks),
        "shown": _LOOKS_SHOWN,
        "operator": Role.OPERATOR,
    }


def _look_values(
    look: LookLine, who: Person, view: View, viewer: Viewer, to_page: Callable[..., str]
) -> dict[str, Any]:
    """Return a line as the template shows it. Errors are for people who may see payloads; deeds for operators."""
    may_see = who.sees_payloads() or _may_on_all(who, look, view)
    is_deed = "/do/" in look.deed_path
    may_do = not is_deed or who.may(Role.OPERATOR) or (_has_jobs(look, view) and _may_on_all(who, look, view))
    path, parts = (look.path, look.parts) if may_do or "/do/" not in look.path else ("/jobs", ())
    return {
        "mark": look.mark,
        "who": look.subject,
        "fact": look.fact,
        "what": localized(look.what, viewer) if may_see or not look.detail else "",
        "detail": look.detail if may_see else "",
        "after": look.after,
        "at": look.at,
        "since": look.is_since,
        "href": to_page(path, *parts),
        "deed": look.deed if may_do else "",
        "deed_href": to_page(look.deed_path, *look.deed_parts) if look.deed and may_do else "",
    }


def _has_jobs(look: LookLine, view: View) -> bool:
    return any(id_ in view.fleet.records for id_ in look.jobs)


def _may_on_all(who: Person, look: LookLine, view: View) -> bool:
    """Whether the person is an operator of every job of this line, by grants; of no job, always."""
    records = view.fleet.records
    jobs = (records[id_].job for id_ in look.jobs if id_ in records)
    return all(who.may(Role.OPERATOR, tags_of(job.name, job.settings.tags)) for job in jobs)


def _more(view: View, viewer: Viewer) -> str:
    """Return the sentences below the heading: how the others are, and when no node was up."""
    fleet, bad = view.fleet, len(needing(view.looks))
    parts = []
    if not fleet.living:
        parts.append("Instants are decided as soon as a node is live again; none is lost.")
    elif bad:
        rest = len(fleet.records) - bad
        others = "The other job is on time." if rest == 1 else f"The other {words.count(rest, 'job')} are on time."
        parts += [others] if rest else []
    else:
        running = sum(run.started_at is not None for run in fleet.active)
        parts.append(
            f"{words.sentence(words.spelled(running, 'run') + ' under way')}" if running else "Nothing runs now."
        )
    gaps = [gap for gap in up_gaps(fleet) if gap[1] > view.axis.after and gap[1] < fleet.now]
    if gaps and fleet.living:
        begin, end = gaps[-1]
        parts.append(f"No node was up from {viewer.when(begin)} to {viewer.when(end)}; everything due then is decided.")
    return " ".join(parts)


async def _timeline_values(request: Request, who: Person, view: View, *, rev: int) -> dict[str, Any]:
    viewer, root = viewer_of(request, view.fleet.now), _root(request)
    with_ = _context(request, who, view, viewer, rev)
    others = other_bands(view)
    planned = await _planned(request.app.state.board, view, others)
    to_window = partial(_to_window, root, view.asked)
    names = list(WINDOWS)
    place = names.index(view.asked.w)
    half = view.axis.length / 2
    return {
        "timeline": timeline_of(view, with_, others, planned),
        "windows": names,
        "nearer": names[place - 1] if place else "",
        "farther": names[place + 1] if place + 1 < len(names) else "",
        "to_window": to_window,
        "earlier": view.axis.through - half,
        "later": view.axis.through + half,
        "as_table": link(root, "/timeline", **view.asked.query()),
    }


async def _planned(board: Board, view: View, others: Mapping[str, Sequence[JobRecord]]) -> Planned:
    """Return what the bands plan, counted once in five minutes.

    Many schedules are asked in a thread, so that no tick of a node beside it waits.
    """
    count = sum(map(len, others.values()))
    if count <= _FEW_RUNS:
        return planned_by_band(others, view.axis, view.sight.step)
    key = view.asked, step_of(view.fleet.now, CELL), count
    return await board.planned.get(key, lambda: asyncio.to_thread(planned_by_band, others, view.axis, view.sight.step))


def _to_window(root: str, asked: NowAsked, **other: object) -> str:
    return link(root, "/", **asked.query(**other))


def _context(request: Request, who: Person, view: View, viewer: Viewer, rev: int = 0) -> LaneContext:
    root = _root(request)
    return LaneContext(view.axis, lens_of(view.axis), viewer, shapes(root), partial(link, root), who, rev)


def _frame(request: Request, viewer: Viewer) -> Frame:
    return live_frame(request, viewer)


def _remember(request: Request, view: View) -> None:
    """Let every page show what this one has learnt: badges, and how the store answered."""
    fleet, state = view.fleet, request.app.state
    files = sum(look.kind == "file" for look in view.looks)
    wrong = any(look.tone == WRONG for look in view.looks)
    state.badges = Badges(len(view.looks) - files, files, wrong)
    state.store_said = f"{view.fleet.store}, answered in {max(round(fleet.took * 1000), 1)} ms"


def _etag(request: Request, who: Person, view: View) -> str:
    viewer = viewer_of(request, view.fleet.now)
    notices = getattr(request.state, "notices", ())
    parts = (view.stamp, viewer.zone, viewer.theme, who.name, who.role, who.grants, _root(request), notices)
    return f'"{sha256(repr(parts).encode()).hexdigest()[:20]}"'


def _hub(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", ""))
