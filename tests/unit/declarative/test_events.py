"""The events of a task, from those of its occurrences."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from everytick.declarative.events import DeclarativeEvent, EventDelivery, TaskEvents
from everytick.declarative.lateness import Lateness
from everytick.node.events import Event, Happening
from tests.unit.declarative.kit import NOON, at

JOB = "declarative:default:a"


class Heard:
    """A task named `a`, and what a listener hears of it."""

    def __init__(self) -> None:
        self.events: list[DeclarativeEvent] = []
        self.lateness = Lateness(1)
        self.teller = EventDelivery(self.events.append)
        self.later: list[Any] = []
        self.tasks = TaskEvents({JOB: "a"}, self.teller, self.lateness, self.later.append)

    def hear(self, kind: Happening, occurrence: str = "x", status: str = "", text: str = "") -> None:
        self.tasks.heard(Event(kind, NOON, JOB, occurrence, NOON, status=status, text=text))

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_a_run_that_succeeds(heard: Heard) -> None:
    """S2-019, S2-020."""
    heard.hear(Happening.CREATED)
    heard.hear(Happening.STARTED)
    heard.hear(Happening.ATTEMPT_ENDED, status="success")
    heard.hear(Happening.ENDED, status="completed")
    assert heard.names == ["TaskRunStarted", "TaskRunCompleted"]
    assert {event.task for event in heard.events} == {"a"}


def test_a_run_that_fails_and_is_tried_again(heard: Heard) -> None:
    """S2-021, S2-022."""
    heard.hear(Happening.STARTED)
    heard.hear(Happening.ATTEMPT_ENDED, status="failed", text="ValueError: no")
    heard.hear(Happening.RETRY_PLANNED)
    heard.hear(Happening.STARTED)
    heard.hear(Happening.ATTEMPT_ENDED, status="success")
    assert heard.names == ["TaskRunStarted", "TaskRunFailed", "TaskRetryStarted", "TaskRunCompleted"]
    assert heard.events[1].error == "ValueError: no"


@pytest.mark.parametrize("ended_first", [True, False])
def test_a_retry_that_gives_way_is_told_before_the_run_it_gives_way_to(heard: Heard, ended_first: bool) -> None:
    """S2-023: whichever of the two the core tells first."""
    heard.hear(Happening.STARTED, "x")
    heard.hear(Happening.ATTEMPT_ENDED, "x", status="failed")
    told = [partial(heard.hear, Happening.ENDED, "x", "superseded"), partial(heard.hear, Happening.STARTED, "y")]
    for tell in told if ended_first else reversed(told):
        tell()
    assert heard.names[2:] == ["TaskRetryPreempted", "TaskRunStarted"]


def test_an_end_is_told_before_the_start_that_followed_it(heard: Heard) -> None:
    """S2-018: one state at a time, also where the second of two occurrences is told first."""
    heard.hear(Happening.STARTED, "x")
    heard.hear(Happening.STARTED, "y")
    heard.hear(Happening.ATTEMPT_ENDED, "x", status="success")
    heard.hear(Happening.ATTEMPT_ENDED, "y", status="success")
    assert heard.names == ["TaskRunStarted", "TaskRunCompleted"] * 2


def test_a_start_is_told_after_a_while_where_no_end_comes(heard: Heard) -> None:
    """C-43: another instance has taken over what was running here, and tells of its end itself."""
    heard.hear(Happening.STARTED, "x")
    heard.hear(Happening.STARTED, "y")
    assert heard.names == ["TaskRunStarted"]
    for call in heard.later:
        call()
    heard.hear(Happening.ATTEMPT_ENDED, "y", status="success")
    assert heard.names == ["TaskRunStarted", "TaskRunStarted", "TaskRunCompleted"]


def test_what_an_earlier_instance_left_waiting_is_a_retry(heard: Heard) -> None:
    """S2-013, S2-022."""
    heard.tasks.awaits_retry(JOB, "x")
    heard.hear(Happening.STARTED, "x")
    assert heard.names == ["TaskRetryStarted"]


def test_a_canceled_retry_is_no_retry_any_more(heard: Heard) -> None:
    heard.tasks.awaits_retry(JOB, "x")
    heard.hear(Happening.ENDED, "x", status="canceled")
    heard.hear(Happening.STARTED, "y")
    assert heard.names == ["TaskRunStarted"]


def test_other_jobs_are_not_told_of(heard: Heard) -> None:
    heard.tasks.heard(Event(Happening.STARTED, NOON, "nightly", "x", NOON))
    assert heard.names == []


def test_tasks_are_held_back_until_the_scheduler_has_said_that_it_runs(heard: Heard) -> None:
    """S2-015: in order, and the scheduler's own events are not held."""
    heard.teller.hold()
    heard.hear(Happening.STARTED)
    heard.teller.tell(DeclarativeEvent("SchedulerInitializationCompleted", NOON))
    heard.teller.release()
    assert heard.names == ["SchedulerInitializationCompleted", "TaskRunStarted"]


