"""Zone and theme of this browser, all pages as a list, and the field that finds a job or an occurrence."""

import re
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from everytick.access.people import Role
from everytick.errors import EverytickError, NotFound
from everytick.web.asking import Tick, needs
from everytick.web.framing import THEME_COOKIE, THEMES, ZONE_COOKIE, host_zone, zone_named
from everytick.web.mounting import cookie_path
from everytick.web.paths import link
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

_YEAR_SECONDS = 365 * 24 * 3600
_LONGEST_CHARACTERS = 200
_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@cache
def _zones() -> list[str]:
    return sorted(name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/")))


@router.get("/settings", dependencies=[needs(None)])
async def settings(request: Request, zone: str = "", theme: str = "", keep: str = "") -> Response:
    """Show in which zone and theme this browser sees the pages; with `keep`, remember what was chosen."""
    wrong = ""
    if keep:
        try:
            known = zone_named(zone)[0] if zone else ""
        except EverytickError as error:
            wrong = str(error)
        else:
            return _kept(request, known, theme if theme in THEMES else "")
    values: dict[str, Any] = {
        "zones": _zones(),
        "host_zone": host_zone(),
        "wrong": wrong,
        "wanted": zone[:80] if wrong else "",
        "keys": True,
    }
    return await page(request, "settings.html", status=422 if wrong else 200, **values)


def _kept(request: Request, zone: str, theme: str) -> Response:
    """Return to the first page with the choice in cookies. They say nothing of the person, and change no state."""
    root = request.scope.get("root_path", "")
    answer = RedirectResponse(link(root, "/"), 303)
    for name, chosen in ((ZONE_COOKIE, zone), (THEME_COOKIE, theme)):
        if chosen:
            answer.set_cookie(
                name, chosen, max_age=_YEAR_SECONDS, path=cookie_path(request.scope), samesite="lax", httponly=True
            )
        else:
            answer.delete_cookie(name, path=cookie_path(request.scope))
    return answer


@router.get("/more", dependencies=[needs(Role.VIEWER)])
async def more(request: Request) -> Response:
    """Show all pages as a list: on a telephone the bar has room for four."""
    return await page(request, "more.html")


@router.get("/find", dependencies=[needs(Role.VIEWER)])
async def find(request: Request, tick: Tick, q: str = "") -> Response:
    """Go to the job of this name or the occurrence of this id; else to the jobs whose names contain it."""
    root, wanted = request.scope.get("root_path", ""), q.strip()[:_LONGEST_CHARACTERS]
    if re.fullmatch(_ID, wanted.lower(), re.ASCII):
        return RedirectResponse(link(root, "/occurrences/{}", wanted), 303)
    if wanted:
        try:
            record = await tick.job(wanted)
        except NotFound:
            pass
        else:
            return RedirectResponse(link(root, "/jobs/{}", record.job.name), 303)
    return RedirectResponse(link(root, "/jobs", q=wanted or None), 303)
