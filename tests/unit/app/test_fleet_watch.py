"""The watch in a second place: pings over real sockets, silence, and a fleet that is back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from everytick.app.fleet_watch import FleetAlarm, FleetWatch, WatchPlace, alarm_of
from everytick.domain.fleet_pings import FleetPing, PromiseAtRisk
from everytick.errors import InvalidSetting
from everytick.runners.addresses import AddressRules
from everytick.runners.posting import HttpRequest, send

NOW = datetime(2024, 1, 4, 12, tzinfo=UTC)
EVERYWHERE = "//0.0.0.0:9485"
LATER = NOW + timedelta(days=3650)
PING = FleetPing(NOW, "one", 1, (PromiseAtRisk("ledger", "finish_by", NOW), PromiseAtRisk("tax", "start_by", LATER)))


class Watched:
    """A watch that runs, and the alarms that it has raised."""

    def __init__(self, silence: float) -> None:
        self.alarms: asyncio.Queue[FleetAlarm] = asyncio.Queue()
        self.watch = FleetWatch(WatchPlace("127.0.0.1", 0, "/secret"), timedelta(seconds=silence), self.alarms.put)

    async def post(self, body: bytes, path: str = "/secret", method: str = "POST") -> int:
        request = HttpRequest(method, f"http://127.0.0.1:{self.watch.port}{path}", {}, body)
        return await send(request, AddressRules(["127.0.0.1"]))

    async def next(self) -> FleetAlarm:
        async with asyncio.timeout(20):
            return await self.alarms.get()


@asynccontextmanager
async def watching(silence: float) -> AsyncIterator[Watched]:
    """Give a watch that listens."""
    made = Watched(silence)
    listening = asyncio.Event()
    task = asyncio.create_task(made.watch.run(started=lambda port: listening.set()))
    await listening.wait()
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_silence_is_an_alarm_and_the_next_ping_ends_it() -> None:
    async with watching(0.5) as watched:
        assert await watched.post(json.dumps(PING.as_data()).encode()) == 204
        silent = await watched.next()
        assert silent.is_silent
        assert silent.last == PING
        assert "ledger (finish_by)" in silent.text
        await watched.post(json.dumps(PING.as_data()).encode())
        back = await watched.next()
        assert not back.is_silent
        assert (await watched.next()).is_silent


async def test_a_fleet_that_was_never_heard_is_an_alarm_too() -> None:
    async with watching(0.2) as watched:
        silent = await watched.next()
    assert silent.last is None
    assert silent.text == "the fleet is silent, it was never heard"


async def test_only_a_ping_at_the_secret_path_counts() -> None:
    async with watching(60) as watched:
        good = json.dumps(PING.as_data()).encode()
        assert await watched.post(good, "/other") == 404
        assert await watched.post(good, "/secretive") == 404
        assert await watched.post(b"{}") == 400
        assert await watched.post(b"not json") == 400
        assert await watched.post(b"x" * 300_000) == 400
        assert await watched.post(good, method="GET") == 400
        assert watched.watch._last is None


def test_an_alarm_says_what_is_broken_by_now_and_what_comes() -> None:
    alarm = alarm_of(PING, NOW + timedelta(minutes=5), is_silent=True)
    assert [each.job for each in alarm.broken] == ["ledger"]
    assert [each.job for each in alarm.coming] == ["tax"]
    event = alarm.as_event()
    assert event["type"] == "io.everytick.fleet.silent.v1"
    assert event["data"]["broken"] == [{"job": "ledger", "promise": "finish_by", "due_at": NOW.isoformat()}]
    assert json.loads(json.dumps(event)) == event


@pytest.mark.parametrize(
    "url", [f"https:{EVERYWHERE}/{'x' * 20}", f"http:{EVERYWHERE}/short", "http://example.org/x", "ping"]
)
def test_an_address_that_cannot_be_listened_on_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting):
        WatchPlace.at(url)


def test_other_hosts_may_ping_if_the_path_is_long() -> None:
    assert WatchPlace.at(f"http:{EVERYWHERE}/" + "x" * 16).path == "/" + "x" * 16
    assert WatchPlace.at("http://127.0.0.1:9485/p") == WatchPlace("127.0.0.1", 9485, "/p")
