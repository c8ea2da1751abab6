"""Every store runs the same suite: a test that names `store` runs once for each of them."""

from collections.abc import AsyncIterator

import pytest

from everytick.stores.memory import MemoryStore
from tests.stores.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory"])
async def store(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[MemoryStore]:
    made = MemoryStore(clock)
    await made.open()
    yield made
    await made.close()
