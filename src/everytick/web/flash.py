"""Flashes: what a deed did, told on the next page. A signed cookie carries them there, and that page takes it away.

The key is the browser's own secret, so that any process of the service can read what another one wrote.
"""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256

from fastapi import Request
from starlette.responses import Response

from everytick.web.csrf import browser_key, cookie_of, set_cookie_header
from everytick.web.framing import Flash

COOKIE = "everytick_flash"
_SECONDS = 300
"""A flash that no page has shown by then is dropped."""

_LONGEST = 3_500
"""Browsers keep cookies up to 4,096 bytes. What is longer is told without its undo, and shorter."""

_LONGEST_TEXT, _LONGEST_PLAIN = 500, 200


def set_flashes(request: Request, response: Response, flashes: Sequence[Flash]) -> None:
    """Let the next page tell this."""
    told = [asdict(flash) | {"text": flash.text[:_LONGEST_TEXT]} for flash in flashes]
    plain = [{"text": flash.text[:_LONGEST_PLAIN], "tone": flash.tone, "mark": flash.mark} for flash in flashes[:1]]
    for some in (told, plain):
        body = urlsafe_b64encode(json.dumps(some, ensure_ascii=False).encode()).rstrip(b"=")
        signed = f"{body.decode()}.{_signature(request, body)}"
        if len(signed) <= _LONGEST:
            _set(request, response, signed, _SECONDS)
            return


def flashes_of(request: Request) -> tuple[Flash, ...]:
    """Return what the cookie tells; nothing if it was not written by this service."""
    body, _, signature = (cookie_of(request, COOKIE) or "").partition(".")
    if not body or not hmac.compare_digest(_signature(request, body.encode()).encode(), signature.encode()):
        return ()
    return tuple(Flash(**data) for data in json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4))))


def read_flashes(request: Request) -> tuple[Flash, ...]:
    """Return what the cookie tells, and let the frame of the page show it."""
    found = flashes_of(request)
    request.scope.setdefault("state", {})["notices"] = found
    return found


def drop_flashes(request: Request, response: Response) -> None:
    """Take the cookie away: a page has shown it."""
    _set(request, response, "", 0)


def _set(request: Request, response: Response, text: str, seconds: int) -> None:
    response.headers.append("set-cookie", set_cookie_header(request.scope, COOKIE, text, seconds=seconds).decode())


def _signature(request: Request, body: bytes) -> str:
    return hmac.new(browser_key(request, "flash"), body, sha256).hexdigest()
