"""A store of each kind on a clock that the test moves, and a world of schedulers on it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from everytick.testing import ManualClock
from tests.acceptance.declarative.world import World
from tests.stores.postgres.kit import opened


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def clock() -> ManualClock:
    """Half a minute past noon."""
    return ManualClock("2026-03-03T12:00:30Z")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Any]:
    """A store of each kind, open."""
    if request.param == "postgres":
        async with opened(request.getfixturevalue("postgres"), clock) as made:
            yield made
    else:
        memory = request.param == "memory"
        async with _open(MemoryStore(clock) if memory else SqliteStore(tmp_path / "store.db", clock=clock)) as made:
            yield made


class _open:
    def __init__(self, store: Any) -> None:
        self._store = store

    async def __aenter__(self) -> Any:
        await self._store.open()
        return self._store

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()


@pytest.fixture
async def world(store: Any, clock: ManualClock) -> AsyncIterator[World]:
    """Schedulers on the store; whatever still runs is stopped afterwards."""
    made = World(store, clock)
    yield made
    await made.close()
