"""Requests to a service: where it is, who asks, what is tried again, and what becomes of a problem."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from random import random
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, urlsplit

from everytick.answers.wire import LARGEST_BODY
from everytick.client.problems import error_of
from everytick.errors import EverytickError, InvalidSetting, MissingExtra, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from types import ModuleType

    import httpx2

    Transport: TypeAlias = httpx2.AsyncBaseTransport

TRIES = 4
"""How often a request is made that may be made again."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0
"""Between two tries: 0.2 at first, doubled each time. A service that says how long is believed, up to 5."""

_SILENCE_SECONDS = 60.0
"""How long a stream may bring nothing: a service sends a heartbeat every 15 seconds."""

_AGAIN = frozenset({429, 502, 503, 504})
"""The statuses of a service that may answer soon."""

_JSON = {"content-type": "application/json"}
_BUSY = "the service has no time for this now"


class ServiceCalls:
    """Asks one service. Connections belong to the event loop on which they were made."""

    def __init__(
        self, url: str, token: str | None, seconds: float, transport: Transport | None, tries: int = TRIES
    ) -> None:
        self.url, self._token, self._seconds, self._tries = _checked(url), token, seconds, tries
        self._transport = transport
        self._http: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        """Close the connections of this loop."""
        http, self._http = self._http, None
        if http is not None and self._loop is asyncio.get_running_loop():
            await http.aclose()

    async def read(self, path: str, *parts: str, **query: Any) -> Any:
        """Return the answer to a question. It may be asked again."""
        return (await self._request("GET", _path(path, parts), query=query, again=True)).json()

    async def text(self, path: str, *parts: str, **query: Any) -> bytes:
        """Return an answer that is no JSON."""
        return (await self._request("GET", _path(path, parts), query=query, again=True)).content

    async def change(
        self,
        method: str,
        path: str,
        *parts: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        again: bool = False,
    ) -> Any:
        """Return the answer to an operation. It is made again only if it never arrived, or if `again` says so."""
        answer = await self._request(method, _path(path, parts), query=query or {}, body=body, again=again)
        return answer.json() if answer.content else None

    async def _request(
        self, method: str, path: str, *, query: Mapping[str, Any], body: Mapping[str, Any] | None = None, again: bool
    ) -> httpx2.Response:
        httpx2 = _httpx2()
        """Make the request, and make it again if that is safe and may help. Return an answer that tells no problem."""
        content: dict[str, Any] = {} if body is None else {"content": _content(body), "headers": _JSON}
        pause, left = _FIRST_PAUSE_SECONDS, self._tries
        while True:
            left -= 1
            try:
                answer = await self._client().request(method, path, params=_query(query), **content)
            except httpx2.TransportError as error:
                never_arrived = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if not left or not (again or never_arrived):
                    raise StoreUnavailable(self.url, str(error) or type(error).__name__) from error
            else:
                if not (left and again and answer.status_code in _AGAIN):
                    return _judged(answer, self.url)
                pause = max(pause, _told_pause(answer))
            spread = 0.5 + random() / 2  # noqa: S311, a spread is no secret
            await asyncio.sleep(min(pause, _LONGEST_PAUSE_SECONDS) * spread)
            pause *= 2

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str], **query: Any) -> AsyncIterator[httpx2.Response]:
        """Give an answer that has no end."""
        httpx2 = _httpx2()
        try:
            async with self._client().stream(
                "GET",
                path,
                params=_query(query),
                headers=dict(headers),
                timeout=httpx2.Timeout(self._seconds, read=_SILENCE_SECONDS),
            ) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    _judged(answer, self.url)
                yield answer
        except httpx2.TransportError as error:
            raise StoreUnavailable(self.url, str(error) or type(error).__name__) from error

    def _client(self) -> httpx2.AsyncClient:
        httpx2 = _httpx2()
        here = asyncio.get_running_loop()
        if self._http is None or self._loop is not here:
            headers = {"accept": "application/json", "user-agent": "everytick-client"}
            if self._token:
                headers["authorization"] = f"Bearer {self._token}"
            self._loop = here
            self._http = httpx2.AsyncClient(
                base_url=self.url, headers=headers, timeout=self._seconds, transport=self._transport
            )
        return self._http


def _httpx2() -> ModuleType:
    """Return the package that speaks HTTP, which is an extra."""
    try:
        import httpx2
    except ModuleNotFoundError:
        raise MissingExtra("the client of the HTTP API", "http") from None
    return httpx2


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidSetting("url", url, "is the address of no service: write it like http://127.0.0.1:8484")
    if parts.username or parts.password:
        raise InvalidSetting("url", "…", "holds a password: give a token instead")
    return url.rstrip("/")


def _path(path: str, parts: tuple[str, ...]) -> str:
    return path.format(*(quote(part, safe="") for part in parts))


def _query(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None and value is not False}


def _content(given: Mapping[str, Any]) -> bytes:
    """Return a body as JSON. Raise for one that is too large: the service would close the connection meanwhile."""
    body = {name: value for name, value in given.items() if value is not None}
    content = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(content) > LARGEST_BODY:
        said = f"this request has {len(content):,} bytes, and a service takes {LARGEST_BODY:,}: send less at once"
        raise error_of({"status": 413, "code": "too_large", "detail": said})
    return content


def _told_pause(answer: httpx2.Response) -> float:
    said = answer.headers.get("retry-after", "")
    return float(said) if said.isascii() and said.isdigit() and len(said) < 6 else 0.0


def _judged(answer: httpx2.Response, url: str) -> httpx2.Response:
    """Return an answer that tells no problem; else raise what it tells of."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind == "application/problem+json":
        told = answer.json()
        raise _unavailable(url, told) if answer.status_code in (429, 503) else error_of(told)
    if answer.status_code >= 400:
        raise EverytickError(f"{url} answers with {answer.status_code}: is this the address of an everytick service?")
    if kind not in ("application/json", "text/plain", "text/event-stream", ""):
        raise EverytickError(f"{url} answers with {kind}: is this the address of an everytick service?")
    return answer


def _unavailable(url: str, told: Mapping[str, Any]) -> EverytickError:
    return StoreUnavailable(url, str(told.get("detail") or _BUSY))


async def events_of(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str, Any]]:
    """Give the Server-Sent Events of these lines: id, name and data."""
    id_, name, data = "", "message", ""
    async for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if data:
                yield id_, name, json.loads(data)
            name, data = "message", ""
        elif field == "id":
            id_ = value
        elif field == "event":
            name = value
        elif field == "data":
            data += value
