"""What initialize accepts, and what each mistake is called."""

from datetime import timedelta
from functools import partial, wraps
from typing import Any

import pytest

from everytick.declarative import (
    CronCalculationError,
    CronExpressionInvalidError,
    DeclarativeError,
    InvalidCronExpressionError,
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
)
from everytick.declarative.registrations import milliseconds, read_registrations
from everytick.errors import EverytickError, FieldParseError
from tests.unit.declarative.kit import NOON, at, nothing, read


def refused(given: object, kind: type[DeclarativeError]) -> Any:
    """Return the error that these registrations are refused with."""
    with pytest.raises(kind) as caught:
        read_registrations(given, lambda: NOON)
    assert isinstance(caught.value, EverytickError)
    return caught.value


class Callable_:
    async def __call__(self) -> None: ...

    async def method(self) -> None: ...


async def takes(word: str) -> None: ...


async def takes_by_name(*, word: str) -> None: ...


async def takes_if_given(word: str = "", *words: str, **more: str) -> None: ...


@wraps(takes)
async def gives() -> None:
    await takes("a")


@wraps(nothing)
async def asks(word: str) -> None: ...


@pytest.mark.parametrize(
    "callback",
    [nothing, Callable_(), Callable_().method, partial(takes, "a"), partial(takes, word="a"), takes_if_given, gives],
)
def test_whatever_can_be_called_without_arguments_and_awaited_is_a_callback(callback: object) -> None:
    """S2-002, S2-003."""
    assert read(("a", "* * * * *", callback, "5m"))["a"].callback is callback


@pytest.mark.parametrize("given", [None, "abc", {"a": 1}, 3, iter([]), {("a", "* * * * *", nothing, "5m")}])
def test_only_a_list_or_a_tuple_is_an_array(given: object) -> None:
    """S2-040."""
    error = refused(given, RegistrationsNotArrayError)
    assert (str(error), error.details) == ("Registrations must be an array", {})


@pytest.mark.parametrize(
    "given",
    [
        (),
        ("a", "* * * * *", nothing),
        ("a", "* * * * *", nothing, "5m", "more"),
        (1, "* * * * *", nothing, "5m"),
        ("a", None, nothing, "5m"),
        ("a", "* * * * *", lambda: None, "5m"),
        ("a", "* * * * *", "callback", "5m"),
        ("a", "* * * * *", Callable_, "5m"),
        ("a", "* * * * *", partial(Callable_), "5m"),
        ("a", "* * * * *", nothing, 300),
        ("a", "* * * * *", nothing, True),
        "abcd",
        None,
    ],
)
def test_a_registration_of_another_shape_is_refused_with_its_place(given: object) -> None:
    """S2-041, S2-003, M8: a class is no async function, whatever its objects are."""
    error = refused([("first", "* * * * *", nothing, "5m"), given], RegistrationShapeError)
    assert str(error) == "Invalid registration shape: expected [string, string, function, Duration]"
    assert error.details == {"registrationIndex": 1, "received": given}


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"a": 1}, "is of type dict: give a name, a cron expression, an async function and a retry delay"),
        (("a", "* * * * *", nothing), "has 3 parts: give a name, a cron expression, an async function and a"),
        ((1, "* * * * *", nothing, "5m"), "has as its name a value of type int: give a text"),
        (("a", None, nothing, "5m"), "has as its expression a value of type NoneType: give a text"),
        (("a", "* * * * *", "callback", "5m"), "has as its callback a value of type str: give an async function"),
        (("a", "* * * * *", lambda: None, "5m"), "has a callback that is not async: write async def"),
        (("a", "* * * * *", nothing, 300), "has a retry delay without a unit: give a timedelta, or a text like"),
    ],
)
def test_a_note_below_the_message_says_which_part_of_which_registration(given: object, note: str) -> None:
    """The text of the message is the specification's, and says neither."""
    error = refused([("first", "* * * * *", nothing, "5m"), given], RegistrationShapeError)
    assert [said.partition(note)[0] for said in error.__notes__] == ["registration 1 "]


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        (("", "* * * * *", nothing, "5m"), "name", ""),
        (("a", "* * * * *", takes, "5m"), "callback", takes),
        (("a", "* * * * *", takes_by_name, "5m"), "callback", takes_by_name),
        (("a", "* * * * *", asks, "5m"), "callback", asks),
        (("a", "* * * * *", nothing, "soon"), "retryDelay", "soon"),
        (("a", "* * * * *", nothing, "-soon"), "retryDelay", "-soon"),
    ],
)
def test_a_part_that_says_nothing_sensible_is_named(given: object, field: str, value: object) -> None:
    """S2-042, S2-003."""
    error = refused([given], InvalidRegistrationError)
    assert {key: error.details[key] for key in ("field", "value")} == {"field": field, "value": value}
    assert str(error.details["reason"]) in str(error)


