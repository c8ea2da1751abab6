"""Error Model: the taxonomy by table, and when errors are thrown."""

import math
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.conformance.declarative.adapter import Adapter, Scheduler, World
from tests.conformance.declarative.tasks import EVERY_MINUTE, NEVER_NEAR, Task
from tests.conformance.declarative.test_public_interface import fine, needy, plain

DELAY = timedelta(minutes=5)
GOOD = ("good", EVERY_MINUTE, fine, DELAY)
SHAPE = "Invalid registration shape: expected [string, string, function, Duration]"

NO_ARRAY = [None, "a text", b"bytes", 7, {"a": 1}, {GOOD[0]}, (each for each in [GOOD]), object(), fine]
NO_SHAPE: list[Any] = [
    None,
    "four",
    7,
    {},
    (),
    ("a",),
    ("a", EVERY_MINUTE, fine),
    ("a", EVERY_MINUTE, fine, DELAY, "more"),
    (None, EVERY_MINUTE, fine, DELAY),
    (7, EVERY_MINUTE, fine, DELAY),
    (b"a", EVERY_MINUTE, fine, DELAY),
    ("a", None, fine, DELAY),
    ("a", ["0", "0", "*", "*", "*"], fine, DELAY),
    ("a", EVERY_MINUTE, None, DELAY),
    ("a", EVERY_MINUTE, "fine", DELAY),
    ("a", EVERY_MINUTE, plain, DELAY),
    ("a", EVERY_MINUTE, fine, None),
    ("a", EVERY_MINUTE, fine, object()),
    ("a", EVERY_MINUTE, fine, True),
    ("a", EVERY_MINUTE, fine, math.nan),
]


def refused(adapter: Adapter, registrations: Any, name: str) -> BaseException:
    """Return the error with which `initialize` refuses at the call, nothing awaited; nothing must be left of it."""

    async def story(world: World) -> BaseException:
        scheduler = world.scheduler()
        with pytest.raises(adapter.error(name)) as caught:
            scheduler.initialize(registrations)
        assert scheduler.state == "Uninitialized"
        assert scheduler.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
        await world.advance(minutes=2)
        assert await world.task_states() == {}
        return caught.value

    return adapter.play(story)


def keys(adapter: Adapter, error: BaseException) -> set[str]:
    return set(adapter.details(error))


@pytest.mark.parametrize("given", NO_ARRAY, ids=lambda given: type(given).__name__)
def test_registrations_not_array_error(quick: Adapter, given: object) -> None:
    """S2-040, S2-055."""
    error = refused(quick, given, "RegistrationsNotArrayError")

    assert type(error).__name__ == "RegistrationsNotArrayError"
    assert str(error) == "Registrations must be an array"
    assert keys(quick, error) == set()


@pytest.mark.parametrize("given", NO_SHAPE, ids=range(len(NO_SHAPE)))
def test_registration_shape_error(quick: Adapter, given: object) -> None:
    """S2-041, S2-055: the index is that of the bad one, what was received is it."""
    error = refused(quick, [GOOD, given, GOOD], "RegistrationShapeError")

    assert type(error).__name__ == "RegistrationShapeError"
    assert str(error) == SHAPE
    assert keys(quick, error) == {"registrationIndex", "received"}
    assert quick.details(error)["registrationIndex"] == 1
    assert quick.details(error)["received"] is given or quick.details(error)["received"] == given


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (("", EVERY_MINUTE, fine, DELAY), "name"),
        (("a", EVERY_MINUTE, needy, DELAY), "callback"),
        (("a", EVERY_MINUTE, fine, "soon"), "retryDelay"),
    ],
    ids=["empty name", "callback with an argument", "unreadable duration"],
)
def test_invalid_registration_error(quick: Adapter, given: tuple[Any, ...], field: str) -> None:
    """S2-003, S2-042, S2-055."""
    error = refused(quick, [GOOD, given], "InvalidRegistrationError")

    assert type(error).__name__ == "InvalidRegistrationError"
    assert keys(quick, error) == {"field", "value", "reason"}
    details = quick.details(error)
    assert details["field"] == field
    assert details["value"] in given
    assert details["reason"]
    assert str(details["reason"]) in str(error)


@pytest.mark.parametrize("name", ["good", 'with "quotes"', "ünï"])
def test_schedule_duplicate_task_error(quick: Adapter, name: str) -> None:
    """S2-043, S2-003: also where everything else differs."""
    twice = [(name, EVERY_MINUTE, fine, DELAY), ("other", *GOOD[1:]), (name, NEVER_NEAR, fine, timedelta(0))]
    error = refused(quick, twice, "ScheduleDuplicateTaskError")

    assert type(error).__name__ == "ScheduleDuplicateTaskError"
    assert str(error) == f'Task with name "{name}" is already scheduled'
    assert dict(quick.details(error)) == {"taskName": name}


