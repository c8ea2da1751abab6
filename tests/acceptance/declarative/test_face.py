"""The declarative scheduler as a face of the core: on every store, with real callbacks."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from everytick import Everytick, every
from everytick.declarative import (
    DeclarativeEvent,
    DeclarativeScheduler,
    RegistrationsNotArrayError,
    TaskMissingFieldError,
    UnexpectedError,
    presence,
    state_document,
    task_states,
    write_state_document,
)
from everytick.errors import NotFound, StoreUnavailable
from everytick.stores.base import Claim, HistoryFilter
from everytick.testing import ManualClock, MemoryStore
from tests.acceptance.declarative.world import PATIENCE, Counting, World


async def test_a_task_runs_in_its_minute_and_is_a_job_of_the_core(world: World) -> None:
    """S2-006, S2-012, S2-019, S2-020: named after its scheduler and itself, with its history among all others."""
    callback = Counting()
    scheduler = world.scheduler()
    await scheduler.initialize([("mail", "1 12 * * *", callback, "5m")])
    assert (scheduler.state, scheduler.polling, callback.calls) == ("Running", "Active", 0)

    minute = world.at("12:01:00")
    await world.until("TaskRunCompleted mail")
    await scheduler.stop()

    assert callback.calls == 1
    assert world.names == [
        "SchedulerInitializationStarted", "PollingStarted", "SchedulerInitializationCompleted",
        "TaskRunStarted mail", "TaskRunCompleted mail",
        "SchedulerStopRequested", "PollingStopRequested", "PollingStopped", "SchedulerStopped",
    ]  # fmt: skip
    [job] = await world.store.list()
    assert (job.job.name, job.job.owner) == ("declarative:default:mail", "declarative:default")
    [occurrence] = (await world.store.history(HistoryFilter())).occurrences
    assert (occurrence.scheduled_for, occurrence.status) == (minute, "completed")


async def test_the_state_of_a_task_is_told_under_the_names_of_the_specification(world: World) -> None:
    """S2-021, S2-022, S2-025."""
    scheduler = world.scheduler()
    await scheduler.initialize(
        [("a", "1 12 * * *", Counting(failures=1), timedelta(minutes=5)), ("b", "0 0 1 1 *", Counting(), "0s")]
    )
    minute = world.at("12:01:00")
    await world.until("TaskRunFailed a")
    states = await task_states(world.store)

    assert set(states) == {"a", "b"}
    assert {key: value for key, value in states["b"].items() if value is not None} == {
        "name": "b", "cronExpression": "0 0 1 1 *", "retryDelayMs": 0,
        "schedulerIdentifier": scheduler.identifier, "state": "AwaitingRun",
    }  # fmt: skip
    assert (states["a"].state, states["a"].lastSuccessAt) == ("AwaitingRetry", None)
    assert minute <= states["a"].lastAttemptAt <= states["a"].lastFailureAt
    assert states["a"].pendingRetryUntil - states["a"].lastFailureAt == timedelta(minutes=5)
    with pytest.raises(AttributeError):
        _ = states["a"].lastWord

    world.at("12:06:30")
    await world.until("TaskRunCompleted a")
    [state] = (await task_states(world.store, tasks=["a"])).values()
    assert (state.state, state.pendingRetryUntil, state.lastFailureAt) == (
        "AwaitingRun",
        None,
        states["a"].lastFailureAt,
    )
    assert state.lastSuccessAt >= state.lastAttemptAt > states["a"].lastAttemptAt


async def test_no_other_node_of_the_store_claims_a_task(world: World) -> None:
    """Callbacks are closures of this process: an application beside it plans them, and leaves them alone."""
    app = Everytick(world.store, name="beside", poll="20ms")
    ticks = asyncio.Event()

    @app.job(every("1m"), overlap="allow")
    async def tick() -> None:
        ticks.set()

    callback, scheduler = Counting(), world.scheduler()
    async with app:
        await scheduler.initialize([("a", "* * * * *", callback, "5m")])
        for runs, minute in enumerate(("12:01:00", "12:02:00"), start=1):
            # Either node may plan either job: neither must miss a minute because the clock moves on too soon.
            await world.until("TaskRunCompleted a", runs)
            ticks.clear()
            world.at(minute)
            await ticks.wait()
        await world.until("TaskRunCompleted a", 3)
        await scheduler.stop()
    found = (await world.store.history(HistoryFilter())).occurrences
    jobs = {record.job.id: record.job.name for record in await world.store.list()}
    assert {jobs[each.job_id] for each in found} == {"tick", "declarative:default:a"}
    assert "cannot run here" not in " ".join(str(each.error) for each in found)


async def test_one_run_makes_up_for_all_that_another_node_planned_meanwhile(world: World) -> None:
    """S2-011: a task that ran before runs once, however many minutes others have put in line for it."""
    callback = Counting()
    first = world.scheduler()
    await first.initialize([("a", "* * * * *", callback, "5m")])
    await world.until("TaskRunCompleted a")
    await first.stop()
    ticks = asyncio.Event()
    app = Everytick(world.store, name="beside", poll="20ms")

    @app.job(every("1m"), overlap="allow")
    async def tick() -> None:
        ticks.set()

    async with app:
        for minute in range(1, 5):
            ticks.clear()
            world.at(f"12:0{minute}:00")
            await ticks.wait()
    second = world.scheduler()
    await second.initialize([("a", "* * * * *", callback, "5m")])
    await world.until("TaskRunCompleted a", 2)
    world.at("12:05:00")
    await world.until("TaskRunCompleted a", 3)
    await second.stop()

    assert callback.calls == 3


async def test_a_newer_instance_restarts_what_a_dead_one_ran(world: World) -> None:
    """S2-058, S2-059, S2-061: restarted at once; what the dead one says of its own attempt is not recorded."""
    callback = Counting(waits=True)
    first, second = world.scheduler(), world.scheduler()
    await first.initialize([("a", "0 12 * * *", callback, "5m")])
    await world.until("TaskRunStarted a")
    assert first.identifier is not None
    assert first.node is not None
    await first.node._loops.end("planner", "bell", "claims")
    presence.die(first.identifier)

    await second.initialize([("a", "0 12 * * *", callback, "5m")])
    await world.until("TaskRunStarted a", 2)
    callback.go_on.set()
    await world.until("TaskRunCompleted a")
    await first.stop()
    await second.stop()

    assert first.identifier != second.identifier
    assert (callback.calls, world.names.count("TaskRunCompleted a")) == (2, 1)
    [occurrence] = (await world.store.history(HistoryFilter())).occurrences
    attempts = (await world.store.whole(occurrence.id)).attempts
    assert [str(attempt.status) for _, attempt in attempts] == ["lost", "success"]


async def test_of_two_living_instances_the_older_rests_until_the_newer_is_gone(world: World) -> None:
    """The issue: tasks are claimed by the instance that registered them; the older one stands by."""
    older, newer = Counting(), Counting()
    first, second = world.scheduler(), world.scheduler()
    await first.initialize([("a", "1,2,3,4 12 * * *", older, "5m")])
    assert first._initialization is not None
    assert first.identifier is not None
    succession = first._succession(first._initialization, first.identifier)
    world.at("12:00:40")
    await second.initialize([("a", "1,2,3,4 12 * * *", newer, "5m")])
    await succession.look()
    for run, minute in enumerate(("12:01:00", "12:02:00"), start=1):
        world.at(minute)
        await world.until("TaskRunCompleted a", run)
    assert (older.calls, newer.calls) == (0, 2)

    await second.stop()
    world.at("12:03:00")
    await succession.look()
    await world.until("TaskRunCompleted a", 3)
    await first.stop()
    assert (older.calls, newer.calls) == (1, 2)


async def test_two_services_of_one_name_are_warned_of_each_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """L3, C-43: each log names the other instance, and what to do; a deploy of the same tasks warns once, here."""
    first, second, third = world.scheduler(), world.scheduler(), world.scheduler()
    await first.initialize([("x", "0 0 1 1 *", Counting(), "5m"), ("z", "0 0 1 1 *", Counting(), "5m")])
    world.at("12:00:40")
    await second.initialize([("y", "0 0 1 1 *", Counting(), "5m")])
    [warned] = [each.message for each in caplog.records if "is also run by" in each.message]
    assert f"scheduler 'default' is also run by {first.identifier}, which lives" in warned
    assert "('x', 'z')" in warned
    assert "name=…" in warned
    caplog.clear()

    assert first._initialization is not None
    assert first.identifier is not None
    await first._succession(first._initialization, first.identifier).look()
    [noticed] = [each.message for each in caplog.records if "a newer instance runs" in each.message]
    assert str(second.identifier) in noticed
    caplog.clear()

    world.at("12:00:50")
    await third.initialize([("y", "0 0 1 1 *", Counting(), "5m")])
    assert not [each for each in caplog.records if "is also run by" in each.message]
    for each in (first, second, third):
        await each.stop()


async def test_what_was_in_flight_and_whose_minute_came_meanwhile_runs_once(world: World) -> None:
    """S2-011, S2-059: the minute takes the place of the restart."""
    callback = Counting(waits=True)
    first, second = world.scheduler(), world.scheduler()
    await first.initialize([("a", "0,30 12 * * *", callback, "5m")])
    await world.until("TaskRunStarted a")
    assert first.node is not None
    assert first.identifier is not None
    # It is dead: its callback does not end, and it neither plans nor claims any more.
    await first.node._loops.end("planner", "bell", "claims")
    presence.die(first.identifier)
    world.at("12:40:00")

    await second.initialize([("a", "0,30 12 * * *", callback, "5m")])
    await world.until("TaskRunStarted a", 2)
    callback.go_on.set()
    await world.until("TaskRunCompleted a")
    await first.stop()
    await second.stop()
    found = {
        str(each.scheduled_for.time()): str(each.status)
        for each in (await world.store.history(HistoryFilter())).occurrences
    }
    assert (callback.calls, found) == (2, {"12:00:00": "canceled", "12:30:00": "completed"})


async def test_what_is_not_registered_is_kept_and_comes_back_where_it_was(world: World) -> None:
    """S2-013, S2-058: neither run nor forgotten."""
    a, b = Counting(), Counting()
    first = world.scheduler()
    await first.initialize([("a", "* * * * *", a, "5m"), ("b", "* * * * *", b, "5m")])
    await world.until("TaskRunCompleted b")
    await first.stop()
    before = (await task_states(world.store))["b"]

    second = world.scheduler()
    await second.initialize([("a", "* * * * *", a, "5m")])
    world.at("12:05:00")
    await world.until("TaskRunCompleted a", 2)
    await second.stop()
    assert b.calls == 1
    assert (await task_states(world.store))["b"] == before

    third = world.scheduler()
    await third.initialize([("b", "* * * * *", b, "5m")])
    world.at("12:06:00")
    await world.until("TaskRunCompleted b", 2)
    await third.stop()
    assert (await task_states(world.store))["b"].schedulerIdentifier == first.identifier


async def test_an_overridden_task_goes_on_under_its_new_words(world: World) -> None:
    """S2-059, S2-060: with its history, and at once where its new expression matches a minute it has not run in."""
    callback = Counting()
    first = world.scheduler()
    await first.initialize([("a", "0 12 * * *", callback, "5m")])
    await world.until("TaskRunCompleted a")
    await first.stop()
    ran_at = (await task_states(world.store))["a"].lastSuccessAt

    world.at("12:20:10")
    second = world.scheduler()
    await second.initialize([("a", "30 12 * * *", callback, "1m")])
    state = (await task_states(world.store))["a"]
    assert (state.cronExpression, state.retryDelayMs, state.lastSuccessAt) == ("30 12 * * *", 60_000, ran_at)
    assert state.schedulerIdentifier == second.identifier
    await second.stop()
    assert callback.calls == 1

    third = world.scheduler()
    await third.initialize([("a", "20 12 * * *", callback, "1m")])
    await world.until("TaskRunCompleted a", 2)
    await third.stop()


class Refusing:
    """A store that does not answer one verb, from the first time it is asked."""

    def __init__(self, store: Any, verb: str) -> None:
        self._store, self._verb = store, verb

    def __getattr__(self, verb: str) -> Any:
        if verb == self._verb:
            return self._refuse
        return getattr(self._store, verb)

    async def _refuse(self, *_: object, **__: object) -> None:
        raise StoreUnavailable("the store", "somebody pulled the plug")


@pytest.mark.parametrize("verb", ["list", "apply", "request", "beat"])
async def test_an_initialization_that_fails_leaves_what_was_there(world: World, verb: str) -> None:
    """S2-016, S2-056, S2-062, S2-067: wherever it fails, and the next one finds its way."""
    callback = Counting()
    first = world.scheduler()
    await first.initialize([("kept", "0 12 * * *", callback, "5m"), ("gone", "0 12 * * *", callback, "5m")])
    await world.until("TaskRunCompleted gone")
    await world.until("TaskRunCompleted kept")
    await first.stop()
    before = {name: dict(state) for name, state in (await task_states(world.store)).items()}
    world.at("12:01:10")
    registrations = [("kept", "1 12 * * *", callback, "1m"), ("new", "0 0 1 1 *", callback, "1m")]

    failing = world.scheduler(Refusing(world.store, verb))
    with pytest.raises(UnexpectedError) as caught:
        await failing.initialize(registrations)
    assert isinstance(caught.value.details["cause"], StoreUnavailable)
    assert caught.value.__cause__ is caught.value.details["cause"]
    assert (failing.state, failing.polling) == ("Uninitialized", "Inactive")
    assert world.names[-1] == "SchedulerInitializationFailed"
    assert {name: dict(state) for name, state in (await task_states(world.store)).items()} == before

    again = world.scheduler()
    await again.initialize(registrations)
    await world.until("TaskRunCompleted kept", 2)
    assert set(await task_states(world.store)) == {"kept", "gone", "new"}
    await again.stop()


async def test_a_document_that_cannot_be_read_stops_the_initialization_and_nothing_else(world: World) -> None:
    """S2-050, S2-051, S2-054: it can be repaired."""
    callback, scheduler = Counting(), world.scheduler()
    await scheduler.initialize([("a", "0 12 * * *", callback, "5m")])
    await world.until("TaskRunCompleted a")
    await scheduler.stop()
    good = await state_document(world.store, "a")
    await write_state_document(world.store, "a", {"version": 1})

    with pytest.raises(TaskMissingFieldError):
        await world.scheduler().initialize([("a", "0 12 * * *", callback, "5m")])
    await write_state_document(world.store, "a", good)
    mended = world.scheduler()
    await mended.initialize([("a", "0 12 * * *", callback, "5m")])
    await mended.stop()
    assert callback.calls == 1
    with pytest.raises(NotFound):
        await state_document(world.store, "b")


async def test_instances_that_begin_at_the_same_time_with_other_words_all_begin(world: World) -> None:
    """S2-063: of several who change a task the last one wins."""
    callback = Counting()
    for expression in ("* * * * *", "* * * * 0-6"):
        instances = [world.scheduler() for _ in range(8)]
        begun = [
            each.initialize([(f"{name}", expression, callback, f"{number + 1}m") for name in range(5)])
            for number, each in enumerate(instances)
        ]
        await asyncio.gather(*begun)
        for name in range(5):
            await world.until(f"TaskRunCompleted {name}")
        await asyncio.gather(*(each.stop() for each in instances))
    assert {state.cronExpression for state in (await task_states(world.store)).values()} == {"* * * * 0-6"}


async def test_two_schedulers_of_other_names_do_not_meet(world: World) -> None:
    one, other = Counting(), Counting()
    first, second = world.scheduler(), world.scheduler(name="nightly")
    await first.initialize([("a", "* * * * *", one, "5m")])
    await second.initialize([("a", "* * * * *", other, "5m")])
    await world.until("TaskRunCompleted a", 2)
    await first.stop()
    await second.stop()
    assert (one.calls, other.calls) == (1, 1)
    assert [set(await task_states(world.store, name)) for name in ("default", "nightly")] == [{"a"}, {"a"}]


async def test_a_store_by_its_address_is_opened_and_closed(tmp_path: Path, clock: ManualClock) -> None:
    """S2-013: what one life wrote the next one reads."""
    address, callback = f"sqlite:///{tmp_path}/jobs.db", Counting()
    for _ in range(2):
        scheduler = DeclarativeScheduler(address, clock=clock)
        await scheduler.initialize([("a", "0 12 * * *", callback, "5m")])
        await scheduler.stop()
    assert callback.calls == 1
    assert set(await task_states(address)) == {"a"}


async def test_a_given_clock_is_also_the_host_clock_of_the_node(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The author of a test that gives a clock is not told to set the clock of its host."""
    scheduler = world.scheduler()
    with caplog.at_level("WARNING", "everytick.node"):
        await scheduler.initialize([("a", "* * * * *", Counting(), "5m")])
        await world.until("TaskRunCompleted a")
        await scheduler.stop()
    assert "host's clock" not in caplog.text


