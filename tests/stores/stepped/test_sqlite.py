"""Any two deeds on one job at the same moment, on SQLite: two processes' worth of store on one file.

A third connection holds the file's write lock until both deeds stand before it, so that
neither knows of the other when it begins.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from everytick.stores.sqlite.store import SqliteStore
from tests.stores.clock import ManualClock
from tests.stores.stepped.scene import DEEDS, done, require_sound, set_up, state
from tests.stores.stepped.serial import allowed, differences, outcome


@asynccontextmanager
async def two_stores(folder: Path, clock: ManualClock) -> AsyncIterator[tuple[SqliteStore, SqliteStore]]:
    """Give two stores on one new file."""
    stores = SqliteStore(folder / "store.db", clock=clock), SqliteStore(folder / "store.db", clock=clock)
    for store in stores:
        await store.open()
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


@asynccontextmanager
async def nobody_writes(folder: Path) -> AsyncIterator[None]:
    """Hold the file's write lock for as long as this lasts."""
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as file:
        file.execute("begin immediate")
        try:
            yield
        finally:
            file.execute("rollback")


@pytest.mark.parametrize("first", sorted(DEEDS))
async def test_one_after_the_other_is_as_in_memory(first: str) -> None:
    for second in sorted(DEEDS.keys() - {first}):
        clock = ManualClock()
        expected = await outcome(clock, first, second)
        with TemporaryDirectory() as folder:
            async with two_stores(Path(folder), clock) as (one, other):
                scene = await set_up(one, clock)
                answers = {first: await done(first, one, scene), second: await done(second, other, scene)}
                found = answers, await state(one, scene)
                assert found == expected, f"{first}, then {second}: {differences(found, [expected])}"


@pytest.mark.parametrize("first", sorted(DEEDS))
async def test_both_at_once_is_as_one_after_the_other(first: str) -> None:
    for second in sorted(DEEDS.keys() - {first}):
        clock = ManualClock()
        expected = await allowed(clock, first, second)
        with TemporaryDirectory() as folder:
            async with two_stores(Path(folder), clock) as (one, other):
                scene = await set_up(one, clock)
                async with nobody_writes(Path(folder)):
                    deeds = [
                        asyncio.create_task(done(name, store, scene)) for name, store in ((first, one), (second, other))
                    ]
                    for _ in range(100):
                        await asyncio.sleep(0)
                    assert not any(deed.done() for deed in deeds), "nobody can have written"
                answers = dict(zip((first, second), await asyncio.gather(*deeds), strict=True))
                found = answers, await state(other, scene)
                assert found in expected, f"{first} and {second}: {differences(found, expected)}"
                await require_sound(other, scene, clock)
