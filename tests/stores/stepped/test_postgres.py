"""Any two deeds on one job at the same moment, on PostgreSQL: one stops in the middle of its transaction."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Any

import asyncpg
import pytest

from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import AnyStore
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import schema
from tests.stores.stepped.gate import FREE, HELD, Gate, build
from tests.stores.stepped.scene import DEEDS, Scene, done, require_settles, require_sound, set_up, state
from tests.stores.stepped.serial import allowed, differences

FEW = (1, 2)
"""Before the first write and after it. A short run tries one of them with each pair, and both with each deed."""


@asynccontextmanager
async def two_sessions(server: Server, clock: ManualClock) -> AsyncIterator[tuple[AnyStore, AnyStore, Gate]]:
    """Give the store that is held, the one that is free, both on one schema, and the gate between them."""
    async with schema(server) as name:
        stores = [
            PostgresStore(server.address, schema=name, clock=clock, settings={"application_name": session})
            for session in (HELD, FREE)
        ]
        for store in stores:
            await store.open()
        db = await asyncpg.connect(server.address, server_settings={"search_path": name})
        try:
            yield stores[0], stores[1], await build(db, name)
        finally:
            await db.close()
            for store in stores:
                await store.close()


async def interleaved(
    held: AnyStore, free: AnyStore, gate: Gate, scene: Scene, first: str, second: str, crossing: int
) -> tuple[dict[str, Any], bool]:
    """Let the first stop at the crossing while the second goes as far as it can, then both to their end."""
    async with gate.stopping_at(crossing):
        stopped = asyncio.create_task(done(first, held, scene))
        reached = await gate.is_reached(stopped)
        other = asyncio.create_task(done(second, free, scene))
        if reached:
            await gate.until_done_or_waiting(other)
    async with asyncio.timeout(60):
        return {first: await stopped, second: await other}, reached


async def try_pair(
    held: AnyStore, free: AnyStore, gate: Gate, clock: ManualClock, first: str, second: str, crossing: int
) -> tuple[bool, Scene]:
    """Let two deeds meet at a crossing and hold what follows to the serial orders; say whether they met at all."""
    await gate.empty()
    # The store's time never runs back: each scene begins on a later day.
    clock.time = clock.time.replace(hour=9, minute=0)
    clock.move(days=1)
    expected = await allowed(clock, first, second)
    scene = await set_up(held, clock)
    answers, met = await interleaved(held, free, gate, scene, first, second, crossing)
    found = answers, await state(free, scene)
    where = f"{first} stopped at crossing {crossing}, {second} went on"
    assert found in expected, f"{where}: {differences(found, expected)}"
    await require_sound(free, scene, clock)
    return met, scene


@pytest.mark.parametrize("first", sorted(DEEDS))
async def test_two_deeds_at_once_have_the_result_of_one_after_the_other(
    postgres: Server, clock: ManualClock, first: str
) -> None:
    async with two_sessions(postgres, clock) as (held, free, gate):
        turns = cycle(FEW) if sorted(DEEDS).index(first) % 2 else cycle(reversed(FEW))
        for second, crossing in zip(sorted(DEEDS.keys() - {first}), turns, strict=False):
            met, _ = await try_pair(held, free, gate, clock, first, second, crossing)
            assert met, f"{first} has fewer than {crossing} crossings"


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", sorted(DEEDS))
async def test_two_deeds_that_meet_at_any_write_have_the_result_of_one_after_the_other(
    postgres: Server, clock: ManualClock, first: str
) -> None:
    async with two_sessions(postgres, clock) as (held, free, gate):
        for second in sorted(DEEDS.keys() - {first}):
            crossing, met = 0, True
            while met:
                crossing += 1
                met, scene = await try_pair(held, free, gate, clock, first, second, crossing)
                await require_settles(free, scene, clock)
