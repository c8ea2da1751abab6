"""Two living instances of one scheduler: a rolling deploy, two services of one name, and what follows a death."""

import asyncio
from datetime import timedelta

import pytest

from tests.conformance.declarative.adapter import Adapter, Scheduler, World
from tests.conformance.declarative.tasks import EVERY_MINUTE, Task

NOTICED = 15
"""Seconds within which an instance has noticed that another began, stopped or died."""


async def gone(scheduler: Scheduler, how: str) -> None:
    """Let the instance stop, or die."""
    if how == "stops":
        await scheduler.stop()
    else:
        scheduler.crash()


def test_two_instances_what_a_living_one_runs_is_no_orphan(adapter: Adapter) -> None:
    """S2-007, S2-059, C-43: its callback goes on and is recorded; the task's next run waits for its end, no other's."""

    async def story(world: World) -> None:
        slow, quick = Task(world, gate=True), Task(world)
        older = await world.started(slow.on(name="slow"), quick.on(name="quick"))
        await world.advance(seconds=20)
        again, other = Task(world), Task(world)
        began = world.now()
        newer = await world.started(again.on(name="slow"), other.on(name="quick"))
        assert world.now() - began < timedelta(seconds=5), "initialize returns"
        await world.advance(minutes=2)
        assert (slow.count, again.count) == (1, 0)
        assert (quick.count, other.minutes) == (1, ["12:01", "12:02"])
        slow.open()
        await world.advance(seconds=NOTICED)
        assert older.names("slow") == ["TaskRunStarted", "TaskRunCompleted"]
        assert (slow.count, again.minutes) == (1, ["12:02"])
        assert not slow.runs[0].failed
        await older.stop()
        await newer.stop()
        assert newer.names("slow") == ["TaskRunStarted", "TaskRunCompleted"]

    adapter.play(story)


def test_two_instances_stop_waits_for_callbacks_though_a_newer_one_initializes(adapter: Adapter) -> None:
    """S2-064, C-43: a rolling deploy; nothing is cancelled, and the end is told before stop returns."""

    async def story(world: World) -> None:
        task, next_task = Task(world, gate=True), Task(world)
        older = await world.started(task.on())
        await world.advance(seconds=1)
        stopping = asyncio.ensure_future(older.stop())
        await world.advance(seconds=5)
        newer = await world.started(next_task.on())
        await world.advance(minutes=1)
        assert not stopping.done()
        assert (task.runs[0].ended, next_task.count) == (None, 0)
        task.open()
        await stopping
        await world.advance(seconds=NOTICED)
        assert older.names("task") == ["TaskRunStarted", "TaskRunCompleted"]
        assert next_task.minutes == ["12:01"]
        await newer.stop()

    adapter.play(story)


@pytest.mark.parametrize("missed", [0, 3], ids=["nothing came", "minutes came"])
def test_two_instances_a_death_while_a_newer_one_runs_is_one_run(adapter: Adapter, missed: int) -> None:
    """S2-011, S2-059, C-43: the task waited for the callback; when its instance dies, one run stands for all of it."""

    async def story(world: World) -> None:
        task, next_task = Task(world, gate=True), Task(world)
        cron = "0,1,2,3 12 * * *"
        older = await world.started(task.on(cron))
        await world.advance(seconds=5)
        newer = await world.started(next_task.on(cron))
        await world.advance(seconds=20 + missed * 60)
        assert next_task.count == 0
        died = world.now()
        older.crash()
        await world.advance(seconds=NOTICED)
        assert [began - died <= timedelta(seconds=NOTICED) for began in next_task.began] == [True]
        await world.advance(minutes=5)
        assert next_task.count == 1 + (3 - missed)
        await newer.stop()

    adapter.play(story)


