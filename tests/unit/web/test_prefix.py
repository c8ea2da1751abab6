"""Mounted anywhere: no page, no answer and no redirect of the service leads out of its prefix."""

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from urllib.parse import quote

import httpx2
import pytest

from everytick import Everytick, every
from everytick.testing import ManualClock, MemoryStore, drain
from tests.unit.web.asking_raw import ROUTES, filled
from tests.unit.web.conftest import client_of

PREFIX = "/mounted/here"
STREAMS = ("/live", "/api/events")
ADDRESSES = frozenset({"href", "src", "action", "formaction", "data-root", "data-stream", "data-lanes", "data-follow"})


class Led(HTMLParser):
    """Keeps every address of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.to: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the addresses of an element; a refresh is one too."""
        given = {name: said or "" for name, said in attrs}
        self.to += [said for name, said in given.items() if name in ADDRESSES]
        if tag == "meta" and "url=" in given.get("content", ""):
            self.to.append(given["content"].partition("url=")[2])


@pytest.fixture
async def mounted() -> AsyncIterator[tuple[httpx2.AsyncClient, dict[str, str]]]:
    """A client of a service under a prefix, and names for the parts of its paths: a job and a run that failed."""
    clock = ManualClock("2026-10-23T12:07:00Z")
    store = MemoryStore(clock)
    tick = Everytick(store, name="shop")

    @tick.job(every("1h"), name="orders/daily", tags=["billing"])
    def orders() -> None:
        raise ValueError("hung up")

    await drain(tick, store)
    clock.advance("61m")
    await drain(tick, store)
    [run, *_] = await tick.history("orders/daily")
    async with client_of(tick, prefix=PREFIX) as asking:
        asking.headers["accept"] = "text/html"
        yield asking, {"job": quote("orders/daily", safe=""), "id": run.id, "occurrence": run.id}
    await store.close()


def _is_within(address: str) -> bool:
    return address == "" or address.startswith(("#", "?", f"{PREFIX}/"))


async def test_every_address_of_every_page_stays_under_the_prefix(
    mounted: tuple[httpx2.AsyncClient, dict[str, str]],
) -> None:
    """The list of pages is the router's own, so that a new one cannot be forgotten."""
    asking, names = mounted
    out, seen = {}, 0
    for path in (path for method, path, _ in ROUTES if method == "GET" and path not in STREAMS):
        answer = await asking.get(filled(path, names), follow_redirects=False)
        led = Led()
        if answer.headers.get("content-type", "").startswith("text/html"):
            led.feed(answer.text)
            assert led.to, path
        to = [*led.to, *([answer.headers["location"]] if "location" in answer.headers else [])]
        seen += len(to)
        if wrong := sorted({each for each in to if not _is_within(each)}):
            out[path] = wrong

    assert seen > 1_000
    assert out == {}


async def test_a_deed_leads_back_under_the_prefix(mounted: tuple[httpx2.AsyncClient, dict[str, str]]) -> None:
    asking, names = mounted
    page = await asking.get(f"/jobs/{names['job']}/do/pause")
    [csrf] = re.findall(r'name="csrf" value="(\w+)"', page.text)
    done = await asking.post(f"/jobs/{names['job']}/do/pause", data={"csrf": csrf, "key": "k"}, follow_redirects=False)
    banner = await asking.get("/more")

    assert (done.status_code, _is_within(done.headers["location"])) == (303, True)
    assert f'action="{PREFIX}/jobs/{names["job"]}/do/resume' in banner.text
