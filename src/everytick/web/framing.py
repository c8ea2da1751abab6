"""The frame of every page: where the reader is, in which zone and theme, and what the templates may call."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from everytick.domain.values import value
from everytick.web import words
from everytick.web.mounting import StoreMount, mount_of
from everytick.web.paths import path_of
from everytick.web.pictures.marks import glyph, word
from everytick.web.words import WEEKDAYS, Viewer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import Request

ZONE_COOKIE, THEME_COOKIE = "everytick_zone", "everytick_theme"
THEMES = ("light", "dark")
REFRESH_SECONDS = 60
"""How often a page without script asks for itself again."""


@value(frozen=True)
class PageLink:
    """A page of the service in the bar on top or in the footer. `key` follows `g` on the keyboard."""

    name: str
    label: str
    path: str
    key: str = ""
    is_wide: bool = False
    badge: int = 0
    tone: str = "look"


_TOP = (
    PageLink("now", "Now", "/", "n"),
    PageLink("jobs", "Jobs", "/jobs", "j"),
    PageLink("agenda", "Agenda", "/agenda", "a"),
    PageLink("history", "History", "/history", "h"),
    PageLink("files", "Files", "/files", "f", is_wide=True),
    PageLink("nodes", "Nodes", "/nodes", "o", is_wide=True),
    PageLink("lab", "Lab", "/lab", "l", is_wide=True),
)
_FOOT = (
    PageLink("audit", "Audit", "/audit"),
    PageLink("year", "Year", "/year"),
    PageLink("api", "API", "/api/docs"),
)
_PAGE_OF = {"": "now", "lanes": "now", "timeline": "now", "occurrences": "history", "job": "jobs", "access": "audit"}
"""Which page a first part of a path belongs to, where that is not the name of the page."""


@value(frozen=True)
class Badges:
    """How much needs a look, and how many job files are broken, as far as it is known without asking."""

    looks: int = 0
    files: int = 0
    is_wrong: bool = False


@value(frozen=True)
class Flash:
    """What the reader's last deed did: a banner above the page, with the address of the deed that undoes it.

    `name` is a part of the text that stands out.
    """

    text: str
    tone: str = "done"
    mark: str = "completed"
    undo: str = ""
    name: str = ""


@value(frozen=True)
class Frame:
    """What `base.html` shows around a page. A live page follows what happens; `lane` is the job that it is about."""

    viewer: Viewer
    page: str
    pages: Sequence[PageLink] = _TOP
    foot: Sequence[PageLink] = _FOOT
    notices: Sequence[Flash] = ()
    store: str = ""
    zone_data: str = ""
    refresh: int = 0
    is_live: bool = False
    lane: str = ""
    is_away: bool = False
    mount: StoreMount | None = None

    @property
    def weekday(self) -> str:
        """The day of the week on the viewer's clock."""
        return WEEKDAYS[self.viewer.local(self.viewer.now).weekday()]


def viewer_of(request: Request, now: datetime | None = None) -> Viewer:
    """Return the zone and theme that the reader has chosen. `now` is the store's time if the page has asked for it."""
    name = request.cookies.get(ZONE_COOKIE, "")
    try:
        zone, info = zone_named(name or host_zone())
    except Exception:  # noqa: BLE001, a cookie may hold anything
        zone, info = zone_named(host_zone())
    theme = request.cookies.get(THEME_COOKIE, "")
    return Viewer(zone, info, now or datetime.now(UTC), theme if theme in THEMES else "")


@cache
def host_zone() -> str:
    """Return the zone of this host, UTC if that is unknown."""
    from everytick.config.host import local_timezone
    from everytick.errors import InvalidPolicies

    try:
        return local_timezone()
    except InvalidPolicies:
        return "UTC"


def zone_named(name: str) -> tuple[str, Any]:
    """Return a time zone: its name, and what moments are converted with."""
    from everytick.schedules.timezones import zone

    return ("UTC", UTC) if name == "UTC" else (name, zone(name).info)


def frame_of(request: Request, path: str, viewer: Viewer | None = None) -> Frame:
    """Return the frame of the page at this path, below the prefix of the service."""
    first = path.strip("/").partition("/")[0]
    badges: Badges = getattr(request.app.state, "badges", None) or Badges()
    marked = {
        "now": (badges.looks, "wrong" if badges.is_wrong else "look"),
        "files": (badges.files, "look"),
    }
    pages = tuple(
        replace(page, badge=marked[page.name][0], tone=marked[page.name][1]) if page.name in marked else page
        for page in _TOP
    )
    return Frame(
        viewer or viewer_of(request),
        _PAGE_OF.get(first, first),
        pages,
        notices=getattr(request.state, "notices", ()),
        store=getattr(request.app.state, "store_said", ""),
        zone_data=_zone_data(),
        mount=mount_of(request.scope),
    )


def live_frame(request: Request, viewer: Viewer, lane: str = "", refresh: int = REFRESH_SECONDS) -> Frame:
    """Return the frame of a page that follows what happens, to one job or to all; without script it asks again."""
    return replace(frame_of(request, path_of(request.scope), viewer), is_live=True, lane=lane, refresh=refresh)


@cache
def _zone_data() -> str:
    from everytick.schedules.timezones import zone_data

    return zone_data().version


def helpers(marks: str, viewer: Viewer) -> dict[str, Any]:
    """Return what every template may call. `marks` is the address of the glyphs."""
    return {
        "viewer": viewer,
        "when": viewer.when,
        "time": viewer.time,
        "ago": viewer.ago,
        "marks": marks,
        "glyph": lambda name, more="": glyph(name, marks, more),
        "word": partial(_word, marks),
        "length": words.length,
        "number": words.number,
        "short_number": words.short_number,
        "count": words.count,
        "spelled": words.spelled,
        "listed": words.listed,
        "sentence": words.sentence,
        "usually": words.usually,
        "cut": words.cut,
        "coded": _coded,
        "here_said": partial(words.without_zone, viewer.zone),
        "utc_text": words.utc_text,
        "next_time": partial(_next_time, viewer),
        "problem_said": words.problem_said,
        "problem_todo": words.problem_todo,
    }


def _word(marks: str, status: str, text: str = "") -> Any:
    return word(status, marks, text)


def _coded(text: str) -> Any:
    """Return a text of ours in which what stands between backticks is code."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )


def _next_time(viewer: Viewer, moment: datetime) -> Any:
    """Return when something comes next: the time of day stands out, its day does not."""
    from markupsafe import Markup

    day, _, clock = viewer.planned(moment).rpartition(" ")
    inner = Markup("{} <b>{}</b>").format(day, clock) if day else Markup("<b>{}</b>").format(clock)
    return viewer.time(moment, inner)
