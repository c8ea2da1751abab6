"""Determinism & Idempotency, and the model of the theory: properties of whole lives."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.conformance.declarative.adapter import NOON, Adapter, Scheduler, World
from tests.conformance.declarative.model import Call, End, Life, Model, Tie
from tests.conformance.declarative.tasks import NEVER_NEAR, Task

SECONDS = st.integers(0, 400).map(lambda seconds: timedelta(seconds=seconds, milliseconds=137))
UPS = st.integers(1, 900).map(lambda seconds: timedelta(seconds=seconds, milliseconds=411))
DOWNS = st.integers(0, 4000).map(lambda seconds: timedelta(seconds=seconds, milliseconds=53))
LIVES = st.lists(st.builds(Life, UPS, st.sampled_from(End), DOWNS), min_size=1, max_size=4)
CALLS = st.lists(st.builds(Call, st.just(timedelta(0)) | SECONDS, st.booleans()), max_size=8)
CRONS = st.sampled_from(["* * * * *", "0,5,10 * * * *", "1-3,7 * * * *", "0 * * * *", "0 12 * * *", "2 12,13 * * *"])
DELAYS = st.sampled_from([0, 1, 29, 61, 333, 5000]).map(lambda seconds: timedelta(seconds=seconds, milliseconds=29))
NEAR = timedelta(seconds=2)

Trace = list[tuple[str, datetime]]


async def lived(world: World, model: Model, lives: list[Life]) -> tuple[Trace, Task, Any]:
    """Let a real scheduler live these lives; return the trace of its task, the task, and what the store knows."""
    task = Task(world, takes=[call.takes.total_seconds() for call in model.calls], fails=[c.fails for c in model.calls])
    trace: Trace = []
    other, cron, delay = Task(world), model.cron, model.delay
    for life in lives:
        if not life.is_absent:
            cron, delay = life.cron or cron, delay if life.delay is None else life.delay
        scheduler = world.scheduler()
        mine = [] if life.is_absent else [task.on(cron, delay=delay)]
        await scheduler.initialize([*mine, other.on(NEVER_NEAR, name="other")])
        await world.pass_by(life.up.total_seconds())
        await ended(scheduler, life.end)
        trace += [(told.name, told.at) for told in scheduler.heard if told.task == "task"]
        states = (await world.task_states()).get("task", {})
        await world.pass_by(life.down.total_seconds())
    return trace, task, states


async def ended(scheduler: Scheduler, end: End) -> None:
    if end is End.STOP:
        await scheduler.stop()
    else:
        scheduler.crash()


def is_predicted(model: Model, lives: list[Life]) -> bool:
    """Let the model live the same lives; say whether the specification leaves no order open in them."""
    begin = NOON
    try:
        for life in lives:
            begin = model.live(begin, life)
    except Tie:
        return False
    times = sorted({at for _, at in model.trace})
    return all(later - earlier > 2 * NEAR for earlier, later in pairwise(times))


@given(cron=CRONS, delay=DELAYS, calls=CALLS, lives=LIVES)
@settings(max_examples=40)
def test_deterministic_behavior_every_history_is_the_one_the_model_tells(
    quick: Adapter, cron: str, delay: timedelta, calls: list[Call], lives: list[Life]
) -> None:
    """S2-065, S2-072, S2-011, S2-013, S2-018 … S2-025, S2-059: stops, crashes, failures and downtimes in any order."""
    play_and_compare(quick, Model(cron, delay, calls), lives)


CHANGING = st.lists(
    st.builds(
        Life,
        UPS,
        st.sampled_from(End),
        DOWNS,
        cron=st.none() | CRONS,
        delay=st.none() | DELAYS,
        is_absent=st.integers(0, 4).map(lambda number: number == 0),
    ),
    min_size=2,
    max_size=5,
)


@given(cron=CRONS, delay=DELAYS, calls=CALLS, lives=CHANGING)
@settings(max_examples=40)
def test_deterministic_behavior_also_of_tasks_that_change_and_of_those_that_go_and_come_back(
    quick: Adapter, cron: str, delay: timedelta, calls: list[Call], lives: list[Life]
) -> None:
    """S2-058 … S2-060, S2-065, S2-072: another expression, another delay, or no registration, life by life."""
    play_and_compare(quick, Model(cron, delay, calls), lives)


def play_and_compare(quick: Adapter, model: Model, lives: list[Life]) -> None:
    """Let a scheduler and the model live the same lives; they must tell the same of them."""
    given = replace(model, trace=[])
    if not is_predicted(model, lives):
        reject()

    async def story(world: World) -> None:
        trace, _, states = await lived(world, given, lives)
        if model.task is None:
            assert (trace, states) == ([], {})
            return
        assert [name for name, _ in trace] == [name for name, _ in model.trace]
        for (name, told), (_, expected) in zip(trace, model.trace, strict=True):
            assert abs(told - expected) < NEAR, name
        for key, expected_at in (
            ("lastAttemptAt", model.task.last_attempt),
            ("lastSuccessAt", model.task.last_success),
            ("lastFailureAt", model.task.last_failure),
            ("pendingRetryUntil", model.task.pending_retry),
        ):
            assert same(states[key], expected_at), key

    quick.play(story)


def same(found: datetime | None, expected: datetime | None) -> bool:
    return found is expected is None or (found is not None and expected is not None and abs(found - expected) < NEAR)


HISTORIES = {
    "failures and a stop": (
        Model("0,5,10 * * * *", timedelta(seconds=61), [Call(timedelta(seconds=7), True)] * 3),
        [Life(timedelta(seconds=200), End.STOP, timedelta(seconds=2000)), Life(timedelta(seconds=300), End.STOP, NEAR)],
    ),
    "a crash in a run": (
        Model("* * * * *", timedelta(seconds=29), [Call(timedelta(seconds=97)), Call(timedelta(seconds=13), True)]),
        [Life(timedelta(seconds=85), End.CRASH, timedelta(seconds=777)), Life(timedelta(seconds=140), End.STOP, NEAR)],
    ),
    "a crash in a wait": (
        Model("0 * * * *", timedelta(seconds=333), [Call(timedelta(0), True), Call(timedelta(0), True)]),
        [Life(timedelta(seconds=85), End.CRASH, timedelta(seconds=500)), Life(timedelta(seconds=400), End.STOP, NEAR)],
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_deterministic_behavior_on_every_store(adapter: Adapter, name: str) -> None:
    """S2-065, S2-072: the model and every store agree on these histories, and each of them with itself."""
    model, lives = HISTORIES[name]
    for _ in range(2):
        play_and_compare(adapter, replace(model, trace=[]), lives)


@given(seconds=st.lists(st.integers(1, 200), min_size=1, max_size=5), crons=st.lists(CRONS, min_size=1, max_size=6))
@settings(max_examples=15)
def test_deterministic_behavior_selection_is_the_same_in_two_equal_worlds(
    quick: Adapter, seconds: list[int], crons: list[str]
) -> None:
    """S2-065, S2-068: the order within a poll may vary, what is selected may not."""

    async def story(world: World) -> list[list[str]]:
        tasks = [Task(world) for _ in crons]
        for up in seconds:
            scheduler = world.scheduler()
            await scheduler.initialize(
                [task.on(cron, name=f"{number}") for number, (task, cron) in enumerate(zip(tasks, crons, strict=True))]
            )
            await world.advance(seconds=up)
            await scheduler.stop()
            await world.advance(seconds=3 * up)
        return [task.minutes for task in tasks]

    assert quick.play(story) == quick.play(story)


@given(cron=CRONS, restarts=st.lists(st.integers(0, 100), min_size=1, max_size=12))
@settings(max_examples=25)
def test_initialize_idempotency_restarts_with_equal_registrations_add_nothing(
    quick: Adapter, cron: str, restarts: list[int]
) -> None:
    """S2-066, C-16: however often it is restarted at once, it runs in the minutes in which one long life would have."""

    async def story(world: World) -> list[str]:
        task = Task(world)
        for seconds in restarts:
            scheduler = world.scheduler()
            await scheduler.initialize([task.on(cron)])
            await world.advance(seconds=seconds)
            await scheduler.stop()
        return task.minutes

    async def at_once(world: World) -> list[str]:
        task = Task(world)
        scheduler = await world.started(task.on(cron))
        await world.advance(seconds=sum(restarts))
        await scheduler.stop()
        return task.minutes

    assert quick.play(story) == quick.play(at_once)


def test_initialize_idempotency_refused_calls_have_no_effect(adapter: Adapter) -> None:
    """S2-066, S2-017, C-16: calls on a running scheduler do not duplicate what is scheduled."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = await world.started(task.on())
        for _ in range(5):
            with pytest.raises(adapter.error("SchedulerAlreadyActiveError")):
                scheduler.initialize([task.on()])
        await world.advance(minutes=3)
        await scheduler.stop()
        assert task.minutes == ["12:00", "12:01", "12:02", "12:03"]

    adapter.play(story)


