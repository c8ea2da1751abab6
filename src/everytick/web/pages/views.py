"""Saved views of the lists: keep one under a name, or forget it. They stay in this browser."""

from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from everytick.access.people import Role
from everytick.web.asking import needs
from everytick.web.paths import link
from everytick.web.rendering import page
from everytick.web.saved_views import PAGES, keep_view, views_of

router = APIRouter(include_in_schema=False)


@router.get("/views", dependencies=[needs(Role.VIEWER)])
async def views(request: Request, page: str = "jobs", query: str = "") -> Response:
    """Ask under which name a view is kept, and show those that are."""
    return await _page(request, page, query)


@router.post("/views", dependencies=[needs(Role.VIEWER)])
async def keep(request: Request) -> Response:
    """Keep or forget a view, and return to its page."""
    async with request.form() as form:
        of, name, query = (str(form.get(field, "")).strip() for field in ("page", "name", "query"))
    if of not in PAGES or not name:
        return await _page(request, of, query, "Give it a name.", 422)
    kept = urlencode(parse_qsl(query, max_num_fields=20))
    answer = RedirectResponse(f"{link(request.scope.get('root_path', ''), f'/{of}')}?{kept}", 303)
    if not keep_view(request, answer, of, name, kept):
        return await _page(request, of, query, "There is no room for another one: forget one first.", 422)
    return answer


async def _page(request: Request, of: str, query: str, wrong: str = "", status: int = 200) -> Response:
    name = of if of in PAGES else PAGES[0]
    values: dict[str, Any] = {"of": name, "query": query, "views": views_of(request, name), "wrong": wrong}
    return await page(request, "views.html", status=status, **values)
