"""What the SQLite store costs: claim and finish of single-task occurrences with their full records.

    python3 dev.py bench sqlite_store

10,000 occurrences over 1,000 jobs in one file, at synchronous NORMAL and FULL. Only the
verbs are timed: what `advance` decides in between is not. The time of the processor stands
beside that of the clock on the wall, since the machine is shared. Where huey is installed, its
queue on SQLite does its own insert, claim and finish beside it, with its settings named.
"""

import asyncio
import importlib.util
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from everytick.deciding.advance import advance
from everytick.deciding.plan import plan
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.outcome import Succeeded
from everytick.domain.steps import AttemptEnded, Claimed, Step
from everytick.domain.values import FROZEN
from everytick.schedules.interval import every
from everytick.stores.base import Claim, Commit
from everytick.stores.sqlite.store import SqliteStore

JOBS = 1_000
INSTANTS = 10
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
QUEUES = ("default",)


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

    def each(self, count: int) -> str:
        """Return microseconds of the processor for one of so many."""
        return f"{1e6 * self.cpu / count:4.1f}"


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
            async with store.due(now, 500) as batch:
                pass
        if not batch:
            return
        plans = [plan(snapshot, now) for snapshot in batch]
        with watch:
            await store.commit_plans(batch, plans)


def finish(claim: Claim, now: datetime) -> Step:
    begun = advance(claim.snapshot, Claimed(), now)
    start = begun.starts[0]
    return advance(begun.after, AttemptEnded(start.task, start.number, Succeeded()), now)


async def drained(store: SqliteStore, batch: int, claiming: Watch, finishing: Watch) -> int:
    """Claim and finish everything; return how many there were."""
    count, now = 0, await store.now()
    while True:
        with claiming:
            claims = await store.claim("node", QUEUES, batch)
        if not claims:
            return count
        steps = [(claim, finish(claim, now)) for claim in claims]
        with finishing:
            answers = await store.commit_steps(steps)
        assert answers == [Commit.COMMITTED] * len(claims), "nobody else is here to lose a race to"
        count += len(claims)


async def measured(synchronous: Literal["normal", "full"], batch: int) -> None:
    clock, planning, claiming, finishing = Clock(), Watch(), Watch(), Watch()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db", clock=clock, synchronous=synchronous)
        await store.open()
        await asyncio.gather(*(store.put(job(number)) for number in range(JOBS)))
        await planned(store, Watch())
        for _ in range(INSTANTS):
            clock.time += timedelta(minutes=1)
            await planned(store, planning)
        count = await drained(store, batch, claiming, finishing)
        await store.close()
    assert count == JOBS * INSTANTS, f"{count} were run"
    print(
        f"{synchronous:6} batches of {batch:3}: {count / (claiming.wall + finishing.wall):8,.0f} occurrences/s on the"
        f" wall, {count / (claiming.cpu + finishing.cpu):8,.0f} by processor time"
        f" (claim {claiming.each(count)} µs, finish {finishing.each(count)} µs, create {planning.each(count)} µs)"
    )


def measured_huey(fsync: bool, count: int = 2_000) -> None:
    from huey import SqliteHuey  # type: ignore[import-not-found,unused-ignore]

    with tempfile.TemporaryDirectory() as folder:
        huey = SqliteHuey(filename=str(Path(folder) / "huey.db"), fsync=fsync)
        task = huey.task()(lambda: None)
        began = time.perf_counter()
        for _ in range(count):
            task()
        while (found := huey.dequeue()) is not None:
            huey.execute(found)
        rate = count / (time.perf_counter() - began)
    print(f"huey   fsync={fsync!s:5}, one at a time, no history: {rate:8,.0f} jobs/s")


def main() -> int:
    if FROZEN:
        print("sqlite_store: values are frozen here, which production's are not: start it without pytest")
        return 1
    for synchronous in ("normal", "full"):
        for batch in (50, 200, 500):
            asyncio.run(measured(synchronous, batch))
    if importlib.util.find_spec("huey") is None:
        print("huey is not installed, so there is nothing to compare with")
    else:
        for fsync in (False, True):
            measured_huey(fsync)
    return 0


if __name__ == "__main__":
    sys.exit(main())
