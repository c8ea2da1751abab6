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
from functools import lru_cache
from json.encoder import encode_basestring_ascii
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
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
# Without the search for spaces around the text: what `write` wrote has none.
_decode = json.JSONDecoder().raw_decode

_CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
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
    """Return the JSON text of a value, in ASCII and without control characters.

    Half a surrogate pair, which UTF-8 has no bytes for, is kept too, and a line or a tab ends no text: the log has both
    between texts.
    """
    return _WRITERS[type(given)](given)


def read(text: str) -> Any:
    """Return the value that `write` wrote."""
    return _unpack(_decode(text)[0])


class Columns:
    """Some columns of a row, as one JSON object that people may read too. A column with its default is left out."""

    def __init__(self, names: Sequence[str], kind: type[Any] | None = None) -> None:
        defaults = {} if kind is None else {column.name: _default_of(column) for column in fields(kind)}
        self.names, self._keys = tuple(names), [f'"{name}":' for name in names]
        self._defaults = [None if defaults.get(name) is MISSING else defaults.get(name) for name in names]
        self._found_in = _getter(self.names)
        self._last: tuple[Sequence[object], str] = (), "{}"
        self._last_read: tuple[str, tuple[Any, ...]] = "{}", tuple(self._defaults)

    def of(self, row: Any) -> tuple[Any, ...]:
        """Return the columns of a row."""
        return self._found_in(row)

    def write(self, columns: Sequence[object]) -> str:
        """Return the text of these columns."""
        # The rows of one claim, or of one batch of plans, are much alike.
        if columns != self._last[0]:
            self._last = columns, _object(self._keys, columns, self._defaults)
        return self._last[1]

    def read(self, text: str) -> tuple[Any, ...]:
        """Return the columns in a text that `write` wrote."""
        if text != self._last_read[0]:
            texts, told = _decode(text)[0], zip(self.names, self._defaults, strict=True)
            columns = tuple([_unpack(texts[name]) if name in texts else usual for name, usual in told])
            self._last_read = text, columns
        return self._last_read[1]


def _object(keys: Sequence[str], values: Iterable[object], defaults: Iterable[object]) -> str:
    """Return a JSON object. Most values are their defaults: that they are the very same is told fastest."""
    told = zip(keys, values, defaults, strict=True)
    texts = [
        key + _WRITERS[type(held)](held)
        for key, held, usual in told
        if held is not usual and (usual is None or held != usual)
    ]
    return "{" + ",".join(texts) + "}"


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*names) if len(names) > 1 else lambda given: (getattr(given, names[0]),)


def _list(mark: str) -> Callable[[Iterable[object]], str]:
    begin = f'["{mark}"'
    return lambda given: begin + "".join([f",{write(item)}" for item in given]) + "]"


def _write_dict(given: dict[Any, Any]) -> str:
    return '["->"' + "".join([f",[{write(key)},{write(item)}]" for key, item in given.items()]) + "]"


def _write_overrides(given: Overrides) -> str:
    return _encode(["Overrides", str(given.level), given.as_data()])


def _write_brake(given: BrakeRecord) -> str:
    own = (given.since, given.until, given.reason, given.by)
    schedules = (None if rule is None else str(rule) for rule in (given.begins, given.ends))
    return _list("BrakeRecord")((*own, *schedules))


def _read_brake(packed: list[Any]) -> BrakeRecord:
    since, until, reason, by = map(_unpack, packed[1:5])
    begins, ends = (None if text is None else schedule(text) for text in packed[5:7])
    return BrakeRecord(since, until, reason, by, begins, ends)


def _write_rollout(given: Rollout) -> str:
    return _encode(["Rollout", list(given.shares), given.after, given.max_failures, given.dry_run])


@lru_cache(maxsize=1_000)
def _write_moment(given: datetime) -> str:
    # A commit names few moments, each in many rows.
    return f'["t","{given.isoformat()}"]'


