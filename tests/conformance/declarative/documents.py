"""Documents that everytick must refuse to read, the error each leads to, and what its details say.

A document of everytick holds `version`, `name`, `cronExpression`, `retryDelayMs` and
`schedulerIdentifier`, all of them required.
"""

from collections.abc import Callable
from typing import Any

Change = Callable[[Any], Any]
Invalid = tuple[str, Change, dict[str, Any]]

FIELDS = {
    "version": "number",
    "name": "string",
    "cronExpression": "string",
    "retryDelayMs": "number",
    "schedulerIdentifier": "string",
}
OTHER_TYPES: dict[str, Any] = {"null": None, "boolean": True, "array": [], "object": {}, "string": "text", "number": 7}
WRONG_VALUES: dict[str, list[Any]] = {
    "version": [0, 2, -1],
    "name": ["another", ""],
    "cronExpression": ["@daily", "", "60 * * * *", "* * * *"],
    "retryDelayMs": [-1, 10**400, 1e300],
    "schedulerIdentifier": [""],
}
NO_OBJECTS: list[Any] = [None, True, 7, "text", [], [{}]]


def without(field: str) -> Change:
    """Take the field away."""
    return lambda document: {key: value for key, value in document.items() if key != field}


def replaced(field: str, value: object) -> Change:
    """Give the field another value."""
    return lambda document: {**document, field: value}


def instead(value: object) -> Change:
    """Put something else in the place of the whole document."""
    return lambda document: value


def _missing() -> list[Invalid]:
    return [("TaskMissingFieldError", without(field), {"field": field}) for field in FIELDS]


def _types() -> list[Invalid]:
    return [
        (
            "TaskInvalidTypeError",
            replaced(field, value),
            {"field": field, "value": value, "expectedType": expected, "actualType": actual},
        )
        for field, expected in FIELDS.items()
        for actual, value in OTHER_TYPES.items()
        if actual != expected
    ]


def _values() -> list[Invalid]:
    return [
        ("TaskInvalidValueError", replaced(field, value), {"field": field, "value": value})
        for field, values in WRONG_VALUES.items()
        for value in values
    ]


def _structures() -> list[Invalid]:
    return [("TaskInvalidStructureError", instead(value), {"value": value}) for value in NO_OBJECTS]


INVALID: list[Invalid] = _missing() + _types() + _values() + _structures()
