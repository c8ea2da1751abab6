"""Values of the domain as JSON text, and back: what a row holds reads back equal, in every process.

Text, numbers, truth and None stand for themselves. Everything else is a list whose first item says what it is: a
moment, a length, an enum by its class and value, or a value by its class and the fields that differ from their
defaults. Only the classes in `_CLASSES` are read: text from the server never names code to run.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, fields
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from operator import attrgetter
from typing import Any

from everytick.domain import limits, people
from everytick.domain.backfills import BackfillOrder, BackfillStatus
from everytick.domain.config import Level, Overrides, overrides
from everytick.domain.decisions import Creation, Span, Why
from everytick.domain.deeds import Deed
from everytick.domain.definers import NameSet
from everytick.domain.limits import BrakeRecord
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Log, Progress
from everytick.domain.occurrence import Cause
from everytick.domain.payload import Payload
from everytick.domain.policies import Overlap
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import Breach, OwedBreach, PromiseState
from everytick.domain.rollouts import Rollout
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Ended, Missed, PausedSpan, Request, Rescheduled
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.steps import RunState
from everytick.domain.upcoming import Coming, ComingRun, Mark
from everytick.schedules.codec import schedule
from everytick.stores.memory.rows import AttemptRow, BackfillRow, CountedStart, NodeRow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_PLAIN = frozenset({str, int, float, bool, type(None)})
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

_CLASSES: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        Adjustment,
        AdjustmentKind,
        AttemptRow,
        AttemptStatus,
        BackfillOrder,
        BackfillRow,
        BackfillStatus,
        Breach,
        Cause,
        Coming,
        ComingRun,
        CountedStart,
        Creation,
        Deed,
        Ended,
        Log,
        Mark,
        Missed,
        NameSet,
        NodeFacts,
        NodeRow,
        OccurrenceStatus,
        Overlap,
        OwedBreach,
        PausedSpan,
        Payload,
        Progress,
        PromiseKind,
        PromiseState,
        Request,
        Rescheduled,
        RunState,
        RunStatus,
        Span,
        Why,
    )
}


def micros(moment: datetime) -> int:
    """Return the microseconds since 1970 of a moment."""
    return (moment - EPOCH) // _TICK


def moment_of(number: int) -> datetime:
    """Return the moment that lies so many microseconds after 1970."""
    return EPOCH + number * _TICK


def write(given: object) -> str:
    """Return the JSON text of a value, in ASCII: half a surrogate pair, which UTF-8 has no bytes for, is kept too."""
    return _encode(_pack(given))


def read(text: str) -> Any:
    """Return the value that `write` wrote."""
    return _unpack(json.loads(text))


def write_fields(names: Sequence[str], values: Iterable[object]) -> str:
    """Return a JSON object with these fields, for rows that people may read too. What is None is left out."""
    found = {
        name: each if type(each) in _PLAIN else _pack(each)
        for name, each in zip(names, values, strict=True)
        if each is not None
    }
    return _encode(found)


def read_fields(names: Sequence[str], text: str) -> tuple[Any, ...]:
    """Return the values of these fields, None for each that is left out."""
    found = json.loads(text)
    return tuple(_unpack(found.get(name)) for name in names)


def _pack(given: Any) -> Any:
    kind = type(given)
    if kind in _PLAIN:
        return given
    packer = _PACKERS.get(kind)
    if packer is None:
        packer = _PACKERS[kind] = _packer_of(kind)
    return packer(given)


def _pack_overrides(given: Overrides) -> list[Any]:
    return ["Overrides", str(given.level), given.as_data()]


def _pack_brake(given: BrakeRecord) -> list[Any]:
    plain = [_pack(each) for each in (given.since, given.until, given.reason, given.by)]
    return ["BrakeRecord", *plain, *(None if each is None else str(each) for each in (given.begins, given.ends))]


def _read_brake(packed: list[Any]) -> BrakeRecord:
    since, until, reason, by = map(_unpack, packed[1:5])
    begins, ends = (None if each is None else schedule(each) for each in packed[5:7])
    return BrakeRecord(since, until, reason, by, begins, ends)


def _pack_rollout(given: Rollout) -> list[Any]:
    return ["Rollout", list(given.shares), given.after, given.max_failures, given.dry_run]


_PACKERS: dict[type[Any], Callable[[Any], Any]] = {
    datetime: lambda given: ["t", given.isoformat()],
    timedelta: lambda given: ["l", given // _TICK],
    date: lambda given: ["d", given.isoformat()],
    tuple: lambda given: ["()", *map(_pack, given)],
    list: lambda given: ["[]", *map(_pack, given)],
    set: lambda given: ["set", *map(_pack, sorted(given))],
    frozenset: lambda given: ["{}", *map(_pack, sorted(given))],
    dict: lambda given: ["->", *([_pack(key), _pack(each)] for key, each in given.items())],
    Overrides: _pack_overrides,
    BrakeRecord: _pack_brake,
    Rollout: _pack_rollout,
}


def _packer_of(kind: type[Any]) -> Callable[[Any], Any]:
    name = kind.__name__
    if _CLASSES.get(name) is not kind:
        raise TypeError(f"{kind.__qualname__} has no text form in Redis: add it to the classes of its codec")
    if issubclass(kind, Enum):
        members = {each: [name, each.value] for each in kind}
        return members.__getitem__
    known = [(each.name, _default_of(each)) for each in fields(kind) if each.init]
    names, defaults = [each[0] for each in known], [each[1] for each in known]
    content = attrgetter(*names) if len(names) > 1 else lambda given: (getattr(given, names[0]),)

    def pack(given: Any) -> list[Any]:
        # Most fields of most values have their defaults: that they are the very same is told fastest.
        told = zip(names, content(given), defaults, strict=True)
        return [name, {each: _pack(found) for each, found, usual in told if found is not usual and found != usual}]

    return pack


def _default_of(each: "Field[Any]") -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _unpack(packed: Any) -> Any:
    if type(packed) is not list:
        return packed
    reader = _READERS.get(packed[0])
    return reader(packed) if reader is not None else _read_value(packed)


def _read_value(packed: list[Any]) -> Any:
    kind = _CLASSES[packed[0]]
    if issubclass(kind, Enum):
        return kind(packed[1])
    return kind(**{field: _unpack(each) for field, each in packed[1].items()})


_READERS: dict[str, Callable[[list[Any]], Any]] = {
    "t": lambda packed: datetime.fromisoformat(packed[1]),
    "l": lambda packed: packed[1] * _TICK,
    "d": lambda packed: date.fromisoformat(packed[1]),
    "()": lambda packed: tuple(map(_unpack, packed[1:])),
    "[]": lambda packed: list(map(_unpack, packed[1:])),
    "set": lambda packed: set(map(_unpack, packed[1:])),
    "{}": lambda packed: frozenset(map(_unpack, packed[1:])),
    "->": lambda packed: {_unpack(key): _unpack(each) for key, each in packed[1:]},
    "Overrides": lambda packed: overrides(Level(packed[1]), packed[2]),
    "BrakeRecord": _read_brake,
    "Rollout": lambda packed: Rollout(*packed[1:]),
}


def _add_values_of(module: Any) -> None:
    """Know every value and enum that a module of the domain defines."""
    for each in vars(module).values():
        if isinstance(each, type) and each.__module__ == module.__name__ and not issubclass(each, Exception):
            _CLASSES.setdefault(each.__name__, each)


for _module in (limits, people):
    _add_values_of(_module)
