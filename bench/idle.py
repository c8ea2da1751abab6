"""What a node with 10,000 hourly jobs costs while none of them is due, on each store.

    python3 dev.py bench idle

The jobs are defined in the application and planned; then the node is watched for a while,
with its heartbeat and everything else it does on its own. The share is of one core and
counts every thread of the process; memory is what the process holds.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._beside import Figures, Side, asked, durable_server, in_turns, judged, middle, resident_bytes
from everytick import Everytick, every

JOBS = 10_000
WATCHED = 20
MOST_SHARE = 0.01
MOST_MEGABYTES = 80


async def idle(address: str) -> Figures:
    """Watch an idle node on the store of this address."""
    tick = Everytick(address, name="bench")

    async def body() -> None:
        """Never due while we watch."""

    for number in range(JOBS):
        tick.job(every("1h"), name=f"job-{number}")(body)
    async with tick:
        await settled()
        begun, spent = time.perf_counter(), time.process_time()
        await asyncio.sleep(WATCHED)
        share = (time.process_time() - spent) / (time.perf_counter() - begun)
        return {"share": share, "megabytes": resident_bytes() / 1e6}


async def settled() -> None:
    """Return once the node has had a quiet second: what was defined is planned then."""
    for _ in range(120):
        spent = time.process_time()
        await asyncio.sleep(1)
        if time.process_time() - spent < 0.1:
            return
    raise AssertionError("the node did not come to rest within two minutes")


async def on_sqlite() -> Figures:
    """Watch an idle node on a SQLite file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return await idle(f"sqlite:///{Path(folder) / 'store.db'}")


async def on_postgres(address: str) -> Figures:
    """Watch an idle node on a fresh schema."""
    db = await asyncpg.connect(address)
    await db.execute("drop schema if exists everytick cascade")
    await db.close()
    return await idle(address)


async def in_memory() -> Figures:
    """Watch an idle node on the memory store, which holds every job in this process too."""
    return await idle("memory://")


SIDES: dict[str, Side] = {"SQLite": on_sqlite, "PostgreSQL": on_postgres, "memory": in_memory}


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    if asked(SIDES):
        return 0
    enough = True
    with durable_server() as (address, _):
        for side in SIDES:
            place = {"address": address} if side == "PostgreSQL" else {}
            found = in_turns([side], 1, **place)[side]
            share, megabytes = middle(found, "share"), middle(found, "megabytes")
            passed = share < MOST_SHARE and megabytes < MOST_MEGABYTES
            told = f"{100 * share:4.2f} % of a core, {megabytes:5.1f} MB"
            print(f"{JOBS:,} hourly jobs on {side:10} {told}, less than 1 % and 80 MB: {judged(passed)}", flush=True)
            enough &= passed
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main())
