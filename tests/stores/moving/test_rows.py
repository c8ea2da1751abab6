"""Every row of every table arrives, with every column, in both directions."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from everytick.stores.moving.move import move_store, side_of
from everytick.stores.moving.tables import Row
from tests.servers.launch import Server
from tests.stores.moving.rows import all_rows, fill
from tests.stores.postgres.kit import schema


async def test_a_round_trip_through_postgres_keeps_every_column_of_every_table(
    postgres: Server, tmp_path: Path
) -> None:
    """B16: SQLite to PostgreSQL, to another schema of it, and back to SQLite."""
    fill(tmp_path / "first.db")
    async with schema(postgres) as one, schema(postgres) as two:
        places = [f"{postgres.address}?schema={name}" for name in (one, two)]
        addresses = [f"sqlite:///{tmp_path / 'first.db'}", *places, f"sqlite:///{tmp_path / 'last.db'}"]
        before, counters = await held(addresses[0])
        for old, new in pairwise(addresses):
            moved = await move_store(old, new)
            assert moved.jobs == 3
            after, counted = await held(new)
            assert counted == counters
            for table, rows in before.items():
                assert after[table] == rows, table


async def held(address: str) -> tuple[dict[str, list[Row]], Mapping[str, int]]:
    """Return the rows of every table, and the last numbers that the tables have given."""
    side = side_of(address, "from")
    try:
        async with side.reading() as reading:
            return await all_rows(reading), await reading.counters()
    finally:
        await side.close()
