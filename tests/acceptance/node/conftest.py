"""Every test here has a fleet of its own, and runs on a store that processes can share.

That is SQLite and PostgreSQL, and Redis for tests that are marked `ON_REDIS_TOO`: two prove what nodes alone decide.
"""

import asyncio
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.stoppable import StoppableServer
from tests.acceptance.node.stoppable_redis import StoppableRedis
from tests.servers import keeper
from tests.servers.launch import Server

_numbers = count(1)

ON_REDIS_TOO = pytest.mark.parametrize("address", ["sqlite", "postgres", "redis"], indirect=True)
"""The test is about commits that race or come too late, and each store has its own way to refuse them."""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path) as made:
        yield made


@pytest.fixture
def server() -> Iterator[StoppableServer]:
    with keeper.folder() as scratch:
        made = StoppableServer(scratch)
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture
def redis_server() -> Iterator[StoppableRedis]:
    with keeper.folder() as scratch:
        made = StoppableRedis(scratch)
        try:
            yield made
        finally:
            made.kill()


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    if request.param == "redis":
        return f"{request.getfixturevalue('redis').address}?prefix=acceptance-{os.getpid()}-{next(_numbers)}"
    return asyncio.run(new_database(request.getfixturevalue("postgres")))


async def new_database(server: Server) -> str:
    """Return the address of an empty database."""
    name = f"acceptance_{next(_numbers)}"
    db = await asyncpg.connect(server.address)
    await db.execute(f"drop database if exists {name} with (force)")
    await db.execute(f"create database {name}")
    await db.close()
    return f"{server.address.rpartition('/')[0]}/{name}"
