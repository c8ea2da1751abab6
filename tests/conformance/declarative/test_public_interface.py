"""Public API Surface: two methods, and what a registration is."""

import inspect
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.declarative.adapter import Adapter, World
from tests.conformance.declarative.tasks import EVERY_MINUTE, NEVER_NEAR, Task

MINUTES = timedelta(minutes=5)


async def fine() -> None:
    """A callback that succeeds."""


def test_scheduler_interface_has_exactly_initialize_and_stop(quick: Adapter) -> None:
    """S2-001, S2-004."""

    async def story(world: World) -> None:
        own = world.scheduler().subject
        public = [name for name in dir(type(own)) if not name.startswith("_")]
        methods = [name for name in public if not isinstance(getattr(type(own), name), property)]
        assert sorted(methods) == ["initialize", "stop"]
        assert not [name for name, value in vars(own).items() if not name.startswith("_") and callable(value)]

    quick.play(story)


def test_scheduler_interface_initialize_and_stop_are_awaitable_and_resolve_to_nothing(adapter: Adapter) -> None:
    """S2-001."""

    async def story(world: World) -> None:
        scheduler = world.scheduler()
        begun = scheduler.initialize([("a", NEVER_NEAR, fine, MINUTES)])
        assert inspect.isawaitable(begun)
        assert await begun is None  # type: ignore[func-returns-value]
        stopping = scheduler.stop()
        assert inspect.isawaitable(stopping)
        assert await stopping is None  # type: ignore[func-returns-value]

    adapter.play(story)


def test_registration_format_takes_lists_and_tuples_and_every_form_of_a_duration(adapter: Adapter) -> None:
    """S2-002, S2-003: a duration is a timedelta or a text; zero is one."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = world.scheduler()
        await scheduler.initialize(
            (
                ["as a list", EVERY_MINUTE, task.callback(), MINUTES],
                ("as a tuple", EVERY_MINUTE, task.callback(), timedelta(0)),
                ("with a text", EVERY_MINUTE, task.callback(), "90s"),
                (" Ünïcode / with : signs\t", EVERY_MINUTE, task.callback(), MINUTES),
            )
        )
        await world.advance(minutes=1)
        await scheduler.stop()
        assert task.count == 8  # each at once, for its minute is now, and in the next one
        assert set(await world.task_states()) == {
            "as a list",
            "as a tuple",
            "with a text",
            " Ünïcode / with : signs\t",
        }

    adapter.play(story)


def test_registration_format_an_empty_list_is_valid_and_schedules_nothing(quick: Adapter) -> None:
    """S2-002, S2-014, S2-026."""

    async def story(world: World) -> None:
        scheduler = await world.started()
        assert (scheduler.state, scheduler.polling) == ("Running", "Inactive")
        await world.advance(minutes=2)
        await scheduler.stop()
        assert scheduler.names() == [
            "SchedulerInitializationStarted",
            "SchedulerInitializationCompleted",
            "SchedulerStopRequested",
            "SchedulerStopped",
        ]

    quick.play(story)


def plain() -> None:
    """Not async."""


async def needy(argument: object) -> None:
    """Async, with an argument that is never given."""


class Callable_:
    """An object whose call is async."""

    async def __call__(self) -> None:
        """Succeed."""


@pytest.mark.parametrize("callback", [fine, Callable_(), lambda: fine()], ids=["function", "object", "lambda"])
def test_registration_format_every_async_callable_is_a_callback(quick: Adapter, callback: Any) -> None:
    """S2-002, S2-003: what only a call could tell from a plain function may be refused."""

    async def story(world: World) -> None:
        scheduler = world.scheduler()
        try:
            await scheduler.initialize([("a", EVERY_MINUTE, callback, MINUTES)])
        except quick.error("RegistrationShapeError"):
            assert not inspect.iscoroutinefunction(callback)
            return
        await world.advance(minutes=1)
        await scheduler.stop()
        assert scheduler.names("a").count("TaskRunCompleted") == 2

    quick.play(story)