def test_names_that_differ_in_case_or_blanks_are_no_duplicates(adapter: Adapter) -> None:
    """S2-043, S2-060: names are compared exactly."""

    async def story(world: World) -> None:
        names = ["a", "A", " a", "a ", "á", "a\u0301"]
        scheduler = world.scheduler()
        await scheduler.initialize([(name, EVERY_MINUTE, fine, DELAY) for name in names])
        await world.advance(minutes=1)
        await scheduler.stop()
        assert set(await world.task_states()) == set(names)
        for name in names:
            assert scheduler.names(name).count("TaskRunCompleted") == 2

    adapter.play(story)


@pytest.mark.parametrize(("delay", "milliseconds"), [(-1, -1), (-1500, -1500), (-86_400_000, -86_400_000)])
def test_negative_retry_delay_error(quick: Adapter, delay: int, milliseconds: int) -> None:
    """S2-046, S2-003."""
    given = [GOOD, ("a", EVERY_MINUTE, fine, timedelta(milliseconds=delay))]
    error = refused(quick, given, "NegativeRetryDelayError")

    assert type(error).__name__ == "NegativeRetryDelayError"
    assert str(error) == "Retry delay must be non-negative"
    assert dict(quick.details(error)) == {"retryDelayMs": milliseconds}


@pytest.mark.parametrize(
    ("expression", "field", "value"),
    [
        ("60 * * * *", "minute", "60"),
        ("* 24 * * *", "hour", "24"),
        ("* * 0 * *", "day", "0"),
        ("* * * 13 *", "month", "13"),
        ("* * * * 7", "weekday", "7"),
        ("*/15 * * * *", "minute", "*/15"),
    ],
)
def test_cron_expression_invalid_error(quick: Adapter, expression: str, field: str, value: str) -> None:
    """S2-045, S2-047, S2-048, C-31: catchable by both names; the field's own error is its cause."""
    error = refused(quick, [GOOD, ("a", expression, fine, DELAY)], "CronExpressionInvalidError")

    assert type(error).__name__ == "CronExpressionInvalidError"
    assert isinstance(error, quick.error("InvalidCronExpressionError"))
    details = quick.details(error)
    assert set(details) == {"expression", "field", "reason"}
    assert (details["expression"], details["field"]) == (expression, field)
    assert str(error) == f'Invalid cron expression "{expression}": {field} field {details["reason"]}'
    cause = error.__cause__
    assert isinstance(cause, quick.error("FieldParseError"))
    assert dict(quick.details(cause)) == {"fieldValue": value, "fieldName": field}


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_cron_calculation_error(quick: Adapter, expression: str) -> None:
    """S2-049: valid, and without any occurrence; refused before anything was scheduled."""

    async def story(world: World) -> None:
        scheduler = world.scheduler()
        with pytest.raises(quick.error("CronCalculationError")) as caught:
            await scheduler.initialize([GOOD, ("a", expression, fine, DELAY)])
        details = quick.details(caught.value)
        assert set(details) == {"expression", "currentTime", "cause"}
        assert details["expression"] == expression
        assert isinstance(details["currentTime"], str)
        assert isinstance(details["cause"], Exception)
        assert str(caught.value) == f"Failed to calculate next occurrence: {details['cause']}"
        assert scheduler.state == "Uninitialized"
        assert scheduler.names()[-1] == "SchedulerInitializationFailed"
        assert await world.task_states() == {}

    quick.play(story)


def test_scheduler_already_active_error(adapter: Adapter) -> None:
    """S2-044, S2-017, C-16: raised at the call, by either state, without an event and without any effect."""

    async def story(world: World) -> None:
        task, other = Task(world), Task(world)
        scheduler = world.scheduler()
        begun = scheduler.initialize([task.on(name="a")])
        expect_active(adapter, scheduler, "initializing", other)
        await begun
        told = list(scheduler.heard)
        expect_active(adapter, scheduler, "running", other)
        assert scheduler.names() == [each.name for each in told if each.task is None]
        await world.advance(minutes=1)
        await scheduler.stop()
        assert (task.count, other.count) == (2, 0)
        assert set(await world.task_states()) == {"a"}

    adapter.play(story)


