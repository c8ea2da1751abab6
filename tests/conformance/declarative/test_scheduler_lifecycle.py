"""Scheduler Lifecycle and Polling Lifecycle: states, transitions, events."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest

from tests.conformance.declarative.adapter import Adapter, Scheduler, Told, World
from tests.conformance.declarative.tasks import Boom, Task

SCHEDULER = {"Uninitialized", "Initializing", "Running", "Stopping", "Stopped"}
POLLING = {"Inactive", "Active", "Stopping"}
LIFE = [
    "SchedulerInitializationStarted",
    "PollingStarted",
    "SchedulerInitializationCompleted",
    "SchedulerStopRequested",
    "PollingStopRequested",
    "PollingStopped",
    "SchedulerStopped",
]


def test_scheduler_state_model_a_whole_life(adapter: Adapter) -> None:
    """S2-014, S2-015, S2-026: each state in its turn, each event by its name."""

    async def story(world: World) -> None:
        task = Task(world, gate=True)
        scheduler = world.scheduler()
        assert states(scheduler) == ("Uninitialized", "Inactive")
        begun = scheduler.initialize([task.on()])
        assert scheduler.state == "Initializing"
        await begun
        assert states(scheduler) == ("Running", "Active")
        await world.advance(seconds=1)
        stopping = asyncio.ensure_future(scheduler.stop())
        await world.advance(minutes=5)
        assert states(scheduler) == ("Stopping", "Stopping")
        task.open()
        await stopping
        assert states(scheduler) == ("Stopped", "Inactive")
        assert sorted(scheduler.names()) == sorted(LIFE)
        assert before(scheduler, "SchedulerInitializationStarted", "PollingStarted", "SchedulerStopRequested")
        assert before(scheduler, *[name for name in LIFE if name.startswith("Scheduler")])
        assert before(scheduler, *[name for name in LIFE if "Stop" in name])

    adapter.play(story)


def test_scheduler_state_model_exactly_one_state_at_every_event(quick: Adapter) -> None:
    """S2-014, S2-026: what a listener sees when it looks is the state the event leads to."""

    async def story(world: World) -> None:
        seen: list[tuple[str, str, str]] = []
        mine: list[Scheduler] = []

        def listener(told: Told) -> None:
            seen.append((told.name, mine[0].state, mine[0].polling))

        mine.append(world.scheduler(listener=listener))
        task = Task(world)
        await mine[0].initialize([task.on()])
        await world.advance(minutes=1)
        await mine[0].stop()
        assert {state for _, state, _ in seen} <= SCHEDULER
        assert {polling for _, _, polling in seen} <= POLLING
        state_at = {name: state for name, state, _ in seen}
        assert state_at["SchedulerInitializationStarted"] == "Initializing"
        assert state_at["SchedulerInitializationCompleted"] == "Running"
        assert state_at["SchedulerStopRequested"] == "Stopping"
        assert state_at["SchedulerStopped"] == "Stopped"
        polling_at = {name: polling for name, _, polling in seen}
        assert polling_at["PollingStarted"] == "Active"
        assert polling_at["PollingStopRequested"] == "Stopping"
        assert polling_at["PollingStopped"] == "Inactive"

    quick.play(story)


def test_initializing_to_running_no_task_event_comes_before_polling_has_started(adapter: Adapter) -> None:
    """S2-015, S2-026: a task whose minute is now is found by a poll too."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = await world.started(task.on())
        await world.advance(seconds=1)
        await scheduler.stop()
        assert before(scheduler, "PollingStarted", "TaskRunStarted", "TaskRunCompleted", "PollingStopped")

    adapter.play(story)


def test_initializing_to_uninitialized_leaves_nothing_behind(adapter: Adapter) -> None:
    """S2-016: whatever request of the store fails first, the initialization fails, and the next one succeeds."""

    async def story(world: World) -> None:
        task = Task(world)
        failures = 0
        for answered in range(100):
            scheduler = world.scheduler()
            world.break_store(after=answered)
            try:
                await scheduler.initialize([task.on(name="a"), task.on(name="b")])
            except Exception:  # noqa: BLE001, any error will do here: which one is the error model's
                failures += 1
                world.mend_store()
                assert states(scheduler) == ("Uninitialized", "Inactive")
                assert scheduler.names()[-1] == "SchedulerInitializationFailed"
                assert "SchedulerInitializationCompleted" not in scheduler.names()
                continue
            world.mend_store()
            await world.advance(minutes=1)
            await scheduler.stop()
            break
        assert failures > 0
        assert sorted(task.minutes[-2:]) == ["12:01", "12:01"]
        assert set(await world.task_states()) == {"a", "b"}

    adapter.play(story)


def test_initializing_to_uninitialized_no_callback_runs_for_an_initialization_that_failed(adapter: Adapter) -> None:
    """S2-016, S2-055: nothing goes on in the background, and the next call finds a new task in its minute."""
    failed = [adapter.play(partial(one_request_refused, answered)) for answered in range(20)]

    assert failed[0]


