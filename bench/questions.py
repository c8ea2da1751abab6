"""What pages ask, on a store with 10,000 jobs and a million occurrences: how long each answer takes.

    python3 dev.py bench questions [jobs occurrences]

Those of the page Now are asked together too: the aim is 30 ms for all of them. Everything is asked from this process,
with the store's own connection, and measured around `ask`.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._beside import durable_server
from bench._history import fill
from bench._node import opened
from everytick.domain.questions import (
    Alike,
    Buckets,
    By,
    Counts,
    Coverage,
    Days,
    LastRuns,
    Lengths,
    Question,
    TimeWindow,
)
from everytick.stores.addresses import AnyStore

ROUNDS = 30
AIM_MS = 30.0
HOUR = timedelta(hours=1)


def asked(now: datetime, job_ids: Sequence[str]) -> tuple[dict[str, Question[Any]], dict[str, Question[Any]]]:
    """Return the questions of the page Now, and the others."""
    lanes = tuple(job_ids[:24])
    of_now = {
        "window of 24 lanes, an hour": TimeWindow(now - HOUR, now, 2_880, lanes),
        "steps of 15 hours by band": Buckets(now - 15 * HOUR, now, timedelta(minutes=5), By.BAND),
        "failures of 24 hours": Alike(now - 24 * HOUR),
        "last 30 runs of 24 jobs": LastRuns(lanes),
    }
    others = {
        "window of all, 5,000": TimeWindow(now - 15 * HOUR, now),
        "counts of all": Counts(),
        "counts of a job": Counts(job_ids[0]),
        "steps of 30 days": Buckets(now - timedelta(days=30), now, timedelta(days=1)),
        "steps of 24 jobs": Buckets(now - 15 * HOUR, now, timedelta(minutes=5), By.JOB, lanes),
        "lengths of 100 jobs": Lengths(tuple(job_ids[:100])),
        "lengths of all jobs": Lengths(),
        "days of a job": Days(job_ids[0], now.year),
        "coverage of a job": Coverage(job_ids[0], now - timedelta(days=9), now),
    }
    return of_now, others


async def measured(store: AnyStore, question: Question[Any]) -> list[float]:
    """Return how many milliseconds each of some answers took, in order of length."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await store.ask(question)
        found.append((time.perf_counter() - began) * 1_000)
    return sorted(found)


async def told(name: str, address: str, jobs: int, occurrences: int) -> bool:
    """Fill a store, print every figure, and return whether the page Now has its answers in time."""
    began = time.perf_counter()
    await fill(address, jobs, occurrences)
    print(
        f"{name}: {jobs:,} jobs and {occurrences:,} occurrences after {time.perf_counter() - began:.0f} s", flush=True
    )
    async with opened(address) as store:
        ids = [record.job.id for record in await store.list()]
        of_now, others = asked(datetime.now(UTC), ids)
        together = 0.0
        for title, question in {**of_now, **others}.items():
            took = await measured(store, question)
            together += took[ROUNDS // 2] if title in of_now else 0.0
            print(f"  {title:30} p50 {took[ROUNDS // 2]:8.1f} ms   p99 {took[-1]:8.1f} ms", flush=True)
    print(f"  the page Now together: {together:.1f} ms, at most {AIM_MS:.0f} ms")
    return together <= AIM_MS


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    jobs, occurrences = (int(each) for each in sys.argv[1:3]) if len(sys.argv) > 2 else (10_000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        enough = asyncio.run(told("SQLite", f"sqlite:///{Path(folder) / 'store.db'}", jobs, occurrences))
    with durable_server() as (address, _):
        enough &= asyncio.run(told("PostgreSQL", address, jobs, occurrences))
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
