"""The dead man's switch: one node at a time pings, with the promises at risk and without a secret."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everytick import Everytick, cron
from everytick.domain.fleet_pings import ping_from, ping_of
from everytick.domain.nodes import NodeFacts
from everytick.errors import InvalidSetting
from everytick.node.dead_man import DeadMan, pinging
from everytick.node.settings import node_settings
from everytick.stores.base import NodeRecord
from tests.listening import listening

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
SILENCE = timedelta(seconds=20)
FACTS = NodeFacts("1", "3.13", "2026b", "h", 7, 50, ("default",), NOW, pings=True)


class Receiver:
    """A real HTTP server that keeps the bodies it was sent."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.status = 204
        self.url = ""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        [length] = [int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length")]
        self.bodies.append(json.loads(await reader.readexactly(length)))
        writer.write(f"HTTP/1.1 {self.status} x\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Give a receiver that listens."""
    made = Receiver()
    async with listening(made.take) as port:
        made.url = f"http://127.0.0.1:{port}/s3cr3t-path"
        yield made


def node(name: str, ago: float = 1, *, pings: bool = True) -> NodeRecord:
    return NodeRecord(name, NOW - timedelta(seconds=ago), 0, replace(FACTS, pings=pings))


def test_it_is_the_turn_of_the_first_living_node_that_knows_the_address() -> None:
    nodes = [node("c"), node("b"), node("a", pings=False), node("0-silent", ago=60)]
    assert pinging(nodes, NOW, SILENCE) == "b"
    assert pinging(nodes[2:], NOW, SILENCE) is None


def test_a_ping_reads_back_and_what_is_none_is_refused() -> None:
    ping = ping_of([], NOW, "a", 3)
    assert ping_from(json.loads(json.dumps(ping.as_data()))) == ping
    sent: dict[str, Any] = {"sent_at": NOW.isoformat(), "node": "a"}
    wrong: list[Any] = [{}, [], {**sent, "sent_at": "x", "nodes": 1}, {**sent, "nodes": "x"}]
    for each in wrong:
        with pytest.raises(ValueError, match=r".+"):
            ping_from(each)


async def test_the_ping_names_the_promises_at_risk_and_no_secret() -> None:
    tick = Everytick("memory://", name="shop")
    tick.job(cron("* * * * *"), name="ledger", success_within="30m", payload={"password": "hunter2"})(lambda: None)
    tick.job(cron("0 0 1 1 *"), name="yearly", start_by="2h")(lambda: None)
    await tick.start()
    assert tick._node is not None
    await tick._node.promises.round()
    store = await tick._opened()
    async with receiving() as receiver:
        settings = node_settings(dead_man_url=receiver.url)
        await store.beat("one", [], replace(FACTS, started_at=await store.now()))
        await DeadMan(store, "one", settings).round()
        await DeadMan(store, "two", settings).round()
    [told] = receiver.bodies
    ping = ping_from(told)
    assert (ping.node, ping.nodes) == ("one", 2)
    assert [(each.job, each.promise) for each in ping.at_risk] == [("ledger", "success_within")]
    assert "hunter2" not in json.dumps(told)
    await tick.stop()
    await tick.close()


async def test_a_ping_that_fails_is_logged_once_without_the_secret_of_its_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tick = Everytick("memory://", name="shop")
    store = await tick._opened()
    await store.beat("one", [], replace(FACTS, started_at=await store.now()))
    caplog.set_level(logging.INFO, "everytick.node")
    async with receiving() as receiver:
        dead_man = DeadMan(store, "one", node_settings(dead_man_url=receiver.url))
        receiver.status = 500
        await dead_man.round()
        await dead_man.round()
        receiver.status = 200
        await dead_man.round()
    said = [record.getMessage() for record in caplog.records if "ping" in record.getMessage()]
    assert [text.split(":")[0] for text in said] == ["no ping reaches http", "pings reach http"]
    assert "it answered 500" in said[0]
    assert "s3cr3t" not in caplog.text
    await tick.close()


def test_an_address_that_is_none_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidSetting) as refused:
        node_settings(dead_man_url="ftp://user:hunter2@host/")
    assert "hunter2" not in str(refused.value)
