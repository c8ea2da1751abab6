"""What every part of the store works with: connections, statements and cached definitions."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from everytick.domain.codes import RUN_CODE
from everytick.domain.steps import RunState, closed
from everytick.errors import NotFound
from everytick.stores.base import Claim
from everytick.stores.postgres import rows
from everytick.stores.postgres.claims import claim
from everytick.stores.postgres.connections import Connection, Connections
from everytick.stores.postgres.definition_cache import ServerDefinitions
from everytick.stores.postgres.rows import Row
from everytick.stores.sql.commands import Many, PlainVerb, Rows
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Query

T = TypeVar("T")

_OCCURRENCE = re.compile(r"occ_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")

_ENDED = "ids", "statuses", "errors"
_CLOSED = "handles", "tasks", "statuses"


class Shared:
    """What the parts of the store share: connections, statements, cached definitions, and how rows become claims."""

    def __init__(self, connections: Connections, cold: ColdQueries, definitions_kept: int) -> None:
        self.connections = connections
        self.cold = cold
        self.sql = connections.sql
        self.compiled = ServerDefinitions(self.sql.definitions, definitions_kept)

    async def claims(self, db: Connection, found: Sequence[Row]) -> tuple[list[Claim], list[int]]:
        """Return occurrences as their owner needs them, and the keys of those whose definition cannot be read."""
        if not found:
            return [], []
        definitions, _ = await self.compiled.read(db, {(row["job_key"], row["version"]) for row in found})
        runs = await self._runs(db, [row["handle"] for row in found if row["step_number"]])
        claims: list[Claim] = []
        unreadable: list[int] = []
        for row in found:
            kept = definitions.get((row["job_key"], row["version"]))
            if kept is None:
                unreadable.append(row["handle"])
            else:
                claims.append(claim(row, kept, runs.get(row["handle"])))
        return claims, unreadable

    async def claims_of(self, db: Connection, handles: Sequence[int]) -> list[Claim]:
        """Return these occurrences as claims, in this order, without unreadable ones."""
        found, _ = await self.claims(db, await db.fetch(*self.sql.claims_of(handles=handles)))
        by_handle = {claim.handle: claim for claim in found}
        return [by_handle[handle] for handle in handles if handle in by_handle]

    async def _runs(self, db: Connection, handles: Sequence[int]) -> dict[int, dict[str, RunState]]:
        found: dict[int, dict[str, RunState]] = {}
        if handles:
            for row in await db.fetch(*self.sql.runs(handles=handles)):
                found.setdefault(row["handle"], {})[row["task"]] = rows.run_state(row)
        return found

    async def end_unowned(
        self, db: Connection, endings: Sequence[tuple[str, int, str | None]], now: datetime
    ) -> list[Row]:
        """End these, by key, status and reason, and their runs, if no node runs them. Return the ended ones."""
        ended: list[Row] = await db.fetch(*self.sql.end_unowned(**columns(_ENDED, endings), now=now))
        begun = [row for row in ended if row["step_number"]]
        if begun:
            definitions, _ = await self.compiled.read(db, [(row["job_key"], row["version"]) for row in begun])
            runs = await self._runs(db, [row["handle"] for row in begun])
            over = []
            for row in begun:
                kept = definitions.get((row["job_key"], row["version"]))
                open_ = closed(None if kept is None else kept.rules, runs.get(row["handle"], {}), now)
                over += [(row["handle"], task, RUN_CODE[run.status]) for task, run in open_.items()]
            await db.execute(*self.sql.close_runs(**columns(_CLOSED, over), now=now))
        return ended


async def send(db: Connection, command: Query | Many) -> Rows:
    """Carry out a query, or a statement with many sets of arguments, and return its rows."""
    if isinstance(command, Query):
        found = await db.fetch(*command)
        return command.statement.read(tuple(found[0].keys()), found) if found else ()
    if command.arguments:
        given = [command.statement(**arguments).arguments for arguments in command.arguments]
        await db.executemany(command.statement.sql, given)
    return ()


async def carried_out(db: Connection, verb: PlainVerb[T]) -> T:
    """Send the statements of the verb on this connection, one after another, and return its answer."""
    rows: Rows | None = None
    while True:
        try:
            command = verb.send(rows)
        except StopIteration as done:
            answer: T = done.value
            return answer
        rows = await send(db, command)


def occurrence_key(occurrence_id: str) -> str:
    """Return the id as in the table. None for a text that is no id."""
    named = _OCCURRENCE.fullmatch(occurrence_id)
    if named is None:
        raise NotFound("occurrence", occurrence_id)
    return named[1]


def columns(names: Sequence[str], found: Iterable[Sequence[Any]]) -> dict[str, Sequence[Any] | None]:
    """Return rows as one list per column, by these names: this is how a batch is sent.

    A column without any value is None as a whole: `unnest` fills it up, and a driver that
    looks at every element is spared the looking.
    """
    sent = [None if _is_empty(column) else column for column in zip(*found, strict=True)]
    return dict(zip(names, sent or [()] * len(names), strict=True))


def lean_columns(names: Sequence[str], found: Iterable[Sequence[Any]]) -> dict[str, Sequence[Any] | None]:
    """Return the same, but one value for each later column that has the same value in all rows.

    Most of what ends together ends alike; the statement must know (`throughout`).
    """
    first, *rest = zip(*found, strict=True)
    return dict(zip(names, [first, *(_lean(column) for column in rest)], strict=True))


def _lean(column: Sequence[Any]) -> Sequence[Any] | None:
    one = column[0]
    if one != column[-1] or column.count(one) != len(column):
        return column
    return None if one is None else column[:1]


def _is_empty(column: Sequence[Any]) -> bool:
    return column[0] is None and all(value is None for value in column)
