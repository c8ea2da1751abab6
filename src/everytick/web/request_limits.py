"""What a request may bring: a body of bounded size and depth, in JSON for the API, with each key once."""

import asyncio
import json
import re
from collections.abc import Iterable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everytick.answers.wire import LARGEST_BODY
from everytick.web.paths import path_of
from everytick.web.problems import Problem, plain_answer

DEEPEST = 20
"""How deep the objects and lists of a body may be nested."""

LONGEST_ADDRESS = 16_000
"""Bytes of one path and query."""

BODY_SECONDS = 30.0
"""How long a body may take to arrive: a client may send it byte by byte."""

_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_JSON = "application/json"


class BodyLimits:
    """Refuses a body that is too large before it is read whole, and for the API what is not plain JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body read, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            _refuse_long_address(scope)
            passed = receive
            if scope["method"] in _WITH_BODY:
                body = await _read(request)
                if path_of(scope).startswith("/api/"):
                    _refuse_unreadable(request, body)
                passed = _again(body, receive)
        except Problem as refused:
            await plain_answer(refused)(scope, receive, send)
            return
        except ClientDisconnect:
            # The client has gone. A traceback each time would let any client fill the log.
            return
        await self._app(scope, passed, send)


def _refuse_long_address(scope: Scope) -> None:
    if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > LONGEST_ADDRESS:
        raise Problem(414, "too_long", f"an address may have {LONGEST_ADDRESS:,} bytes")


async def _read(request: Request) -> bytes:
    """Return the body. Raise 413 as soon as it is too large; the rest is not read."""
    told = request.headers.get("content-length", "")
    if told.isascii() and told.isdigit() and (len(told) > 15 or int(told) > LARGEST_BODY):
        raise _too_large()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return b"".join(await _parts(request))
    except TimeoutError:
        text = f"the body did not arrive within {BODY_SECONDS:.0f} s"
        raise Problem(408, "too_slow", text, {"connection": "close"}) from None


async def _parts(request: Request) -> list[bytes]:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise _too_large()
        parts.append(part)
    return parts


def _too_large() -> Problem:
    return Problem(413, "too_large", f"a body may have {LARGEST_BODY:,} bytes", {"connection": "close"})


def _refuse_unreadable(request: Request, body: bytes) -> None:
    """Return if the body is JSON of bounded depth, or if there is none. Raise 415 or 422 for any other."""
    if not body and request.method == "DELETE":
        return
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise Problem(415, "wrong_media_type", f"the API reads {_JSON} alone: send that as content-type")
    if depth(body) > DEEPEST:
        raise Problem(422, "too_deep", f"objects and lists may be nested {DEEPEST} deep")
    try:
        json.loads(body, object_pairs_hook=_each_once, parse_constant=_refuse_constant)
    except ValueError as error:
        raise Problem(422, "invalid_json", f"the body is not JSON: {_said(error)}") from None


# A text that does not end is taken whole: else each of its quotes would be tried as a beginning.
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))


def depth(body: bytes) -> int:
    """Return how deep objects and lists are nested, beyond the limit some number above it; nothing is parsed.

    It makes whole passes over the bytes, since a loop over a million of them would hold up the ticks of this process.
    """
    left, levels = _TEXT.sub(b"", body).translate(_BRACKETS, _OTHERS), 0
    while b"[]" in left and levels <= DEEPEST:
        # The innermost pairs: each pass takes away one level.
        left, levels = left.replace(b"[]", b""), levels + 1
    return levels + left.count(b"[")


def _each_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:100]!r} stands twice in one object")
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _said(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return str(error)[:300]


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what gives the body once more, and then whatever the client does."""
    is_given = False

    async def given() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return given
