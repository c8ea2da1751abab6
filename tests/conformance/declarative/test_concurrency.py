"""Concurrency & Reentrancy: parallel execution, calls at the same time, and what stop waits for."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.declarative.adapter import Adapter, Scheduler, Told, World
from tests.conformance.declarative.tasks import EVERY_MINUTE, Task


async def outcome(awaitable: Awaitable[None]) -> BaseException | None:
    try:
        await awaitable
    except Exception as error:  # noqa: BLE001, returned to be looked at
        return error
    return None


# --------------------------------------------------------------------------------------------------- Parallel Execution


def test_parallel_execution_tasks_wait_for_each_other_without_a_deadlock(adapter: Adapter) -> None:
    """S2-007: two callbacks that can only end together do end."""

    async def story(world: World) -> None:
        met = asyncio.Barrier(2)

        async def meet() -> None:
            await met.wait()

        scheduler = world.scheduler()
        await scheduler.initialize([(name, EVERY_MINUTE, meet, timedelta(0)) for name in ("a", "b")])
        await world.advance(minutes=2)
        await scheduler.stop()
        for name in ("a", "b"):
            assert scheduler.names(name) == ["TaskRunStarted", "TaskRunCompleted"] * 3

    adapter.play(story)


@pytest.mark.parametrize("takes", [90, 61, 300])
def test_parallel_execution_each_task_is_serial(adapter: Adapter, takes: float) -> None:
    """S2-007: due every minute and longer than one, it is never beside itself, nor are its events."""

    async def story(world: World) -> None:
        task = Task(world, takes=[takes] * 50)
        scheduler = await world.started(task.on())
        await world.advance(minutes=11)
        await scheduler.stop()
        assert task.count >= 3
        assert not task.beside_itself
        names = scheduler.names("task")
        assert names == ["TaskRunStarted", "TaskRunCompleted"] * (len(names) // 2)

    adapter.play(story)


# ------------------------------------------------------------------------------------------------ Reentrancy Protection


def test_reentrancy_protection_of_many_calls_to_initialize_one_wins(adapter: Adapter) -> None:
    """S2-063, S2-017, C-16: the losers raise, and the winner is not disturbed."""

    async def story(world: World) -> None:
        tasks = [Task(world) for _ in range(10)]
        scheduler = world.scheduler()
        begun, losers = [], 0
        for task in tasks:
            try:
                begun.append(asyncio.ensure_future(scheduler.initialize([task.on()])))
            except adapter.error("SchedulerAlreadyActiveError"):
                losers += 1
        assert (len(begun), losers) == (1, 9)
        await begun[0]
        await world.advance(minutes=1)
        await scheduler.stop()
        assert [task.count for task in tasks] == [2] + [0] * 9
        assert scheduler.names().count("SchedulerInitializationStarted") == 1

    adapter.play(story)


def test_reentrancy_protection_initialize_from_within_a_callback_and_a_listener(quick: Adapter) -> None:
    """S2-017, S2-063."""

    async def story(world: World) -> None:
        errors: list[BaseException] = []
        mine: list[Scheduler] = []

        def again(*_: Told) -> None:
            try:
                mine[0].initialize([])
            except quick.error("SchedulerAlreadyActiveError") as error:
                errors.append(error)

        async def callback() -> None:
            again()

        def listener(told: Told) -> None:
            if told.name in ("SchedulerInitializationStarted", "SchedulerInitializationCompleted", "TaskRunStarted"):
                again()

        mine.append(world.scheduler(listener=listener))
        await mine[0].initialize([("a", "0 12 * * *", callback, timedelta(0))])
        await world.advance(minutes=1)
        await mine[0].stop()
        words = [quick.details(error)["currentState"] for error in errors]
        assert words == ["initializing", "running", "running", "running"]
        assert mine[0].names("a") == ["TaskRunStarted", "TaskRunCompleted"]

    quick.play(story)


def test_reentrancy_protection_stop_during_initialize_waits_for_it(adapter: Adapter) -> None:
    """S2-063: initialize completes, then the scheduler stops; nothing is left running."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = world.scheduler()
        begun = asyncio.ensure_future(scheduler.initialize([task.on(NEVER)]))
        stopping = asyncio.ensure_future(scheduler.stop())
        assert await outcome(stopping) is None
        assert begun.done()
        assert await outcome(begun) is None
        assert (scheduler.state, scheduler.polling) == ("Stopped", "Inactive")
        assert scheduler.names() == [
            "SchedulerInitializationStarted",
            *sorted(["PollingStarted", "SchedulerInitializationCompleted"], key=scheduler.names().index),
            "SchedulerStopRequested",
            "PollingStopRequested",
            "PollingStopped",
            "SchedulerStopped",
        ]

    adapter.play(story)


