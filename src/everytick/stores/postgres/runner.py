"""Carries a shared verb out on one connection to the server."""

from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped,unused-ignore]

from everytick.stores.postgres.base import Shared, send
from everytick.stores.postgres.connections import Connection, in_transaction
from everytick.stores.postgres.due import DueJobs
from everytick.stores.postgres.plan_writer import PlanWriter
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
    Together,
    Versions,
)
from everytick.stores.sql.statements import Query

T = TypeVar("T")


class AsyncRunner:
    """Sends a verb the answers to its commands, all from one connection."""

    def __init__(self, db: Connection, shared: Shared, due: DueJobs, writer: PlanWriter) -> None:
        self._db, self._shared, self._due, self._writer = db, shared, due, writer

    async def run(self, make: Make[T]) -> T:
        """Run the verb and return its result. An error of the verb does not roll back by itself."""
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
        if isinstance(command, (Query, Many)):
            return await send(self._db, command)
        if isinstance(command, Together):
            async with in_transaction(self._db):
                return [row for query in command.queries for row in await send(self._db, query)]
        if isinstance(command, Versions):
            return Found(*await self._shared.compiled.read(self._db, command.keys))
        if isinstance(command, Forget):
            return self._shared.compiled.forget(command.job_key, command.version)
        if isinstance(command, Create):
            return await self._writer.create(self._db, command.job_key, command.job, command.creation)
        if isinstance(command, EndUnowned):
            return await self._writer.end(self._db, command)
        if isinstance(command, Claims):
            return await self._shared.claims_of(self._db, command.handles)
        if isinstance(command, Look):
            return await self._due.looked_at(self._db, command.job_ids)
        if command is Ask.NOW:
            return await self._db.fetchval(*self._shared.sql.now())
        await self._db.execute(*self._shared.sql.ring())
        return None


def _meaning(error: Exception) -> Exception:
    """Return the error in the shared types. The driver's own error is its cause."""
    known: Exception
    if isinstance(error, asyncpg.UniqueViolationError):
        known = KeyTaken()
    elif isinstance(error, asyncpg.ForeignKeyViolationError):
        known = Referenced()
    else:
        return error
    known.__cause__ = error
    return known
