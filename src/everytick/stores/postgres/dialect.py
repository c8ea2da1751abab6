"""How asyncpg takes a statement: numbered parameters, times and uuids as they are."""

import re
from datetime import timedelta
from typing import Any

from everytick.stores.postgres.rows import text
from everytick.stores.sql.statements import ColumnKind, Dialect

_OCCURRENCE = re.compile(r"occ_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_MICROSECOND = timedelta(microseconds=1)


def postgres_dialect(schema: str) -> Dialect:
    """Return the dialect for the tables of this schema."""
    return Dialect(
        place=lambda number, name: f"${number}",
        is_by_name=False,
        markers={
            "schema": f'"{schema}"',
            "lock": "for no key update of {}",
            "skip": "skip locked",
            "in": "= any(:{})",
            "list": ":{}",
        },
        writes={ColumnKind.ID: _uuid, ColumnKind.DURATION: _micros, ColumnKind.PLAIN: _plain},
        reads={ColumnKind.ID: _id, ColumnKind.DURATION: _duration},
        writes_list=list,
    )


def _uuid(occurrence_id: str) -> str | None:
    """Return the id as the table holds it; None for a text that no occurrence can have."""
    named = _OCCURRENCE.fullmatch(occurrence_id)
    return None if named is None else named[1]


def _id(stored: object) -> str:
    return f"occ_{stored}"


def _micros(length: timedelta) -> int:
    return length // _MICROSECOND


def _duration(stored: int) -> timedelta:
    return timedelta(microseconds=stored)


def _plain(given: Any) -> Any:
    return text(given) if type(given) is str else given
