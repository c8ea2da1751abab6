"""Values as JSON and back: `value_of(type(given), data_of(given)) == given` for every value that an answer holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum, StrEnum
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from everytick.domain.config import Level, Overrides, overrides
from everytick.domain.job import Job
from everytick.domain.limits import Rate, rate_of
from everytick.domain.payload import Payload, payload
from everytick.domain.questions import Tally
from everytick.domain.statuses import OccurrenceStatus

T = TypeVar("T")

LARGEST_BODY = 1 << 20
"""Bytes of one request to a service. A payload may have 256 KB, so that this is room for a folder of job files."""

OUTPUT_AT_ONCE = 1 << 20
"""Bytes of the output of a task in one answer."""


_PLAIN = frozenset({type(None), bool, int, str})
"""What JSON carries as it is."""


def plain(data: object) -> Any:
    """Return the value as JSON can carry it: times in UTC as ISO-8601, lengths of time in seconds."""
    kind = type(data)
    if kind in _PLAIN or isinstance(data, int):
        return data
    if kind is dict:
        return {str(key): plain(value) for key, value in cast("dict[object, object]", data).items()}
    if isinstance(data, float):
        # JSON has no infinity and no NaN.
        return data if isfinite(data) else str(data)
    if isinstance(data, StrEnum):
        return str(data)
    if isinstance(data, str):
        return data
    if isinstance(data, datetime):
        return data.isoformat().replace("+00:00", "Z")
    if isinstance(data, timedelta):
        return data.total_seconds()
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, Iterable):
        return [plain(item) for item in data]
    return str(data)


def json_text(data: object) -> str:
    """Return the text of `plain(data)`: the same bytes, without a copy of what is plain already.

    Keys are texts, numbers or statuses: no answer has None or a truth value as a key.
    """
    try:
        return json.dumps(data, default=_wrapped, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):  # a key that is no text, an infinity
        return json.dumps(plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _wrapped(data: object) -> Any:
    """Return what JSON has no form for in one that it has; the encoder asks again for what is inside."""
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, Iterable):
        return list(data)
    return plain(data)


def data_of(given: object) -> Any:
    """Return a value as JSON can carry it: an object with its fields."""
    kind = type(given)
    if kind is datetime:  # many of them, and a match asks for every kind in turn
        return cast("datetime", given).isoformat().replace("+00:00", "Z")
    if kind in _PLAIN:
        return given
    match given:
        case Payload() | Overrides():
            return given.as_data()
        case Rate():
            return str(given)
        case Tally():
            counts = {str(status): count for status, count in given.counts}
            return {"counts": counts, "is_estimated": given.is_estimated, "total": given.total}
        case Job():
            return job_text(given)
        case Mapping():
            return {str(key): data_of(value) for key, value in given.items()}
        case tuple() | list() | frozenset():
            return [data_of(item) for item in given]
    if is_dataclass(given):
        return _fields_of(given, kind)
    return plain(given)


def _fields_of(given: object, kind: type) -> dict[str, Any]:
    """Return the fields of a value. Most of them are plain: for those no function is called."""
    contents = {}
    for name in _names(cast("Any", kind)):
        inner = getattr(given, name)
        contents[name] = inner if type(inner) in _PLAIN else data_of(inner)
    return contents


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of a value's class."""
    return tuple(field.name for field in fields(kind))


def job_text(job: Job) -> dict[str, Any]:
    """Return a definition with its id and version, from which `job_of` makes an equal one."""
    from everytick.stores.definitions import write_definition

    return {
        "id": job.id,
        "version": job.version,
        "created_at": plain(job.created_at),
        "updated_at": plain(job.updated_at),
        "definition": json.loads(write_definition(job)),
    }


def job_of(data: Mapping[str, Any]) -> Job:
    """Return the definition that `job_text` wrote."""
    from everytick.stores.definitions import read_definition

    dates = {key: moment(data[key]) for key in ("created_at", "updated_at")}
    return read_definition(json.dumps(data["definition"]), id=data["id"], version=data["version"], **dates)


def moment(text: str | None) -> datetime | None:
    """Return the time that a text names, None for none."""
    return None if text is None else datetime.fromisoformat(text)


def value_of(kind: type[T], data: object) -> T:
    """Return the value that `data_of` wrote. Fields that are missing have their defaults; others are left out."""
    read: Callable[[Any], Any] = _reader(cast("Any", kind))
    return cast("T", read(data))


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Return the function that reads data of this type."""
    if kind in _READERS:
        return _READERS[kind]
    if get_origin(kind) in (Union, UnionType):
        [own] = [arg for arg in get_args(kind) if arg is not type(None)]
        read = _reader(own)
        return lambda data: None if data is None else read(data)
    if get_origin(kind) is tuple:
        return _tuple_reader(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if is_dataclass(kind):
        return _fields_reader(cast("type", kind))
    return lambda data: data


def _tuple_reader(parts: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(parts) == 2 and parts[1] is Ellipsis:
        read = _reader(parts[0])
        return lambda data: tuple(read(item) for item in data)
    readers = [_reader(part) for part in parts]
    return lambda data: tuple(read(item) for read, item in zip(readers, data, strict=True))


def _fields_reader(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(cast("Any", kind)) if field.init}

    def read(data: Mapping[str, Any]) -> Any:
        return kind(**{name: reader(data[name]) for name, reader in readers.items() if name in data})

    return read


def _tally(data: Mapping[str, Any]) -> Tally:
    counts = tuple((OccurrenceStatus(status), count) for status, count in data["counts"].items())
    return Tally(counts, data["is_estimated"])


def _rate(text: str) -> Rate:
    return rate_of(text.removesuffix(" burst"), burst=text.endswith(" burst"))


_READERS: dict[Any, Callable[[Any], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    timedelta: lambda seconds: timedelta(seconds=seconds),
    float: float,
    Job: job_of,
    Rate: _rate,
    Tally: _tally,
    Payload: payload,
    Overrides: lambda data: overrides(Level.OCCURRENCE, data),
}
