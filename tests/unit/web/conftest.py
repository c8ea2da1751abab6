"""A service without a socket: an application on a store in memory, and a client that asks it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest

from everytick import Everytick, every
from everytick.web import agenda_cache, framing, kept_pages


def client_of(tick: Everytick, prefix: str = "", service: Any = None) -> httpx2.AsyncClient:
    """Return a client that asks this application's service, or the one given, mounted under a prefix or not."""
    transport = httpx2.ASGITransport(service or tick.asgi(), root_path=prefix, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1" + prefix)


@pytest.fixture(autouse=True)
def _noon_in_utc(at_noon: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The day and the zone of the host, which pages show to those who have chosen none."""
    monkeypatch.setenv("TZ", "UTC")
    framing.host_zone.cache_clear()
    yield
    framing.host_zone.cache_clear()


@pytest.fixture(autouse=True)
def every_page_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests change the store behind the service, and a loaded machine makes every page dear."""
    monkeypatch.setattr(kept_pages, "CHEAP_SECONDS", float("inf"))
    monkeypatch.setattr(agenda_cache, "WHOLE_SECONDS", 60.0)


@pytest.fixture
def tick() -> Everytick:
    """An application with two jobs, on a store in memory. No node runs."""
    made = Everytick("memory://", name="shop")

    @made.job(every("1h"), name="orders/daily")
    def orders(count: int = 1) -> int:
        return count

    @made.job(every("1d"))
    def nightly() -> None: ...

    return made


@pytest.fixture
async def client(tick: Everytick) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the application's service; the jobs are stored."""
    await tick.sync()
    async with client_of(tick) as asking:
        yield asking
    await tick.close()