async def one_request_refused(answered: int, world: World) -> bool:
    """Refuse one request of an initialization; return whether it failed."""
    task = Task(world)
    scheduler = world.scheduler()
    world.break_store(after=answered, times=1)
    try:
        await scheduler.initialize([task.on()])
    except Exception:  # noqa: BLE001, any error will do
        world.mend_store()
        assert states(scheduler) == ("Uninitialized", "Inactive")
        await world.advance(seconds=5)
        assert task.count == 0, f"after {answered} requests"
        await scheduler.initialize([task.on()])
        await world.advance(seconds=5)
        await scheduler.stop()
        assert task.count == 1, f"after {answered} requests"
        return True
    world.mend_store()
    await world.advance(seconds=20)
    await scheduler.stop()
    assert task.count == 1
    return False


def test_running_to_stopping_a_stop_without_a_life_is_nothing(quick: Adapter) -> None:
    """S2-014: before initialize and after stop it returns, and tells nothing."""

    async def story(world: World) -> None:
        scheduler = world.scheduler()
        await scheduler.stop()
        assert (scheduler.state, scheduler.heard) == ("Uninitialized", [])
        await scheduler.initialize([Task(world).on()])
        await scheduler.stop()
        told = list(scheduler.heard)
        await scheduler.stop()
        assert (scheduler.state, scheduler.heard) == ("Stopped", told)

    quick.play(story)


def test_stopped_a_new_life_of_the_same_object_is_a_restart(adapter: Adapter) -> None:
    """S2-014, S2-013: Stopped leads to Uninitialized, and from there to everything else."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = world.scheduler()
        for _ in range(3):
            await scheduler.initialize([task.on()])
            await world.advance(minutes=1)
            await scheduler.stop()
            assert states(scheduler) == ("Stopped", "Inactive")
        assert task.minutes == ["12:00", "12:01", "12:02", "12:03"]
        assert scheduler.names().count("SchedulerStopped") == 3

    adapter.play(story)


def test_stopping_to_stopped_nothing_starts_any_more(adapter: Adapter) -> None:
    """S2-014, S2-026: no poll, no retry, no run after `stop` was called, and none after it returned."""

    async def story(world: World) -> None:
        slow, quick, failing = Task(world, gate=True), Task(world), Task(world, fails=[True] * 99)
        scheduler = await world.started(
            slow.on(name="slow"), quick.on(name="quick"), failing.on(name="failing", delay=timedelta(seconds=20))
        )
        await world.advance(seconds=5)
        stopping = asyncio.ensure_future(scheduler.stop())
        await world.advance(minutes=5)
        slow.open()
        await stopping
        await world.advance(minutes=5)
        assert (slow.count, quick.count, failing.count) == (1, 1, 1)
        assert scheduler.heard[-1].name == "SchedulerStopped"

    adapter.play(story)


def test_polling_lifecycle_stops_though_a_task_fails_while_it_stops(quick: Adapter) -> None:
    """S2-026, S2-064."""

    async def story(world: World) -> None:
        task = Task(world, gate=True, fails=[True])
        scheduler = await world.started(task.on())
        await world.advance(seconds=5)
        stopping = asyncio.ensure_future(scheduler.stop())
        await world.advance(seconds=5)
        task.open()
        await stopping
        assert states(scheduler) == ("Stopped", "Inactive")
        assert before(scheduler, "PollingStopRequested", "TaskRunFailed", "PollingStopped", "SchedulerStopped")

    quick.play(story)


def test_events_a_listener_that_raises_harms_nothing(quick: Adapter) -> None:
    """S2-015: everything happens, and the next event is told."""

    async def story(world: World) -> None:
        def hostile(told: Told) -> None:
            raise Boom(told.name)

        task = Task(world)
        scheduler = world.scheduler(listener=hostile)
        await scheduler.initialize([task.on()])
        await world.advance(minutes=1)
        await scheduler.stop()
        assert task.count == 2
        assert sorted(scheduler.names()) == sorted(LIFE)

    quick.play(story)


def test_events_are_told_in_order_of_time_with_the_time_of_the_world(quick: Adapter) -> None:
    """S2-005, S2-015."""

    async def story(world: World) -> None:
        task = Task(world, takes=[7, 7])
        begin = world.now()
        scheduler = await world.started(task.on())
        await world.advance(minutes=2)
        await scheduler.stop()
        assert scheduler.heard[0].at.utcoffset() == timedelta(0)  # the host's: the store was not asked yet
        times = [told.at for told in scheduler.heard[1:]]
        assert times == sorted(times)
        assert begin <= times[0]
        assert times[-1] <= world.now()
        assert {moment.utcoffset() for moment in times} == {timedelta(0)}

    quick.play(story)


def test_states_are_only_read(quick: Adapter) -> None:
    """S2-001, S2-014: a scheduler cannot be put into a state from outside."""

    async def story(world: World) -> None:
        own = world.scheduler().subject
        with pytest.raises(AttributeError):
            own.state = "Running"  # type: ignore[attr-defined]

    quick.play(story)


def states(scheduler: Scheduler) -> tuple[str, str]:
    return scheduler.state, scheduler.polling


def before(scheduler: Scheduler, *names: str) -> bool:
    """Say whether these events were told in this order, whatever came between them."""
    told = iter([each.name for each in scheduler.heard])
    return all(name in told for name in names)
