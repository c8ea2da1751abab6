"""What an occurrence costs a fleet: processor time of node and server, bytes of history, its deletion, and a move.

    python3 dev.py bench scale

A node runs a backlog of jobs with one task and with three, on SQLite and on PostgreSQL. Then the bytes of all tables
and indexes are counted, retention deletes every occurrence, and a store as full as before is moved into PostgreSQL.
Bytes and processor time hold on a busy machine too; the wall does not. `docs/scale.md` says what follows from them.
"""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._backlog import drained
from bench._beside import Watch, durable_server
from bench._node import opened
from everytick.stores.addresses import AnyStore
from everytick.stores.moving.move import move_store

BACKLOG = 40_000
SLOTS = 50
ROUNDS = 3
AT_ONCE = 1_000

FORGET = "update everytick.job_state set keep_success = 0, keep_failure = 0, keep_last = 0"
BYTES = """select c.relname, pg_total_relation_size(c.oid), pg_indexes_size(c.oid) from pg_class c
            where c.relnamespace = 'everytick'::regnamespace and c.relkind = 'r'"""


def sqlite_bytes(path: Path) -> int:
    """Return how many bytes of the file are in use."""
    db = sqlite3.connect(path)
    try:
        pages, free, size = (
            db.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)
    finally:
        db.close()


async def postgres_sizes(address: str) -> dict[str, tuple[int, int]]:
    """Return the bytes of each table with its indexes, and those of the indexes."""
    db = await asyncpg.connect(address)
    try:
        await db.execute("vacuum analyze")
        return {row[0]: (row[1], row[2]) for row in await db.fetch(BYTES)}
    finally:
        await db.close()


async def pruned(store: AnyStore, server: int | None) -> str:
    """Delete every occurrence by retention, and return what one took."""
    with Watch(server) as watch:
        count = 0
        while found := await store.prune(AT_ONCE):
            count += found
    figures = watch.figures(count)
    return f"{count:,} pruned: node {figures['client']:.0f} µs, server {figures['server']:.0f} µs each"


async def folded(store: AnyStore) -> None:
    """Let the rollups come up to what has ended."""
    while await store.fold(20_000):
        pass


async def on_sqlite(tasks: int, folder: Path) -> None:
    """Run, count and tell."""
    path = folder / f"store-{tasks}.db"
    figures = await drained(f"sqlite:///{path}", SLOTS, BACKLOG, tasks, then=folded)
    held = sqlite_bytes(path) / BACKLOG
    print(f"sqlite    {tasks} task: node {figures['client']:.0f} µs; {held:.0f} bytes an occurrence", flush=True)


async def on_postgres(tasks: int, address: str, server: int) -> None:
    """Run, count, delete and tell."""
    figures = await drained(address, SLOTS, BACKLOG, tasks, server, then=folded)
    sizes = await postgres_sizes(address)
    total, indexes = (sum(each[place] for each in sizes.values()) for place in (0, 1))
    largest = sorted(sizes.items(), key=lambda each: -each[1][0])[:3]
    parts = ", ".join(f"{name} {both[0] / BACKLOG:.0f}" for name, both in largest)
    held = f"{total / BACKLOG:.0f} bytes an occurrence, {indexes / BACKLOG:.0f} of them indexes ({parts})"
    print(f"postgres  {tasks} task: node {figures['client']:.0f} µs, server {figures['server']:.0f} µs; {held}")
    db = await asyncpg.connect(address)
    await db.execute(FORGET)
    await db.close()
    async with opened(address) as store:
        told = await pruned(store, server)
    after = sum(each[0] for each in (await postgres_sizes(address)).values())
    print(f"          {told}; {after / BACKLOG:.0f} bytes are left after vacuum", flush=True)


async def moving(source: Path, address: str, server: int) -> None:
    """Move a store that is not in use, and tell."""
    db = await asyncpg.connect(address)
    await db.execute("drop schema if exists everytick cascade")
    await db.close()
    with Watch(server) as watch:
        moved = await move_store(f"sqlite:///{source}", address)
    figures = watch.figures(moved.rows)
    took = f"node {figures['client']:.0f} µs, server {figures['server']:.0f} µs a row"
    print(f"move      {moved.rows:,} rows: {took}; writers were held for {moved.held.total_seconds():.2f} s")


async def main() -> None:
    """Measure everything in turns."""
    with TemporaryDirectory() as scratch, durable_server() as server:
        for number in range(ROUNDS):
            print(f"round {number + 1} of {ROUNDS}, load average {os.getloadavg()[0]:.1f}")
            folder = Path(scratch) / str(number)
            folder.mkdir()
            for tasks in (1, 3):
                await on_sqlite(tasks, folder)
                await on_postgres(tasks, server.address, server.pid)
            await moving(folder / "store-1.db", server.address, server.pid)


if __name__ == "__main__":
    asyncio.run(main())
