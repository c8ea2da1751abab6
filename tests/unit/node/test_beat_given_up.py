"""A beat that is given up when its node stops, and fails afterwards, writes no traceback."""

import asyncio
import gc
import time
from collections.abc import Collection
from typing import Any

from everytick.domain.nodes import NodeFacts
from everytick.errors import StoreGone
from everytick.node.beat import Beat
from everytick.node.health import Health
from everytick.node.inbox import Inbox
from everytick.node.occurrence import OwnedKeys
from everytick.stores.base import ClaimKey, Orders
from everytick.stores.memory import MemoryStore
from tests.stores.clock import ManualClock


class LostStore(MemoryStore):
    """A store that answers one beat, and is found to be gone when the second one is given up."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.beats = 0
        self.second_begun, self.second_ended = asyncio.Event(), asyncio.Event()

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        self.beats += 1
        if self.beats == 1:
            return await super().beat(node, keys, facts)
        self.second_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.second_ended.set()
            raise StoreGone("the store", "it was flushed")


async def test_a_beat_that_fails_after_its_node_stopped_writes_no_traceback() -> None:
    """F-14: a store that is flushed stops its nodes with one sentence."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    store, inbox = LostStore(), Inbox({})
    beat = Beat(store, "node-1", 0.01, Health(inbox, time.monotonic, 20.0), inbox, OwnedKeys())
    await beat.start()
    await store.second_begun.wait()
    await beat.stop()
    async with asyncio.timeout(60):
        await store.second_ended.wait()
    await asyncio.sleep(0)
    gc.collect()
    assert complaints == []
