"""Task Lifecycle: states, transitions, events and timestamps of a task."""

import asyncio
from datetime import datetime, timedelta

import pytest

from tests.conformance.declarative.adapter import Adapter, World
from tests.conformance.declarative.tasks import Task

TASK = {"AwaitingRun", "Running", "AwaitingRetry"}


async def state(world: World, task: str = "task") -> str:
    found = str((await world.task_states())[task]["state"])
    assert found in TASK
    return found


def close(found: datetime | None, expected: datetime) -> bool:
    """Say whether something happened when it should have: a few seconds after it at most.

    The story's clock may move on while a real server answers, from alarm to alarm: more than a
    second was seen. Minutes lie between this moment and any other that could be meant.
    """
    return found is not None and timedelta(0) <= found - expected < timedelta(seconds=5)


def test_task_state_model_every_state_in_its_turn(adapter: Adapter) -> None:
    """S2-018, S2-019, S2-020, S2-021, S2-022: run, fail, wait, run again, succeed."""

    async def story(world: World) -> None:
        task = Task(world, takes=[5, 5], fails=[True])
        scheduler = await world.started(task.on("1 * * * *", delay=timedelta(seconds=30)))
        assert await state(world) == "AwaitingRun"
        await world.advance(seconds=52)
        assert await state(world) == "Running"
        await world.advance(seconds=5)
        assert await state(world) == "AwaitingRetry"
        await world.advance(seconds=30)
        assert await state(world) == "Running"
        await world.advance(seconds=5)
        assert await state(world) == "AwaitingRun"
        await scheduler.stop()
        assert scheduler.names("task") == ["TaskRunStarted", "TaskRunFailed", "TaskRetryStarted", "TaskRunCompleted"]

    adapter.play(story)


def test_from_awaiting_run_to_running_records_the_attempt_when_it_begins(adapter: Adapter) -> None:
    """S2-019, S2-025."""

    async def story(world: World) -> None:
        task = Task(world, gate=True)
        scheduler = await world.started(task.on("1 * * * *"))
        before = (await world.task_states())["task"]
        assert [before[key] for key in ("lastAttemptAt", "lastSuccessAt", "lastFailureAt", "pendingRetryUntil")] == [
            None,
            None,
            None,
            None,
        ]
        await world.advance(minutes=1)
        running = (await world.task_states())["task"]
        assert close(running["lastAttemptAt"], world.now() - timedelta(seconds=10))
        assert running["lastSuccessAt"] is None
        assert scheduler.names("task") == ["TaskRunStarted"]
        task.open()
        await scheduler.stop()

    adapter.play(story)


def test_from_running_to_awaiting_run_records_the_success_and_clears_the_retry(adapter: Adapter) -> None:
    """S2-020, S2-025: the success is noted when the callback ends."""

    async def story(world: World) -> None:
        task = Task(world, takes=[7])
        begin = world.now()
        scheduler = await world.started(task.on("0 * * * *"))
        await world.advance(seconds=20)
        found = (await world.task_states())["task"]
        await scheduler.stop()
        assert close(found["lastAttemptAt"], begin)
        assert close(found["lastSuccessAt"], begin + timedelta(seconds=7))
        assert found["lastFailureAt"] is found["pendingRetryUntil"] is None
        assert scheduler.names("task") == ["TaskRunStarted", "TaskRunCompleted"]

    adapter.play(story)


@pytest.mark.parametrize(
    "delay", [timedelta(seconds=90), timedelta(minutes=5, milliseconds=250), timedelta(minutes=20)]
)
def test_from_running_to_awaiting_retry_waits_from_the_failure_on(adapter: Adapter, delay: timedelta) -> None:
    """S2-021, S2-025: pendingRetryUntil = now + retryDelay, where now is when the callback failed."""

    async def story(world: World) -> None:
        task = Task(world, takes=[7], fails=[True])
        begin = world.now()
        scheduler = await world.started(task.on("0 12 * * *", delay=delay))
        await world.advance(seconds=20)
        found = (await world.task_states())["task"]
        assert close(found["lastFailureAt"], begin + timedelta(seconds=7))
        assert found["pendingRetryUntil"] - found["lastFailureAt"] == delay
        assert found["lastSuccessAt"] is None
        await world.advance_to(begin + timedelta(seconds=5) + delay)
        assert task.count == 1
        await world.advance(seconds=4)
        await scheduler.stop()
        assert task.count == 2
        assert close(task.began[1], begin + timedelta(seconds=7) + delay)

    adapter.play(story)


