"""What the SQLite store costs: creating, claiming and finishing single-task occurrences with their full records.

    python3 dev.py bench sqlite_store

1,000 jobs run ten times each in one file, at synchronous NORMAL and FULL. Only the verbs
are timed: what `plan` and `advance` decide in between is not. huey's queue on SQLite takes
turns with it: its own insert, then its own take and finish, one at a time as it does, at
`fsync=False` (synchronous OFF: it has no NORMAL) and `fsync=True` (FULL), in WAL, without
results and without history. The time of the processor stands beside that of the wall,
since the machine may be shared; what waits for the disk is seen on the wall alone, and
there the verdict is. The garbage collector is set as `tick.run()` sets it, for both.
"""

import asyncio
import importlib
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._beside import judged
from everytick.app.foreground import calm_collector
from everytick.deciding.advance import advance
from everytick.deciding.plan import plan
from everytick.domain.changes import Put
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.outcome import Succeeded
from everytick.domain.steps import AttemptEnded, Claimed, Step
from everytick.schedules.interval import every
from everytick.stores.base import Claim, Commit, NodeScope
from everytick.stores.sqlite.store import SqliteStore

JOBS = 1_000
BATCHES = (50, 500)
ROUNDS = 3
INSTANTS = 10
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
QUEUES = ("default",)
BARS = {"normal": 5, "full": 15}
"""So many times as fast as huey, on the wall, at the larger batch."""


class Watch:
    """Adds up the seconds, on the wall and of the processor, that pass inside `with`."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self.wall -= time.perf_counter()
        self.cpu -= time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()

    def each(self, count: int) -> float:
        """Return microseconds of the processor for one of so many."""
        return 1e6 * self.cpu / count


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time


def job(number: int) -> Job:
    name = f"job-{number}"
    policies = {"overlap": "allow", "recovery": "execute_all"}
    return define_job(name, every("1m"), policies=policies, tasks=[define_task(name, "main")])


async def planned(store: SqliteStore, watch: Watch) -> None:
    """Plan and commit every due job; the watch runs for `due` and `commit_plans` alone."""
    now = await store.now()
    while True:
        with watch:
            async with store.due(NodeScope("node-1"), 500) as batch:
                pass
        if not batch.snapshots:
            return
        plans = [plan(snapshot, now) for snapshot in batch.snapshots]
        with watch:
            await store.commit_plans(batch, plans)


def finish(claim: Claim, now: datetime) -> Step:
    begun = advance(claim.header, claim.life, Claimed(), now)
    start = begun.starts[0]
    return advance(claim.header, begun.after, AttemptEnded(start.task, start.number, Succeeded()), now)


async def drained(store: SqliteStore, batch: int, claiming: Watch, finishing: Watch) -> int:
    """Claim and finish everything; return how many there were."""
    count, now = 0, await store.now()
    while True:
        with claiming:
            claims = await store.claim(NodeScope("node"), batch)
        if not claims:
            return count
        steps = [(claim, finish(claim, now)) for claim in claims]
        with finishing:
            answers = await store.commit_steps(steps)
        assert answers == [Commit.COMMITTED] * len(claims), "nobody else is here to lose a race to"
        count += len(claims)


Costs = dict[str, float]
"""Microseconds for one occurrence, by what was done and which clock was looked at."""


async def measured(synchronous: Literal["normal", "full"], batch: int) -> Costs:
    clock, creating, claiming, finishing = Clock(), Watch(), Watch(), Watch()
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db", clock=clock, synchronous=synchronous)
        await store.open()
        await asyncio.gather(*(store.apply([Put(job(number))]) for number in range(JOBS)))
        await planned(store, Watch())
        for _ in range(INSTANTS):
            clock.time += timedelta(minutes=1)
            await planned(store, creating)
            count += await drained(store, batch, claiming, finishing)
        await store.close()
    assert count == JOBS * INSTANTS, f"{count} were run"
    return {
        "create": creating.each(count),
        "claim": claiming.each(count),
        "finish": finishing.each(count),
        "run": claiming.each(count) + finishing.each(count),
        "run on the wall": 1e6 * (claiming.wall + finishing.wall) / count,
    }


def measured_huey(synchronous: str) -> Costs:
    count = 2_000 if synchronous == "normal" else 200
    with tempfile.TemporaryDirectory() as folder:
        huey = importlib.import_module("huey").SqliteHuey(
            filename=str(Path(folder) / "huey.db"), fsync=synchronous == "full", results=False
        )
        task = huey.task()(lambda: None)
        creating, running = Watch(), Watch()
        with creating:
            for _ in range(count):
                task()
        with running:
            while (found := huey.dequeue()) is not None:
                huey.execute(found)
    return {
        "create": creating.each(count),
        "run": running.each(count),
        "run on the wall": 1e6 * running.wall / count,
    }


def middle(found: Sequence[Costs]) -> Costs:
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def said(costs: Costs) -> str:
    return ", ".join(f"{name} {cost:,.1f} µs" for name, cost in costs.items())


def compared(synchronous: Literal["normal", "full"], with_huey: bool) -> bool:
    """Let both take turns, so that a busy moment of the machine is one for both; return whether we are fast enough."""
    own: dict[int, list[Costs]] = {batch: [] for batch in BATCHES}
    peer: list[Costs] = []
    for _ in range(ROUNDS):
        for batch in BATCHES:
            own[batch].append(asyncio.run(measured(synchronous, batch)))
        if with_huey:
            peer.append(measured_huey(synchronous))
    for batch in BATCHES:
        print(f"{synchronous:6} batches of {batch:3}: {said(middle(own[batch]))}")
    if not with_huey:
        return True
    print(f"huey   fsync={synchronous == 'full'}: {said(middle(peer))}")
    best, theirs, bar = middle(own[BATCHES[-1]]), middle(peer), BARS[synchronous]
    cheaper, faster = (theirs[name] / best[name] for name in ("run", "run on the wall"))
    print(
        f"       in batches of {BATCHES[-1]} 1/{cheaper:.1f} of huey's processor time, 1/{faster:.1f} on the wall,"
        f" at most 1/{bar}: {judged(faster >= bar)}"
    )
    return faster >= bar


def main() -> int:
    with_huey = importlib.util.find_spec("huey") is not None
    if not with_huey:
        print("huey is not installed, so there is nothing to compare with")
    calm_collector()
    enough = [compared("normal", with_huey), compared("full", with_huey)]
    return int(not all(enough))


if __name__ == "__main__":
    sys.exit(main())
