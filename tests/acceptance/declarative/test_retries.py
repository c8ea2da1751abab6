"""Retries and minutes that come late, across lives of a scheduler, on every store."""

from datetime import timedelta

import pytest

from everytick import GiveUp
from everytick.declarative import task_states
from everytick.stores.base import HistoryFilter
from tests.acceptance.declarative.world import Counting, World


async def test_whatever_a_callback_raises_it_is_tried_again(world: World) -> None:
    """S2-021, S2-024: also what would tell the core to give up, or to wait for another while."""
    calls: list[int] = []

    async def callback() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise GiveUp("for good")

    scheduler = world.scheduler()
    await scheduler.initialize([("a", "0 12 * * *", callback, "10s")])
    for failure in (1, 2):
        await world.until("TaskRunFailed a", failure)
        world.clock.advance("10s")
        await world.until("TaskRetryStarted a", failure)
    await world.until("TaskRunCompleted a")
    await scheduler.stop()
    assert len(calls) == 3


async def test_a_retry_comes_when_it_was_to_come_and_the_next_one_as_registered_now(world: World) -> None:
    """S2-022, S2-059: an override changes the delay of what is waited for afterwards, and keeps what was told."""
    callback = Counting(failures=2)
    first = world.scheduler()
    await first.initialize([("a", "0 12 * * *", callback, "5m")])
    await world.until("TaskRunFailed a")
    await first.stop()
    before = (await task_states(world.store))["a"]

    second = world.scheduler()
    await second.initialize([("a", "0 12 * * *", callback, "1m")])
    assert (await task_states(world.store))["a"].pendingRetryUntil == before.pendingRetryUntil
    world.at("12:05:30")
    await world.until("TaskRunFailed a", 2)
    after = (await task_states(world.store))["a"]
    assert after.pendingRetryUntil - after.lastFailureAt == timedelta(minutes=1)
    await second.stop()


async def test_a_retry_of_a_task_that_is_away_is_left_as_it_is(world: World) -> None:
    """S2-013: it is not claimed in between, and it comes when the task is registered again."""
    callback, other = Counting(failures=1), Counting()
    first = world.scheduler()
    await first.initialize([("a", "0 12 * * *", callback, "5m")])
    await world.until("TaskRunFailed a")
    await first.stop()
    before = (await task_states(world.store))["a"]

    second = world.scheduler()
    await second.initialize([("b", "* * * * *", other, "5m")])
    world.at("12:06:00")
    await world.until("TaskRunCompleted b", 2)
    await second.stop()
    assert (await task_states(world.store))["a"] == before

    third = world.scheduler()
    await third.initialize([("a", "0 12 * * *", callback, "5m")])
    await world.until("TaskRetryStarted a")
    await world.until("TaskRunCompleted a")
    await third.stop()


async def test_minutes_that_come_late_take_the_place_of_the_one_that_waits(world: World) -> None:
    """S2-007, S2-011: behind a long run stands one more, however late the scheduler looks."""
    callback = Counting(waits=True)
    scheduler = world.scheduler()
    await scheduler.initialize([("a", "0,1,5,9 12 * * *", callback, "5m")])
    assert scheduler.node is not None
    for time, decided in (("12:01:10", "12:01"), ("12:07:00", "12:05"), ("12:30:00", "12:09")):
        world.at(time)
        # The node looks too, and one look that began before the clock moved may take the place of this one.
        while f"{(await world.store.history(HistoryFilter(limit=1))).occurrences[0].scheduled_for:%H:%M}" != decided:
            await scheduler.node.engine.planner.round()
    callback.go_on.set()
    await world.until("TaskRunCompleted a", 2)
    await scheduler.stop()
    assert callback.calls == 2


async def test_a_minute_that_came_before_a_task_was_away_and_was_never_decided_runs_once(world: World) -> None:
    """S2-011: the planner decides it by the words of that time, and nothing more is owed then."""
    callback, other = Counting(), Counting()
    first, second, third = world.scheduler(), world.scheduler(), world.scheduler()
    await first.initialize([("a", "* * * * *", callback, "5m")])
    await world.until("TaskRunCompleted a")
    await first.stop()
    world.at("12:01:10")
    await second.initialize([("b", "0 0 1 1 *", other, "5m")])
    await second.stop()
    world.at("12:01:20")
    await third.initialize([("a", "* * * * *", callback, "5m")])
    await world.until("TaskRunCompleted a", 2)
    await third.stop()
    assert callback.calls == 2


async def test_a_failure_is_logged_with_its_traceback_and_the_retry(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """M1: on the logger that reaches the terminal without any configuration; a listener is not needed for it."""
    scheduler = world.scheduler()
    await scheduler.initialize([("a", "0 12 * * *", Counting(failures=1), "5m")])
    await world.until("TaskRunFailed a")
    await scheduler.stop()

    [line] = [each for each in caplog.records if each.name == "everytick.events"]
    assert line.levelname == "WARNING"
    assert " attempt 1 failed: ValueError: failure 1; it is tried again in 5m, at " in line.getMessage()
    assert "Traceback (most recent call last):" in caplog.text
    assert "\nValueError: failure 1" in caplog.text
