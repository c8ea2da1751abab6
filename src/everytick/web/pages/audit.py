"""`/audit`: who did what to which, why, when and from where: a sentence per row."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from everytick.access.people import Role
from everytick.domain.deeds import Deed
from everytick.web.asking import Tick, needs
from everytick.web.framing import viewer_of
from everytick.web.pictures.trail import localized
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

_ROWS = 100
_CAME_BY = {
    "local": "on this host",
    "session": "signed in",
    "token": "by a token",
    "proxy": "by the proxy",
    "command": "on the command line",
}


@router.get("/audit", dependencies=[needs(Role.VIEWER)])
async def audit(
    request: Request,
    tick: Tick,
    by: Annotated[str, Query(max_length=200)] = "",
    job: Annotated[str, Query(max_length=200)] = "",
    before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
) -> Response:
    """Show deeds, newest first; filters and the page stand in the address."""
    viewer = viewer_of(request, await tick.now())
    found = await tick.people.deeds(by=by or None, job=job or None, before=before, limit=_ROWS)
    values: dict[str, Any] = {
        "viewer": viewer,
        "deeds": found.deeds,
        "before": found.before,
        "is_later_page": before is not None,
        "by": by,
        "job": job,
        "came_by": _CAME_BY,
        "said": localized(said_of(found.deeds, by, job), viewer),
        "localized": lambda text: localized(text, viewer),
        "job_of": job_of,
    }
    return await page(request, "audit.html", **values)


def said_of(deeds: tuple[Deed, ...], by: str, job: str) -> str:
    """Return the heading: the newest deed, or that there is none."""
    of = f" by {by}" if by else ""
    of += f" to job {job}" if job else ""
    if not deeds:
        return f"Nothing was done{of}."
    return f"Last{of}: {deeds[0]}."


def job_of(deed: Deed) -> str | None:
    """Return the name of the job that a deed is about, as it was named then."""
    kind, _, name = deed.subject.partition(" ")
    return name if kind == "job" and name else None
