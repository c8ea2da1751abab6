"""`nodes` tells who runs the jobs."""

import asyncio
import json
from datetime import UTC, datetime

from everytick import Everytick
from everytick.domain.nodes import NodeFacts
from everytick.stores.addresses import store_of
from tests.unit.cli.conftest import Cli


def test_nodes_says_that_there_was_none(cli: Cli, shop: Everytick) -> None:
    done = cli("nodes")

    assert (done.code, done.out) == (0, "")
    assert "no node has ever run on this store" in done.err


def test_nodes_tells_the_silent_from_the_living(cli: Cli, shop: Everytick, address: str) -> None:
    async def beat() -> None:
        store = store_of(address)
        await store.open()
        await store.beat("host-1", [])
        await store.close()

    asyncio.run(beat())

    assert [row[:2] for row in cli("nodes").rows] == [["host-1", "alive"]]
    assert json.loads(cli("nodes", "--json").out)[0]["holds"] == 0


def test_nodes_shows_what_each_said_of_itself(cli: Cli, shop: Everytick, address: str) -> None:
    facts = NodeFacts("1.0", "3.11.4", "2025b (system)", "h", 7, 50, ("a", "b"), datetime(2026, 1, 1, tzinfo=UTC))

    async def register() -> None:
        store = store_of(address)
        await store.open()
        await store.beat("host-1", [], facts)
        await store.close()

    asyncio.run(register())

    assert [row[3:] for row in cli("nodes").rows] == [["0", "50", "a, b", "1.0", "3.11.4", "2025b (system)", "+0.0 s"]]
    [told] = json.loads(cli("nodes", "--json").out)
    assert (told["pid"], told["host"], told["queues"], told["started_at"]) == (
        7,
        "h",
        ["a", "b"],
        "2026-01-01T00:00:00+00:00",
    )