def test_from_awaiting_retry_to_running_clears_the_retry_and_records_the_attempt(adapter: Adapter) -> None:
    """S2-022, S2-025."""

    async def story(world: World) -> None:
        task = Task(world, takes=[0, 10], fails=[True, False])
        begin = world.now()
        scheduler = await world.started(task.on("0 12 * * *", delay=timedelta(minutes=2)))
        await world.advance(minutes=2, seconds=5)
        found = (await world.task_states())["task"]
        assert found["state"] == "Running"
        assert found["pendingRetryUntil"] is None
        assert close(found["lastAttemptAt"], begin + timedelta(minutes=2))
        await world.advance(seconds=10)
        await scheduler.stop()
        after = (await world.task_states())["task"]
        assert close(after["lastSuccessAt"], begin + timedelta(minutes=2, seconds=10))
        assert close(after["lastFailureAt"], begin)

    adapter.play(story)


def test_from_awaiting_retry_to_running_again_and_again_at_the_same_delay(adapter: Adapter) -> None:
    """S2-024: no cap and no growth: twenty failures, twenty equal waits."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True] * 20)
        scheduler = await world.started(task.on("0 12 * * *", delay=timedelta(seconds=45)))
        await world.advance(minutes=20)
        await scheduler.stop()
        assert task.count == 21
        waits = [later - earlier for earlier, later in zip(task.began, task.began[1:], strict=False)]
        assert all(timedelta(seconds=45) <= wait < timedelta(seconds=46) for wait in waits)
        assert scheduler.names("task").count("TaskRetryStarted") == 20
        assert scheduler.names("task")[-1] == "TaskRunCompleted"

    adapter.play(story)


def test_from_awaiting_retry_to_running_a_delay_of_nothing_is_at_once(adapter: Adapter) -> None:
    """S2-003, S2-021, S2-022, S2-064: others go on beside a task that fails all the time."""

    async def story(world: World) -> None:
        task, other = Task(world, fails=[True] * 20), Task(world)
        scheduler = await world.started(task.on("0 12 * * *", delay=timedelta(0)), other.on(name="other"))
        await world.advance(minutes=2)
        await scheduler.stop()
        assert (task.count, other.count) == (21, 3)

    adapter.play(story)


def test_from_awaiting_retry_to_awaiting_run_a_new_occurrence_supersedes_the_retry(adapter: Adapter) -> None:
    """S2-023: `TaskRetryPreempted`, then `TaskRunStarted`; the old retry never comes."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True])
        scheduler = await world.started(task.on("0,2 * * * *", delay=timedelta(minutes=5)))
        await world.advance(minutes=2)
        found = (await world.task_states())["task"]
        assert (found["state"], found["pendingRetryUntil"]) == ("AwaitingRun", None)
        await world.advance(minutes=10)
        await scheduler.stop()
        assert scheduler.names("task") == [
            "TaskRunStarted",
            "TaskRunFailed",
            "TaskRetryPreempted",
            "TaskRunStarted",
            "TaskRunCompleted",
        ]
        assert task.minutes == ["12:00", "12:02"]

    adapter.play(story)


@pytest.mark.parametrize(
    "delay", [timedelta(seconds=50), timedelta(seconds=49.5), timedelta(seconds=50.2)], ids=["with", "before", "after"]
)
def test_from_awaiting_retry_to_awaiting_run_both_due_in_one_poll_are_one_run(
    adapter: Adapter, delay: timedelta
) -> None:
    """S2-019, S2-023, S2-065: a retry that is due with the next occurrence, or a moment away from it."""

    async def story(world: World) -> None:
        tasks = [Task(world, fails=[True]) for _ in range(20)]
        scheduler = world.scheduler()
        # They begin at 12:00:10.
        await scheduler.initialize([task.on("0,1 * * * *", f"{place}", delay) for place, task in enumerate(tasks)])
        await world.advance(minutes=2)
        await scheduler.stop()
        is_retried = delay < timedelta(seconds=50)
        second = ["TaskRetryStarted", "TaskRunCompleted"] if is_retried else ["TaskRetryPreempted"]
        for place, task in enumerate(tasks):
            assert task.count == (3 if is_retried else 2)
            assert scheduler.names(f"{place}") == [
                "TaskRunStarted",
                "TaskRunFailed",
                *second,
                "TaskRunStarted",
                "TaskRunCompleted",
            ]

    adapter.play(story)


