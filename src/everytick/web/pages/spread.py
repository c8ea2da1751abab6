"""Spread: offsets that flatten the peak, shown before they are stored, and stored exactly as shown."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from everytick.access.people import Role
from everytick.app.agenda import MOST_STORED, SpreadPlan
from everytick.domain.agenda import Spreading
from everytick.domain.durations import duration
from everytick.errors import EverytickError
from everytick.web import words
from everytick.web.agenda_cache import agenda_cache
from everytick.web.asking import Tick, Who, needs
from everytick.web.flash import set_flashes
from everytick.web.framing import Flash, viewer_of
from everytick.web.paths import link
from everytick.web.pictures.loadmap import LoadMap, load_map
from everytick.web.problems import Problem
from everytick.web.rendering import page
from everytick.web.words import WEEKDAYS, Viewer

router = APIRouter(include_in_schema=False)

_MOST_ELSEWHERE = 100
"""Jobs defined in files or code that are listed; the others are counted."""

_LONGEST_WINDOW = timedelta(days=1)
MINUTE = timedelta(minutes=1)


@router.get("/agenda/spread", dependencies=[needs(Role.VIEWER)])
async def spread(request: Request, tick: Tick, who: Who, allow: str = "") -> HTMLResponse:
    """Show which offsets would flatten the peak of the coming seven days."""
    window, wrong = _window(allow)
    plan = await tick.spread_plan(window)
    viewer = viewer_of(request)
    elsewhere = [move for move in plan.moves if move.where]
    return await page(
        request,
        "spread.html",
        status=422 if wrong else 200,
        viewer=viewer,
        allow=allow[:20],
        wrong=wrong,
        plan=plan,
        said=_said(plan),
        before=_map(plan.load, plan.load.before, viewer),
        after=_map(plan.load, plan.load.after, viewer),
        ours=[move for move in plan.moves if not move.where][:MOST_STORED],
        elsewhere=elsewhere[:_MOST_ELSEWHERE],
        more_elsewhere=max(len(elsewhere) - _MOST_ELSEWHERE, 0),
        may_apply=who.may(Role.ADMIN),
    )


def _window(allow: str) -> tuple[timedelta | None, str]:
    """Return the window of jobs that name none, or what is wrong with the text."""
    if not allow.strip():
        return None, ""
    try:
        found = duration(allow.strip())
    except EverytickError as error:
        return None, str(error)
    if not MINUTE <= found <= _LONGEST_WINDOW:
        return None, f"{words.cut(allow, 20)} is not between a minute and a day"
    return found, ""


def _said(plan: SpreadPlan) -> str:
    load = plan.load
    if not plan.moves:
        return "Nothing can be spread further."
    moved = words.spelled(len(plan.moves), "job")
    if load.peak_after == load.peak_before:
        return words.sentence(
            f"{moved} can leave full hours; the peak stays at {words.number(load.peak_after)} at once"
        )
    fewer = f"from {words.number(load.peak_before)} to {words.number(load.peak_after)} runs at once"
    return words.sentence(f"{moved} can bring the peak {fewer}")


def _map(load: Spreading, minutes: Sequence[int], viewer: Viewer) -> Any:
    """Return a load map of the most runs at once in each hour of the week."""
    counts = [[0] * 24 for _ in WEEKDAYS]
    for first in range(0, len(minutes), 15):
        local = viewer.local(load.start + first * MINUTE)
        row = counts[local.weekday()]
        row[local.hour] = max(row[local.hour], *minutes[first : first + 15])
    most = max(map(max, counts))
    drawn = LoadMap(tuple(map(tuple, counts)), is_small=True, top=load.peak_before)
    return load_map(drawn, f"At most {words.count(most, 'run')} at once.")


@router.post("/agenda/spread", dependencies=[needs(Role.ADMIN)])
async def apply(request: Request, tick: Tick) -> Response:
    """Store the changes that were shown: all of them, or none if something has moved since."""
    form = await request.form(max_fields=2 * MOST_STORED + 10)
    jobs, schedules = (_texts(form.getlist(name)) for name in ("job", "schedule"))
    if not jobs or len(jobs) != len(schedules) or len(jobs) > MOST_STORED:
        raise Problem(422, "invalid_value", f"name 1 to {MOST_STORED} jobs, and one schedule for each")
    plan = str(form.get("plan", ""))[:100]
    changes = await tick.apply_spread(dict(zip(jobs, schedules, strict=True)), plan, confirmed=bool(form.get("sure")))
    agenda_cache(request).forget()
    changed = sum(change.kind == "changed" for change in changes)
    answer = RedirectResponse(link(request.scope.get("root_path", ""), "/agenda"), 303)
    set_flashes(request, answer, [Flash(f"{words.count(changed, 'schedule')} stored. The load is counted anew.")])
    return answer


def _texts(given: Sequence[object]) -> list[str]:
    return [text for text in given if isinstance(text, str)]
