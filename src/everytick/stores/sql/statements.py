"""Statements with named parameters, made ready for one driver when they are loaded.

A text says `:job_id` and not `$1` or `?`. A `Statement` is called with every parameter by name and gives a `Query`, so
a parameter that is missing or unknown is an error where it is written. What a parameter or column holds follows from
its name: `ended_at` is an instant, `occurrence_id` an id, `status` a code. So no verb converts a value by hand.

Markers in braces are resolved at load: codes (`{pending}`, see domain/codes.py) and the words of a dialect
(`{schema}`, `{lock s}`, `{skip}`, `{bytewise}`, `{using an_index}`, `{in handles}`, `{among handles}`,
`{in_ids occurrence_ids}`, `{list texts}`). `in` finds rows by an index; `among` checks each row by a hash of the list.
As a table, `{rows keys: handle bigint, fence int}` reads many rows: the argument `keys` is a list of mappings, one per
row.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

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
from everytick.stores.queries import declared_queries, may_be_absent

T = TypeVar("T")
S = TypeVar("S", bound="Statements")
Convert: TypeAlias = Callable[[Any], Any]
Row: TypeAlias = dict[str, Any]
"""One row by column name, in values of the domain."""

Reader: TypeAlias = Callable[[Sequence[Sequence[Any]]], list[Row]]
_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_MARKER = re.compile(r"\{([\w.]+)(?: (\w+)(?:: ([^}]+))?)?\}")


class ColumnKind(Enum):
    """The type of a parameter or column, which follows from its name."""

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
    "kept": ColumnKind.DURATION,
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
    """Return the type of a parameter or column of this name."""
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
    `writes_list` makes one argument of converted values, `writes_ids` one of ids of occurrences. `rows` gives the text
    of many rows as a table, from their name and their columns with types, and `writes_rows` the arguments of that text.
    """

    place: Callable[[int, str], str]
    is_by_name: bool
    markers: Mapping[str, str]
    writes: Mapping[ColumnKind, Convert]
    reads: Mapping[ColumnKind, Convert]
    writes_list: Convert
    writes_ids: Convert
    rows: Callable[[str, Mapping[str, str]], str]
    writes_rows: Callable[[str, Mapping[str, Sequence[Any]]], Mapping[str, Any]]

    def writer(self, name: str) -> Convert | None:
        """Return the function that converts a value of the domain to a parameter of this name, if it needs one."""
        kind = kind_of(name)
        return _CODES[kind][0] if kind in _CODES else self.writes.get(kind)

    def reader(self, name: str) -> Convert | None:
        """Return the function that converts a column of this name to a value of the domain, if it needs one."""
        kind = kind_of(name)
        return _CODES[kind][1] if kind in _CODES else self.reads.get(kind)


class Query:
    """A statement with its arguments, as the driver takes them.

    asyncpg takes the text and the arguments one after the other: `db.fetch(*query)`.
    """

    __slots__ = ("arguments", "statement")

    def __init__(self, statement: "Statement", arguments: Any) -> None:
        self.statement = statement
        self.arguments = arguments

    def __iter__(self) -> Iterator[Any]:
        return iter((self.statement.sql, *self.arguments))

    def __repr__(self) -> str:
        return f"Query({self.statement.name}, {self.arguments!r})"


