"""The beat of a node goes on while its loop stands still, on each store that serves more than one loop."""

import threading
import time
from datetime import timedelta

import pytest

from everytick.node.beat import Beat
from everytick.node.health import Health
from everytick.node.inbox import Inbox, OrdersCame
from everytick.node.occurrence import OwnedKeys
from everytick.stores.base import Nodes
from tests.stores.acting import AnyStore, unheard
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import SUITE


class CountingHealth(Health):
    """Says when the beat was answered three times."""

    def __init__(self, inbox: Inbox) -> None:
        super().__init__(inbox, time.monotonic, 20.0)
        self.count, self.are_three = 0, threading.Event()

    def has_beaten(self) -> None:
        super().has_beaten()
        self.count += 1
        if self.count >= 3:
            self.are_three.set()


@pytest.mark.parametrize("store", ["sqlite", *SUITE, "redis"], indirect=True)
async def test_a_node_whose_loop_stands_still_beats_on(store: AnyStore, clock: ManualClock) -> None:
    """A task that blocks the node's loop does not make the node look dead: no reaper takes over what it runs."""
    inbox = Inbox({OrdersCame: lambda event: None})
    health = CountingHealth(inbox)
    beat = Beat(store, "node-1", 0.01, health, inbox, OwnedKeys())
    await beat.start()
    try:
        clock.move(hours=1)
        [before] = await store.ask(Nodes())
        health.count = 0
        health.are_three.clear()
        # The loop of the node, and of this test, stands still meanwhile.
        assert health.are_three.wait(60)
        [node] = await store.ask(Nodes())
        assert node.beats >= before.beats + 3
        assert await unheard(store, timedelta(seconds=20)) == {}
    finally:
        await beat.stop()
