"""A PostgreSQL store of one's own for what only this store has."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import opened
from tests.stores.postgres.proxy import Proxy, proxied


@pytest.fixture
async def store(postgres: Server, clock: ManualClock) -> AsyncIterator[PostgresStore]:
    async with opened(postgres, clock, fresh=True) as made:
        yield made


@pytest.fixture
async def other(postgres: Server, clock: ManualClock, store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """Another node on the same tables."""
    made = PostgresStore(postgres.address, schema=store.schema, clock=clock)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def db(postgres: Server, store: PostgresStore) -> AsyncIterator[Any]:
    """A plain connection that finds the store's tables without naming the schema."""
    made = await asyncpg.connect(postgres.address, server_settings={"search_path": store.schema})
    yield made
    await made.close()


@pytest.fixture
async def through(
    postgres: Server, store: PostgresStore, clock: ManualClock
) -> AsyncIterator[tuple[Proxy, PostgresStore]]:
    """A proxy, and another node on the same tables that reaches the server through it."""
    async with proxied(postgres) as proxy:
        made = PostgresStore(proxy.address, schema=store.schema, clock=clock)
        await made.open()
        yield proxy, made
        await made.close()