async def test_a_callback_can_ask_for_a_stop_and_cannot_wait_for_it(world: World) -> None:
    """S2-064: it would wait for itself."""
    scheduler, refused = world.scheduler(), list[BaseException]()

    async def callback() -> None:
        try:
            await scheduler.stop()
        except UnexpectedError as error:
            refused.append(error)
            asking.append(asyncio.create_task(scheduler.stop()))

    asking = list[asyncio.Task[None]]()
    await scheduler.initialize([("a", "* * * * *", callback, "5m")])
    await world.until("SchedulerStopped")
    await asking[0]
    assert "would wait for itself" in str(refused[0])
    assert world.names.count("TaskRunCompleted a") == 1


class LateClaims(MemoryStore):
    """Answers the first claim, which is a part of the initialization, when another one has long brought the tasks."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self._brought = asyncio.Event()
        self._claims = 0

    async def claim(self, *given: Any) -> list[Claim]:
        self._claims += 1
        if self._claims > 1:
            found = await super().claim(*given)
            self._brought.set()
            return found
        await self._brought.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        return []


async def test_a_callback_begins_when_the_scheduler_runs_though_it_was_claimed_before(clock: ManualClock) -> None:
    """S2-026, W4: and may ask for a stop then, as any other."""
    seen = list[str]()
    scheduler = DeclarativeScheduler(LateClaims(clock), clock=clock)

    async def callback() -> None:
        seen.append(scheduler.state)

    async with asyncio.timeout(PATIENCE):
        await scheduler.initialize([("a", "* * * * *", callback, "5m")])
        await scheduler.stop()
    assert seen == ["Running"]


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_what_initialize_returns_is_a_coroutine_that_has_begun(world: World) -> None:
    """S2-001, S2-063: for create_task, groups and gather; whether a caller waits changes nothing."""
    registrations = [("a", "0 0 1 1 *", Counting(), "5m")]
    tasked, grouped, gathered, left = (world.scheduler(name=name) for name in ("tasked", "grouped", "gathered", "left"))
    waiting = asyncio.create_task(tasked.initialize(registrations))
    async with asyncio.TaskGroup() as group:
        group.create_task(grouped.initialize(registrations))
    await asyncio.gather(gathered.initialize(registrations))
    begun = left.initialize(registrations)
    await waiting
    await asyncio.wait_for(world.scheduler(name="timed").initialize(registrations), PATIENCE)
    await left.stop()
    await begun
    assert (tasked.state, grouped.state, gathered.state, left.state) == ("Running", "Running", "Running", "Stopped")

    again = asyncio.create_task(left.initialize(registrations))
    again.cancel()
    with pytest.raises(asyncio.CancelledError):
        await again
    await left.stop()
    assert left.state == "Stopped"


async def test_an_async_listener_has_heard_everything_when_stop_returns(clock: ManualClock) -> None:
    """S2-015, M9."""
    heard = list[str]()
    stop_was_heard = asyncio.Event()

    async def listener(event: DeclarativeEvent) -> None:
        await asyncio.sleep(0)
        heard.append(event.name)
        if event.name == "PollingStopRequested":
            stop_was_heard.set()

    async def callback() -> None:
        await stop_was_heard.wait()

    scheduler = DeclarativeScheduler(MemoryStore(clock), listener=listener, clock=clock)
    await scheduler.initialize([("a", "* * * * *", callback, "5m")])
    await scheduler.stop()
    assert heard == [
        "SchedulerInitializationStarted", "PollingStarted", "SchedulerInitializationCompleted",
        "TaskRunStarted", "SchedulerStopRequested", "PollingStopRequested", "TaskRunCompleted",
        "PollingStopped", "SchedulerStopped",
    ]  # fmt: skip


def test_without_a_loop_nothing_begins() -> None:
    """S2-055, S2-056: a mistake in the registrations is found all the same."""
    scheduler = DeclarativeScheduler("memory://")
    with pytest.raises(UnexpectedError, match="no running event loop"):
        _ = scheduler.initialize([])
    with pytest.raises(RegistrationsNotArrayError):
        _ = scheduler.initialize(None)
    assert scheduler.state == "Uninitialized"


async def test_a_stop_completes_the_poll_of_a_minute_that_came_before_it(world: World) -> None:
    """S2-026, S2-068: no minute is lost because it was stopped before the next look; the run is waited for."""
    callback = Counting()
    scheduler = world.scheduler()
    await scheduler.initialize([("a", "0,1 12 * * *", callback, "5m")])
    await world.until("TaskRunCompleted a")
    world.at("12:01:00")
    await scheduler.stop()
    assert callback.calls == 2
    assert world.names[-4:] == ["TaskRunStarted a", "TaskRunCompleted a", "PollingStopped", "SchedulerStopped"]
