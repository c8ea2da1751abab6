"""The schedule lab: type an expression, see what it means. It asks no store and needs no sign-in."""

from asyncio import to_thread
from datetime import UTC, datetime
from functools import cache
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from everytick.errors import EverytickError
from everytick.web import words
from everytick.web.asking import needs
from everytick.web.examining import Examined, examine, read_expression
from everytick.web.framing import viewer_of
from everytick.web.paths import link
from everytick.web.pictures.clock_change import clock_change
from everytick.web.pictures.loadmap import LoadMap, load_map
from everytick.web.rendering import page
from everytick.web.static import versioned
from everytick.web.words import WEEKDAYS, Viewer

router = APIRouter()

EXAMPLE = "30 2 * * 1-5"
TRIES = (
    ("every 90m", "cron"),
    ("0 0 12 L * ?", "quartz"),
    ("R5/2027-01-31T09:00:00/P1M", "cron"),
    ("H 3 * * *", "cron"),
)
DIALECTS = ("cron", "posix", "quartz")
_MOST_TYPED = 2000
"""Characters of the field that are kept as they were typed."""


@router.get("/lab", dependencies=[needs(None)], include_in_schema=False)
async def lab(
    request: Request, schedule: str = "", dialect: str = "cron", tz: str = "", fold: str = "", gap: str = ""
) -> HTMLResponse:
    """Show what a schedule means."""
    now = datetime.now(UTC)
    viewer = viewer_of(request, now)
    typed = {
        "typed": (schedule or EXAMPLE)[:_MOST_TYPED],
        "dialect": dialect if dialect in DIALECTS else "cron",
        "zone": tz[:100] or viewer.zone,
    }
    options = {"fold": fold, "gap": gap}
    try:
        found = await to_thread(_examined, now, typed, options)
    except EverytickError as error:
        values: dict[str, Any] = {"error": _reason(error), "found": None}
    else:
        values = _values(request, found, viewer)
    given: dict[str, Any] = {"dialects": DIALECTS, "tries": TRIES, "zones": zones(), **typed, **options, **values}
    return await page(request, "lab.html", status=400 if values["error"] else 200, viewer=viewer, **given)


def _examined(now: datetime, typed: dict[str, str], options: dict[str, str]) -> Examined:
    from everytick.schedules.timezones import zone

    place = zone(typed["zone"])
    rule = read_expression(typed["typed"], dialect=typed["dialect"], zone=place.name, **options)
    return examine(rule, now, place)


def _values(request: Request, found: Examined, viewer: Viewer) -> dict[str, Any]:
    there = Viewer(found.zone, found.info, viewer.now)  # type: ignore[arg-type]
    counts = [sum(row) for row in found.week]
    said = ", ".join(f"{name} {words.number(count)}" for name, count in zip(WEEKDAYS, counts, strict=True))
    marks = link(request.scope.get("root_path", ""), "/static/marks.svg", v=versioned("marks.svg"))
    return {
        "error": "",
        "found": found,
        "there": there,
        "title": words.sentence(words.cut(found.words, 220)),
        "week": load_map(LoadMap(found.week, is_small=True), f"Instants of a week by day: {said}."),
        "changes": [(change, clock_change(change, marks, _change_title(change))) for change in found.changes],
        "change_titles": [_change_title(change) for change in found.changes],
        "python": _python(found.text),
        "yaml": f"schedule: {_quoted(found.text)}",
        "command": f"everytick explain {_shell(found.text)}",
    }


def _change_title(change: Any) -> str:
    day = words.day_of(change.first.date(), None, True)
    span = f"{change.first:%H:%M} to {change.last:%H:%M}"
    return f"{day}: {span} {'comes twice' if change.is_fold else 'is left out'}"


def _reason(error: EverytickError) -> str:
    return words.sentence(words.cut(str(error), 500))


def _python(text: str) -> str:
    return f"@tick.job({_quoted(text)})"


def _quoted(text: str) -> str:
    from json import dumps

    return dumps(text, ensure_ascii=False)


def _shell(text: str) -> str:
    from shlex import quote

    return quote(text)


@cache
def zones() -> tuple[str, ...]:
    """Return the zones that the form offers: one for most offsets and rules. Any other name may be typed."""
    return (
        "UTC",
        "Africa/Cairo",
        "Africa/Johannesburg",
        "Africa/Lagos",
        "America/Chicago",
        "America/Denver",
        "America/Los_Angeles",
        "America/New_York",
        "America/Sao_Paulo",
        "Asia/Dubai",
        "Asia/Hong_Kong",
        "Asia/Jakarta",
        "Asia/Jerusalem",
        "Asia/Kolkata",
        "Asia/Shanghai",
        "Asia/Singapore",
        "Asia/Tokyo",
        "Australia/Lord_Howe",
        "Australia/Sydney",
        "Europe/Berlin",
        "Europe/Istanbul",
        "Europe/London",
        "Europe/Madrid",
        "Europe/Moscow",
        "Europe/Paris",
        "Europe/Warsaw",
        "Europe/Zurich",
        "Pacific/Auckland",
    )
