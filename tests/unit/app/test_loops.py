"""Starts, stops, loops and forks that cross each other's way."""

import asyncio
import threading
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.domain.statuses import OccurrenceStatus


class Shop:
    """An application whose one job begins, and ends when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.tick = Everytick(f"sqlite:///{folder}/e.db", name="shop", grace_period="1s")
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.tick.job(every("P1Y"), name="work")(self._work)

    async def _work(self) -> None:
        self.begun.set()
        await self.may_end.wait()

    async def last(self) -> OccurrenceStatus:
        [occurrence] = await self.tick.history()
        await self.tick.close()
        return occurrence.status


async def _one_at_work(folder: Path) -> Shop:
    shop = Shop(folder)
    await shop.tick.start()
    await shop.tick.trigger("work")
    await asyncio.wait_for(shop.begun.wait(), 10)
    return shop


async def test_whoever_stops_what_is_being_stopped_waits_for_the_same_end(tmp_path: Path) -> None:
    """The shutdown hook of a framework and `async with` do that; neither closes the store under the other."""
    shop = await _one_at_work(tmp_path)
    stops = [asyncio.create_task(shop.tick.stop("drain")) for _ in range(2)]
    done, _ = await asyncio.wait(stops, timeout=0.2)
    assert not done
    shop.may_end.set()
    await asyncio.wait_for(asyncio.gather(*stops), 10)
    assert await shop.last() is OccurrenceStatus.COMPLETED


async def test_a_stop_that_cancels_hastens_one_that_drains(tmp_path: Path) -> None:
    """S0-110: the second word counts, and both return."""
    shop = await _one_at_work(tmp_path)
    first = asyncio.create_task(shop.tick.stop("drain"))
    await asyncio.wait([first], timeout=0.2)
    await asyncio.wait_for(shop.tick.stop(), 10)
    await asyncio.wait_for(first, 10)
    assert await shop.last() is OccurrenceStatus.CANCELED


async def test_a_stop_ends_a_start_that_is_under_way(tmp_path: Path) -> None:
    """And nothing of it is left: no thread, no node, no store."""
    before = set(threading.enumerate())
    shop = Shop(tmp_path)
    start = asyncio.create_task(shop.tick.start())
    await asyncio.sleep(0)
    await asyncio.wait_for(shop.tick.stop(), 10)
    with pytest.raises(RuntimeError, match="stopped before it had started"):
        await start
    left = {thread.name for thread in set(threading.enumerate()) - before if not thread.name.startswith("asyncio")}
    assert (left, shop.tick.node) == (set(), None)
    async with shop.tick:
        assert shop.tick.node is not None
