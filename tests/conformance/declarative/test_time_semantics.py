"""Operational Model & Time Semantics: minutes, downtime, startup."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.conformance.declarative.adapter import Adapter, World
from tests.conformance.declarative.tasks import NEVER_NEAR, Task

SOON = timedelta(seconds=1)


# ---------------------------------------------------------------------------------------- Time Provider and Granularity


def test_time_provider_each_minute_boundary_is_evaluated_once(adapter: Adapter) -> None:
    """S2-005, S2-006: callbacks begin at second 0 of each matching minute, no minute is lost, none is run twice."""

    async def story(world: World) -> None:
        task, odd = Task(world), Task(world)
        scheduler = await world.started(task.on(name="all"), odd.on("1,3,5,7,9,30-59 * * * *", name="odd"))
        await world.advance(minutes=10)
        await scheduler.stop()
        assert task.minutes == [f"12:{minute:02}" for minute in range(11)]
        assert odd.minutes == ["12:01", "12:03", "12:05", "12:07", "12:09"]
        for began in task.began[1:]:
            assert began - began.replace(second=0, microsecond=0) < SOON

    adapter.play(story)


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "<+0545>-5:45", "NPT-5:45"])
def test_time_provider_the_zone_is_the_hosts(quick: Adapter, zone: str) -> None:
    """S2-005: 14:30 in Kathmandu is a quarter to nine in the morning in UTC, by its name and by its POSIX rule."""

    async def story(world: World) -> None:
        task, elsewhere = Task(world), Task(world)
        scheduler = await world.started(task.on("30 14 * * *", name="here"), elsewhere.on("45 8 * * *", name="utc"))
        await world.advance(minutes=20)
        await scheduler.stop()
        assert (task.minutes, elsewhere.minutes) == (["08:45"], [])

    quick.play(story, begin=datetime(2026, 3, 3, 8, 40, 10, tzinfo=UTC), zone=zone)


# ------------------------------------------------------------------------------------------------------ Timely Behavior


def test_timely_behavior_due_tasks_run_side_by_side(adapter: Adapter) -> None:
    """S2-007: more of them than any small number of slots would allow, all in the air at once."""

    async def story(world: World) -> None:
        tasks = [Task(world, gate=True) for _ in range(120)]
        scheduler = world.scheduler()
        await scheduler.initialize([task.on(name=f"task {number}") for number, task in enumerate(tasks)])
        await world.advance(seconds=1)
        assert [task.count for task in tasks] == [1] * 120
        for task in tasks:
            task.open()
        await scheduler.stop()

    adapter.play(story)


# ------------------------------------------------------------------------------------------ No Make-Up Execution Policy


@pytest.mark.parametrize("down", [timedelta(minutes=1), timedelta(hours=1), timedelta(days=40)], ids=str)
def test_no_make_up_execution_policy_at_most_one_run_after_any_downtime(adapter: Adapter, down: timedelta) -> None:
    """S2-011, S2-019 case B: one run at once, and then the schedule goes on."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on())
        await world.advance(minutes=2)
        await first.stop()
        await world.pass_by(down.total_seconds())
        before, back = task.count, world.now()
        second = await world.started(task.on())
        await world.advance(seconds=5)
        assert task.count == before + 1
        assert task.began[-1] - back < SOON
        await world.advance(minutes=3)
        await second.stop()
        assert task.count == before + 4

    adapter.play(story)


def test_no_make_up_execution_policy_the_specifications_example(adapter: Adapter) -> None:
    """S2-011: `15,30,45,0 * * * *` misses four executions in an hour and runs once, not four times."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("15,30,45,0 * * * *"))
        await first.stop()
        assert task.minutes == ["12:00"]
        await world.advance(hours=1, minutes=5)
        second = await world.started(task.on("15,30,45,0 * * * *"))
        await world.advance(minutes=9)
        assert task.minutes == ["12:00", "13:05"]
        await world.advance(minutes=2)
        await second.stop()
        assert task.minutes == ["12:00", "13:05", "13:15"]

    adapter.play(story)


def test_no_make_up_execution_policy_nothing_was_missed_nothing_is_run(adapter: Adapter) -> None:
    """S2-011, S2-019: a downtime in which no minute matched leads to no run."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("0 * * * *"))
        await first.stop()
        await world.advance(minutes=50)
        second = await world.started(task.on("0 * * * *"))
        await world.advance(minutes=5)
        assert task.minutes == ["12:00"]
        await world.advance(minutes=6)
        await second.stop()
        assert task.minutes == ["12:00", "13:00"]

    adapter.play(story)


