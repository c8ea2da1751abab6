"""Fields: what a form asks for, made from the types of a function's parameters.

Of a job that is defined here the function itself is known. Of another one the store keeps the kinds of JSON that its
parameters take; whether one has a default is not known then, and each may be left empty.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from datetime import date, datetime, time, timedelta
from enum import Enum, StrEnum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from everytick.domain.config import UNSET
from everytick.domain.parameters import ANY, EVERY_KEY
from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

RADIOS = 5
"""A choice among more than this is a list that opens."""

_DEEPEST = 3
"""Models within models beyond this depth are written as JSON."""


class FieldKind(StrEnum):
    """How a field is asked for."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    SWITCH = "yes or no"
    DATE = "date"
    MOMENT = "date and time"
    CHOICE = "one of these"
    LINES = "list of text"
    MODEL = "fields"
    JSON = "JSON"
    DOCUMENT = "document"


@value(frozen=True)
class FormField:
    """One question of a form. `default` is UNSET if there is none, or none is known."""

    name: str
    kind: FieldKind
    is_required: bool = False
    default: object = UNSET
    may_be_none: bool = False
    choices: tuple[object, ...] = ()
    fields: tuple[FormField, ...] = ()
    least: float | None = None
    most: float | None = None
    schema: str = ""

    @property
    def words(self) -> str:
        """What kind of value it is, and whether it may be left out, as people say it."""
        kind = {FieldKind.CHOICE: "choice", FieldKind.LINES: "list of text, one per line"}.get(
            self.kind, str(self.kind)
        )
        bounds = _bounds(self)
        return ", ".join(filter(None, (kind, bounds, "required" if self.is_required else "")))

    @property
    def if_left(self) -> str:
        """What holds if the field is left empty."""
        if self.is_required or self.kind is FieldKind.MODEL:
            return ""
        if self.default is UNSET:
            return "left empty: nothing is given"
        return f"left empty: {as_text(self.default)}"

    @property
    def has_radios(self) -> bool:
        """Whether all choices are shown at once."""
        return self.kind is FieldKind.CHOICE and len(self.choices) <= RADIOS


def as_text(given: object) -> str:
    """Return a value as JSON; what JSON has no form for, as text."""
    return json.dumps(given, ensure_ascii=False, default=str)


def fields_of(function: Callable[..., Any]) -> tuple[FormField, ...]:
    """Return the fields of a function's parameters, without its context."""
    from everytick.runners.signature import signature_of

    signature = signature_of(function)
    wanted = (*signature.required, *signature.optional)
    if not wanted:
        return ()
    hints = _hints(function)
    known = inspect.signature(function).parameters
    ordered = [parameter for name, parameter in known.items() if name in wanted]
    return tuple(
        _field(
            parameter.name,
            hints.get(parameter.name, parameter.annotation),
            UNSET if parameter.default is parameter.empty else parameter.default,
            is_required=parameter.default is parameter.empty,
        )
        for parameter in ordered
    )


def fields_of_tasks(functions: Iterable[Callable[..., Any]]) -> tuple[FormField, ...]:
    """Return the fields of several functions that share one payload. What one of them requires is required."""
    found: dict[str, FormField] = {}
    for function in functions:
        for field in fields_of(function):
            first = found.get(field.name)
            if first is None:
                found[field.name] = field
            elif field.is_required and not first.is_required:
                found[field.name] = replace(first, is_required=True, default=UNSET)
    return tuple(found.values())


def fields_of_kinds(tasks: Iterable[Iterable[tuple[str, str]] | None]) -> tuple[FormField, ...]:
    """Return the fields of parameters as a stored definition keeps them: names with kinds of JSON."""
    found: dict[str, FormField] = {}
    for parameters in tasks:
        for name, kinds in parameters or ():
            if name != EVERY_KEY:
                found.setdefault(name, _field_of_kinds(name, kinds.split("|")))
    return tuple(found.values())


def with_defaults(fields: Iterable[FormField], payload: object) -> tuple[FormField, ...]:
    """Return the fields with the values of the job's own payload, which hold unless others are given."""
    own = payload if isinstance(payload, dict) else {}
    return tuple(
        replace(field, default=own[field.name], is_required=False) if field.name in own else field for field in fields
    )


# ---------------------------------------------------------------------------------------------------------- the types


