"""Carries a shared verb out on one connection to the server."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import asyncpg  # type: ignore[import-untyped,unused-ignore]

from everytick.domain.decisions import Creation
from everytick.domain.job import Job
from everytick.domain.snapshots import JobSnapshot
from everytick.stores.base import Claim
from everytick.stores.postgres.compiled import ServerDefinitions
from everytick.stores.postgres.door import Connection
from everytick.stores.postgres.queries import Queries
from everytick.stores.sql.commands import (
    Ask,
    Claims,
    Command,
    Create,
    EndUnowned,
    Forget,
    Found,
    KeyTaken,
    Look,
    Make,
    Many,
    Referenced,
    Rows,
    Together,
    Versions,
)
from everytick.stores.sql.statements import Query

T = TypeVar("T")


class HotParts(Protocol):
    """What the hot verbs of the store do too, on a connection of the verb that asks."""

    async def claims_of(self, db: Connection, handles: Sequence[int]) -> list[Claim]:
        """Return these occurrences as their owner sees them, in this order."""

    async def looked_at(self, db: Connection, job_ids: Collection[str]) -> Mapping[str, JobSnapshot]:
        """Return what a plan would see of these jobs."""

    async def create(self, db: Connection, job_key: int, job: Job, creation: Creation) -> None:
        """Make an occurrence if it is not there yet."""

    async def end(self, db: Connection, ended: EndUnowned) -> None:
        """End an occurrence that no node runs."""


class AsyncRunner:
    """Sends a verb the answers to its commands, all from one connection."""

    def __init__(self, db: Connection, sql: Queries, compiled: ServerDefinitions, hot: HotParts) -> None:
        self._db, self._sql, self._compiled, self._hot = db, sql, compiled, hot

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
            if arguments:
                await self._db.executemany(command.statement.sql, arguments)
            return ()
        if isinstance(command, Versions):
            return Found(*await self._compiled.read(self._db, command.keys))
        if isinstance(command, Forget):
            return self._compiled.forget(command.job_key, command.version)
        if isinstance(command, Create):
            return await self._hot.create(self._db, command.job_key, command.job, command.creation)
        if isinstance(command, EndUnowned):
            return await self._hot.end(self._db, command)
        if isinstance(command, Claims):
            return await self._hot.claims_of(self._db, command.handles)
        if isinstance(command, Look):
            return await self._hot.looked_at(self._db, command.job_ids)
        if command is Ask.NOW:
            return await self._db.fetchval(*self._sql.now())
        await self._db.execute(*self._sql.ring())
        return None

    async def _rows(self, query: Query) -> Rows:
        found = await self._db.fetch(*query)
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
