"""The API without a socket: an application with some past, and a client for each role."""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import Request

from everytick import Everytick, every
from everytick.access.people import CameBy, Grant, Person, Role
from everytick.domain.people import Doer
from everytick.errors import NeedsApproval
from everytick.testing import ManualClock, MemoryStore, drain
from everytick.web.asgi import asgi

JOB = "orders/daily"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the long fuzz unless `-m` asks for it: schemathesis makes its requests while tests are collected."""
    left_out = collection_path.name == "test_fuzz_api_longer.py" and "not slow" in config.option.markexpr
    return True if left_out else None


async def by_header(request: Request) -> Person:
    """Return the person whose role stands in a header of the test's own."""
    role = Role[request.headers.get("x-role", "ADMIN")]
    grants = (Grant("crm", Role.OPERATOR),) if "x-grant" in request.headers else ()
    return Person(request.headers.get("x-name", "ann"), role, grants, CameBy.TOKEN, "127.0.0.1")


def client_of(tick: Everytick, **headers: str) -> httpx2.AsyncClient:
    """Return a client of the application's service that asks with these headers."""
    transport = httpx2.ASGITransport(asgi(tick, identify=by_header), raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers)


def make_tick(store: MemoryStore | str = "memory://", **settings: Any) -> Everytick:
    """Return an application with a job that has a payload, one that fails, and one that two people must change."""
    tick = Everytick(store, name="shop", allow_calls=("shop",), **settings)

    @tick.job(every("1h"), name=JOB, tags=["crm"], payload={"secret": "s3cr3t"}, start_by="5m")
    def orders(secret: str = "") -> str:
        return f"done {secret}"

    @tick.job(every("1d"))
    def failing() -> None:
        raise KeyError("s3cr3t")

    @tick.job(every("1d"), protected="two_people")
    def pay() -> None: ...

    return tick


class World:
    """An application at noon, with an occurrence that ended well, one that failed, and some instants of the past."""

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock(NOON)
        self.tick = make_tick(MemoryStore(self.clock), **settings)
        self.done = self.failed = self.backfill = self.proposal = ""
        self.user, self.token = "ben", "nightly-report"

    async def live(self) -> None:
        """Let the jobs run, and people ask for something."""
        tick = self.tick
        await tick.sync()
        self.done, self.failed = (await tick.trigger(JOB, by="ann")).id, (await tick.trigger("failing", by="ann")).id
        await drain(tick)
        self.clock.advance("3h")
        await drain(tick)
        await tick.set_limit("tag:crm", most=5, rate="60/1m", reason="slow", by="ann")
        await tick.brake("queue:slow", reason="down", by="ann")
        made = await tick.backfill(JOB, NOON - timedelta(days=1), NOON, approve=False, by="ann")
        self.backfill = made.id or ""
        await tick.apply([tick.define("api-job", "0 5 * * *", owner="api").call("shop.jobs:tidy")])
        await tick.update("api-job", priority=3, by="ann")
        with suppress(NeedsApproval):
            await tick.remove("pay", confirmed=True, by="ben")
        self.proposal = (await tick.proposals())[0].id
        await tick.people.add_user("zoe", Role.ADMIN)
        await tick.people.add_user(self.user, Role.VIEWER)
        with tick.acting_as(Doer("zoe", CameBy.TOKEN, "192.0.2.7")):
            await tick.people.add_token(self.token, Role.VIEWER)

    def ask(self, **headers: str) -> httpx2.AsyncClient:
        """Return a client that asks with these headers: `x_role="VIEWER"`."""
        return client_of(self.tick, **{name.replace("_", "-"): said for name, said in headers.items()})


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world in which something has happened."""
    made = World()
    await made.live()
    yield made
    await made.tick.close()


@pytest.fixture
async def admin(world: World) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an admin."""
    async with world.ask() as asking:
        yield asking


@pytest.fixture
async def viewer(world: World) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a viewer."""
    async with world.ask(x_role="VIEWER") as asking:
        yield asking
