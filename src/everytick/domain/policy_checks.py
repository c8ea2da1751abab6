"""Checks that all policies share: from anything that was written to a value.

Each function returns the value or refuses it with the text that was read, the reason, and what
to write instead. The caller adds the name of the job.
"""

import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from everytick.domain.durations import LONGEST_DURATION, MICROSECOND, duration, format_duration
from everytick.domain.names import checked_name, did_you_mean
from everytick.domain.schedule import Schedule
from everytick.errors import InvalidPolicies, shown

LARGEST = 2_147_483_647
"""The largest number that a column of four bytes takes."""

E = TypeVar("E", bound=StrEnum)


def choice(policy: str, kind: type[E], given: object) -> E:
    """Return the member of this name; refuse anything else with the names of all members."""
    if isinstance(given, str):
        for member in kind:
            if given == member.value:
                return member
    hint = did_you_mean(given, kind) if isinstance(given, str) else ""
    raise refused(policy, given, f"is not known{hint}", *(f'{policy}="{name}"' for name in kind))


def whole(policy: str, given: object, least: int = 0, most: int = LARGEST, *instead: str) -> int:
    """Return a whole number within its bounds; `True` is not a number."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise refused(policy, given, f"must be a whole number from {least:,} to {most:,}", *instead)
    if not least <= given <= most:
        raise refused(policy, given, f"must be from {least:,} to {most:,}", *instead)
    return int(given)


def number(policy: str, given: object, least: float, most: float | None = None) -> float:
    """Return a finite number within its bounds."""
    reach = f"of {least:g} or more" if most is None else f"from {least:g} to {most:g}"
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise refused(policy, given, f"must be a number {reach}")
    # NaN compares with nothing, and a whole number may be too large for a float.
    if not least <= given <= (sys.float_info.max if most is None else most):
        raise refused(policy, given, f"must be a number {reach}")
    return float(given)


def length(policy: str, given: object, least: timedelta, *instead: str) -> timedelta:
    """Return a duration that is not shorter than `least`. One of more than a thousand years counts as a thousand."""
    checked = min(duration(given), LONGEST_DURATION)
    if checked < least:
        reason = "must be longer than zero" if least == MICROSECOND else f"must be at least {format_duration(least)}"
        raise refused(policy, given, reason, *instead)
    return checked


def switch(policy: str, given: object) -> bool:
    """Return a boolean; refuse 1, "yes" and the like."""
    if not isinstance(given, bool):
        raise refused(policy, given, "must be true or false")
    return given


def names(policy: str, given: object) -> tuple[str, ...]:
    """Return names in alphabetical order, each once: their order says nothing. A single text is one name."""
    items = (given,) if isinstance(given, str) else given
    if not isinstance(items, Iterable) or isinstance(items, (bytes, Mapping)):
        raise refused(policy, given, "must be a name or a list of names")
    return tuple(sorted({checked_name(policy, item) for item in items}))


def keys(policy: str, given: Mapping[Any, Any], known: tuple[str, ...], needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the mapping as keyword arguments; an unknown or missing key is refused with the known ones."""
    for key in given:
        if key not in known:
            near = did_you_mean(key, known) if isinstance(key, str) else ""
            raise refused(policy, key, f"is not a key it has: {', '.join(known)}{near}")
    for key in needed:
        if key not in given:
            raise InvalidPolicies("", f"{policy} says no {key}; its keys are {', '.join(known)}")
    return dict(given)


def as_data(given: object) -> object:
    """Return a policy's value as JSON can carry it; reading it back gives an equal value, a schedule from its text."""
    if hasattr(given, "as_data"):
        return given.as_data()
    if isinstance(given, StrEnum):
        return str(given)
    if isinstance(given, timedelta):
        return format_duration(given)
    if isinstance(given, datetime):
        return given.isoformat()
    if isinstance(given, tuple):
        return [as_data(item) for item in given]
    if isinstance(given, Schedule):
        return str(given)
    return given


def fill(target: object, **fields: object) -> None:
    """Set the fields of a value that is being built: frozen ones refuse plain assignment."""
    for name, field in fields.items():
        object.__setattr__(target, name, field)


def refused(policy: str, given: object, reason: str, *instead: str) -> InvalidPolicies:
    """Return the error that says what was read, why it is refused and what to write instead."""
    return InvalidPolicies("", f"{policy} '{shown(given)}' {reason}", instead)
