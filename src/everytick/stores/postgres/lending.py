"""The caller's own connection, for a request that is committed with the caller's transaction, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped,unused-ignore]

from everytick.errors import Conflict
from everytick.stores.postgres.connections import Connection, Connections

_UNKNOWN = (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.UndefinedFunctionError)


_ROLLBACK_SECONDS = 2.0
"""How long the server has to cancel a statement and to roll back. Then the caller's connection is cut: a caller that
was canceled does not wait for a server that is frozen, and what is half written must not commit."""


@asynccontextmanager
async def lent(within: Any, connections: Connections) -> AsyncIterator[Connection]:
    """Give the connection behind a savepoint: an error of everytick leaves the caller's transaction as it was.

    Without an open transaction it is one of its own. Loss is named, whatever else is said
    of the statements is handed on.
    """
    if not hasattr(within, "is_in_transaction"):
        raise TypeError(f"within must be an asyncpg connection, not a {type(within).__name__}")
    inside = within.is_in_transaction()
    begin, end = ("savepoint everytick_request", "release everytick_request") if inside else ("begin", "commit")
    with connections.lending(within):
        await within.execute(begin)
        try:
            yield within
            await within.execute(end)
        except BaseException as error:
            await _rolled_back(within, "rollback to everytick_request" if inside else "rollback")
            if isinstance(error, _UNKNOWN):
                schema = connections.address.schema
                text = f"the connection given as within does not lead to the schema {schema} of this store"
                raise Conflict(text) from error
            raise


async def _rolled_back(within: Connection, statement: str) -> None:
    """Roll back, or cut the connection if the server does not answer in time."""
    if within.is_closed():
        return
    try:
        async with asyncio.timeout(_ROLLBACK_SECONDS):
            await within.execute(statement)
    except TimeoutError:
        within.terminate()
    except asyncio.CancelledError:
        within.terminate()
        raise
