"""How SQLite takes a statement: parameters by name, times as microseconds, ids as 16 bytes, lists as JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from everytick.stores.sql.statements import ColumnKind, Dialect
from everytick.stores.sqlite.rows import id_bytes, id_text, length, micros, moment


def _json(given: Iterable[object]) -> str:
    return json.dumps(list(given))


def _id_bytes(given: Iterable[str]) -> bytes:
    """Return the ids one behind the other, 16 bytes each; a text that no occurrence can have for an id is left out."""
    return b"".join(filter(None, map(id_bytes, given)))


def _duration(stored: int) -> timedelta:
    return timedelta(microseconds=stored)


def _rows(name: str, columns: Mapping[str, str]) -> str:
    read = ", ".join(f"json_extract(value, '$[{place}]') as {column}" for place, column in enumerate(columns))
    return f"(select {read} from json_each(:{name})) {name}"


def _write_rows(name: str, columns: Mapping[str, Sequence[Any]]) -> Mapping[str, Any]:
    rows = [list(map(_in_json, row)) for row in zip(*columns.values(), strict=True)]
    # Not as ASCII: a text with half of a surrogate pair is then refused by the driver, as anywhere else.
    return {name: json.dumps(rows, ensure_ascii=False)}


def _in_json(given: Any) -> Any:
    """Return a value as JSON holds it: SQLite ends a text there at a zero byte, which is written as in PostgreSQL."""
    return given.replace("\0", "\\x00") if type(given) is str and "\0" in given else given


SQLITE = Dialect(
    place=lambda number, name: f":{name}",
    is_by_name=True,
    markers={
        "schema": "main",
        "lock": "",
        "skip": "",
        "bytewise": "",
        "using": "indexed by {}",
        "in": "in (select value from json_each(:{}))",
        "among": "in (select value from json_each(:{}))",
        "in_ids": "in (with recursive"
        " nth(n) as (select 0 union all select n + 1 from nth where n + 1 < length(:{0}) / 16)"
        " select substr(:{0}, n * 16 + 1, 16) from nth)",
        "list": ":{}",
    },
    writes={ColumnKind.INSTANT: micros, ColumnKind.DURATION: length, ColumnKind.ID: id_bytes},
    reads={ColumnKind.INSTANT: moment, ColumnKind.DURATION: _duration, ColumnKind.ID: id_text, ColumnKind.FLAG: bool},
    writes_list=_json,
    writes_ids=_id_bytes,
    rows=_rows,
    writes_rows=_write_rows,
)
