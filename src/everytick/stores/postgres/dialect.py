"""How asyncpg takes a statement: numbered parameters, times and uuids as they are."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from everytick.domain.durations import MICROSECOND
from everytick.stores.postgres.rows import text
from everytick.stores.sql.statements import ColumnKind, Dialect

_OCCURRENCE = re.compile(r"occ_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def postgres_dialect(schema: str) -> Dialect:
    """Return the dialect for the tables of this schema."""
    return Dialect(
        place=lambda number, name: f"${number}",
        is_by_name=False,
        markers={
            "schema": f'"{schema}"',
            "lock": "for no key update of {}",
            "skip": "skip locked",
            "using": "",
            "bytewise": 'collate "C"',
            "in": "= any(:{})",
            "among": "in (select unnest(:{}::bigint[]))",
            "in_ids": "= any(:{}::uuid[])",
            "list": ":{}",
        },
        writes={ColumnKind.ID: _uuid, ColumnKind.DURATION: _micros, ColumnKind.PLAIN: _plain},
        reads={ColumnKind.ID: _id, ColumnKind.DURATION: _duration},
        writes_list=list,
        writes_ids=_uuids,
        rows=_rows,
        writes_rows=_write_rows,
    )


def _rows(name: str, columns: Mapping[str, str]) -> str:
    arrays = ", ".join(f":{name}_{column}::{type_}[]" for column, type_ in columns.items())
    return f"unnest({arrays}) {name}({', '.join(columns)})"


def _write_rows(name: str, columns: Mapping[str, Sequence[Any]]) -> Mapping[str, Any]:
    return {f"{name}_{column}": values for column, values in columns.items()}


def _uuid(occurrence_id: str) -> str | None:
    """Return the id as in the table. None for a text that is no id."""
    named = _OCCURRENCE.fullmatch(occurrence_id)
    return None if named is None else named[1]


def _uuids(occurrence_ids: Iterable[str]) -> list[str]:
    return [uuid for uuid in map(_uuid, occurrence_ids) if uuid is not None]


def _id(stored: object) -> str:
    return f"occ_{stored}"


def _micros(length: timedelta) -> int:
    return length // MICROSECOND


def _duration(stored: int) -> timedelta:
    return timedelta(microseconds=stored)


def _plain(given: Any) -> Any:
    return text(given) if type(given) is str else given