def test_from_awaiting_retry_to_awaiting_run_when_the_new_one_fails_too(adapter: Adapter) -> None:
    """S2-021, S2-023: the wait begins anew with the new failure."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True] * 4)
        scheduler = await world.started(task.on("* * * * *", delay=timedelta(seconds=90)))
        await world.advance(minutes=3)
        found = (await world.task_states())["task"]
        assert found["pendingRetryUntil"] - found["lastFailureAt"] == timedelta(seconds=90)
        await world.advance(minutes=1)
        await scheduler.stop()
        assert task.minutes == ["12:00", "12:01", "12:02", "12:03", "12:04"]
        assert scheduler.names("task").count("TaskRetryPreempted") == 4
        assert "TaskRetryStarted" not in scheduler.names("task")

    adapter.play(story)


def test_awaiting_retry_survives_a_stop(adapter: Adapter) -> None:
    """S2-013, S2-022: before its time it is waited for, after its time it comes at once, once."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True, True])
        begin = world.now()
        first = await world.started(task.on("0 12 * * *", delay=timedelta(minutes=10)))
        await world.advance(minutes=1)
        await first.stop()
        await world.advance(minutes=1)
        second = await world.started(task.on("0 12 * * *", delay=timedelta(minutes=10)))
        assert await state(world) == "AwaitingRetry"
        await world.advance_to(begin + timedelta(minutes=11))
        assert task.minutes == ["12:00", "12:10"]
        await second.stop()
        await world.advance(hours=2)
        third = await world.started(task.on("0 12 * * *", delay=timedelta(minutes=10)))
        await world.advance(minutes=12)
        await third.stop()
        assert task.count == 3
        assert third.names("task") == ["TaskRetryStarted", "TaskRunCompleted"]

    adapter.play(story)


def test_awaiting_retry_and_a_missed_minute_are_one_run(adapter: Adapter) -> None:
    """S2-011, S2-023: whatever was due of it while nothing ran."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True])
        first = await world.started(task.on("0 * * * *", delay=timedelta(minutes=10)))
        await world.advance(minutes=1)
        await first.stop()
        await world.advance(hours=3)
        second = await world.started(task.on("0 * * * *", delay=timedelta(minutes=10)))
        await world.advance(minutes=12)
        await second.stop()
        assert task.count == 2
        assert second.names("task") == ["TaskRetryPreempted", "TaskRunStarted", "TaskRunCompleted"]

    adapter.play(story)


def test_running_a_minute_that_comes_meanwhile_is_run_afterwards_once(adapter: Adapter) -> None:
    """S2-007, S2-019 case B: three minutes passed while it ran; it owes one run."""

    async def story(world: World) -> None:
        task = Task(world, takes=[200])
        scheduler = await world.started(task.on("0-3 12 * * *"))
        await world.advance(minutes=10)
        await scheduler.stop()
        assert task.count == 2
        assert close(task.began[1], task.began[0] + timedelta(seconds=200))
        assert not task.beside_itself

    adapter.play(story)


def test_running_a_failure_with_a_minute_owed_is_superseded_at_once(adapter: Adapter) -> None:
    """S2-023: a new occurrence is due while the task begins to wait."""

    async def story(world: World) -> None:
        task = Task(world, takes=[80], fails=[True])
        scheduler = await world.started(task.on("0,1 12 * * *", delay=timedelta(minutes=10)))
        await world.advance(minutes=15)
        await scheduler.stop()
        assert task.count == 2
        assert scheduler.names("task") == [
            "TaskRunStarted",
            "TaskRunFailed",
            "TaskRetryPreempted",
            "TaskRunStarted",
            "TaskRunCompleted",
        ]

    adapter.play(story)


async def cancel_yourself() -> None:
    raise asyncio.CancelledError


async def leave() -> None:
    raise SystemExit(3)


async def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("end", [cancel_yourself, leave, interrupt])
def test_from_running_to_awaiting_retry_however_the_callback_fails(adapter: Adapter, end: object) -> None:
    """S2-021, S2-064: whatever a callback raises is its failure, and no other task's end."""

    async def story(world: World) -> None:
        other = Task(world)
        scheduler = world.scheduler()
        await scheduler.initialize([("bad", "0 12 * * *", end, timedelta(minutes=1)), other.on(name="other")])
        await world.advance(seconds=100)
        found = await world.task_states()
        await scheduler.stop()
        assert other.count == 2
        assert found["bad"]["state"] == "AwaitingRetry"
        assert scheduler.names("bad")[:2] == ["TaskRunStarted", "TaskRunFailed"]

    adapter.play(story)


