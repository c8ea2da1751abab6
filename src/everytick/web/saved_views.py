"""Saved views: filters of a page under a name, in a cookie of this browser."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

from fastapi import Request
from starlette.responses import Response

from everytick.web.csrf import cookie_of, set_cookie_header

COOKIE = "everytick_views"
PAGES = ("jobs", "history")
_YEAR_SECONDS = 365 * 24 * 3600
_MOST, _LONGEST_NAME, _LONGEST_QUERY, _LONGEST = 12, 40, 500, 3_500


def views_of(request: Request, page: str) -> dict[str, str]:
    """Return the saved views of a page: the query of each, by name. A cookie that cannot be read has none."""
    return dict(_all(request).get(page, {}))


def _all(request: Request) -> dict[str, dict[str, str]]:
    text = cookie_of(request, COOKIE) or ""
    try:
        data = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return {page: _checked(data[page]) for page in PAGES if page in data}
    except (ValueError, TypeError, AttributeError):
        return {}


def _checked(views: Mapping[object, object]) -> dict[str, str]:
    """Return what may stand in a page: names and queries of ours, few and short."""
    kept = [(str(name)[:_LONGEST_NAME], str(query)[:_LONGEST_QUERY]) for name, query in views.items()]
    return dict(kept[:_MOST])


def keep_view(request: Request, response: Response, page: str, name: str, query: str) -> bool:
    """Keep the query under a name; an empty query forgets it. Return whether the cookie has room for it."""
    known = _all(request)
    own = {**known.get(page, {}), name[:_LONGEST_NAME]: query[:_LONGEST_QUERY]}
    known[page] = {view: said for view, said in own.items() if said}
    text = urlsafe_b64encode(json.dumps(known, ensure_ascii=False).encode()).decode().rstrip("=")
    if len(text) > _LONGEST or len(known[page]) > _MOST:
        return False
    response.headers.append(
        "set-cookie", set_cookie_header(request.scope, COOKIE, text, seconds=_YEAR_SECONDS).decode()
    )
    return True
