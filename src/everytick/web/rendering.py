"""Pages from templates: Jinja2 with every value escaped, and links that hold under any prefix."""

import asyncio
import gzip
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from everytick import __version__
from everytick.web.csrf import csrf_field
from everytick.web.flash import drop_flashes, read_flashes
from everytick.web.framing import frame_of, helpers
from everytick.web.paths import link, path_of
from everytick.web.pictures.marks import MARKS
from everytick.web.static import versioned
from everytick.web.submissions import new_key

_WHOLE = "<body"
_WORTH_BYTES, _LEVEL = 1_000, 4
"""Shorter texts are not compressed. Level 4 takes half as long as the usual 6, and the pages are 4 % larger."""

_PAUSE_SECONDS = 0.05
"""The pause between two templates that are compiled ahead: each takes some 10 ms, and a node that starts is busy."""

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """Return the environment of all templates. An unknown name in a template is an error."""
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


async def compile_templates(pause_seconds: float = _PAUSE_SECONDS) -> None:
    """Compile every template, so that the first reader of a page does not wait for it."""
    for name in environment().list_templates():
        environment().get_template(name)
        await asyncio.sleep(pause_seconds)


async def page(
    request: Request, template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
) -> HTMLResponse:
    """Return the page that a template makes of these values. A whole page tells what the reader's last deed did."""
    notices = read_flashes(request)
    text = rendered(request, template, **values)
    made = html_answer(request, text, status=status, headers=headers)
    if notices and _WHOLE in text:
        drop_flashes(request, made)
    return made


def html_answer(
    request: Request, text: str, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """Return the text, compressed where the browser takes that.

    Every token in a form is masked, so its length tells nothing. The answer to a deed is sent as it is: it may show a
    new secret, once.
    """
    body, given = text.encode(), {"vary": "accept-encoding, cookie", **(headers or {})}
    if request.method == "GET" and len(body) >= _WORTH_BYTES and takes_gzip(request):
        body, given["content-encoding"] = gzip.compress(body, _LEVEL, mtime=0), "gzip"
    return HTMLResponse(body, status, given)


def takes_gzip(request: Request) -> bool:
    """Whether the browser takes a compressed answer."""
    return "gzip" in request.headers.get("accept-encoding", "")


def rendered(request: Request, template: str, **values: Any) -> str:
    """Return the text that a template makes of these values, a whole page or a part of one.

    Every template also has: `link(path, *parts, **query)`, `asset(name)` for files of ours, `csrf_field()` for
    every form that changes something, `path` (below the prefix), `application` (its name), `everytick_version`,
    `who` (the person, None before sign-in), `frame`, and what `framing.helpers` names: `time(moment)`,
    `length(duration)`, `glyph(name)`, `word(status)` and more. A page that has asked the store for its time gives
    `viewer=viewer_of(request, now)`; one that knows more of its frame, `frame`.
    """
    root, path = request.scope.get("root_path", ""), path_of(request.scope)
    frame = values.get("frame") or frame_of(request, path, values.get("viewer"))
    given = {
        **helpers(shapes(root), frame.viewer),
        "frame": frame,
        "link": partial(link, root),
        "asset": lambda name: link(root, f"/static/{name}", v=versioned(name)),
        "csrf_field": partial(csrf_field, request),
        "path": path,
        "application": request.app.state.served_name,
        "everytick_version": __version__,
        "who": getattr(request.state, "who", None),
        "new_key": new_key,
    }
    return environment().get_template(template).render({**given, **values})


def shapes(root: str) -> str:
    """Return the address of the glyphs, for pictures under this prefix."""
    return link(root, f"/{MARKS}", v=versioned("marks.svg"))
