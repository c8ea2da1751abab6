"""The http runner: one request, and its status as the outcome.

The name is resolved once and that address is used; each redirect is resolved again (S9).
Nothing that may be a secret reaches a log or an error: no header, no query, no password.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from everytick.domain.durations import format_duration
from everytick.domain.outcome import Failed, Outcome, Succeeded
from everytick.domain.payload import payload
from everytick.errors import InvalidPayload, InvalidPolicies, MissingExtra, shown
from everytick.runners.addresses import AddressRules, Forbidden, Unresolved
from everytick.runners.context import Context
from everytick.runners.outcomes import bounded, last_lines
from everytick.runners.targets import EnvironmentValue, HttpTarget, checked_url

ANSWER_LIMIT = 128 * 1024
"""Most bytes of an answer that are read. The rest is ignored."""

_REDIRECTS = 5
"""Most redirects that a request follows."""

_REDIRECTED = (301, 302, 303, 307, 308)
_AS_WRITTEN = (307, 308)


class HttpBody:
    """Makes a request (S0-026). The result is its status, and its body if that is small enough."""

    __slots__ = ("_http", "_rules", "_target", "wants_previous")

    begins_later = False

    def __init__(self, target: HttpTarget, rules: AddressRules) -> None:
        self._http = http_library()
        self._target, self._rules = target, rules
        self.wants_previous = False

    async def run(self, context: Context) -> Outcome:
        """Make the request and wait for its answer, at most the timeout of the target."""
        target = self._target
        try:
            async with asyncio.timeout(target.timeout.total_seconds()):
                return await self._answered(context)
        except TimeoutError:
            return _failed(target, f"no answer within {format_duration(target.timeout)}")
        except (Forbidden, Unresolved, _Missing) as error:
            return _failed(target, str(error), give_up=isinstance(error, Forbidden))
        except InvalidPolicies as error:
            return _failed(target, f"a redirect leads to nowhere: {error}", give_up=True)
        except (self._http.HTTPError, self._http.InvalidURL, OSError) as error:
            return _failed(target, f"{type(error).__name__}: {_without_address(error)}")

    async def _answered(self, context: Context) -> Outcome:
        target = self._target
        status, body, kind = await self._follow(context)
        good = status in target.expect if target.expect else 200 <= status <= 299
        if not good:
            expected = ", ".join(map(str, target.expect)) or "200 to 299"
            return _failed(target, f"status {status}, expected {expected}\n{last_lines(body)}".rstrip())
        return _result(status, _readable(body, kind))

    async def _follow(self, context: Context) -> tuple[int, bytes, str]:
        """Make the request and follow redirects. Return status, body and content type."""
        url, method = self._target.url, self._target.method
        body = None if self._target.body is None else self._target.body.text
        headers = _headers(self._target)
        async with self._http.AsyncClient(verify=_certificates(), trust_env=False, timeout=None) as client:
            for _ in range(_REDIRECTS + 1):
                status, answer, data = await self._ask(client, method, url, headers, body)
                context.output(f"{method} {_shown(url)} {status}, {len(data)} bytes\n".encode())
                place = answer.get("location")
                if status not in _REDIRECTED or place is None:
                    return status, data, answer.get("content-type", "")
                there = checked_url(urljoin(url, place))
                if _origin(there) != _origin(url):
                    headers = {}
                if status not in _AS_WRITTEN and method != "HEAD":
                    method, body = "GET", None
                url = there
        raise Forbidden(f"more than {_REDIRECTS} redirects")

    async def _ask(
        self, client: Any, method: str, url: str, headers: Mapping[str, str], body: str | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = await self._rules.resolve(host, port)
        pinned = parts._replace(netloc=f"[{address}]:{port}" if ":" in address else f"{address}:{port}", fragment="")
        kind = {"Content-Type": "application/json"} if body is not None else {}
        request = client.build_request(
            method,
            pinned.geturl(),
            headers={**kind, **headers, "Host": parts.netloc, "Accept-Encoding": "identity"},
            content=body,
            # The certificate is checked against the name, not against the address.
            extensions={"sni_hostname": host},
        )
        answer = await client.send(request, stream=True)
        try:
            return answer.status_code, answer.headers, await _limited(answer)
        finally:
            await answer.aclose()


def http_library() -> Any:
    """Return the library for requests. It is imported with the first request."""
    try:
        return import_module("httpx2")
    except ImportError:
        raise MissingExtra("an http task", "http") from None


@cache
def _certificates() -> Any:
    """Return the trusted certificates. They are read once: that takes as long as a hundred requests."""
    return http_library().create_ssl_context()


async def _limited(answer: Any) -> bytes:
    data = b""
    async for chunk in answer.aiter_raw():
        data += chunk
        if len(data) >= ANSWER_LIMIT:
            break
    return data[:ANSWER_LIMIT]


class _Missing(Exception):
    """An environment variable that a header needs is not set."""


def _headers(target: HttpTarget) -> dict[str, str]:
    return {name: _value(given) if isinstance(given, EnvironmentValue) else given for name, given in target.headers}


def _value(variable: EnvironmentValue) -> str:
    content = os.environ.get(variable.name)
    if content is None:
        raise _Missing(f"the environment variable {variable.name} is not set on this node")
    return content


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts: SplitResult = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _result(status: int, body: object) -> Outcome:
    """Return the answer as the task's result. A body that is no valid result is left out: the request succeeded."""
    try:
        return Succeeded(payload({"status": status, "body": body}, "the answer"))
    except InvalidPayload:
        return Succeeded(payload({"status": status, "body": None}, "the answer"))


def _readable(body: bytes, kind: str) -> object:
    """Return the body, decoded if it is JSON, else as text. None if it is larger than the limit."""
    if len(body) >= ANSWER_LIMIT:
        return None
    text = body.decode("utf-8", "backslashreplace")
    if "json" in kind:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _shown(url: str) -> str:
    """Return the URL without its query and password, which may be secret."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return shown(f"{parts.scheme}://{parts.hostname}{port}{parts.path}", 300)


def _without_address(error: Exception) -> str:
    """Return the text of the error without the full URL, which some errors repeat."""
    text = str(error)
    return "the request failed" if "?" in text or "@" in text else shown(text, 300)


def _failed(target: HttpTarget, reason: str, *, give_up: bool = False) -> Failed:
    return Failed(bounded(f"{target.method} {_shown(target.url)}: {reason}"), give_up=give_up)
