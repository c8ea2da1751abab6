"""A store in a file of its own, and plain SQL on the side."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everytick.stores.sqlite.store import SqliteStore
from tests.stores.clock import ManualClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def opened(path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(path, clock=clock)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def sql(opened: SqliteStore, path: Path) -> Iterator[sqlite3.Connection]:
    """A connection as another program would have it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection
