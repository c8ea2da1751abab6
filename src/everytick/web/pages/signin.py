"""Sign-in and sign-out, and the link of the first start that makes the first admin."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from everytick.access.credentials import Secret
from everytick.access.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD
from everytick.access.people import CameBy, Role
from everytick.access.signing_in import SESSION_MOST, SignInDelayed
from everytick.access.throttle import Throttle
from everytick.errors import DefinitionError
from everytick.web.asking import Tick, Who, needs
from everytick.web.csrf import SESSION_COOKIE, cookie_of, set_cookie_header
from everytick.web.identity import Identity, address_of
from everytick.web.paths import below_prefix, link
from everytick.web.pictures.ruler import ruler
from everytick.web.problems import Problem
from everytick.web.rates import network_of
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

_WRONG = "Name and password do not fit."
Text = Annotated[str, Form(max_length=LONGEST_PASSWORD)]


def throttle_of(request: Request) -> Throttle:
    """Return what bounds how often one address may fail to sign in at this service."""
    found = request.app.state.sign_ins
    assert isinstance(found, Throttle), "asgi() sets it"
    return found


@router.get("/signin", dependencies=[needs(None)])
async def signin(request: Request, next: str = "") -> Response:
    """Ask for name and password."""
    return await _form(request, next=next)


@router.post("/signin", dependencies=[needs(None)])
async def sign_in(request: Request, tick: Tick, name: Text = "", password: Text = "", next: Text = "") -> Response:
    """Begin a session and lead to the page that was wanted; else ask again, without a word about which was wrong."""
    address, throttle = address_of(request), throttle_of(request)
    network = network_of(address)
    if seconds := throttle.wait(network):
        return await _later(request, seconds, name, next)
    try:
        secret = await tick.people.sign_in(name, password, address)
    except SignInDelayed as error:
        return await _later(request, error.seconds, name, next)
    if secret is None:
        throttle.take(network)
        return await _form(request, status=401, wrong=_WRONG, name=name, next=next)
    return signed_in(request, secret, next)


async def _later(request: Request, seconds: int, name: str, next: str) -> Response:
    said = f"Too many attempts went wrong. Try again in {seconds} s."
    return await _form(request, status=429, wrong=said, name=name, next=next, wait=seconds)


async def _form(request: Request, *, status: int = 200, wait: int = 0, **values: Any) -> Response:
    identity: Identity = request.app.state.identity
    given = {"wrong": "", "name": "", "next": "", **values}
    given["oidc"] = identity.settings.oidc is not None
    given["is_first"] = await identity.needs_first_user()
    headers = {"retry-after": str(wait)} if wait else {}
    return await page(request, "signin.html", status=status, headers=headers, ruler=ruler(), **given)


def signed_in(request: Request, secret: Secret, wanted: str) -> Response:
    """Return the answer that begins a session in the browser: a secret of its own, never one that it sent."""
    answer = RedirectResponse(safe_next(request, wanted), 303)
    seconds = int(SESSION_MOST.total_seconds())
    cookie = set_cookie_header(request.scope, SESSION_COOKIE, secret.text, seconds=seconds)
    answer.raw_headers.append((b"set-cookie", cookie))
    return answer


def safe_next(request: Request, wanted: str) -> str:
    """Return the page to go to after sign-in: one of ours, whatever the address said."""
    root = request.scope.get("root_path", "")
    is_plain = all(" " < sign < "\x7f" and sign != "\\" for sign in wanted)
    is_ours = wanted.startswith("/") and not wanted.startswith("//")
    return link(root, "/") if not (is_plain and is_ours) else root.rstrip("/") + wanted


async def ask_to_sign_in(request: Request) -> Response:
    """Lead a browser without a session to the sign-in.

    A browser that follows a link of another site leaves our cookie out. It comes again from a page of ours then,
    with the cookie.
    """
    wanted = below_prefix(request.scope)
    if request.headers.get("sec-fetch-site") == "cross-site":
        return await page(request, "again.html", again=link(request.scope.get("root_path", ""), wanted))
    wanted = "" if wanted == "/" else wanted
    return RedirectResponse(link(request.scope.get("root_path", ""), "/signin", next=wanted or None), 303)


@router.get("/signout", dependencies=[needs(Role.VIEWER)])
async def signout(request: Request, who: Who) -> Response:
    """Ask whether to sign out: a link alone ends nothing."""
    return await page(request, "signout.html", is_session=who.came_by is CameBy.SESSION)


@router.post("/signout", dependencies=[needs(Role.VIEWER)])
async def sign_out(request: Request, tick: Tick) -> Response:
    """End the session."""
    await tick.people.sign_out(cookie_of(request, SESSION_COOKIE) or "")
    answer = RedirectResponse(link(request.scope.get("root_path", ""), "/signin"), 303)
    answer.raw_headers.append((b"set-cookie", set_cookie_header(request.scope, SESSION_COOKIE, "", seconds=0)))
    # The back button must not show what was read while signed in.
    answer.headers["clear-site-data"] = '"cache"'
    return answer


# ---------------------------------------------------------------------------------------------------- the first admin


@router.get("/welcome", dependencies=[needs(None)])
async def welcome(request: Request, tick: Tick, link: str = "") -> Response:
    """Ask for the name and password of the first admin."""
    if not await tick.people.is_first_link(link):
        raise _used()
    return await _welcome(request, link)


@router.post("/welcome", dependencies=[needs(None)])
async def take_welcome(
    request: Request, tick: Tick, link: Text = "", name: Text = "", password: Text = "", again: Text = ""
) -> Response:
    """Make the first admin and sign them in."""
    if throttle_of(request).take(network_of(address_of(request))):
        raise Problem(429, "too_many_requests", "too many attempts: try again in a minute", {"retry-after": "60"})
    if not await tick.people.is_first_link(link):
        raise _used()
    if password != again:
        return await _welcome(request, link, name, "The two passwords differ.")
    try:
        secret = await tick.people.take_first_link(link, name, password, address_of(request))
    except DefinitionError as error:
        return await _welcome(request, link, name, str(error))
    if secret is None:
        raise _used()
    return signed_in(request, secret, "")


async def _welcome(request: Request, link: str, name: str = "", wrong: str = "") -> Response:
    values: dict[str, Any] = {"secret": link, "name": name, "wrong": wrong, "shortest": SHORTEST_PASSWORD}
    return await page(request, "welcome.html", status=422 if wrong else 200, ruler=ruler(), **values)


def _used() -> Problem:
    text = "this link is used, over or unknown: a start of the service writes a new one while there is no user"
    return Problem(404, "no_such_link", text)
