"""A store that moves in the middle of whatever is done to it still agrees with the one in memory.

The deeds before the move, those while the new store is filled and those after it are compared with the store in memory,
which never moves: claims, batches, requests, limits, backfills, promises and history go along.
"""

import asyncio
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everytick.stores.following import FollowingStore
from everytick.stores.memory import MemoryStore
from everytick.stores.moving import move
from everytick.stores.moving.move import Stage, move_store
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sqlite.store import SqliteStore
from tests.servers.launch import Server
from tests.stores.agreement import Pair
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import schema

SEEDS = st.integers(0, 2**32)


class SteadyPair(Pair):
    """A pair on a clock that is never set back.

    What woke a job within the second before that counts by its latest moment in PostgreSQL and by its newest one in
    memory, which is none of the move's business.
    """

    async def do_set_clock_back(self) -> None:
        await self.both("settle_clock")


class Interrupted(Exception):
    """The mover was stopped."""


def interrupt(stage: Stage, rows: int) -> None:
    if stage is Stage.FILLED:
        raise Interrupted


async def agree_over_a_move(seed: int, server: Server, *, is_back: bool, deeds: int = 60) -> None:
    clock = ManualClock()
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # Only one of the two reads the test's clock for the mover.
        patch.setattr(move, "CLOCKS_APART", timedelta(days=100_000))
        file = Path(folder) / "store.db"
        async with schema(server) as name:
            addresses = f"sqlite:///{file}", f"{server.address}?schema={name}"
            made = (
                lambda: SqliteStore(file, clock=clock),
                lambda: PostgresStore(server.address, schema=name, clock=clock),
            )
            old, new = (addresses[1], addresses[0]) if is_back else addresses
            proven = FollowingStore(made[is_back], made[not is_back])
            await proven.open()
            try:
                pair = SteadyPair(MemoryStore(clock), proven, clock, seed)
                for _ in range(deeds):
                    await pair.act()
                with pytest.raises(Interrupted):
                    await move_store(old, new, told=interrupt)
                for _ in range(deeds // 2):
                    await pair.act()
                await move_store(old, new)
                # A beat is refused by the old store and asked again of the new one. Plans would be stale once.
                await pair.do_beat()
                for _ in range(deeds):
                    await pair.act()
                await pair.compare()
                assert proven.address.kind == ("sqlite" if is_back else "postgres")
            finally:
                await proven.close()


@pytest.mark.timeout(600)
@settings(max_examples=10)
@given(seed=SEEDS)
@example(seed=1488832277)  # a run that leaves the lane of the late and ends in one plan
def test_what_moves_to_postgres_means_what_memory_means(seed: int, postgres: Server) -> None:
    """B16."""
    asyncio.run(agree_over_a_move(seed, postgres, is_back=False))


@pytest.mark.timeout(600)
@settings(max_examples=10)
@given(seed=SEEDS)
@example(seed=75317443)  # a late run in a queue of its own
@example(seed=2893976444)  # retention of a version that is not in force
def test_what_moves_to_sqlite_means_what_memory_means(seed: int, postgres: Server) -> None:
    """B16."""
    asyncio.run(agree_over_a_move(seed, postgres, is_back=True))
