"""A folder that tests write jobs into, and stores with a clock that tests move."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everytick.stores.addresses import AnyStore
from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import opened
from tests.unit.sources.writing import JobFolder


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> AsyncIterator[AnyStore]:
    if request.param == "postgres":
        async with opened(request.getfixturevalue("postgres"), clock, "postgres") as shared:
            yield shared
        return
    made: AnyStore = MemoryStore(clock) if request.param == "memory" else SqliteStore(tmp_path / "a.db", clock=clock)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "jobs")