@pytest.mark.parametrize("how", ["stops", "dies"])
def test_two_instances_the_older_goes_on_with_what_it_registered(adapter: Adapter, how: str) -> None:
    """C-43: a newer instance with other tasks takes them out of the schedule only as long as it is there."""

    async def story(world: World) -> None:
        x, y = Task(world), Task(world)
        older = await world.started(x.on(name="x"))
        await world.advance(seconds=20)
        newer = await world.started(y.on(name="y"))
        await world.advance(minutes=4)
        assert y.minutes == ["12:00", "12:01", "12:02", "12:03", "12:04"]
        await gone(newer, how)
        count = x.count
        await world.advance(seconds=NOTICED)
        await world.advance(minutes=3)
        assert x.minutes[-3:] == ["12:05", "12:06", "12:07"]
        assert x.count <= count + 4, "and one run at most for what it missed"
        assert y.minutes[-1] == "12:04"
        await older.stop()

    adapter.play(story)


@pytest.mark.parametrize("how", ["stops", "dies"])
def test_two_instances_a_deploy_that_is_rolled_back_leaves_the_older_words(adapter: Adapter, how: str) -> None:
    """C-43: a task it dropped and one whose expression it changed are again what the older instance registered."""

    async def story(world: World) -> None:
        kept, dropped, changed = Task(world), Task(world), Task(world)
        older = await world.started(
            kept.on(name="kept"), dropped.on(name="dropped"), changed.on("0,5,10 12 * * *", name="changed")
        )
        await world.advance(seconds=20)
        newer = await world.started(Task(world).on(name="kept"), Task(world).on("0 0 1 1 *", name="changed"))
        await world.advance(minutes=1)
        await gone(newer, how)
        await world.advance(seconds=NOTICED)
        before = dropped.count, kept.count
        await world.advance(minutes=10)
        assert (dropped.count - before[0], kept.count - before[1]) == (10, 10)
        assert changed.minutes == ["12:00", "12:05", "12:10"]
        document = await world.document("changed")
        assert document["cronExpression"] == "0,5,10 12 * * *"
        await older.stop()

    adapter.play(story)


def test_two_instances_one_that_came_and_went_in_a_moment_leaves_the_older_words(adapter: Adapter) -> None:
    """C-43: also if the older instance never saw it live."""

    async def story(world: World) -> None:
        x, y = Task(world), Task(world)
        older = await world.started(x.on(name="x"))
        await world.advance(seconds=20)
        newer = await world.started(y.on(name="y"))
        await newer.stop()
        await world.advance(seconds=NOTICED)
        await world.advance(minutes=3)
        assert x.minutes == ["12:00", "12:01", "12:02", "12:03"]
        await older.stop()

    adapter.play(story)


def test_two_instances_of_three_the_newest_that_lives_has_the_say(adapter: Adapter) -> None:
    """C-43."""

    async def story(world: World) -> None:
        tasks = [Task(world) for _ in range(3)]
        instances = []
        for task in tasks:
            instances.append(await world.started(task.on("1,2,3,4,5,6,7 12 * * *")))
            await world.advance(seconds=1)
        await world.advance(minutes=2)
        instances[2].crash()
        await world.advance(minutes=2)
        await instances[1].stop()
        await world.advance(minutes=2)
        await instances[0].stop()
        assert [task.count for task in tasks] == [2, 2, 2]

    adapter.play(story)


def test_two_instances_one_without_tasks_has_the_say_too(adapter: Adapter) -> None:
    """C-43: an empty list is a list; it is no silent instance either."""

    async def story(world: World) -> None:
        x = Task(world)
        older = await world.started(x.on(name="x"))
        await world.advance(seconds=20)
        newer = await world.started()
        await world.advance(minutes=3)
        assert x.minutes == ["12:00"]
        await newer.stop()
        await world.advance(minutes=2)
        assert x.minutes[-2:] == ["12:04", "12:05"]
        await older.stop()

    adapter.play(story)


def test_running_callbacks_begin_in_state_running_only(adapter: Adapter) -> None:
    """S2-026, C-43: with polling Active, after everything that is told of the initialization."""

    async def story(world: World) -> None:
        seen: set[tuple[str, str, str]] = set()
        scheduler = world.scheduler()

        async def callback() -> None:
            seen.add((scheduler.state, scheduler.polling, scheduler.names()[-1]))

        await scheduler.initialize([(f"{number}", EVERY_MINUTE, callback, timedelta(0)) for number in range(40)])
        await world.advance(seconds=5)
        assert seen == {("Running", "Active", "SchedulerInitializationCompleted")}
        await scheduler.stop()

    adapter.play(story)
