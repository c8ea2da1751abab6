"""Claiming and finishing on Redis, with full records, beside huey's queue on the same server.

    python3 dev.py bench redis_store

4,000 single-task occurrences wait; one process claims and finishes them, 100 at a time, as a node with free slots
does. huey takes from its Redis queue and runs, one at a time, in one loop without threads, which is its fastest way;
it keeps no history. Then three processes do the same on one store at once, each with its own copy: what they take from
each other is told as tries for one commit, and the longest that one verb took is that of the process that waited most.
The server writes its append-only file once a second for both. Afterwards the completed rows are counted.
"""

import importlib
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import redis

from bench._beside import Figures, Side, Watch, ask, asked, column, in_turns, judged, middle, ratio, rounds
from bench.sqlite_store import Clock, finish, job
from everytick.app.foreground import calm_collector
from everytick.deciding.plan import plan
from everytick.domain.changes import Put
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import Commit, HistoryFilter, NodeScope
from everytick.stores.redis.store import RedisStore
from tests.servers import keeper
from tests.servers.installations import redis_installations

JOBS, INSTANTS = 1_000, 4
BACKLOG = JOBS * INSTANTS
AT_ONCE = 100
PROCESSES = 3
HUEY_BACKLOG = 4_000
BAR = 5_000


@contextmanager
def appending_server() -> Iterator[tuple[str, int]]:
    """Give the address and process of a fresh Redis that writes its append-only file once a second."""
    with keeper.folder() as scratch:
        command = keeper.redis_command(keeper.programs(redis_installations()[0], scratch), scratch)
        command[command.index("--appendonly") + 1] = "yes"
        process, port = keeper.started(command, scratch)
        try:
            yield keeper.ADDRESSES["redis"].format(port=port), process.pid
        finally:
            keeper.stop(process)


async def filled(address: str, clock: Clock) -> RedisStore:
    """Return a store in which the backlog waits."""
    with redis.Redis.from_url(address) as client:
        client.flushall()
    store = RedisStore(address, clock=clock)
    await store.open()
    await store.apply([Put(job(number)) for number in range(JOBS)])
    for _ in range(INSTANTS + 1):
        while True:
            async with store.due(NodeScope("planner"), 500) as batch:
                if not batch.snapshots:
                    break
                await store.commit_plans(batch, [plan(snapshot, batch.now) for snapshot in batch.snapshots])
        clock.time += timedelta(minutes=1)
    return store


class Tries:
    """Counts the commits of a store, and those that came too late."""

    def __init__(self, store: RedisStore) -> None:
        self.count, self.refused, self.longest = 0, 0, 0.0
        self._commit = store._log.commit
        store._log.commit = self._counted  # type: ignore[method-assign]

    async def _counted(self, *given: Any, **named: Any) -> Any:
        answer = await self._commit(*given, **named)
        self.count += 1
        self.refused += not answer.written
        return answer

    @contextmanager
    def verb(self) -> Iterator[None]:
        """Keep how long the slowest verb took."""
        begun = time.perf_counter()
        yield
        self.longest = max(self.longest, time.perf_counter() - begun)


async def drained(store: RedisStore, node: str, tries: Tries) -> int:
    """Claim and finish until nothing waits; return how many there were."""
    count, now = 0, await store.now()
    while True:
        with tries.verb():
            claims = await store.claim(NodeScope(node), AT_ONCE)
        if not claims:
            return count
        with tries.verb():
            answers = await store.commit_steps([(claim, finish(claim, now)) for claim in claims])
        assert answers == [Commit.COMMITTED] * len(claims), "an end was not taken"
        count += len(claims)


async def require_rows(address: str, clock: Clock) -> None:
    """Count what is completed, in a copy that is read anew."""
    store, count, cursor = RedisStore(address, clock=clock), 0, None
    completed = (OccurrenceStatus.COMPLETED,)
    await store.open()
    try:
        while True:
            page = await store.history(HistoryFilter(limit=1_000, cursor=cursor, statuses=completed))
            count += len(page.occurrences)
            if (cursor := page.cursor) is None:
                break
    finally:
        await store.close()
    assert count == BACKLOG, f"{count} of {BACKLOG} are completed"


