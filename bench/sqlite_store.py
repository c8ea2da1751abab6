"""What the SQLite store costs: claim and finish of single-task occurrences with their full records.

    python3 dev.py bench sqlite_store

20,000 occurrences over 1,000 jobs in one file, at synchronous NORMAL and FULL. Only the
verbs are timed: what `advance` decides in between is not. Where huey is installed, its
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
INSTANTS = 20
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
QUEUES = ("default",)


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


async def planned(store: SqliteStore) -> tuple[int, float]:
    """Plan and commit every due job; return how many plans, and the seconds of `due` and `commit_plans` alone."""
    count, spent, now = 0, 0.0, await store.now()
    while True:
        began = time.perf_counter()
        async with store.due(now, 500) as batch:
            spent += time.perf_counter() - began
            plans = [plan(snapshot, now) for snapshot in batch]
            began = time.perf_counter()
            await store.commit_plans(batch, plans)
            spent += time.perf_counter() - began
        count += len(plans)
        if not plans:
            return count, spent


def finish(claim: Claim, now: datetime) -> Step:
    begun = advance(claim.snapshot, Claimed(), now)
    start = begun.starts[0]
    return advance(begun.after, AttemptEnded(start.task, start.number, Succeeded()), now)


async def drained(store: SqliteStore, batch: int) -> tuple[int, float, float]:
    """Claim and finish everything; return how many, and the seconds of either verb."""
    count, claiming, finishing, now = 0, 0.0, 0.0, await store.now()
    while True:
        began = time.perf_counter()
        claims = await store.claim("node", QUEUES, batch)
        claiming += time.perf_counter() - began
        if not claims:
            return count, claiming, finishing
        steps = [(claim, finish(claim, now)) for claim in claims]
        began = time.perf_counter()
        answers = await store.commit_steps(steps)
        finishing += time.perf_counter() - began
        assert answers == [Commit.COMMITTED] * len(claims), "nobody else is here to lose a race to"
        count += len(claims)


async def measured(synchronous: Literal["normal", "full"], batch: int) -> None:
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db", clock=clock, synchronous=synchronous)
        await store.open()
        began = time.perf_counter()
        await asyncio.gather(*(store.put(job(number)) for number in range(JOBS)))
        defining = time.perf_counter() - began
        await planned(store)
        plans, planning = 0, 0.0
        for _ in range(INSTANTS):
            clock.time += timedelta(minutes=1)
            more, spent = await planned(store)
            plans, planning = plans + more, planning + spent
        count, claiming, finishing = await drained(store, batch)
        await store.close()
    made = JOBS * INSTANTS
    assert count == made, f"{count} of {made} were run"
    print(
        f"{synchronous:6} batches of {batch:3}: {count / (claiming + finishing):8,.0f} occurrences/s"
        f"  (claim {1e6 * claiming / count:4.1f} µs, finish {1e6 * finishing / count:4.1f} µs);"
        f"  created {made / planning:8,.0f}/s in {plans:,} plans;  defined {JOBS / defining:6,.0f} jobs/s"
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
