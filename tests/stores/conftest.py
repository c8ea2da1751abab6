"""Every store runs the same suite: a test that names `store` runs once for each of them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import SUITE, opened
from tests.stores.redis.kit import opened_redis


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite", *SUITE, "redis"])
async def store(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param in SUITE:
        async with opened(request.getfixturevalue("postgres"), clock, request.param) as shared:
            yield shared
        return
    if request.param == "redis":
        async with opened_redis(request.getfixturevalue("redis"), clock, held_at_most=0) as made_here:
            yield made_here
        return
    made = SqliteStore(tmp_path / "store.db", clock=clock) if request.param == "sqlite" else MemoryStore(clock)
    await made.open()
    yield made
    await made.close()
