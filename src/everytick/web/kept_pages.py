"""Pages that are dear to make, kept for a moment: many readers of one page cost as much as a few.

A page is kept for so many times as long as it took to make, so a page of ten jobs is made for every reader, and one of
ten thousand some times a second. Readers who ask at the same time share one. A page belongs to a person and to all
that the person's browser has sent, and it is kept behind the check of the role: who is signed out sees nothing. What is
changed through this service makes every page anew.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from fastapi import Request
from fastapi.responses import Response

from everytick.domain.values import value
from everytick.web.known_jobs import KEEP_FACTOR
from everytick.web.rendering import takes_gzip

CHEAP_SECONDS = 0.005
"""A page that takes no longer is made for every reader. One that takes as long is a tenth of a second old at most."""

LONGEST_SECONDS = 2.0
"""A page is kept for `KEEP_FACTOR` times as long as it took to make, and no longer than this."""

MOST_PAGES = 64
"""How many pages are kept."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Awaitable[Response]])
Key: TypeAlias = tuple[object, ...]


@value(frozen=True)
class KeptPage:
    """An answer, and until when on this process's clock it may be given again."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    until: float

    def answer(self, request: Request) -> Response:
        """Return the answer to another request; 304 if the browser has the page."""
        etag = next((said.decode() for name, said in self.headers if name == b"etag"), None)
        if etag is not None and request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers={"etag": etag})
        made = Response(self.body, self.status)
        made.raw_headers = list(self.headers)
        return made


class KeptPages:
    """The last pages of one service."""

    def __init__(self, cheap: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._cheap, self._clock = CHEAP_SECONDS if cheap is None else cheap, clock
        self._pages: dict[Key, KeptPage] = {}
        self._making: dict[Key, asyncio.Future[KeptPage | None]] = {}

    def forget(self) -> None:
        """Make every page anew: something was changed here."""
        self._pages.clear()
        self._making.clear()

    async def get(self, request: Request, make: Callable[[], Awaitable[Response]]) -> Response:
        """Return the page that is kept or that another reader waits for, else make it."""
        key = _key(request)
        kept = self._pages.get(key)
        if (kept is None or kept.until < self._clock()) and key in self._making:
            # Shielded: a reader who leaves must not end what others wait for.
            kept = await asyncio.shield(self._making[key])
        if kept is not None and kept.until >= self._clock():
            return kept.answer(request)
        return await self._make(key, make)

    async def _make(self, key: Key, make: Callable[[], Awaitable[Response]]) -> Response:
        making = self._making[key] = asyncio.get_running_loop().create_future()
        begin, kept = self._clock(), None
        try:
            made = await make()
            # If something was changed since it was begun, another has its place.
            if self._making.get(key) is making:
                kept = self._keep(key, made, self._clock() - begin)
        finally:
            making.set_result(kept)
            if self._making.get(key) is making:
                del self._making[key]
        return made

    def _keep(self, key: Key, made: Response, took: float) -> KeptPage | None:
        """Keep a page that was dear. An answer that sets a cookie, or is no page, is for one reader alone."""
        if took <= self._cheap or made.status_code != 200 or "set-cookie" in made.headers:
            return None
        until = self._clock() + min(took * KEEP_FACTOR, LONGEST_SECONDS)
        kept = KeptPage(200, tuple(made.raw_headers), bytes(made.body), until)
        self._pages.pop(key, None)
        self._pages[key] = kept
        while len(self._pages) > MOST_PAGES:
            self._pages.pop(next(iter(self._pages)))
        return kept


def _key(request: Request) -> Key:
    scope, who = request.scope, request.state.who
    asked = scope.get("root_path", ""), request.url.path, scope.get("query_string", b"")
    return (*asked, request.headers.get("cookie", ""), takes_gzip(request), who.name, who.role, who.grants)


def kept_for_a_moment(endpoint: Endpoint) -> Endpoint:
    """Keep the pages of a route. What tells of the reader's last deed is made for this reader."""

    @wraps(endpoint)
    async def answer(*, request: Request, **given: Any) -> Response:
        async def make() -> Response:
            return await endpoint(request=request, **given)

        if getattr(request.state, "notices", ()):
            return await make()
        pages: KeptPages = request.app.state.kept_pages
        return await pages.get(request, make)

    return answer  # type: ignore[return-value]
