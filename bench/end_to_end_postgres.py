"""End to end on PostgreSQL: jobs without a body, from the backlog to their last record, beside pgqueuer.

    python3 dev.py bench end_to_end_postgres

40,000 wait when a node with 10, 50 or 500 slots starts; pgqueuer takes batches of the
same size. The server writes to disk before it answers. everytick keeps the occurrence,
the run and the attempt of each; pgqueuer deletes what it did. Afterwards the rows are
counted. Beside them stands a job of three tasks in order, where every step is committed
before the next task starts.
"""

import importlib
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._backlog import drained
from bench._beside import Figures, Watch, asked, column, durable_server, in_turns, judged, middle, ratio, rounds

BACKLOG = 40_000
IN_ORDER = 5_000
BARS = {10: 2.0, 50: 1.3, 500: 1.1}


async def pgqueuer(address: str, server: int, slots: int) -> Figures:
    """Run the backlog with pgqueuer at this batch."""
    peer = importlib.import_module("pgqueuer")
    drain = importlib.import_module("pgqueuer.types").QueueExecutionMode.drain
    pool = await asyncpg.create_pool(address, min_size=4, max_size=8)
    await pool.execute("drop schema if exists everytick cascade; drop schema public cascade; create schema public")
    driver = peer.AsyncpgPoolDriver(pool)
    queries = peer.Queries(driver)
    await queries.install()
    for _ in range(BACKLOG // 1000):
        await queries.enqueue(["body"] * 1000, [None] * 1000, [0] * 1000)
    app, bodies = peer.PgQueuer(driver), 0

    async def body(job: Any) -> None:
        nonlocal bodies
        bodies += 1

    app.entrypoint("body")(body)
    with Watch(server) as watch:
        await app.run(batch_size=slots, mode=drain, dequeue_timeout=timedelta(milliseconds=1))
    async with asyncpg.create_pool(address, min_size=1, max_size=1) as counting:
        left = await counting.fetchval("select count(*) from pgqueuer")
    assert (bodies, left) == (BACKLOG, 0), f"{bodies} of {BACKLOG} ran, {left} are left"
    return watch.figures(BACKLOG)


async def everytick(address: str, server: int, slots: int, tasks: int = 1) -> Figures:
    """Run the backlog with a node of so many slots."""
    return await drained(address, slots, BACKLOG, tasks, server)


SIDES = {"pgqueuer": pgqueuer, "everytick": everytick}


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    if asked(SIDES):
        return 0
    enough = True
    with durable_server() as (address, pid):
        for slots, bar in BARS.items():
            found = in_turns(list(SIDES), rounds(), address=address, server=pid, slots=slots)
            for side, figures in found.items():
                print(f"{slots:3} slots: {side:9} {told(figures)}")
            faster = ratio(column(found["everytick"], "rate"), column(found["pgqueuer"], "rate"))
            print(
                f"{slots:3} slots: {faster} times its rate, at least {bar}: {judged(faster.worse >= bar)}", flush=True
            )
            enough &= faster.worse >= bar
        found = in_turns(["everytick"], rounds(), address=address, server=pid, slots=50, tasks=3)
        rate = middle(found["everytick"], "rate")
        print(
            f" 50 slots, three tasks in order: {told(found['everytick'])}, "
            f"at least {IN_ORDER}: {judged(rate >= IN_ORDER)}"
        )
    return int(not (enough and rate >= IN_ORDER))


def told(figures: list[Figures]) -> str:
    """Return the medians, in words."""
    rate, client, server = (middle(figures, name) for name in ("rate", "client", "server"))
    return f"{rate:>7,.0f} a second, processor {client:5.1f} µs in the process and {server:5.1f} in the server for each"


if __name__ == "__main__":
    sys.exit(main())