def _field_of_kinds(name: str, kinds: list[str]) -> FormField:
    plain = [kind for kind in kinds if kind != "None"]
    of_kind = {"int": FieldKind.WHOLE, "float": FieldKind.NUMBER, "str": FieldKind.TEXT, "bool": FieldKind.CHOICE}
    kind = of_kind.get(plain[0], FieldKind.JSON) if len(plain) == 1 and plain[0] != ANY else FieldKind.JSON
    schema = "" if kind is not FieldKind.JSON or ANY in plain else " or ".join(plain)
    choices = (True, False) if kind is FieldKind.CHOICE else ()
    return FormField(name, kind, may_be_none="None" in kinds, choices=choices, schema=schema)


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the types of the parameters. Annotations that cannot be resolved here are left as they are written."""
    inner = inspect.unwrap(function)
    try:
        return get_type_hints(getattr(inner, "func", inner), include_extras=True)
    except Exception:  # noqa: BLE001, an annotation may be any expression
        return {}


def _field(name: str, hint: Any, default: object, *, is_required: bool, depth: int = 0) -> FormField:
    """Return the field of one parameter or of one part of a model."""
    shown = default.value if isinstance(default, Enum) else default
    shown = shown.isoformat() if isinstance(shown, (date, time)) else shown
    plain, notes, may_be_none = _bare(hint)
    field = _of_type(name, plain, depth)
    least, most = _limits(notes) if field.kind in (FieldKind.WHOLE, FieldKind.NUMBER) else (None, None)
    if field.kind is FieldKind.SWITCH and (may_be_none or not isinstance(shown, bool)):
        field = replace(field, kind=FieldKind.CHOICE, choices=(True, False))
    return replace(
        field,
        default=shown,
        is_required=is_required,
        may_be_none=may_be_none or default is None,
        least=least,
        most=most,
    )


def _bare(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Return the type without its annotations and without None, the annotations, and whether None was among it."""
    notes: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        notes = tuple(rest)
    if get_origin(hint) in (Union, UnionType):
        others = [part for part in get_args(hint) if part is not NoneType]
        has_none = len(others) < len(get_args(hint))
        if len(others) == 1:
            inner, more, _ = _bare(others[0])
            return inner, (*notes, *more), has_none
        return hint, notes, has_none
    return hint, notes, False


def _of_type(name: str, plain: Any, depth: int) -> FormField:
    kinds = {
        str: FieldKind.TEXT,
        int: FieldKind.WHOLE,
        float: FieldKind.NUMBER,
        bool: FieldKind.SWITCH,
        date: FieldKind.DATE,
    }
    if plain in kinds:
        return FormField(name, kinds[plain])
    if plain is datetime:
        return FormField(name, FieldKind.MOMENT)
    if plain is timedelta:
        return FormField(name, FieldKind.TEXT)
    if get_origin(plain) is Literal:
        return FormField(name, FieldKind.CHOICE, choices=get_args(plain))
    if isinstance(plain, type) and issubclass(plain, Enum):
        return FormField(name, FieldKind.CHOICE, choices=tuple(member.value for member in plain))
    if get_origin(plain) in (list, tuple, set, frozenset) and get_args(plain)[:1] == (str,):
        return FormField(name, FieldKind.LINES)
    if depth < _DEEPEST and (parts := _parts(plain, depth + 1)):
        return FormField(name, FieldKind.MODEL, fields=parts)
    return FormField(name, FieldKind.JSON, schema=_schema(plain))


def _parts(plain: Any, depth: int) -> tuple[FormField, ...]:
    """Return the parts of a model: a dataclass, a typed dict, or a class with `model_fields` as pydantic has them."""
    if not isinstance(plain, type):
        return ()
    hints = _class_hints(plain)
    if is_dataclass(plain):
        return tuple(
            _field(
                field.name,
                hints.get(field.name, field.type),
                UNSET if field.default is MISSING else field.default,
                is_required=field.default is MISSING and field.default_factory is MISSING,
                depth=depth,
            )
            for field in dataclass_fields(plain)
            if field.init
        )
    if is_typeddict(plain):
        required: frozenset[str] = getattr(plain, "__required_keys__", frozenset())
        return tuple(_field(key, hint, UNSET, is_required=key in required, depth=depth) for key, hint in hints.items())
    own = getattr(plain, "model_fields", None)
    if not isinstance(own, dict):
        return ()
    return tuple(
        _field(
            key,
            hints.get(key, field.annotation),
            UNSET if field.is_required() or field.default_factory is not None else field.default,
            is_required=field.is_required(),
            depth=depth,
        )
        for key, field in own.items()
    )


def _class_hints(plain: type) -> Mapping[str, Any]:
    try:
        return get_type_hints(plain, include_extras=True)
    except Exception:  # noqa: BLE001, an annotation may be any expression
        return {}


def _limits(notes: tuple[Any, ...]) -> tuple[float | None, float | None]:
    """Return the bounds that annotations like `Ge(1)` or `Interval(ge=1, le=9)` set."""
    least = [bound for note in notes if isinstance(bound := getattr(note, "ge", None), (int, float))]
    most = [bound for note in notes if isinstance(bound := getattr(note, "le", None), (int, float))]
    return max(least, default=None), min(most, default=None)


def _bounds(field: FormField) -> str:
    if field.least is not None and field.most is not None:
        return f"{field.least:g} to {field.most:g}"
    if field.least is not None:
        return f"{field.least:g} or more"
    return "" if field.most is None else f"{field.most:g} or less"


def _schema(plain: Any) -> str:
    """Return the type as its author wrote it, to stand beside a field of JSON."""
    if plain is inspect.Parameter.empty or plain is Any:
        return ""
    if isinstance(plain, str):
        return plain
    return plain.__name__ if isinstance(plain, type) and not get_args(plain) else str(plain).replace("typing.", "")
