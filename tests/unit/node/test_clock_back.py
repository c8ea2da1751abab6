"""A store's clock that is set right under a running node, or before one starts (C-45)."""

from datetime import datetime, timedelta

import pytest

from everytick.domain.facts import Rewind
from everytick.domain.statuses import OccurrenceStatus
from everytick.schedules.interval import every
from everytick.stores.memory import MemoryStore
from tests.unit.node.worlds import NOON, World, living, pause

HOUR = timedelta(hours=1)


class Ahead:
    """A world whose store shows another time than passes."""

    def __init__(self, world: World, by: timedelta) -> None:
        self.by = by
        self._now = world.now
        world.store._shared.clock = self

    def __call__(self) -> datetime:
        return self._now() + self.by


def test_a_running_node_goes_on_after_its_store_is_set_back(caplog: pytest.LogCaptureFixture) -> None:
    """L4, S1-030: requests and retries go on at once, and a line names each job that does not."""

    async def story(world: World) -> None:
        clock, tries = Ahead(world, HOUR), list[datetime]()

        async def body() -> None:
            return

        async def fails() -> None:
            tries.append(world.now())
            raise RuntimeError("not yet")

        ticking = await world.define("ticking", body, every("1m", start=NOON))
        retried = await world.define("retried", fails, retry={"max": 1, "interval": "7m"})
        node = world.node()
        await node.start()
        first = await world.trigger(retried)
        await pause("5m")
        assert await world.status(first) is OccurrenceStatus.AWAITING_RETRY
        ran = len(await world.history(ticking))
        assert ran > 0
        clock.by = timedelta(0)
        await pause("20s")
        assert "job 'ticking' is decided through" in caplog.text
        assert "everytick db rewind ticking" in caplog.text
        assert (await world.ended(first, "8m")).status is OccurrenceStatus.FAILED
        assert len(tries) == 2
        # A wait that begins after the clock was set right ends by it.
        assert (await world.ended(await world.trigger(retried, "again"), "10m")).status is OccurrenceStatus.FAILED
        assert len(await world.history(ticking)) == ran
        assert (await world.store.request(ticking.id, Rewind())).changed
        await pause("5m")
        assert len(await world.history(ticking)) >= ran + 4
        await node.stop()

    living(story)


def test_a_node_that_starts_after_the_clock_was_set_right_goes_on_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """L4: and names the jobs that were decided ahead at its start."""

    async def story(world: World) -> None:
        clock = Ahead(world, 10 * HOUR)

        async def body() -> None:
            return

        ticking = await world.define("ticking", body, every("1m", start=NOON))
        slow = await world.define("slow", body)
        node = world.node()
        await node.start()
        await pause("2m")
        await node.stop()
        asked = await world.trigger(slow)
        clock.by = timedelta(0)
        again = world.node()
        await again.start()
        assert "everytick db rewind ticking" in caplog.text
        assert (await world.ended(asked, "20s")).status is OccurrenceStatus.COMPLETED
        ran = len(await world.history(ticking))
        await pause("5m")
        assert len(await world.history(ticking)) == ran
        await again.stop()

    living(story, MemoryStore)
