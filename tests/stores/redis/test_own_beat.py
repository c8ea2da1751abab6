"""The beat on a connection of its own: what it writes, and the orders that it brings."""

from datetime import UTC, datetime

import pytest

from everytick.domain.facts import Cancel
from everytick.domain.nodes import NodeFacts
from everytick.errors import StoreGone
from everytick.stores.base import Nodes
from everytick.stores.redis.store import RedisStore
from tests.servers.launch import Server
from tests.stores.acting import claim_one, job, plan_once, put
from tests.stores.clock import ManualClock
from tests.stores.redis.kit import another, erase, opened_redis

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
FACTS = NodeFacts("1.0", "3.13.1", "2025b", "host", 1, 10, ("default",), NOON)


async def test_it_keeps_the_facts_of_the_node_and_brings_orders(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store:
        await store.beat("node-1", [], FACTS)
        await put(store, job())
        clock.move(hours=1)
        await plan_once(store)
        claim = await claim_one(store)
        await store.request(claim.occurrence.id, Cancel("by hand"))
        [before] = await store.ask(Nodes())
        async with store.apart() as own:
            orders = await own.beat("node-1", [claim.key])
            adopted = await own.beat("node-1", [])
        assert orders.cancel == ((claim.key, "by hand"),)
        assert [each.key for each in adopted.adopt] == [claim.key]
        [node] = await store.ask(Nodes())
        assert (node.beats, node.facts, node.beat_at) == (before.beats + 2, FACTS, clock.time)


async def test_others_that_write_at_the_same_moment_cost_no_beat(redis: Server, clock: ManualClock) -> None:
    """Neither its own nor those of the node's loop, such as a claim."""
    async with opened_redis(redis, clock) as store, another(store, clock) as other, store.apart() as own:
        await store.beat("node-1", [])
        read = own._row

        async def row_before_others(field: str) -> tuple[str | None, datetime]:
            found = await read(field)
            await store.beat("node-1", [], FACTS)
            await other.beat("node-2", [])
            return found

        own._row = row_before_others  # type: ignore[method-assign]
        await own.beat("node-1", [])
        nodes = {node.id: (node.beats, node.facts) for node in await other.ask(Nodes())}
        assert nodes == {"node-1": (3, FACTS), "node-2": (1, None)}


async def test_it_writes_nothing_into_a_server_that_has_forgotten_the_store(redis: Server, clock: ManualClock) -> None:
    """F-14: neither at the start of its loop nor later."""
    async with opened_redis(redis, clock) as store:
        await store.beat("node-1", [])
        later = store.apart()
        async with store.apart() as own:
            await erase(store)
            with pytest.raises(StoreGone):
                await own.beat("node-1", [])
        with pytest.raises(StoreGone):
            await later.__aenter__()
        assert await keys(store) == []
        await store.close()


async def keys(store: RedisStore) -> list[str]:
    """Return the keys of the store."""
    pattern = store._connections.address.key("*").replace("{", "\\{")
    return [key async for key in store._connections.client.scan_iter(match=pattern)]
