"""Registrations: the argument of `initialize`, read and checked before anything else happens (S2-002, S2-003)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from inspect import Parameter, signature
from types import FunctionType, MethodType
from typing import Any, TypeAlias

from everytick.config.host import local_timezone
from everytick.declarative.errors import (
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
)
from everytick.domain.durations import duration
from everytick.domain.schedule import Schedule
from everytick.domain.values import value
from everytick.errors import CronCalculationError, InvalidDuration
from everytick.runners.signature import is_async
from everytick.schedules.cron import cron

Callback: TypeAlias = Callable[[], Awaitable[Any]]

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS = 4
"""Name, expression, callback and delay."""


@value
class Registration:
    """One task as it was registered; `schedule` is its expression in the zone of this host."""

    name: str
    cron_expression: str
    callback: Callback
    retry_delay: timedelta
    schedule: Schedule


def read_registrations(given: object, now: Callable[[], datetime]) -> dict[str, Registration]:
    """Return the registrations by name, in their order. Raise the first mistake, before any effect."""
    if not isinstance(given, (list, tuple)):
        raise RegistrationsNotArrayError
    zone = local_timezone()
    registrations: dict[str, Registration] = {}
    schedules: dict[str, Schedule] = {}
    for index, registration in enumerate(given):
        name, expression, callback, delay = _shaped(index, registration)
        if not name:
            raise InvalidRegistrationError("name", name, "is empty: every task needs a name of its own")
        if name in registrations:
            raise ScheduleDuplicateTaskError(name)
        if expression not in schedules:
            schedules[expression] = _schedule(expression, zone, now)
        _refuse_arguments(callback)
        registrations[name] = Registration(name, expression, callback, _delay(delay), schedules[expression])
    return registrations


def milliseconds(length: timedelta) -> int | float:
    """Return the duration in milliseconds, as an int if it is whole."""
    micros = length // timedelta(microseconds=1)
    return micros // 1000 if micros % 1000 == 0 else micros / 1000


def _shaped(index: int, given: object) -> tuple[str, str, Callback, timedelta | str]:
    if isinstance(given, (list, tuple)) and len(given) == _PARTS:
        name, expression, callback, delay = given
        are_texts = isinstance(name, str) and isinstance(expression, str)
        if are_texts and callable(callback) and is_async(callback) and isinstance(delay, (timedelta, str)):
            return name, expression, callback, delay
    error = RegistrationShapeError(index, given)
    # A note stands below the message, whose text is the specification's.
    error.add_note(f"registration {index} {_misshapen(given)}")
    raise error


def _misshapen(given: object) -> str:
    """Return which part of a registration has the wrong shape, and what to write."""
    if not isinstance(given, (list, tuple)) or len(given) != _PARTS:
        count = f"has {len(given)} parts" if isinstance(given, (list, tuple)) else f"is of type {type(given).__name__}"
        return f"{count}: give a name, a cron expression, an async function and a retry delay"
    name, expression, callback, _ = given
    for part, text in (("name", name), ("expression", expression)):
        if not isinstance(text, str):
            return f"has as its {part} a value of type {type(text).__name__}: give a text"
    if not callable(callback):
        return f"has as its callback a value of type {type(callback).__name__}: give an async function"
    if not is_async(callback):
        return "has a callback that is not async: write async def"
    return 'has a retry delay without a unit: give a timedelta, or a text like "5m"'


def _schedule(expression: str, zone: str, now: Callable[[], datetime]) -> Schedule:
    """Return the schedule if it names any instant: 30 February is valid cron and never comes."""
    schedule = cron(expression, dialect="posix", tz=zone)
    if schedule.next_after(_BEGINNING) is None:
        cause = ValueError(f"no minute of any year matches {expression!r}")
        raise CronCalculationError(expression, now(), cause)
    return schedule


def _refuse_arguments(callback: Callback) -> None:
    """Raise unless the callback can be called without arguments."""
    if _has_no_parameters(callback):
        return
    try:
        # Do not follow wrapped functions: a decorator may pass arguments to the wrapped one.
        parameters = signature(callback, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return
    for parameter in parameters:
        is_filled = parameter.default is not Parameter.empty or parameter.kind in (
            Parameter.VAR_POSITIONAL,
            Parameter.VAR_KEYWORD,
        )
        if not is_filled:
            reason = f"needs the argument '{parameter.name}', and is called without any"
            raise InvalidRegistrationError("callback", callback, reason)


def _has_no_parameters(callback: Callback) -> bool:
    """Whether the code object shows that it takes no arguments: inspect.signature takes thirty times as long."""
    function, given = (callback.__func__, 1) if isinstance(callback, MethodType) else (callback, 0)
    if not isinstance(function, FunctionType):
        return False
    return function.__code__.co_argcount == given and function.__code__.co_kwonlyargcount == 0


def _delay(given: timedelta | str) -> timedelta:
    """Return the duration. A negative one raises another error than an invalid one."""
    if isinstance(given, str):
        try:
            length = -duration(given[1:]) if given.startswith("-") else duration(given)
        except InvalidDuration as error:
            raise InvalidRegistrationError("retryDelay", given, error.reason) from error
    else:
        length = given
    if length < timedelta(0):
        raise NegativeRetryDelayError(milliseconds(length))
    return length
