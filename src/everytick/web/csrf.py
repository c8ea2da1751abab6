"""Requests that another site makes in a person's browser are refused: hosts, origins, and a token in every form.

Three checks, each enough for most attacks, all of them always on:
a browser says where a request comes from (`Sec-Fetch-Site`, `Origin`); a form carries a token that belongs to a cookie
which another site can neither read nor set; and a service without users answers only to names of this host, so that
a name of the attacker that resolves to 127.0.0.1 does not reach it.
"""

import re
import secrets
from collections.abc import Collection, Mapping
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import Request
from markupsafe import Markup
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everytick.access.people import CameBy, Person
from everytick.web.mounting import cookie_path, mount_of
from everytick.web.problems import Problem

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
FIELD, HEADER = "csrf", "x-csrf-token"
FORM_COOKIE, SESSION_COOKIE = "everytick_form", "everytick_session"

_NEW_SECRET = "everytick_new_form_secret"  # noqa: S105, the name of a value
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_SECRET = re.compile(r"[A-Za-z0-9_-]{20,128}", re.ASCII)
_TOKEN_BYTES = 32
_MASKED = re.compile(rf"[0-9a-f]{{{4 * _TOKEN_BYTES}}}", re.ASCII)


# ------------------------------------------------------------------------------------------------------ the token


def csrf_token(request: Request) -> str:
    """Return the token of this browser's forms. It belongs to the session, or before sign-in to a cookie of its own.

    It is masked with random bytes that stand before it, so that no two answers hold the same text: the length of a
    compressed page then tells nothing of the token, whatever text an attacker gets into the page (BREACH).
    """
    mask = secrets.token_bytes(_TOKEN_BYTES)
    return (mask + _xor(mask, _bare_token(request))).hex()


def _bare_token(request: Request) -> bytes:
    return sha256(b"everytick form:" + _secret_of(request).encode()).digest()


def _unmasked(sent: str) -> bytes:
    """Return the token in what a form has sent; nothing if it has none."""
    if not _MASKED.fullmatch(sent):
        return b""
    given = bytes.fromhex(sent)
    return _xor(given[:_TOKEN_BYTES], given[_TOKEN_BYTES:])


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def csrf_field(request: Request) -> Markup:
    """Return the hidden field that every form which changes something contains."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(FIELD, csrf_token(request))


def browser_key(request: Request, purpose: str) -> bytes:
    """Return a key for what only this browser and this service are to write, such as a signed cookie."""
    return sha256(f"everytick {purpose}:{_secret_of(request)}".encode()).digest()


def _secret_of(request: Request) -> str:
    state = request.scope.setdefault("state", {})
    found = _known_secret(request) or state.get(_NEW_SECRET)
    if found is None:
        found = state[_NEW_SECRET] = secrets.token_urlsafe(32)
    return str(found)


def _known_secret(request: Request) -> str | None:
    """Return the secret that the browser has sent: of its session, else of its forms."""
    for name in (SESSION_COOKIE, FORM_COOKIE):
        found = cookie_of(request, name)
        if found is not None and _SECRET.fullmatch(found):
            return found
    return None


async def check_token(request: Request) -> None:
    """Return if the request carries the token of this browser's forms, else raise 403."""
    sent = request.headers.get(HEADER) or await _field_of(request)
    known = _known_secret(request)
    if known is None or not compare_digest(_unmasked(sent), _bare_token(request)):
        raise Problem(403, "form_expired", "this form is too old, or was not made here: open the page again")