async def everytick(address: str, server: int) -> Figures:
    """One process claims and finishes the backlog."""
    calm_collector()
    clock, watch = Clock(), Watch(server)
    store = await filled(address, clock)
    with watch:
        count = await drained(store, "node-1", Tries(store))
    await store.close()
    assert count == BACKLOG, f"{count} of {BACKLOG} ran"
    await require_rows(address, clock)
    return watch.figures(BACKLOG)


async def three(address: str, server: int) -> Figures:
    """Three processes claim and finish the backlog together; who of them cost the server what is not told."""
    clock = Clock()
    await (await filled(address, clock)).close()
    given = {"address": address, "minutes": INSTANTS + 1}
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = list(pool.map(lambda number: ask("one", number=number, **given), range(PROCESSES)))
    assert sum(each["count"] for each in found) == BACKLOG, f"{found} are not the backlog"
    await require_rows(address, clock)
    seconds = max(each["ended"] for each in found) - min(each["begun"] for each in found)
    return {
        "rate": BACKLOG / seconds,
        "server": 0.0,
        "client": sum(each["cpu"] for each in found) * 1e6 / BACKLOG,
        "tries": sum(each["tries"] for each in found) / sum(each["tries"] - each["refused"] for each in found),
        "least": min(each["count"] for each in found) / BACKLOG,
        "longest": max(each["longest"] for each in found),
    }


async def one(address: str, minutes: int, number: int) -> Figures:
    """One of three: it begins when all have read the store."""
    calm_collector()
    clock = Clock()
    clock.time += timedelta(minutes=minutes)
    store = RedisStore(address, clock=clock)
    await store.open()
    with redis.Redis.from_url(address) as client:
        # The last one to come opens the gate for all.
        if client.incr("ready") == PROCESSES:
            client.rpush("gate", *range(PROCESSES))
        client.blpop(["gate"])
    tries, begun, cpu = Tries(store), time.time(), time.process_time()
    count = await drained(store, f"node-{number}", tries)
    spent = {"ended": time.time(), "cpu": time.process_time() - cpu}
    await store.close()
    told = {"tries": tries.count, "refused": tries.refused, "longest": tries.longest}
    return {"count": count, "begun": begun, **spent, **told}


def huey(address: str, server: int) -> Figures:
    """Run a backlog with huey; one at a time, as it does, a smaller one tells as much."""
    peer = importlib.import_module("huey").RedisHuey("bench", url=address, results=False)
    bodies = 0

    @peer.task()  # type: ignore[untyped-decorator]
    def body() -> None:
        nonlocal bodies
        bodies += 1

    for _ in range(HUEY_BACKLOG):
        body()
    with Watch(server) as watch:
        while (found := peer.dequeue()) is not None:
            peer.execute(found)
            if bodies == HUEY_BACKLOG:
                break  # it would wait for more
    assert (bodies, peer.pending_count()) == (HUEY_BACKLOG, 0), f"{bodies} of {HUEY_BACKLOG} ran"
    return watch.figures(HUEY_BACKLOG)


SIDES: dict[str, Side] = {"huey": huey, "everytick": everytick, "three": three, "one": one}


def main() -> int:
    """Print every figure; 0 if they are good enough."""
    if asked(SIDES):
        return 0
    with appending_server() as (address, pid):
        found = in_turns(["huey", "everytick", "three"], rounds(), address=address, server=pid)
    for side, figures in found.items():
        rate, client, server = (middle(figures, name) for name in ("rate", "client", "server"))
        told = f"processor {client:.1f} µs for each, and {server:.1f} µs of the server's"
        print(f"{side:9} {rate:>7,.0f} a second, {told if side != 'three' else f'processor {client:.1f} µs for each'}")
    shared = found["three"]
    print(
        f"three     {middle(shared, 'tries'):.2f} tries for one commit, the slowest verb took "
        f"{max(column(shared, 'longest')):.2f} s, the least of the three did {min(column(shared, 'least')):.0%}"
    )
    rate = middle(found["everytick"], "rate")
    faster = ratio(column(found["everytick"], "rate"), column(found["huey"], "rate"))
    print(f"{faster} times huey's rate; {rate:,.0f} a second, at least {BAR:,}: {judged(rate >= BAR)}", flush=True)
    return int(rate < BAR)


if __name__ == "__main__":
    sys.exit(main())