def test_a_listener_that_raises_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def listener(event: DeclarativeEvent) -> None:
        raise SystemExit

    EventDelivery(listener).tell(DeclarativeEvent("TaskRunStarted", NOON, "a"))
    assert "TaskRunStarted" in caplog.text


def test_a_start_is_held_against_the_target_of_as_many_tasks(caplog: pytest.LogCaptureFixture) -> None:
    """S2-069, S2-071: a minute, and more for more than ten thousand; the log says so once a minute."""
    lateness = Lateness(20_000)
    assert (Lateness(1).target, lateness.target) == (timedelta(minutes=1), timedelta(minutes=2))
    lateness.started("a", at("12:00"), at("12:02"))
    assert (lateness.deviations, lateness.longest) == (0, timedelta(minutes=2))
    for task in "bcd":
        lateness.started(task, at("12:00"), at("12:03"))
    assert (lateness.deviations, lateness.longest) == (3, timedelta(minutes=3))
    assert len([each for each in caplog.records if "after its minute" in each.message]) == 1
    lateness.started("e", at("12:00"), at("12:05"))
    assert "2 more since" in caplog.text


def test_a_task_is_not_late_before_it_could_start() -> None:
    """S2-069, S2-070: not before the scheduler ran, nor while the task itself was running."""
    lateness = Lateness(1)
    lateness.begin(at("12:10"))
    lateness.started("a", at("12:00"), at("12:10:30"))
    lateness.ended("a", at("12:20"))
    lateness.started("a", at("12:11"), at("12:20"))
    assert (lateness.deviations, lateness.longest) == (0, timedelta(seconds=30))


async def test_an_async_listener_hears_one_event_after_the_other(caplog: pytest.LogCaptureFixture) -> None:
    """S2-015, M9: in their order, however long it takes; what it raises is logged and changes nothing."""
    heard = list[str]()

    async def listener(event: DeclarativeEvent) -> None:
        heard.append(f"{event.name} comes")
        for _ in range(20 if event.name == "first" else 1):
            await asyncio.sleep(0)
        heard.append(f"{event.name} goes")
        if event.name == "first":
            raise ValueError

    teller = EventDelivery(listener)
    for name in ("first", "second"):
        teller.tell(DeclarativeEvent(name, NOON))
    await teller.heard()
    teller.tell(DeclarativeEvent("third", NOON))
    await teller.heard()
    assert heard == [f"{name} {what}" for name in ("first", "second", "third") for what in ("comes", "goes")]
    assert "failed on first" in caplog.text


async def test_an_async_listener_may_wait_for_what_waits_for_it() -> None:
    """M9: a listener that awaits stop() does not wait for itself."""
    teller: EventDelivery

    async def listener(_: DeclarativeEvent) -> None:
        await teller.heard()

    teller = EventDelivery(listener)
    teller.tell(DeclarativeEvent("first", NOON))
    async with asyncio.timeout(60):
        await teller.heard()