async def _field_of(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _FORMS:
        return ""
    sent = (await request.form()).get(FIELD, "")
    return sent if isinstance(sent, str) else ""


# --------------------------------------------------------------------------------------------- origin, host, cookie


def check_origin(headers: Mapping[str, str]) -> None:
    """Return if a page of ours has made the request, as the browser says, or no browser has; else raise 403."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        is_ours = site in ("same-origin", "none")
    else:
        is_ours = origin is None or _place_of(origin) == headers.get("host", "").lower()
    if not is_ours:
        raise Problem(403, "foreign_origin", "another site has made this request: nothing was changed")


def _place_of(origin: str) -> str | None:
    """Return host and port of an origin; None if it is no address."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def is_from_browser(headers: Mapping[str, str]) -> bool:
    """Whether a browser has made the request: each of them says from where it changes something."""
    return any(name in headers for name in ("origin", "sec-fetch-site", "referer", "cookie"))


async def check_request(request: Request, who: Person) -> None:
    """Return if a request that may change something comes from the person, and not from another site's page.

    A token in a header needs no check: no browser sends it by itself. A program on this host, at a service without
    users, has no cookie and no form.
    """
    if request.method in SAFE or who.came_by is CameBy.TOKEN:
        return
    check_origin(request.headers)
    if who.came_by is not CameBy.LOCAL or is_from_browser(request.headers):
        await check_token(request)


async def check_open_form(request: Request) -> None:
    """Return if a request to a route without a person changes nothing, or comes from a form of ours; else raise 403."""
    if request.method not in SAFE:
        check_origin(request.headers)
        await check_token(request)


def is_loopback(host: str) -> bool:
    """Whether an address or name is that of this host alone."""
    try:
        return ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


def host_of(headers: Mapping[str, str]) -> str:
    """Return the name by which the service was asked, without the port."""
    return (urlsplit(f"//{headers.get('host', '')}").hostname or "").lower()


def check_host(headers: Mapping[str, str], allowed: Collection[str] = ()) -> None:
    """Return if the service was asked by a name of this host, or by one that is allowed; else raise 421."""
    try:
        host = host_of(headers)
    except ValueError:
        host = ""
    if not (is_loopback(host) or host in allowed):
        text = "this name is not one of the service: ask by 127.0.0.1 or localhost, or allow the name with web_hosts"
        raise Problem(421, "wrong_host", text)


def is_https(scope: Scope) -> bool:
    """Whether the person's browser speaks HTTPS with the service."""
    return scope.get("scheme") == "https"


def cookie_name(scope: Scope, name: str) -> str:
    """Return the name of a cookie of ours. With HTTPS and no prefix, no other site of the domain can set it.

    With several stores behind one address, each store has cookies of its own name.
    """
    mount = mount_of(scope)
    own = name if mount is None else f"{name}.{mount.name}"
    if not is_https(scope):
        return own
    return f"__Host-{own}" if cookie_path(scope) == "/" else f"__Secure-{own}"


def cookie_of(request: Request, name: str) -> str | None:
    """Return the value of a cookie of ours."""
    return request.cookies.get(cookie_name(request.scope, name))


def set_cookie_header(
    scope: Scope, name: str, text: str, *, seconds: int | None = None, same_site: str = "Strict"
) -> bytes:
    """Return the header that sets a cookie of ours: no script reads it, no other site's request carries it."""
    parts = [f"{cookie_name(scope, name)}={text}", f"Path={cookie_path(scope)}"]
    parts += ["HttpOnly", f"SameSite={same_site}"]
    parts += [] if seconds is None else [f"Max-Age={seconds}"]
    parts += ["Secure"] if is_https(scope) else []
    return "; ".join(parts).encode("latin-1")


class FormCookie:
    """Sets the cookie to which the token of a form belongs, with the answer that has the form."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # A dictionary of its own: a server may share one between all requests.
        scope = {**scope, "state": dict(scope.get("state") or {})}

        async def sending(message: Message) -> None:
            new = scope["state"].get(_NEW_SECRET)
            if message["type"] == "http.response.start" and new is not None:
                ours = (b"set-cookie", set_cookie_header(scope, FORM_COOKIE, new))
                message = {**message, "headers": [*message.get("headers", ()), ours]}
            await send(message)

        await self._app(scope, receive, sending)
