"""A task that blocks the node's loop is told, whatever the store (B15)."""

import asyncio
import logging
import threading

import pytest

from everytick import Everytick
from everytick.node.beat import LoopWatch
from everytick.node.occurrence import OwnedKeys


class BegunKeys(OwnedKeys):
    """Keys of a node on which a job has begun."""

    latest_job = "report"


def test_a_loop_that_stands_still_is_told_once_and_when_it_turns_again(caplog: pytest.LogCaptureFixture) -> None:
    """B15: each look is a second after the one before."""
    loop = asyncio.new_event_loop()
    watch = LoopWatch(loop, BegunKeys())
    with caplog.at_level(logging.WARNING, "everytick.beat"):
        for _ in range(4):
            watch.look()
        loop.run_until_complete(asyncio.sleep(0))
        watch.look()
        loop.run_until_complete(asyncio.sleep(0))
        watch.look()
    loop.close()

    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(";")[0] for text in said] == [
        "the node's loop has stood still for over a second",
        "the node's loop turns again after about 3 seconds",
    ]
    assert "job 'report': async tasks must not block, make it a plain function to run it in a thread" in said[0]


def test_a_loop_that_stands_still_before_any_job_has_begun_blames_none(caplog: pytest.LogCaptureFixture) -> None:
    """B15: a start may take long, such as one that imports Celery on a busy machine."""
    loop = asyncio.new_event_loop()
    watch = LoopWatch(loop, OwnedKeys())
    with caplog.at_level(logging.WARNING, "everytick.beat"):
        watch.look()
        watch.look()
    loop.close()
    [said] = [record.getMessage() for record in caplog.records]
    assert "no job has begun" in said


async def test_the_loop_of_a_node_in_memory_is_watched_until_it_stops() -> None:
    """B15: its beat has no thread of its own, so the watch has one."""
    tick = Everytick("memory://", name="shop")
    tick.job("0 0 1 1 *", name="yearly")(int)

    async with tick:
        [watch] = [thread for thread in threading.enumerate() if thread.name == "everytick-watch"]
    watch.join(60)

    assert not watch.is_alive()