def test_one_name_stands_once() -> None:
    """S2-043, S2-003."""
    error = refused([("a", "* * * * *", nothing, "5m"), ("a", "0 * * * *", nothing, "5m")], ScheduleDuplicateTaskError)
    assert (str(error), error.details) == ('Task with name "a" is already scheduled', {"taskName": "a"})


@pytest.mark.parametrize(
    ("delay", "shown"), [(timedelta(seconds=-5), -5000), ("-5m", -300_000), (timedelta(microseconds=-1), -0.001)]
)
def test_a_retry_cannot_come_before_the_failure(delay: object, shown: float) -> None:
    """S2-046."""
    error = refused([("a", "* * * * *", nothing, delay)], NegativeRetryDelayError)
    assert (str(error), error.details) == ("Retry delay must be non-negative", {"retryDelayMs": shown})


def test_a_mistake_in_an_expression_is_called_by_both_names() -> None:
    """S2-045, S2-047, S2-048, C-31."""
    error = refused([("a", "*/5 * * * *", nothing, "5m")], CronExpressionInvalidError)
    assert isinstance(error, InvalidCronExpressionError)
    assert str(error) == f'Invalid cron expression "*/5 * * * *": minute field {error.reason}'
    assert error.details == {"expression": "*/5 * * * *", "field": "minute", "reason": error.reason}
    assert isinstance(error.__cause__, FieldParseError)
    assert error.__cause__.details == {"fieldValue": "*/5", "fieldName": "minute"}


def test_an_expression_that_never_comes_is_told_apart_from_one_that_cannot_be_read() -> None:
    """S2-049."""
    error = refused([("a", "0 0 30 2 *", nothing, "5m")], CronCalculationError)
    assert isinstance(error.details["cause"], Exception)
    assert str(error) == f"Failed to calculate next occurrence: {error.details['cause']}"
    assert (error.details["expression"], error.details["currentTime"]) == ("0 0 30 2 *", NOON.isoformat())


def test_the_first_mistake_in_order_is_told() -> None:
    """S2-055."""
    wrong = [("", "x", nothing, "soon"), ("a",)]
    assert refused(wrong, InvalidRegistrationError).details["field"] == "name"


def test_schedules_stand_in_the_zone_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-005, C-40: by its name, as it is when they are read."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    schedule = read(("a", "0 18 * * *", nothing, "5m"))["a"].schedule
    assert schedule.next_after(NOON) == at("12:15")
    assert str(schedule).endswith("tz=Asia/Kathmandu")


@pytest.mark.parametrize(
    ("length", "expected"),
    [(timedelta(0), 0), (timedelta(minutes=5), 300_000), (timedelta(microseconds=1500), 1.5)],
)
def test_milliseconds_are_whole_where_they_can_be(length: timedelta, expected: float) -> None:
    assert milliseconds(length) == expected
    assert type(milliseconds(length)) is type(expected)
