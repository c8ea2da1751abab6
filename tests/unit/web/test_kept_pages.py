"""Pages are compressed, and dear ones are kept for a moment."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from everytick import Everytick
from everytick.access.people import Person, Role
from everytick.web.asgi import Service, asgi
from everytick.web.asking import needs
from everytick.web.kept_pages import KeptPages, kept_for_a_moment
from everytick.web.known_jobs import KEEP_FACTOR
from everytick.web.problems import Problem


class Reading:
    """A service whose page counts how often it was made. `people` are those who may come in, by the header `who`."""

    def __init__(self, tick: Everytick, cheap: float) -> None:
        self.made, self.seconds = 0, 0.0
        self.begun, self.waits = asyncio.Event(), asyncio.Event()
        self.waits.set()
        self.people = {"ann": Role.VIEWER, "bob": Role.VIEWER, "eve": Role.OPERATOR}
        self.service = asgi(tick, identify=self._who)
        app = self.service.app
        assert isinstance(app, FastAPI)
        app.state.kept_pages = KeptPages(cheap, lambda: self.seconds)
        router = APIRouter()

        @router.get("/dear", dependencies=[needs(Role.VIEWER)])
        @kept_for_a_moment
        async def dear(request: Request) -> Response:
            self.made += 1
            self.begun.set()
            await self.waits.wait()
            self.seconds += 0.05
            return HTMLResponse(f"page {self.made} of {request.state.who.name}", headers={"etag": f'"{self.made}"'})

        @router.post("/change", dependencies=[needs(Role.OPERATOR)])
        async def change() -> None:
            """Change something."""

        app.include_router(router)

    async def _who(self, request: Request) -> Person:
        name = request.headers.get("who", "")
        if name not in self.people:
            raise Problem(401, "not_signed_in", "sign in")
        return Person(name, self.people[name])

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(self.service), base_url="http://127.0.0.1")


@pytest.fixture
async def reading(tick: Everytick) -> AsyncIterator[Reading]:
    await tick.sync()
    yield Reading(tick, cheap=0.0)
    await tick.close()


ANN = {"who": "ann"}


async def test_a_dear_page_is_made_once_for_readers_who_ask_within_a_moment(reading: Reading) -> None:
    async with reading.client() as asking:
        first, second = await asking.get("/dear", headers=ANN), await asking.get("/dear", headers=ANN)
        known = await asking.get("/dear", headers={**ANN, "if-none-match": first.headers["etag"]})
        reading.seconds += 0.05 * KEEP_FACTOR + 0.01
        later = await asking.get("/dear", headers=ANN)

    assert (first.text, second.text, later.text) == ("page 1 of ann", "page 1 of ann", "page 2 of ann")
    assert second.headers["content-type"] == first.headers["content-type"]
    assert (known.status_code, known.content) == (304, b"")


async def test_readers_who_ask_at_the_same_time_share_one_page(reading: Reading) -> None:
    reading.waits.clear()
    async with reading.client() as asking:
        both = asyncio.gather(*(asking.get("/dear", headers=ANN) for _ in range(5)))
        await reading.begun.wait()
        reading.waits.set()
        answers = await both

    assert ({each.text for each in answers}, reading.made) == ({"page 1 of ann"}, 1)


@pytest.mark.parametrize(
    "other",
    [{"who": "bob"}, {**ANN, "cookie": "everytick_theme=dark"}, {**ANN, "accept-encoding": "identity"}],
    ids=["person", "cookie", "encoding"],
)
async def test_a_page_belongs_to_its_reader(reading: Reading, other: dict[str, str]) -> None:
    async with reading.client() as asking:
        await asking.get("/dear", headers=ANN)
        await asking.get("/dear?w=4h", headers=ANN)
        another = await asking.get("/dear", headers=other)

    assert another.text == f"page 3 of {other['who']}"


async def test_who_was_sent_away_does_not_see_a_kept_page(reading: Reading) -> None:
    """S2: the role is checked before the page is looked up."""
    async with reading.client() as asking:
        await asking.get("/dear", headers=ANN)
        del reading.people["ann"]

        assert (await asking.get("/dear", headers=ANN)).status_code == 401


async def test_a_change_makes_every_page_anew(reading: Reading) -> None:
    async with reading.client() as asking:
        await asking.get("/dear", headers=ANN)
        await asking.post("/change", headers={"who": "eve", "x-csrf-token": ""})
        after = await asking.get("/dear", headers=ANN)

    assert after.text == "page 2 of ann"


async def test_a_page_that_was_begun_before_a_change_is_not_kept(reading: Reading) -> None:
    reading.waits.clear()
    async with reading.client() as asking:
        slow = asyncio.ensure_future(asking.get("/dear", headers=ANN))
        await reading.begun.wait()
        reading.service._changed()
        reading.waits.set()
        await slow
        after = await asking.get("/dear", headers=ANN)

    assert after.text == "page 2 of ann"


async def test_a_cheap_page_is_made_for_every_reader(tick: Everytick) -> None:
    reading = Reading(tick, cheap=60.0)
    async with reading.client() as asking:
        await asking.get("/dear", headers=ANN)
        assert (await asking.get("/dear", headers=ANN)).text == "page 2 of ann"
    await tick.close()


async def test_every_page_is_compressed_where_the_browser_takes_that(tick: Everytick) -> None:
    """The design's budget: 20 KB on the wire."""
    await tick.sync()
    service: Service = asgi(tick)
    transport = httpx2.ASGITransport(service)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        paths = ("/", "/jobs", "/history", "/agenda", "/nodes", "/files", "/audit", "/lab", "/jobs/nightly", "/do")
        for path in (*paths, "/jobs/nightly/do/pause"):
            packed = await asking.get(path, headers={"accept-encoding": "gzip, br"})
            plain = await asking.get(path, headers={"accept-encoding": "identity"})

            assert packed.headers.get("content-encoding") == "gzip", path
            assert "accept-encoding" in packed.headers["vary"], path
            assert "content-encoding" not in plain.headers, path
            assert int(packed.headers["content-length"]) < len(plain.content), path
            assert int(packed.headers["content-length"]) <= 20_000, path
    await tick.close()