NEVER = "0 0 1 1 *"


def test_reentrancy_protection_stop_at_any_moment_of_initialize(adapter: Adapter) -> None:
    """S2-063: after any number of turns of the loop, on every store; each time it ends Stopped and silent."""

    async def story(world: World) -> None:
        for turns in range(25):
            task = Task(world)
            scheduler = world.scheduler()
            begun = asyncio.ensure_future(scheduler.initialize([task.on(NEVER)]))
            for _ in range(turns):
                await asyncio.sleep(0)
            await scheduler.stop()
            assert begun.done(), f"stop returned before initialize, after {turns} turns"
            await begun
            assert (scheduler.state, scheduler.polling) == ("Stopped", "Inactive")
            assert scheduler.heard[-1].name == "SchedulerStopped"

    adapter.play(story)


def test_reentrancy_protection_stop_during_an_initialize_that_fails(adapter: Adapter) -> None:
    """S2-063, S2-016: there is nothing to stop then, and stop does not raise another's error."""

    async def story(world: World) -> None:
        scheduler = world.scheduler()
        world.break_store(after=1)
        begun = asyncio.ensure_future(scheduler.initialize([Task(world).on()]))
        stopping = asyncio.ensure_future(scheduler.stop())
        assert await outcome(begun) is not None
        assert await outcome(stopping) is None
        world.mend_store()
        assert scheduler.state == "Uninitialized"
        assert scheduler.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]

    adapter.play(story)


def test_reentrancy_protection_many_stops_wait_for_one_end(quick: Adapter) -> None:
    """S2-063, S2-064: none of them returns before the running task has ended; the events are told once."""

    async def story(world: World) -> None:
        task = Task(world, gate=True)
        scheduler = await world.started(task.on())
        await world.advance(seconds=1)
        stops = [asyncio.ensure_future(scheduler.stop()) for _ in range(5)]
        await world.advance(minutes=1)
        assert not any(stop.done() for stop in stops)
        task.open()
        await asyncio.gather(*stops)
        assert scheduler.names().count("SchedulerStopRequested") == 1
        assert scheduler.names().count("SchedulerStopped") == 1

    quick.play(story)


def test_reentrancy_protection_initialize_while_stopping_is_refused(quick: Adapter) -> None:
    """S2-044, S2-063: tasks still run, so it is still running."""

    async def story(world: World) -> None:
        task = Task(world, gate=True)
        scheduler = await world.started(task.on())
        await world.advance(seconds=1)
        stopping = asyncio.ensure_future(scheduler.stop())
        await world.advance(seconds=1)
        with pytest.raises(quick.error("SchedulerAlreadyActiveError")) as caught:
            scheduler.initialize([])
        assert quick.details(caught.value)["currentState"] == "running"
        task.open()
        await stopping
        await scheduler.initialize([])
        await scheduler.stop()

    quick.play(story)


def test_reentrancy_protection_initialize_goes_on_without_a_waiter(adapter: Adapter) -> None:
    """S2-063: a caller that awaits it may be canceled; the scheduler is whole afterwards, one way or the other."""

    async def story(world: World) -> None:
        for turns in range(12):
            task = Task(world)
            scheduler = world.scheduler()

            async def waits(scheduler: Scheduler = scheduler, task: Task = task) -> None:
                await scheduler.initialize([task.on(NEVER)])

            waiting = asyncio.ensure_future(waits())
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await scheduler.stop()
            assert scheduler.state in ("Stopped", "Uninitialized")
            await scheduler.initialize([task.on(NEVER)])
            assert scheduler.state == "Running"
            await scheduler.stop()

    adapter.play(story)


