"""Sign-in by a provider of OpenID Connect: there and back."""

import base64
import json
from hmac import compare_digest
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from everytick.access.signing_in import SESSION_MOST
from everytick.errors import NotFound
from everytick.web.asking import Tick, needs
from everytick.web.csrf import SESSION_COOKIE, cookie_of, set_cookie_header
from everytick.web.identity import address_of
from everytick.web.oidc import Flow, Provider, new_flow
from everytick.web.pages.signin import safe_next
from everytick.web.paths import link
from everytick.web.problems import Problem
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

FLOW_COOKIE = "everytick_oidc"
_FLOW_SECONDS = 600


@router.get("/oidc", dependencies=[needs(None)])
async def begin(request: Request, next: Annotated[str, Query(max_length=1000)] = "") -> Response:
    """Lead the person to the provider."""
    flow = new_flow(next)
    answer = RedirectResponse(await _provider(request).address(flow, _back(request)), 303)
    written = base64.urlsafe_b64encode(json.dumps([flow.state, flow.nonce, flow.verifier, flow.next]).encode())
    # Lax: the provider's page leads back here, and that counts as another site's request.
    cookie = set_cookie_header(request.scope, FLOW_COOKIE, written.decode(), seconds=_FLOW_SECONDS, same_site="Lax")
    answer.raw_headers.append((b"set-cookie", cookie))
    return answer


@router.get("/oidc/callback", dependencies=[needs(None)])
async def callback(
    request: Request,
    tick: Tick,
    code: Annotated[str, Query(max_length=4000)] = "",
    state: Annotated[str, Query(max_length=1000)] = "",
) -> Response:
    """Begin the session of the user whom the provider names. A name counts whole, and no user is made."""
    provider, flow = _provider(request), _flow(request)
    if flow is None or not code or not compare_digest(state.encode(), flow.state.encode()):
        raise Problem(403, "no_such_sign_in", "this sign-in did not begin in this browser, or too long ago")
    name = await provider.name(code, flow, _back(request))
    try:
        user = await tick.people.user(name)
    except NotFound:
        raise Problem(403, "unknown_person", f"{name} is no user here: an admin adds one without a password") from None
    secret = await tick.people.begin_session(user, address_of(request))
    # A page and no redirect: the strict cookie goes along only with a request that a page of ours makes.
    answer = await page(request, "again.html", again=safe_next(request, flow.next))
    for name_, text, seconds in (
        (SESSION_COOKIE, secret.text, int(SESSION_MOST.total_seconds())),
        (FLOW_COOKIE, "", 0),
    ):
        answer.raw_headers.append((b"set-cookie", set_cookie_header(request.scope, name_, text, seconds=seconds)))
    return answer


def _provider(request: Request) -> Provider:
    found = request.app.state.provider
    if not isinstance(found, Provider):
        raise Problem(404, "no_provider", "this service knows no provider: web_oidc_issuer names one")
    return found


def _back(request: Request) -> str:
    path = link(request.scope.get("root_path", ""), "/oidc/callback")
    return f"{request.scope.get('scheme', 'http')}://{request.headers.get('host', '')}{path}"


def _flow(request: Request) -> Flow | None:
    try:
        found = json.loads(base64.urlsafe_b64decode(cookie_of(request, FLOW_COOKIE) or ""))
        return Flow(*(str(part) for part in found)) if len(found) == 4 else None
    except (ValueError, TypeError):
        return None