def test_no_make_up_execution_policy_a_task_that_never_ran_has_missed_nothing(adapter: Adapter) -> None:
    """S2-019 case B: "except if the task has never run before"."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("30 12,13 * * *"))
        await world.advance(minutes=2)
        await first.stop()
        await world.advance(hours=1, minutes=20)
        second = await world.started(task.on("30 12,13 * * *"))
        await world.advance(minutes=5)
        assert task.count == 0
        await world.advance(minutes=4)
        await second.stop()
        assert task.minutes == ["13:30"]

    adapter.play(story)


def test_no_make_up_execution_policy_a_task_that_never_ran_still_runs_in_its_own_minute(adapter: Adapter) -> None:
    """S2-019 case A: back within the matching minute, though its boundary passed while nothing ran."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("30 12 * * *"))
        await world.advance(minutes=10)
        await first.stop()
        await world.advance(minutes=20)
        second = await world.started(task.on("30 12 * * *"))
        await world.advance(minutes=5)
        await second.stop()
        assert task.minutes == ["12:30"]

    adapter.play(story)


def test_no_make_up_execution_policy_two_downtimes_are_two_make_ups_at_most(adapter: Adapter) -> None:
    """S2-011, S2-066: a restart in the minute of the make-up adds nothing to it."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("0 * * * *"))
        await first.stop()
        await world.advance(hours=3, minutes=5)
        for _ in range(3):
            again = await world.started(task.on("0 * * * *"))
            await world.advance(seconds=5)
            await again.stop()
        assert task.minutes == ["12:00", "15:05"]

    adapter.play(story)


# ---------------------------------------------------------------------------------------------------- Startup Semantics


@pytest.mark.parametrize("second", [0, 1, 59])
def test_first_startup_runs_at_once_if_the_minute_matches(adapter: Adapter, second: int) -> None:
    """S2-012: the whole minute counts, not its first second."""

    async def story(world: World) -> None:
        now, later, never = Task(world), Task(world), Task(world)
        scheduler = await world.started(
            now.on("0 12 3 3 *", name="now"), later.on("1 12 * * *", name="later"), never.on(NEVER_NEAR, name="never")
        )
        await world.pass_by(0.5)
        assert (now.count, later.count, never.count) == (1, 0, 0)
        await world.advance(minutes=2)
        await scheduler.stop()
        assert (now.minutes, later.minutes, never.minutes) == (["12:00"], ["12:01"], [])

    adapter.play(story, begin=datetime(2026, 3, 3, 12, 0, second, tzinfo=UTC))


def test_first_startup_never_runs_for_a_minute_that_has_passed(quick: Adapter) -> None:
    """S2-012: if and only if."""

    async def story(world: World) -> None:
        passed = Task(world)
        scheduler = await world.started(passed.on("59 11 * * *"))
        await world.advance(minutes=5)
        await scheduler.stop()
        assert passed.count == 0

    quick.play(story)


def test_first_startup_is_judged_task_by_task(adapter: Adapter) -> None:
    """S2-012, S2-058: a task that is new beside known ones is new."""

    async def story(world: World) -> None:
        old, new, late = Task(world), Task(world), Task(world)
        first = await world.started(old.on("0 12 * * *", name="old"))
        await first.stop()
        await world.advance(minutes=30)
        second = await world.started(
            old.on("0 12 * * *", name="old"), new.on("30 12 * * *", name="new"), late.on("15 12 * * *", name="late")
        )
        await world.advance(minutes=1)
        await second.stop()
        assert (old.minutes, new.minutes, late.minutes) == (["12:00"], ["12:30"], [])

    adapter.play(story)


def test_subsequent_restarts_go_on_from_the_last_attempt(adapter: Adapter) -> None:
    """S2-013, S2-019: not run again in the minute in which it ran, and on with the next."""

    async def story(world: World) -> None:
        task = Task(world)
        for _ in range(4):
            scheduler = await world.started(task.on())
            await world.advance(seconds=10)
            await scheduler.stop()
        assert task.minutes == ["12:00"]
        scheduler = await world.started(task.on())
        await world.advance(minutes=1)
        await scheduler.stop()
        assert task.minutes == ["12:00", "12:01"]

    adapter.play(story)


def test_subsequent_restarts_keep_every_timestamp(adapter: Adapter) -> None:
    """S2-013, S2-025."""

    async def story(world: World) -> None:
        task = Task(world, fails=[False, True])
        first = await world.started(task.on(delay=timedelta(hours=2)))
        await world.advance(minutes=1)
        await first.stop()
        before = (await world.task_states())["task"]
        quiet = await world.started(task.on(delay=timedelta(hours=2)))
        after = (await world.task_states())["task"]
        await quiet.stop()
        for key in ("lastAttemptAt", "lastSuccessAt", "lastFailureAt", "pendingRetryUntil"):
            assert after[key] == before[key] is not None

    adapter.play(story)