class _Writers(dict[type[Any], Callable[[Any], str]]):
    """What writes the values of each class. Those of enums and of values are made when the first one comes."""

    def __missing__(self, kind: type[Any]) -> Callable[[Any], str]:
        if _CLASSES.get(kind.__name__) is not kind:
            raise TypeError(f"{kind.__qualname__} has no text form in Redis: add it to the classes of its codec")
        made = self[kind] = _enum_writer(kind) if issubclass(kind, Enum) else _value_writer(kind)
        return made


_KINDS: dict[type[Any], Callable[[Any], str]] = {
    str: encode_basestring_ascii,
    int: int.__repr__,
    float: _encode,
    bool: lambda given: "true" if given else "false",
    type(None): lambda given: "null",
    datetime: _write_moment,
    timedelta: lambda given: f'["l",{given // _TICK}]',
    date: lambda given: f'["d","{given.isoformat()}"]',
    tuple: _list("()"),
    list: _list("[]"),
    set: lambda given: _list("set")(sorted(given)),
    frozenset: lambda given: _list("{}")(sorted(given)),
    dict: _write_dict,
    Overrides: _write_overrides,
    BrakeRecord: _write_brake,
    Rollout: _write_rollout,
}
_WRITERS = _Writers(_KINDS)


def _enum_writer(kind: type[Enum]) -> Callable[[Any], str]:
    return {member: _encode([kind.__name__, member.value]) for member in kind}.__getitem__


def _value_writer(kind: type[Any]) -> Callable[[Any], str]:
    known = [column for column in fields(kind) if column.init]
    keys, defaults = [f'"{column.name}":' for column in known], [_default_of(column) for column in known]
    begin, content = f'["{kind.__name__}",', _getter([column.name for column in known])
    return lambda given: begin + _object(keys, content(given), defaults) + "]"


def _default_of(column: "Field[Any]") -> Any:
    return column.default if column.default_factory is MISSING else column.default_factory()


def _unpack(packed: Any) -> Any:
    if type(packed) is not list:
        return packed
    return _READERS[packed[0]](packed)


class _Readers(dict[str, Callable[[list[Any]], Any]]):
    """What reads the lists of each mark. Those of enums and of values are made when the first one comes."""

    def __missing__(self, name: str) -> Callable[[list[Any]], Any]:
        kind = _CLASSES[name]
        made = self[name] = _enum_reader(kind) if issubclass(kind, Enum) else _value_reader(kind)
        return made


def _enum_reader(kind: type[Enum]) -> Callable[[list[Any]], Any]:
    members = {member.value: member for member in kind}
    return lambda packed: members[packed[1]]


def _value_reader(kind: type[Any]) -> Callable[[list[Any]], Any]:
    return lambda packed: kind(**{field: _unpack(text) for field, text in packed[1].items()})


_MARKS: dict[str, Callable[[list[Any]], Any]] = {
    "t": lambda packed: datetime.fromisoformat(packed[1]),
    "l": lambda packed: packed[1] * _TICK,
    "d": lambda packed: date.fromisoformat(packed[1]),
    "()": lambda packed: tuple(map(_unpack, packed[1:])),
    "[]": lambda packed: list(map(_unpack, packed[1:])),
    "set": lambda packed: set(map(_unpack, packed[1:])),
    "{}": lambda packed: frozenset(map(_unpack, packed[1:])),
    "->": lambda packed: {_unpack(key): _unpack(item) for key, item in packed[1:]},
    "Overrides": lambda packed: overrides(Level(packed[1]), packed[2]),
    "BrakeRecord": _read_brake,
    "Rollout": lambda packed: Rollout(*packed[1:]),
}
_READERS = _Readers(_MARKS)


def _add_values_of(module: Any) -> None:
    """Know every value and enum that a module of the domain defines."""
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__ and not issubclass(kind, Exception):
            _CLASSES.setdefault(kind.__name__, kind)


for _module in (limits, people):
    _add_values_of(_module)
