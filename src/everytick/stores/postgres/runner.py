"""Carries a shared verb out on one connection to the server."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped,unused-ignore]

from everytick.domain.snapshots import JobSnapshot
from everytick.stores.postgres.door import Connection
from everytick.stores.postgres.queries import Queries
from everytick.stores.sql.commands import Ask, Command, KeyTaken, Look, Make, Many, Referenced, Rows, Together
from everytick.stores.sql.statements import Query

T = TypeVar("T")

LookAt = Callable[[Connection, frozenset[str]], Awaitable[Mapping[str, JobSnapshot]]]


class AsyncRunner:
    """Sends a verb the answers to its commands, all from one connection."""

    def __init__(self, db: Connection, sql: Queries, look: LookAt) -> None:
        self._db, self._sql, self._look = db, sql, look

    async def run(self, make: Make[T]) -> T:
        """Return what the verb returns; what it raises undoes nothing by itself."""
        verb, answer, error = make(), None, None
        while True:
            try:
                command = verb.send(answer) if error is None else verb.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
            except (KeyTaken, Referenced) as uncaught:
                raise uncaught.__cause__ or uncaught from None
            answer = error = None
            try:
                answer = await self._carry_out(command)
            except asyncpg.IntegrityConstraintViolationError as raised:
                error = _meaning(raised)

    async def _carry_out(self, command: Command) -> Any:
        if isinstance(command, Query):
            return await self._rows(command)
        if isinstance(command, Together):
            async with self._db.transaction():
                return [row for query in command.queries for row in await self._rows(query)]
        if isinstance(command, Many):
            arguments = [command.statement(**given).arguments for given in command.arguments]
            await self._db.executemany(command.statement.sql, arguments)
            return ()
        if isinstance(command, Look):
            return await self._look(self._db, command.job_ids)
        if command is Ask.NOW:
            return await self._db.fetchval(self._sql.now)
        await self._db.execute(self._sql.ring)
        return None

    async def _rows(self, query: Query) -> Rows:
        found = await self._db.fetch(query.statement.sql, *query.arguments)
        return query.statement.read(tuple(found[0].keys()), found) if found else ()


def _meaning(error: Exception) -> Exception:
    """Return the error as a verb knows it; the driver's own is its cause."""
    known: Exception
    if isinstance(error, asyncpg.UniqueViolationError):
        known = KeyTaken()
    elif isinstance(error, asyncpg.ForeignKeyViolationError):
        known = Referenced()
    else:
        return error
    known.__cause__ = error
    return known
