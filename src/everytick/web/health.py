"""`/livez`, `/readyz` and `/startupz`: for supervisors. With `?verbose` each check is a line.

They need no sign-in. Why a check failed may name hosts and databases: it is told to those who have signed in, where the
service has users, and to its own host where it has none.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from everytick.app.readiness import Readiness
from everytick.errors import EverytickError
from everytick.web.asking import Identify, needs
from everytick.web.problems import Problem

router = APIRouter()

_ANSWERS: dict[int | str, dict[str, Any]] = {
    503: {"description": "A check failed; with `?verbose` the answer says which.", "content": {"text/plain": {}}},
}


@router.get(
    "/livez",
    dependencies=[needs(None)],
    response_class=PlainTextResponse,
    responses=_ANSWERS,
    tags=["health"],
    summary="Whether this process answers",
)
async def livez(request: Request) -> PlainTextResponse:
    """Say whether the loops of the service and the node turn.

    The state of the store changes nothing: a restart would not mend it.
    """
    return await _answer(request, {"loop": _readiness(request).loop})


@router.get(
    "/readyz",
    dependencies=[needs(None)],
    response_class=PlainTextResponse,
    responses=_ANSWERS,
    tags=["health"],
    summary="Whether this process can work",
)
async def readyz(request: Request) -> PlainTextResponse:
    """Say whether the store answers, its tables are current, the clocks agree, and the node neither starts nor stops.

    503 while the store answers with errors.
    """
    ready = _readiness(request)
    checks = {"store": ready.store, "tables": ready.tables, "clock": ready.clock}
    return await _answer(request, {**checks, "started": ready.started, "staying": ready.staying})


@router.get(
    "/startupz",
    dependencies=[needs(None)],
    response_class=PlainTextResponse,
    responses=_ANSWERS,
    tags=["health"],
    summary="Whether this process has started",
)
async def startupz(request: Request) -> PlainTextResponse:
    """Say whether the node has started."""
    return await _answer(request, {"started": _readiness(request).started})


def _readiness(request: Request) -> Readiness:
    ready = request.app.state.readiness
    assert isinstance(ready, Readiness), "asgi() sets it"
    return ready


async def _answer(request: Request, checks: Mapping[str, Callable[[], Awaitable[str | None]]]) -> PlainTextResponse:
    # At once: each waits for a store that says nothing, and a supervisor waits for some seconds only.
    is_verbose = "verbose" in request.query_params
    asked = asyncio.ensure_future(is_known(request)) if is_verbose else None
    found = dict(zip(checks, await asyncio.gather(*(check() for check in checks.values())), strict=True))
    has_failed = any(why is not None for why in found.values())
    if asked is not None and not has_failed:
        # There is no reason to tell then, and a store that says nothing must not hold up /livez.
        asked.cancel()
    may_read = asked is not None and has_failed and await asked
    shown = [check_line(name, why, may_read=may_read) for name, why in found.items()] if is_verbose else []
    return PlainTextResponse("\n".join([*shown, "failed" if has_failed else "ok", ""]), 503 if has_failed else 200)


async def is_known(request: Request) -> bool:
    """Whether the service knows who asks. While the store is away, it knows whom it knew before."""
    identify: Identify = request.app.state.identify
    try:
        await identify(request)
    except (Problem, EverytickError):
        return False
    return True


def check_line(name: str, why: str | None, *, may_read: bool) -> str:
    """Return the line of a check. Why it failed is for those who may read it."""
    if why is None:
        return f"[+] {name}: ok"
    return f"[-] {name}: {why if may_read else 'failed; sign in to read why'}"
