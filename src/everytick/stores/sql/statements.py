"""Statements with named parameters, made ready for one driver when they are loaded.

A text says `:job_id` and not `$1` or `?`. A `Statement` is called with every parameter by name and gives a `Query`, so
a parameter that is missing or unknown is an error where it is written. What a parameter or column holds follows from
its name: `ended_at` is an instant, `occurrence_id` an id, `status` a code. So no verb converts a value by hand.

Markers in braces are resolved at load: codes (`{pending}`, see domain/codes.py) and the words of a dialect
(`{schema}`, `{lock s}`, `{skip}`, `{in handles}`, `{list texts}`).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, TypeAlias, TypeVar

from everytick.domain.codes import (
    ATTEMPT_CODE,
    ATTEMPT_STATUSES,
    CAUSE_CODE,
    CAUSES,
    IN_SQL,
    RUN_CODE,
    RUN_STATUSES,
    STATUS_CODE,
    STATUSES,
)
from everytick.domain.values import value
from everytick.stores.queries import bind_queries

T = TypeVar("T")
Convert: TypeAlias = Callable[[Any], Any]
Row: TypeAlias = dict[str, Any]
"""One row by column name, in values of the domain."""

_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_MARKER = re.compile(r"\{([\w.]+)(?: (\w+))?\}")


class ColumnKind(Enum):
    """What a parameter or column holds, as its name tells."""

    INSTANT = "instant"
    DURATION = "duration"
    ID = "id"
    STATUS = "status"
    RUN_STATUS = "run_status"
    ATTEMPT_STATUS = "attempt_status"
    CAUSE = "cause"
    FLAG = "flag"
    PLAIN = "plain"


_SUFFIXES = ("_at", "_for", "_after", "_through")
_NAMES = {
    "now": ColumnKind.INSTANT,
    "watermark": ColumnKind.INSTANT,
    "keep_success": ColumnKind.DURATION,
    "keep_failure": ColumnKind.DURATION,
    "execution_timeout": ColumnKind.DURATION,
    "occurrence_id": ColumnKind.ID,
    "status": ColumnKind.STATUS,
    "found": ColumnKind.STATUS,
    "run_status": ColumnKind.RUN_STATUS,
    "attempt_status": ColumnKind.ATTEMPT_STATUS,
    "last_attempt_status": ColumnKind.ATTEMPT_STATUS,
    "cause": ColumnKind.CAUSE,
}
_CODES: Mapping[ColumnKind, tuple[Convert, Convert]] = {
    ColumnKind.STATUS: (STATUS_CODE.__getitem__, STATUSES.__getitem__),
    ColumnKind.RUN_STATUS: (RUN_CODE.__getitem__, RUN_STATUSES.__getitem__),
    ColumnKind.ATTEMPT_STATUS: (ATTEMPT_CODE.__getitem__, ATTEMPT_STATUSES.__getitem__),
    ColumnKind.CAUSE: (CAUSE_CODE.__getitem__, CAUSES.__getitem__),
}


def kind_of(name: str) -> ColumnKind:
    """Return what a parameter or column of this name holds."""
    if known := _NAMES.get(name):
        return known
    if name.endswith(_SUFFIXES):
        return ColumnKind.INSTANT
    if name.endswith("_occurrence_id"):
        return ColumnKind.ID
    return ColumnKind.FLAG if name.startswith(("is_", "has_")) else ColumnKind.PLAIN


@value
class Dialect:
    """How one driver takes a statement: its parameters, its markers and its values.

    `place` gives the text of the nth parameter. `is_by_name` says that the driver takes a mapping and not a sequence.
    A marker's text has `{}` where its word belongs. `writes` and `reads` convert what this driver cannot hold as it is.
    """

    place: Callable[[int, str], str]
    is_by_name: bool
    markers: Mapping[str, str]
    writes: Mapping[ColumnKind, Convert]
    reads: Mapping[ColumnKind, Convert]
    writes_list: Convert | None = None

    def writer(self, name: str) -> Convert | None:
        """Return what turns a value of the domain into a parameter of this name, if anything has to."""
        kind = kind_of(name)
        return _CODES[kind][0] if kind in _CODES else self.writes.get(kind)

    def reader(self, name: str) -> Convert | None:
        """Return what turns a column of this name into a value of the domain, if anything has to."""
        kind = kind_of(name)
        return _CODES[kind][1] if kind in _CODES else self.reads.get(kind)


class Query:
    """A statement with its arguments, as the driver takes them."""

    __slots__ = ("arguments", "statement")

    def __init__(self, statement: "Statement", arguments: Any) -> None:
        self.statement = statement
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"Query({self.statement.name}, {self.arguments!r})"


class Statement:
    """A text as one driver takes it. Calling it with every parameter by name gives a Query."""

    __slots__ = ("_dialect", "_readers", "_writers", "name", "names", "sql")

    def __init__(self, name: str, text: str, dialect: Dialect) -> None:
        lists: set[str] = set()
        names: list[str] = []

        def resolved(marker: re.Match[str]) -> str:
            if marker[1] in IN_SQL:
                return str(IN_SQL[marker[1]])
            if marker[1] not in dialect.markers:
                raise ImportError(f"the statement {name} has an unknown marker: {marker[0]}")
            if marker[1] in ("in", "list"):
                lists.add(marker[2])
            return dialect.markers[marker[1]].format(marker[2])

        def placed(parameter: re.Match[str]) -> str:
            if parameter[1] not in names:
                names.append(parameter[1])
            return dialect.place(names.index(parameter[1]) + 1, parameter[1])

        self.name = name
        self.sql = _NAMED.sub(placed, _MARKER.sub(resolved, text))
        self.names = tuple(names)
        self._dialect = dialect
        self._writers = tuple(
            (each, dialect.writes_list if each in lists else dialect.writer(each)) for each in self.names
        )
        self._readers: dict[tuple[str, ...], tuple[tuple[str, Convert | None], ...]] = {}

    def __repr__(self) -> str:
        return f"Statement({self.name})"

    def __call__(self, **given: Any) -> Query:
        """Return the statement with these arguments; each parameter must be named, and no other."""
        if len(given) != len(self.names):
            self._refuse(given)
        written: dict[str, Any] = {}
        for name, write in self._writers:
            if name not in given:
                self._refuse(given)
            argument = given[name]
            written[name] = argument if write is None or argument is None else write(argument)
        return Query(self, written if self._dialect.is_by_name else tuple(written.values()))

    def read(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Row]:
        """Return what the driver answered, each row by column name and in values of the domain."""
        key = tuple(columns)
        readers = self._readers.get(key)
        if readers is None:
            readers = self._readers[key] = tuple((name, self._dialect.reader(name)) for name in key)
        return [
            {
                name: stored if convert is None or stored is None else convert(stored)
                for (name, convert), stored in zip(readers, row, strict=True)
            }
            for row in rows
        ]

    def _refuse(self, given: Mapping[str, Any]) -> NoReturn:
        missing, unknown = sorted(set(self.names) - set(given)), sorted(set(given) - set(self.names))
        raise TypeError(
            f"the statement {self.name} takes {', '.join(self.names)}: missing {missing}, unknown {unknown}"
        )


def bind_statements(kind: type[T], text: str, where: str, dialect: Dialect) -> T:
    """Return a `kind` whose annotated names are the statements of this text; the names of both must be the same."""
    bound = bind_queries(kind, text, where)
    for name, sql in vars(bound).copy().items():
        setattr(bound, name, Statement(name, sql, dialect))
    return bound