# -------------------------------------------------------------------------------------------------- Resource Management


@pytest.mark.parametrize("fails", [False, True], ids=["succeeds", "fails"])
def test_resource_management_stop_waits_for_running_tasks(adapter: Adapter, fails: bool) -> None:
    """S2-064, C-17: however long they take; what they did is recorded when stop returns."""

    async def story(world: World) -> None:
        task = Task(world, takes=[1500], fails=[fails])
        scheduler = await world.started(task.on("0 12 * * *"))
        await world.advance(seconds=1)
        await scheduler.stop()
        assert task.runs[0].ended is not None
        assert world.now() - task.began[0] >= timedelta(minutes=25)
        found = (await world.task_states())["task"]
        assert found["state"] == ("AwaitingRetry" if fails else "AwaitingRun")
        recorded = found["lastFailureAt" if fails else "lastSuccessAt"]
        assert abs(recorded - task.runs[0].ended) < timedelta(seconds=1)

    adapter.play(story)


def test_resource_management_stop_does_not_wait_for_a_retry(adapter: Adapter) -> None:
    """S2-064: a task that waits does not run."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True])
        scheduler = await world.started(task.on("0 12 * * *", delay=timedelta(seconds=50)))
        await world.advance(seconds=1)
        called = world.now()
        await scheduler.stop()
        assert world.now() - called < timedelta(seconds=5)
        assert (await world.task_states())["task"]["state"] == "AwaitingRetry"

    adapter.play(story)


def test_resource_management_nothing_is_left_on_the_loop(adapter: Adapter) -> None:
    """S2-064: after stop there is no task of the scheduler on the loop, whether callbacks failed or not."""

    async def story(world: World) -> None:
        before = asyncio.all_tasks()
        good, bad = Task(world), Task(world, fails=[True] * 9)
        scheduler = await world.started(good.on(name="good"), bad.on(name="bad", delay=timedelta(seconds=3)))
        await world.advance(minutes=1)
        await scheduler.stop()
        left = [task for task in asyncio.all_tasks() - before if not task.done()]
        assert [task.get_name() for task in left if "everytick" in task.get_name()] == []
        count = good.count + bad.count
        await world.advance(minutes=5)
        assert good.count + bad.count == count

    adapter.play(story)


def test_resource_management_a_failure_affects_no_other_task(adapter: Adapter) -> None:
    """S2-064: ninety that fail beside ten that do not."""

    async def story(world: World) -> None:
        bad = [Task(world, fails=[True] * 99) for _ in range(90)]
        good = [Task(world, takes=[20, 20, 20]) for _ in range(10)]
        scheduler = world.scheduler()
        await scheduler.initialize(
            [task.on(name=f"bad {number}", delay=timedelta(seconds=10)) for number, task in enumerate(bad)]
            + [task.on(name=f"good {number}") for number, task in enumerate(good)]
        )
        await world.advance(minutes=2, seconds=30)
        await scheduler.stop()
        for number, task in enumerate(good):
            assert task.minutes == ["12:00", "12:01", "12:02"]
            assert scheduler.names(f"good {number}") == ["TaskRunStarted", "TaskRunCompleted"] * 3

    adapter.play(story)


def test_resource_management_stop_from_within_a_callback_is_refused_or_ends(quick: Adapter) -> None:
    """S2-064: a callback that awaits stop would wait for itself; one that only asks for it does not."""

    async def story(world: World) -> None:
        mine: list[Any] = []

        async def callback() -> None:
            mine.append(asyncio.ensure_future(mine[0].stop()))

        mine.append(world.scheduler())
        await mine[0].initialize([("a", EVERY_MINUTE, callback, timedelta(0))])
        await world.advance(minutes=2)
        await asyncio.gather(*mine[1:])
        assert mine[0].state == "Stopped"
        assert len(mine) == 2

    quick.play(story)