def test_initialize_idempotency_override_detection_works_across_calls(adapter: Adapter) -> None:
    """S2-066, S2-060: there, back and there again."""

    async def story(world: World) -> None:
        task = Task(world)
        documents = []
        for cron in ("0 1 * * *", "0 2 * * *", "0 1 * * *", "0 1 * * *", "0 2 * * *"):
            scheduler = await world.started(task.on(cron))
            await scheduler.stop()
            document = await world.document("task")
            documents.append({key: value for key, value in document.items() if key != "schedulerIdentifier"})
        assert documents[0] == documents[2] == documents[3]
        assert documents[1] == documents[4] != documents[0]

    adapter.play(story)


def test_non_deterministic_elements_all_minutes_are_covered(quick: Adapter) -> None:
    """S2-068, S2-006: the interval of polling is free as long as no minute is lost."""

    async def story(world: World) -> None:
        hourly, minutely = Task(world), Task(world)
        scheduler = await world.started(hourly.on("17 * * * *", name="hourly"), minutely.on(name="minutely"))
        await world.advance(hours=2)
        await scheduler.stop()
        assert hourly.count == 2
        began = [at.replace(second=0, microsecond=0) for at in minutely.began]
        assert began == [datetime(2026, 3, 3, 12, tzinfo=UTC) + timedelta(minutes=each) for each in range(121)]

    quick.play(story)
