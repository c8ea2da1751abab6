"""Problem details (RFC 9457): every error as one JSON object, or as a page where a browser asks for one.

`STATUSES` is the one place where an error of everytick gets its HTTP status.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from everytick import errors
from everytick.access.passwords import TooBusy
from everytick.access.signing_in import SignInDelayed
from everytick.errors import EverytickError, shown

_log = logging.getLogger("everytick.web")

MEDIA_TYPE = "application/problem+json"

# The first that fits counts.
STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.DuplicateDefinition, 409),
    (errors.DefinitionError, 422),
    (errors.UnboundSchedule, 422),
    (errors.NotFound, 404),
    (errors.VersionConflict, 412),
    (errors.Conflict, 409),
    (errors.JobDisabled, 409),
    (errors.AlreadyRunning, 409),
    (errors.NeedsConfirmation, 409),
    (errors.NeedsApproval, 202),
    (errors.TooManyEditions, 503),
    (TooBusy, 503),
    (SignInDelayed, 429),
    (errors.StoreUnavailable, 503),
    (errors.SchemaMismatch, 503),
    (errors.MissingExtra, 501),
    (errors.TransactionsUnsupported, 501),
)

_RETRY_SECONDS = "5"
"""What `Retry-After` says with 503: as long as a node sleeps at most."""

_MISTAKES_SHOWN = 50
"""How many mistakes of one request are told."""


class Problem(Exception):
    """A request that is answered with a problem. `headers` go with the answer, `more` are members of the problem."""

    def __init__(
        self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers, self.more = status, code, detail, dict(headers or {}), more


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error: 500 if it is our own mistake."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    """Return a problem as data."""
    title = HTTPStatus(status).phrase
    return {"type": f"urn:everytick:{code}", "title": title, "status": status, "detail": detail, "code": code, **more}


def problem_of(error: EverytickError) -> dict[str, Any]:
    """Return an error of everytick as a problem, with what it knows as data."""
    return problem(status_of(error), error.code, str(error), **_more(error))


def _more(error: EverytickError) -> dict[str, Any]:
    match error:
        case errors.VersionConflict():
            sides = {"theirs": list(error.theirs), "yours": list(error.yours)}
            return {"job": error.job, "expected": error.expected, "found": error.found, **sides}
        case errors.PlanMoved():
            return {"plan": error.plan, "found": error.found, "moved": list(error.moved)}
        case errors.NotOwned():
            return {"refusals": list(error.refusals)}
        case errors.NeedsConfirmation():
            jobs, reasons = list(error.jobs), list(error.reasons)
            told = {"reasons": reasons, "cost": error.cost, "jobs": jobs, "is_for_two": error.is_for_two}
            return {"what": error.what, **told}
        case errors.NeedsApproval():
            told = {"proposal": error.proposal, "expires_at": error.expires_at.isoformat()}
            return {"what": error.what, "by": error.by, "verb": error.verb, **told}
        case errors.NotFound():
            return {"what": error.what, "name": error.name}
        case errors.JobDisabled():
            return {"job": error.job}
        case errors.OccurrenceExists():
            return {"occurrence_id": error.id}
    return {}


# ------------------------------------------------------------------------------------------------------- answering


def add_handlers(app: FastAPI) -> None:
    """Let every error of the application be answered with a problem."""
    handlers: Mapping[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
        Problem: _refused,
        EverytickError: _everytick_error,
        RequestValidationError: _unreadable,
        HTTPException: _http_error,
        Exception: _our_mistake,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


async def answer(request: Request, told: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer that tells a problem: a page to a browser that asks for one, else JSON."""
    if wants_page(request):
        from everytick.web.rendering import page

        every = (headers or {}).get("retry-after", "") if told["status"] == 503 and request.method == "GET" else ""
        return await page(request, "problem.html", status=told["status"], headers=headers, problem=told, every=every)
    return JSONResponse(dict(told), told["status"], dict(headers or {}), media_type=MEDIA_TYPE)


def plain_answer(refused: Problem) -> Response:
    """Return a refusal as JSON, for requests that do not reach the application: only that makes pages."""
    told = problem(refused.status, refused.code, refused.detail, **refused.more)
    return JSONResponse(told, refused.status, refused.headers, media_type=MEDIA_TYPE)


def wants_page(request: Request) -> bool:
    """Whether a browser asks for a page, and not a program for data."""
    from everytick.web.paths import path_of

    is_page = not path_of(request.scope).startswith(("/api/", "/livez", "/readyz", "/startupz", "/metrics"))
    return is_page and "text/html" in request.headers.get("accept", "")


async def _refused(request: Request, error: Problem) -> Response:
    if error.status == 401 and request.method == "GET" and wants_page(request):
        from everytick.web.pages.signin import ask_to_sign_in

        return await ask_to_sign_in(request)
    return await answer(request, problem(error.status, error.code, error.detail, **error.more), error.headers)


async def _everytick_error(request: Request, error: EverytickError) -> Response:
    if isinstance(error, errors.StoreUnavailable) and hasattr(request.app.state, "pulse"):
        request.app.state.pulse.missed(error)
    told = problem_of(error)
    if told["status"] == 500:
        return await _our_mistake(request, error)
    if isinstance(error, (errors.StoreUnavailable, errors.SchemaMismatch)) and not hasattr(request.state, "who"):
        # What the store says names hosts and databases. Who asks is not known while it is away.
        told["detail"] = _TO_STRANGERS
    return await answer(request, told, {"retry-after": _RETRY_SECONDS} if told["status"] == 503 else {})


async def _unreadable(request: Request, error: RequestValidationError) -> Response:
    mistakes = [_mistake(details) for details in error.errors()[:_MISTAKES_SHOWN]]
    first = f"{mistakes[0]['where']}: {mistakes[0]['why']}" if mistakes else "it cannot be read"
    return await answer(request, problem(422, "invalid_request", first, mistakes=mistakes))


def _mistake(told: Mapping[str, Any]) -> dict[str, str]:
    """Return where a value stands in the request and why it is refused. What was read is not repeated."""
    where = ".".join(str(part) for part in told["loc"])
    return {"where": shown(where, 200), "why": shown(str(told["msg"]), 300)}


async def _http_error(request: Request, error: HTTPException) -> Response:
    status = error.status_code
    detail = error.detail if error.detail != HTTPStatus(status).phrase else _SAID.get(status, error.detail)
    return await answer(request, problem(status, _CODES.get(status, "http_error"), detail), error.headers)


_TO_STRANGERS = "the store does not answer, so nobody can be signed in: try again soon; everytick doctor says why"
_CODES = {400: "bad_request", 404: "no_such_page", 405: "wrong_method", 415: "wrong_media_type"}
_SAID = {404: "there is nothing at this address", 405: "this address does not take that method"}


async def _our_mistake(request: Request, error: Exception) -> Response:
    """Answer without a word of the error: it may hold what the reader must not see. The log has it."""
    if isinstance(error, EverytickError):
        _log.error("%s %s failed: it is answered with 500", request.method, request.url.path, exc_info=error)
    return await answer(request, problem(500, "our_mistake", "this should not have happened: the log says more"))
