"""How soon a trigger's body starts on an idle node on PostgreSQL, beside pgqueuer.

    python3 dev.py bench pickup

One trigger at a time, from the call to the first line of the body: asked for in the node's
own process, and on another connection that only the server's notification tells the node
about. pgqueuer is told by a notification too. The server writes to disk before it answers.
"""

import asyncio
import importlib
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._beside import Figures, asked, column, durable_server, in_turns, judged, middle, percentile, ratio, rounds
from bench._node import hourly, opened, running
from everytick.domain.changes import Put
from everytick.domain.facts import Trigger

PROBES = 150
PAUSE = 0.02
BAR = 0.0028
WITHIN = 10


class Probes:
    """Knows when each probe was sent and how long its body took to start."""

    def __init__(self) -> None:
        self.sent_at = 0.0
        self.waits: list[float] = []
        self.arrived = asyncio.Event()

    def arrive(self) -> None:
        """A body has started."""
        self.waits.append(time.perf_counter() - self.sent_at)
        self.arrived.set()

    async def send_all(self, send: Callable[[], Awaitable[object]]) -> Figures:
        """Send one after another, each when the last one's body has started and a moment has passed."""
        for _ in range(PROBES):
            self.arrived.clear()
            self.sent_at = time.perf_counter()
            await send()
            await asyncio.wait_for(self.arrived.wait(), WITHIN)
            await asyncio.sleep(PAUSE)
        assert len(self.waits) == PROBES, f"{len(self.waits)} bodies for {PROBES} probes"
        return {"p50": percentile(self.waits, 50), "p99": percentile(self.waits, 99)}


async def pgqueuer(address: str) -> Figures:
    """Ask an idle pgqueuer."""
    peer = importlib.import_module("pgqueuer")
    pool = await asyncpg.create_pool(address, min_size=4, max_size=8)
    await pool.execute("drop schema if exists everytick cascade; drop schema public cascade; create schema public")
    driver = peer.AsyncpgPoolDriver(pool)
    queries = peer.Queries(driver)
    await queries.install()
    app, probes = peer.PgQueuer(driver), Probes()

    async def body(job: Any) -> None:
        probes.arrive()

    app.entrypoint("body")(body)
    running = asyncio.create_task(app.run(batch_size=10))
    await asyncio.sleep(1)
    found = await probes.send_all(lambda: queries.enqueue("body", None))
    app.shutdown.set()
    await asyncio.wait([running], timeout=WITHIN)
    return found


async def everytick(address: str, apart: bool) -> Figures:
    """Ask an idle node, from its own store or from one that knows nothing of the node."""
    db = await asyncpg.connect(address)
    await db.execute("drop schema if exists everytick cascade")
    await db.close()
    job, probes = hourly(1), Probes()

    async def body() -> None:
        probes.arrive()

    async with opened(address) as store, opened(address) as other:
        await store.apply([Put(job)])
        async with running(store, body, slots=10):
            await asyncio.sleep(1)
            numbers = count()
            asking = other if apart else store

            async def send() -> None:
                await asking.request(job.id, Trigger(str(next(numbers))))

            return await probes.send_all(send)


async def everytick_inside(address: str) -> Figures:
    """Ask an idle node in its own process."""
    return await everytick(address, apart=False)


async def everytick_notified(address: str) -> Figures:
    """Ask an idle node that only the server's notification tells of it."""
    return await everytick(address, apart=True)


SIDES = {"pgqueuer": pgqueuer, "everytick, notified": everytick_notified, "everytick, inside": everytick_inside}


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    if asked(SIDES):
        return 0
    with durable_server() as (address, _):
        found = in_turns(list(SIDES), rounds(), address=address)
    for side, waits in found.items():
        print(f"{side:20} p50 {1e3 * middle(waits, 'p50'):5.2f} ms, p99 {1e3 * middle(waits, 'p99'):5.2f} ms")
    enough = True
    for side in list(SIDES)[1:]:
        against = ratio(column(found[side], "p50"), column(found["pgqueuer"], "p50"), more_is_better=False)
        passed = against.worse <= 1 and middle(found[side], "p50") <= BAR
        print(f"{side:20} p50 {against} of pgqueuer's, at most 1 and {1e3 * BAR} ms: {judged(passed)}")
        enough &= passed
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main())
