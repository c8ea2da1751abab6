"""Every test here has a fleet of its own, and runs on a store that processes can share: SQLite and PostgreSQL."""

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.stoppable import StoppableServer
from tests.servers import keeper
from tests.servers.launch import Server

_numbers = count(1)


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


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return asyncio.run(new_database(request.getfixturevalue("postgres")))


async def new_database(server: Server) -> str:
    """Return the address of an empty database."""
    name = f"acceptance_{next(_numbers)}"
    db = await asyncpg.connect(server.address)
    await db.execute(f"drop database if exists {name} with (force)")
    await db.execute(f"create database {name}")
    await db.close()
    return f"{server.address.rpartition('/')[0]}/{name}"
