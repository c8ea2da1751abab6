"""Every store agrees with the one in memory, whatever is done to them in whatever order."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from tests.servers.launch import Server
from tests.stores.acting import AnyStore
from tests.stores.agreement import Pair, PlainPair
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import opened
from tests.stores.redis.kit import Alternating, another, opened_redis

SEEDS = st.integers(0, 2**32)


async def agree(
    proven: AnyStore, clock: ManualClock, seed: int, deeds: int, pair_of: Callable[..., Pair] = Pair
) -> Pair:
    """Do the deeds of a seed to memory and to the store, and compare every answer and what is left."""
    specified = MemoryStore(clock)
    pair = pair_of(specified, proven, clock, seed)
    for _ in range(deeds):
        await pair.act()
    await pair.compare()
    return pair


async def agree_on_sqlite(seed: int, pair_of: Callable[..., Pair] = Pair) -> None:
    clock = ManualClock()
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db", clock=clock)
        await store.open()
        try:
            await agree(store, clock, seed, 120, pair_of)
        finally:
            await store.close()


async def agree_on_postgres(seed: int, server: Server, pair_of: Callable[..., Pair] = Pair) -> Pair:
    clock = ManualClock()
    async with opened(server, clock) as store:
        return await agree(store, clock, seed, 80, pair_of)


@pytest.mark.timeout(600)
@settings(max_examples=60)
@given(SEEDS)
def test_sqlite_means_what_memory_means(seed: int) -> None:
    """S0-053, S0-056, S0-058."""
    asyncio.run(agree_on_sqlite(seed))


@pytest.mark.timeout(600)
@settings(max_examples=25)
@given(seed=SEEDS)
def test_postgres_means_what_memory_means(seed: int, postgres: Server) -> None:
    """S0-053, S0-056, S0-058."""
    asyncio.run(agree_on_postgres(seed, postgres))


@pytest.mark.timeout(600)
@settings(max_examples=20)
@given(SEEDS)
def test_plain_ticks_on_sqlite_mean_what_memory_means(seed: int) -> None:
    """S0-053: offers of slots, of which this store claims none along."""
    asyncio.run(agree_on_sqlite(seed, PlainPair))


@pytest.mark.timeout(600)
@settings(max_examples=15)
@given(seed=SEEDS)
def test_plain_ticks_on_postgres_mean_what_memory_means(seed: int, postgres: Server) -> None:
    """S0-053: offers of slots, for which this store claims some along and leaves others to the next claim."""
    asyncio.run(agree_on_postgres(seed, postgres, PlainPair))


async def test_the_machine_gets_claims_along_with_plans(postgres: Server) -> None:
    """A machine to which no store ever gave a claim with its answers would say nothing about offers."""
    pairs = [await agree_on_postgres(seed, postgres, PlainPair) for seed in range(3)]
    assert sum(pair.came_along for pair in pairs) >= 10


async def agree_on_redis(seed: int, server: Server) -> None:
    clock = ManualClock()
    async with opened_redis(server, clock) as store:
        await agree(store, clock, seed, deeds=120)


async def agree_on_two_copies(seed: int, server: Server, held_at_most: int = 0) -> None:
    clock = ManualClock()
    async with opened_redis(server, clock, held_at_most) as store, another(store, clock, held_at_most) as other:
        await agree(cast("AnyStore", Alternating([store, other])), clock, seed, deeds=120)


@pytest.mark.timeout(600)
@settings(max_examples=25)
@given(seed=SEEDS)
def test_redis_means_what_memory_means(seed: int, redis: Server) -> None:
    """S0-053, S0-056, S0-058."""
    asyncio.run(agree_on_redis(seed, redis))


@pytest.mark.timeout(600)
@settings(max_examples=25)
@given(seed=SEEDS)
def test_two_processes_on_redis_mean_what_memory_means(seed: int, redis: Server) -> None:
    """Each verb is carried out by the other one of two copies, which has to follow what the first has written.

    They hold as little as they may of what has ended, and read the rest when a verb needs it.
    """
    asyncio.run(agree_on_two_copies(seed, redis))


async def claims_that_went_on(seeds: range) -> int:
    """Return how many claims began with attempts that engines carry out, in the deeds of these seeds."""
    found = 0
    for seed in seeds:
        clock = ManualClock()
        pair = Pair(MemoryStore(clock), MemoryStore(clock), clock, seed)
        for _ in range(120):
            await pair.act()
        found += pair.went_on
    return found


async def test_the_machine_goes_on_with_what_engines_carry_out() -> None:
    """A machine that never came there would agree about nothing."""
    assert await claims_that_went_on(range(60)) >= 10


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=2000)
@given(seed=SEEDS)
def test_all_stores_mean_the_same_at_length(seed: int, postgres: Server, redis: Server) -> None:
    asyncio.run(agree_on_sqlite(seed))
    asyncio.run(agree_on_two_copies(seed, redis))
    asyncio.run(agree_on_postgres(seed, postgres))