def test_timestamp_management_is_kept_by_a_task_that_is_no_longer_registered(adapter: Adapter) -> None:
    """S2-025, S2-059: it is not scheduled, and its history is there when it comes back."""

    async def story(world: World) -> None:
        gone, stays = Task(world), Task(world)
        first = await world.started(gone.on(name="gone"), stays.on(name="stays"))
        await world.advance(minutes=1)
        await first.stop()
        before = (await world.task_states())["gone"]
        second = await world.started(stays.on(name="stays"))
        await world.advance(minutes=10)
        await second.stop()
        assert gone.count == 2
        after = (await world.task_states())["gone"]
        assert (after["lastAttemptAt"], after["lastSuccessAt"]) == (before["lastAttemptAt"], before["lastSuccessAt"])
        third = await world.started(gone.on(name="gone"), stays.on(name="stays"))
        await world.advance(seconds=1)
        assert gone.count == 3
        await third.stop()

    adapter.play(story)


def test_timestamp_management_a_failure_stays_the_last_however_many_runs_succeed_after_it(quick: Adapter) -> None:
    """S2-025: two hours of them."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True])
        scheduler = await world.started(task.on(delay=timedelta(seconds=30)))
        await world.advance(hours=2)
        await scheduler.stop()
        assert task.count == 122
        assert close((await world.task_states())["task"]["lastFailureAt"], task.began[0])

    quick.play(story)


def test_timestamp_management_of_a_run_that_outlasts_many_minutes(quick: Adapter) -> None:
    """S2-025, S2-007: its attempt is the last one, though two hours of minutes have come since."""

    async def story(world: World) -> None:
        task = Task(world, gate=True)
        scheduler = await world.started(task.on())
        await world.advance(hours=2)
        found = (await world.task_states())["task"]
        assert (found["state"], task.count) == ("Running", 1)
        assert close(found["lastAttemptAt"], task.began[0])
        scheduler.crash()
        # What was missed is one run, though the expression is another one now.
        again = Task(world)
        second = await world.started(again.on("* * * * 0-6"))
        await world.advance(seconds=20)
        await second.stop()
        assert again.count == 1

    quick.play(story)


def test_timestamp_management_a_retry_survives_a_life_without_its_task(adapter: Adapter) -> None:
    """S2-013, S2-025, S2-059: it waits, unscheduled, and comes when its task is registered again."""

    async def story(world: World) -> None:
        task, other = Task(world, fails=[True]), Task(world)
        retried = task.on("0 12 * * *", delay=timedelta(minutes=5))
        first = await world.started(retried, other.on(name="other"))
        await world.advance(seconds=5)
        await first.stop()
        pending = (await world.task_states())["task"]["pendingRetryUntil"]
        second = await world.started(other.on(name="other"))
        await world.advance(minutes=1)
        await second.stop()
        assert (await world.task_states())["task"]["pendingRetryUntil"] == pending
        third = await world.started(retried, other.on(name="other"))
        await world.advance(minutes=5)
        await third.stop()
        assert task.minutes == ["12:00", "12:05"]
        assert third.names("task") == ["TaskRetryStarted", "TaskRunCompleted"]

    adapter.play(story)


def test_no_make_up_execution_policy_for_a_task_that_comes_back(adapter: Adapter) -> None:
    """S2-011, S2-013, S2-019 case B: what came while it was not registered was missed, and is one run."""

    async def story(world: World) -> None:
        task, other = Task(world), Task(world)
        first = await world.started(task.on("0-5 12 * * *"), other.on(name="other"))
        await world.advance(seconds=5)
        await first.stop()
        second = await world.started(other.on(name="other"))
        await world.advance(minutes=8)
        await second.stop()
        third = await world.started(task.on("0-5 12 * * *"), other.on(name="other"))
        await world.advance(minutes=2)
        await third.stop()
        assert task.minutes == ["12:00", "12:08"]

    adapter.play(story)


def test_no_make_up_execution_policy_for_a_task_that_comes_back_within_the_minute_it_missed(adapter: Adapter) -> None:
    """S2-011, S2-019: its minute came before the life without it; whichever instance decides, it runs once."""

    async def story(world: World) -> None:
        task, other = Task(world), Task(world)
        first = await world.started(task.on(), other.on("0 0 1 1 *", name="other"))
        await world.advance(seconds=5)
        await first.stop()
        await world.advance(seconds=46)
        second = await world.started(other.on("0 0 1 1 *", name="other"))
        await world.advance(seconds=2)
        await second.stop()
        third = await world.started(task.on(), other.on("0 0 1 1 *", name="other"))
        await world.advance(seconds=20)
        await third.stop()
        assert task.minutes == ["12:00", "12:01"]

    adapter.play(story)