class Statement:
    """A text as one driver takes it. Calling it with every parameter by name gives a Query."""

    __slots__ = ("_dialect", "_places", "_readers", "_rows", "_writers", "name", "names", "sql")

    def __init__(self, name: str, text: str, dialect: Dialect) -> None:
        lists: dict[str, Convert] = {}
        rows: dict[str, dict[str, str]] = {}
        places: list[str] = []

        def resolved(marker: re.Match[str]) -> str:
            if marker[1] in IN_SQL:
                return str(IN_SQL[marker[1]])
            if marker[1] == "rows" and marker[3]:
                rows[marker[2]] = columns = dict(column.split() for column in marker[3].split(","))
                return dialect.rows(marker[2], columns)
            if marker[1] not in dialect.markers:
                raise ImportError(f"the statement {name} has an unknown marker: {marker[0]}")
            if marker[1] in ("in", "among", "list"):
                lists[marker[2]] = _list_writer(marker[2], dialect)
            elif marker[1] == "in_ids":
                lists[marker[2]] = dialect.writes_ids
            return dialect.markers[marker[1]].format(marker[2])

        def placed(parameter: re.Match[str]) -> str:
            if parameter[1] not in places:
                places.append(parameter[1])
            return dialect.place(places.index(parameter[1]) + 1, parameter[1])

        self.name = name
        self.sql = _NAMED.sub(placed, _MARKER.sub(resolved, text))
        self._dialect = dialect
        self._rows = {
            argument: {column: dialect.writer(column) for column in columns} for argument, columns in rows.items()
        }
        empty = (dialect.writes_rows(argument, dict.fromkeys(columns, ())) for argument, columns in rows.items())
        of_rows = {part for parts in empty for part in parts}
        own = [place for place in places if place not in of_rows]
        self._places = tuple(places)
        self._writers = tuple((name, lists.get(name) or dialect.writer(name)) for name in own)
        self.names = (*own, *rows)
        self._readers: dict[tuple[str, ...], Reader] = {}

    def __repr__(self) -> str:
        return f"Statement({self.name})"

    def __call__(self, **given: Any) -> Query:
        """Return the statement with these arguments: every parameter by name, and no other."""
        if len(given) != len(self.names):
            self._refuse(given)
        written: dict[str, Any] = {}
        for name, write in self._writers:
            if name not in given:
                self._refuse(given)
            argument = given[name]
            written[name] = argument if write is None or argument is None else write(argument)
        for name, columns in self._rows.items():
            if name not in given:
                self._refuse(given)
            written |= self._dialect.writes_rows(name, _columns(given[name], columns))
        if self._dialect.is_by_name:
            return Query(self, written)
        return Query(self, tuple(written[name] for name in self._places) if self._rows else tuple(written.values()))

    def read(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Row]:
        """Return the driver's rows by column name and in values of the domain."""
        names = tuple(columns)
        read = self._readers.get(names)
        if read is None:
            read = self._readers[names] = _reader(names, tuple(map(self._dialect.reader, names)))
        return read(rows)

    def _refuse(self, given: Mapping[str, Any]) -> NoReturn:
        missing, unknown = sorted(set(self.names) - set(given)), sorted(set(given) - set(self.names))
        raise TypeError(
            f"the statement {self.name} takes {', '.join(self.names)}: missing {missing}, unknown {unknown}"
        )


@cache
def _reader(columns: tuple[str, ...], converts: tuple[Convert | None, ...]) -> Reader:
    """Return a function that reads rows with these columns. One loop for all columns would take three times as long."""
    known = {f"convert_{place}": convert for place, convert in enumerate(converts)}
    names = [f"c{place}" for place in range(len(columns))]
    parts = [
        f"{column!r}: {name}"
        if convert is None
        else f"{column!r}: None if {name} is None else convert_{name[1:]}({name})"
        for column, name, convert in zip(columns, names, converts, strict=True)
    ]
    exec(f"def read(rows):\n return [{{{', '.join(parts)}}} for ({', '.join(names)},) in rows]", known)  # noqa: S102, our columns
    return cast("Reader", known["read"])


def _list_writer(name: str, dialect: Dialect) -> Convert:
    """Return what makes one argument of a list whose values are converted as a parameter of this name is."""
    write = dialect.writer(name)
    if write is None:
        return dialect.writes_list
    return lambda given: dialect.writes_list([None if item is None else write(item) for item in given])


def _columns(rows: Iterable[Mapping[str, Any]], writers: Mapping[str, Convert | None]) -> dict[str, list[Any]]:
    """Return many rows by column, each value as the driver takes it."""
    written: dict[str, list[Any]] = {column: [] for column in writers}
    for row in rows:
        for column, write in writers.items():
            value_ = row[column]
            written[column].append(value_ if write is None or value_ is None else write(value_))
    return written


class Statements:
    """Statements by name. Each is made ready when it is first asked for: a program uses few of them."""

    def __init__(self, texts: Mapping[str, str], dialect: Dialect) -> None:
        self._texts, self._dialect = texts, dialect

    def __getattr__(self, name: str) -> Statement | None:
        text = vars(self).get("_texts", {}).get(name)
        if text is None:
            if may_be_absent(type(self).__annotations__.get(name)):
                return None
            raise AttributeError(f"there is no statement {name}")
        statement = Statement(name, text, self._dialect)
        setattr(self, name, statement)
        return statement


def bind_statements(kind: type[S], text: str, where: str, dialect: Dialect) -> S:
    """Return a `kind` whose annotated names are the statements of this text; the names of both must be the same."""
    return kind(declared_queries(kind, text, where), dialect)


def with_statements(bound: T, dialect: Dialect) -> T:
    """Return the queries, where those that are annotated so take their parameters and give their columns by name."""
    for name, kind in type(bound).__annotations__.items():
        if kind is Statement:
            setattr(bound, name, Statement(name, getattr(bound, name), dialect))
    return bound