def expect_active(adapter: Adapter, scheduler: Scheduler, state: str, other: Task) -> None:
    for registrations in ([other.on(name="b")], [], "not even valid"):
        with pytest.raises(adapter.error("SchedulerAlreadyActiveError")) as caught:
            scheduler.initialize(registrations)
        assert str(caught.value) == f"Cannot initialize scheduler: scheduler is already {state}"
        assert dict(adapter.details(caught.value)) == {"currentState": state}


# -------------------------------------------------------------------------------------------- Error Throwing Guarantees

LAST_IS_BAD: list[tuple[str, Any]] = [
    ("RegistrationShapeError", ("b",)),
    ("InvalidRegistrationError", ("", EVERY_MINUTE, fine, DELAY)),
    ("ScheduleDuplicateTaskError", ("good", EVERY_MINUTE, fine, DELAY)),
    ("CronExpressionInvalidError", ("b", "@daily", fine, DELAY)),
    ("NegativeRetryDelayError", ("b", EVERY_MINUTE, fine, timedelta(seconds=-1))),
]


@pytest.mark.parametrize(("name", "bad"), LAST_IS_BAD, ids=[name for name, _ in LAST_IS_BAD])
def test_error_throwing_guarantees_nothing_is_scheduled_before_all_is_valid(
    quick: Adapter, name: str, bad: object
) -> None:
    """S2-055, S2-016: one bad registration at the end refuses all, and the next call is as if it were the first."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = world.scheduler()
        with pytest.raises(quick.error(name)):
            scheduler.initialize([task.on(name="good"), bad])
        await world.advance(minutes=3)
        assert (task.count, scheduler.state, scheduler.polling) == (0, "Uninitialized", "Inactive")
        assert await world.task_states() == {}
        await scheduler.initialize([task.on(name="good")])
        await world.advance(minutes=1)
        await scheduler.stop()
        assert task.count == 2

    quick.play(story)


def test_error_throwing_guarantees_unexpected_errors_are_wrapped_and_keep_their_cause(adapter: Adapter) -> None:
    """S2-056, S2-016: a store that does not answer is not in the taxonomy; the original is in details.cause."""

    async def story(world: World) -> None:
        scheduler = world.scheduler()
        world.break_store(after=0)
        with pytest.raises(Exception, match=r".") as caught:
            await scheduler.initialize([GOOD])
        cause = adapter.details(caught.value)["cause"]
        assert isinstance(cause, Exception)
        assert str(cause) in str(caught.value)
        assert (scheduler.state, scheduler.polling) == ("Uninitialized", "Inactive")
        assert scheduler.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
        world.mend_store()
        await scheduler.initialize([GOOD])
        await scheduler.stop()

    adapter.play(story)


TAXONOMY = """
    RegistrationsNotArrayError RegistrationShapeError InvalidRegistrationError ScheduleDuplicateTaskError
    SchedulerAlreadyActiveError CronExpressionInvalidError NegativeRetryDelayError InvalidCronExpressionError
    FieldParseError CronCalculationError TaskTryDeserializeError TaskMissingFieldError TaskInvalidTypeError
    TaskInvalidValueError TaskInvalidStructureError
""".split()


@pytest.mark.parametrize("name", TAXONOMY)
def test_error_throwing_guarantees_every_error_has_its_name(quick: Adapter, name: str) -> None:
    """S2-040…054, S2-057: the name of the class is the name of the error."""
    assert quick.error(name).__name__ == name


@pytest.mark.parametrize("name", TAXONOMY[-4:])
def test_error_throwing_guarantees_state_errors_share_a_base(quick: Adapter, name: str) -> None:
    """S2-050."""
    assert issubclass(quick.error(name), quick.error("TaskTryDeserializeError"))


def test_error_throwing_guarantees_equal_mistakes_have_equal_messages_and_leak_nothing(quick: Adapter) -> None:
    """S2-057: a message does not show what a callback closes over, and is the same every time."""

    async def secretive(argument: object, password: str = "hunter2") -> None:
        """Async, with an argument that is never given and a default that must not be seen."""

    for bad in [("a", EVERY_MINUTE, secretive, DELAY), ("a", EVERY_MINUTE, partial(plain), DELAY), ("", "@daily")]:
        messages = {_message(quick, bad) for _ in range(2)}
        assert len(messages) == 1
        assert "hunter2" not in messages.pop()


def _message(adapter: Adapter, bad: object) -> str:
    async def story(world: World) -> str:
        with pytest.raises(Exception, match=r".") as caught:
            world.scheduler().initialize([bad])
        return str(caught.value)

    return adapter.play(story)
