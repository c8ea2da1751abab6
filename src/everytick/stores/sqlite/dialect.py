"""How SQLite takes a statement: parameters by name, times as microseconds, ids as 16 bytes, lists as JSON."""

import json
from collections.abc import Iterable
from datetime import timedelta

from everytick.stores.sql.statements import ColumnKind, Dialect
from everytick.stores.sqlite.rows import id_bytes, id_text, length, micros, moment


def _json(given: Iterable[object]) -> str:
    return json.dumps(list(given))


def _duration(stored: int) -> timedelta:
    return timedelta(microseconds=stored)


SQLITE = Dialect(
    place=lambda number, name: f":{name}",
    is_by_name=True,
    markers={"schema": "main", "lock": "", "skip": "", "in": "in (select value from json_each(:{}))", "list": ":{}"},
    writes={ColumnKind.INSTANT: micros, ColumnKind.DURATION: length, ColumnKind.ID: id_bytes},
    reads={ColumnKind.INSTANT: moment, ColumnKind.DURATION: _duration, ColumnKind.ID: id_text, ColumnKind.FLAG: bool},
    writes_list=_json,
)
