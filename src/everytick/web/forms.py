"""Forms: what a person typed, read by the fields that were asked for. Mistakes are told beside each field."""

from __future__ import annotations

import json
from datetime import date, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from everytick.domain.config import UNSET
from everytick.domain.values import value
from everytick.errors import shown
from everytick.web.fields import FieldKind, FormField, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import tzinfo

_LONGEST_NUMBER = 100
"""Most characters of a number: a whole one of 400 digits has no size as a float, by which bounds are checked."""

_FIRST_YEAR, _LAST_YEAR = 2, 9998
"""A moment of the first or the last year may have none in another zone."""

PREFIX = "p."
"""The names of inputs of a payload begin with this, so that they never meet the form's own."""


@value
class FormMistake:
    """What is wrong with one field; `name` is that of its input."""

    name: str
    text: str


@value
class FormRead:
    """What a form said: the value of each field that was given, and what is wrong."""

    payload: dict[str, Any]
    mistakes: tuple[FormMistake, ...] = ()


def read_fields(fields: Iterable[FormField], typed: Mapping[str, str], zone: tzinfo, prefix: str = PREFIX) -> FormRead:
    """Read what was typed. A field that was left empty is not given; times without an offset are in the zone."""
    payload: dict[str, Any] = {}
    mistakes: list[FormMistake] = []
    for field in fields:
        name = f"{prefix}{field.name}"
        if field.kind is FieldKind.MODEL:
            inner = read_fields(field.fields, typed, zone, f"{name}.")
            if inner.payload or field.is_required:
                payload[field.name] = inner.payload
                mistakes += inner.mistakes
            continue
        try:
            given = _read(field, typed.get(name), zone)
        except ValueError as error:
            mistakes.append(FormMistake(name, str(error)))
            continue
        if given is not UNSET:
            payload[field.name] = given
        elif field.is_required:
            mistakes.append(FormMistake(name, "is required"))
    return FormRead(payload, tuple(mistakes))


def typed_defaults(fields: Iterable[FormField], prefix: str = PREFIX) -> dict[str, str]:
    """Return what stands in the inputs before a person types anything: the defaults."""
    found: dict[str, str] = {}
    for field in fields:
        name = f"{prefix}{field.name}"
        if field.kind is FieldKind.MODEL:
            found |= typed_defaults(field.fields, f"{name}.")
            own = field.default if isinstance(field.default, dict) else {}
            found |= {f"{name}.{key}": _typed(given) for key, given in own.items()}
        elif field.default is not UNSET and field.default is not None:
            found[name] = _lines(field.default) if field.kind is FieldKind.LINES else _typed(field.default)
    return found


def _lines(given: object) -> str:
    return "\n".join(map(str, given)) if isinstance(given, (list, tuple)) else _typed(given)


def _typed(given: object) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    return given if isinstance(given, str) else as_text(given)


def _read(field: FormField, text: str | None, zone: tzinfo) -> object:
    """Return the value of one field, UNSET if it was left empty. Raise ValueError with what is wrong."""
    if field.kind is FieldKind.SWITCH:
        # A box that is not ticked sends nothing.
        return text is not None and text != "false"
    if text is None or not text.strip():
        return UNSET
    if field.may_be_none and text.strip() == "null":
        return None
    match field.kind:
        case FieldKind.WHOLE | FieldKind.NUMBER:
            return _within(field, _number(field, text.strip()))
        case FieldKind.DATE:
            return _day(text.strip())
        case FieldKind.MOMENT:
            return _moment(text.strip(), zone)
        case FieldKind.CHOICE:
            return _choice(field, text)
        case FieldKind.LINES:
            return [line.strip() for line in text.splitlines() if line.strip()]
        case FieldKind.JSON:
            return _json(text)
    return text.replace("\r\n", "\n")


def _number(field: FormField, text: str) -> float:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"{shown(text, 40)} is too long for a number")
    try:
        found: float = int(text) if field.kind is FieldKind.WHOLE else float(text)
    except ValueError:
        raise ValueError(f"{shown(text)} is no {field.kind}") from None
    if not isfinite(found):
        raise ValueError(f"{shown(text)} is no number that JSON has")
    return found


def _within(field: FormField, found: float) -> float:
    if field.least is not None and found < field.least:
        raise ValueError(f"{found:g} is less than {field.least:g}")
    if field.most is not None and found > field.most:
        raise ValueError(f"{found:g} is more than {field.most:g}")
    return found


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"{shown(text)} is no date: write it like 2026-10-23") from None


def _moment(text: str, zone: tzinfo) -> str:
    return moment(text, zone).isoformat()


def moment(text: str, zone: tzinfo) -> datetime:
    """Return the moment that a native field or a person wrote. Without an offset it is in the zone."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{shown(text)} is no date and time: write it like 2026-10-23T02:30") from None
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise ValueError(f"{shown(text)} is too far away: years are {_FIRST_YEAR} to {_LAST_YEAR}")
    return found if found.tzinfo is not None else found.replace(tzinfo=zone)


def _choice(field: FormField, text: str) -> object:
    for choice in field.choices:
        if text == _typed(choice):
            return choice
    raise ValueError(f"{shown(text)} is none of {', '.join(map(_typed, field.choices))}")


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"is no JSON: {error}") from None
