"""A story of nodes happens on every store."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from everytick.stores.addresses import AnyStore
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.postgres import kit
from tests.unit.node.worlds import Story, living, living_on

Live = Callable[[Story], None]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Live:
    """Lets a story happen on virtual time: in memory, on a file and on a server."""
    if request.param == "memory":
        return living
    if request.param == "sqlite":
        return partial(living_on, opened=partial(_on_file, tmp_path / "world.db"))
    return partial(living_on, opened=partial(kit.opened, request.getfixturevalue("postgres")))


@asynccontextmanager
async def _on_file(path: Path, clock: Callable[[], datetime]) -> AsyncIterator[AnyStore]:
    made: Any = SqliteStore(path, clock=clock)
    await made.open()
    try:
        yield made
    finally:
        await made.close()
