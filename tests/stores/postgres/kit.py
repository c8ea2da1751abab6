"""PostgreSQL stores for tests: each in a schema of its own, on the test's clock, under several kinds of session."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import asyncpg

from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.clock import ManualClock

SESSIONS: Mapping[str, Mapping[str, Any]] = {
    "postgres": {},
    "postgres-in-apia": {"settings": {"timezone": "Pacific/Apia", "datestyle": "SQL, DMY"}},
    "postgres-behind-a-proxy": {"pooling": True},
}
"""The suite runs once in each: plain, with a hostile time zone, and without prepared statements or LISTEN."""

_numbers = count(1)


@asynccontextmanager
async def schema(server: Server) -> AsyncIterator[str]:
    """Give the name of a schema that nobody else uses; it is gone afterwards."""
    name = f"test_{next(_numbers)}"
    try:
        yield name
    finally:
        db = await asyncpg.connect(server.address)
        await db.execute(f"drop schema if exists {name} cascade")
        await db.close()


@asynccontextmanager
async def opened(server: Server, clock: ManualClock, kind: str = "postgres") -> AsyncIterator[PostgresStore]:
    """Give an open store in a schema of its own."""
    async with schema(server) as name:
        made = PostgresStore(server.address, schema=name, clock=clock, **SESSIONS[kind])
        await made.open()
        try:
            yield made
        finally:
            await made.close()
