"""Histories for pages: an application runs some virtual days, and is asked for pages at the end of them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import httpx2
from fastapi import Request

from everytick import Everytick
from everytick.access.people import Grant, Person, Role
from everytick.domain.durations import instant
from everytick.testing import simulate
from everytick.web.asgi import asgi

Ask = Callable[[httpx2.AsyncClient], Awaitable[Any]]
XSS = '"><script>alert(1)</script>'
"""A text that is a script wherever a page forgets to escape it."""


async def takes(**length: float) -> None:
    """Return after so long on the virtual clock: `await takes(minutes=10)`."""
    passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(timedelta(**length).total_seconds(), passed.set_result, None)
    await passed


def pages_of(
    tick: Everytick,
    *paths: str,
    start: str,
    until: str,
    at: Mapping[str, Callable[[], Awaitable[Any]]] | None = None,
    role: Role = Role.ADMIN,
    grants: tuple[Grant, ...] = (),
    outages: tuple[tuple[str, str], ...] = (),
) -> list[str]:
    """Return these pages as they are at the end; each answers 200."""
    found: list[str] = []

    async def ask(client: httpx2.AsyncClient) -> None:
        for path in paths:
            answer = await client.get(path, headers={"accept": "text/html"})
            assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:2000]}"
            found.append(answer.text)

    asked_at_end(tick, ask, start=start, until=until, at=at, role=role, grants=grants, outages=outages)
    return found


def asked_at_end(
    tick: Everytick,
    ask: Ask,
    *,
    start: str,
    until: str,
    at: Mapping[str, Callable[[], Awaitable[Any]]] | None = None,
    role: Role = Role.ADMIN,
    grants: tuple[Grant, ...] = (),
    outages: tuple[tuple[str, str], ...] = (),
) -> None:
    """Run the application on virtual time, and ask its service at the end, as a person of this role."""

    async def identify(_: Request) -> Person:
        return Person("ada", role, grants)

    async def asking() -> None:
        transport = httpx2.ASGITransport(asgi(tick, identify=identify))
        cookies = {"everytick_zone": "Europe/Berlin"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", cookies=cookies) as client:
            await ask(client)

    # A deed is awaited ten microseconds after its moment, and none may lie behind the end.
    deeds: dict[datetime, Any] = {instant(moment): deed for moment, deed in (at or {}).items()}
    deeds[instant(until) - timedelta(milliseconds=1)] = asking
    simulate(tick, start, until, at=deeds, outages=outages)


class _Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.ids: set[str] = set()
        self.level = 0
        self._tables: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "style" in given or any(name.startswith("on") for name in given):
            self.faults.append(f"<{tag}> has a style or a handler of its own")
        if tag == "script" and not given.get("src"):
            self.faults.append("a script stands in the page")
        if (id_ := given.get("id")) is not None:
            if id_ in self.ids:
                self.faults.append(f"the id {id_} is there twice")
            self.ids.add(id_)
        if tag in ("h1", "h2", "h3", "h4"):
            if int(tag[1]) > self.level + 1:
                self.faults.append(f"{tag} follows h{self.level}")
            self.level = int(tag[1])
        if tag == "table":
            self._tables.append(False)
        if tag == "caption":
            self._tables[-1] = True
        if tag == "th" and "scope" not in given:
            self.faults.append("a th has no scope")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table" and not self._tables.pop():
            self.faults.append("a table has no caption")


def faults_of(page: str) -> list[str]:
    """Return what is wrong with a page for the content policy and for people who hear it."""
    outline = _Outline()
    outline.feed(page)
    if page.count("<h1") != 1:
        outline.faults.append("a page has one h1")
    return outline.faults


def main_of(page: str) -> str:
    """Return what stands between the bar and the footer."""
    return page.split("<main", 1)[1].split("</main>", 1)[0]


def heading_of(page: str) -> str:
    """Return the words of the h1."""
    inner = page.split("<h1", 1)[1].split(">", 1)[1].split("</h1>", 1)[0]
    return inner.rsplit("</svg>", 1)[-1].strip()


def title_of(page: str) -> str:
    """Return the words of the title."""
    return page.split("<title>", 1)[1].split("</title>", 1)[0]
