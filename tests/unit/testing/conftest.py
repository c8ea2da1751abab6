"""The test kit is tested on every store, each on the test's own ManualClock."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from everytick.testing import ManualClock
from tests.stores.postgres.kit import opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "postgres":
        async with opened(request.getfixturevalue("postgres"), clock) as made:
            yield made
        return
    kept = SqliteStore(tmp_path / "store.db", clock=clock) if request.param == "sqlite" else MemoryStore(clock)
    await kept.open()
    yield kept
    await kept.close()
