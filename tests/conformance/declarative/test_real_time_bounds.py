"""Real-time bounds: R1, R2 and what becomes visible when they are not kept.

On virtual time nothing takes time but work, so what a bound allows is compared with the
time that this process has worked: a busy machine does not change the judgement.
"""

import logging
import time
from datetime import timedelta

import pytest

from tests.conformance.declarative.adapter import Adapter, World
from tests.conformance.declarative.tasks import Task
from tests.conformance.declarative.test_public_interface import fine

MANY = 1000


def test_r1_scheduling_latency_target(adapter: Adapter) -> None:
    """S2-069: a thousand whose minute comes at once all start within it."""

    async def story(world: World) -> None:
        worked: list[float] = []

        async def callback() -> None:
            worked.append(time.process_time())

        scheduler = world.scheduler()
        await scheduler.initialize([(f"{number}", "1 * * * *", callback, timedelta(0)) for number in range(MANY)])
        await world.advance(seconds=45)
        before = time.process_time()
        await world.advance(seconds=59)
        assert len(worked) == MANY
        assert max(worked) - before < 60
        await scheduler.stop()
        began = [told.at for told in scheduler.heard if told.name == "TaskRunStarted"]
        assert max(began) - min(began) < timedelta(minutes=1)

    adapter.play(story)


def test_r2_post_restart_recovery_target(adapter: Adapter) -> None:
    """S2-070: what was in flight when the process went starts again with the next instance, all of it."""

    async def story(world: World) -> None:
        first = world.scheduler()
        hanging = [Task(world, gate=True) for _ in range(200)]
        await first.initialize([task.on("0 12 * * *", name=f"{number}") for number, task in enumerate(hanging)])
        await world.advance(seconds=1)
        assert sum(task.count for task in hanging) == 200
        first.crash()
        again = [Task(world) for _ in range(200)]
        before, back = time.process_time(), world.now()
        second = world.scheduler()
        await second.initialize([task.on("0 12 * * *", name=f"{number}") for number, task in enumerate(again)])
        await world.advance(seconds=20)
        assert [task.count for task in again] == [1] * 200
        assert time.process_time() - before < 60
        assert max(task.began[0] for task in again) - back < timedelta(minutes=1)
        await second.stop()

    adapter.play(story)


def test_assumptions_a_start_later_than_the_target_is_surfaced(
    adapter: Adapter, caplog: pytest.LogCaptureFixture
) -> None:
    """S2-071: a host that slept through a minute starts late and says so; one that did not says nothing."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = await world.started(task.on("0,1 12 * * *", name="sleeper"), Task(world).on(name="punctual"))
        await world.advance(seconds=30)
        assert not complaints(caplog, "sleeper")
        world.suspend(170)
        await world.advance(seconds=10)
        await scheduler.stop()
        assert task.count == 2
        assert complaints(caplog, "sleeper")

    with caplog.at_level(logging.WARNING):
        adapter.play(story)


def complaints(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [message for message in said if word in message]


@pytest.mark.slow
def test_r1_scheduling_latency_target_for_a_hundred_thousand(adapter: Adapter) -> None:
    """S2-069: the specification allows ten minutes; ours is one, of the time that this process works."""

    async def story(world: World) -> float:
        scheduler = world.scheduler()
        await scheduler.initialize([(f"{number}", "1 * * * *", fine, timedelta(0)) for number in range(100_000)])
        await world.advance(seconds=45)
        before = time.process_time()
        await world.advance(seconds=59)
        took = time.process_time() - before
        completed = sum(1 for told in scheduler.heard if told.name == "TaskRunCompleted")
        assert completed == 100_000
        await scheduler.stop()
        return took

    took = adapter.play(story)
    assert took < 60
