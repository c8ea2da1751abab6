"""How late jobs start that are all due in the same second, beside APScheduler 3.

    python3 dev.py bench lateness

10,000 jobs of an hourly schedule on the memory store, and as many in APScheduler 3, once
with its pool of threads and once on its asyncio loop; then 1,000 jobs on SQLite and on
PostgreSQL. Lateness is from the instant to the first line of the body, read from one clock.
"""

import asyncio
import importlib
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._beside import (
    Figures,
    Side,
    asked,
    column,
    durable_server,
    in_turns,
    judged,
    middle,
    percentile,
    ratio,
    rounds,
)
from bench._node import hourly, opened, running
from everytick.domain.changes import Put
from everytick.stores.base import HistoryFilter

MANY, SOME = 10_000, 1_000
HALF = 0.5
SOME_WITHIN = 0.5
WITHIN = 60
SLOTS = 50
AHEAD = 20
"""Seconds from the beginning until all are due: time enough to define them."""


def instant() -> datetime:
    """Return a full second that is far enough ahead to define everything before it."""
    return datetime.fromtimestamp(int(time.time()) + AHEAD, UTC)


class Starts:
    """When each body began; any thread may add one."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._moments: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._all = asyncio.Event()

    def add(self) -> None:
        """A body begins."""
        self._moments.append(time.time())
        if len(self._moments) == self._expected:
            self._loop.call_soon_threadsafe(self._all.set)

    async def all(self) -> None:
        """Return when all have begun."""
        await asyncio.wait_for(self._all.wait(), WITHIN)

    def figures(self, due: datetime) -> Figures:
        """Return how late they began, in seconds."""
        assert len(self._moments) == self._expected, f"{len(self._moments)} of {self._expected} began"
        late = [moment - due.timestamp() for moment in self._moments]
        return {"p50": percentile(late, 50), "p99": percentile(late, 99), "max": max(late), "min": min(late)}


async def apscheduler(count: int, kind: str) -> Figures:
    """Let APScheduler 3 start them: plain functions in its threads, or coroutines on its loop."""
    due, starts = instant(), Starts(count)

    def body() -> None:
        starts.add()

    async def async_body() -> None:
        starts.add()

    class_name = {"threads": "BackgroundScheduler", "loop": "AsyncIOScheduler"}[kind]
    module = {"threads": "background", "loop": "asyncio"}[kind]
    made = getattr(importlib.import_module(f"apscheduler.schedulers.{module}"), class_name)
    scheduler = made(timezone="UTC", job_defaults={"misfire_grace_time": None, "coalesce": True})
    interval = importlib.import_module("apscheduler.triggers.interval").IntervalTrigger
    scheduler.start(paused=True)
    for number in range(count):
        trigger = interval(hours=1, start_date=due, timezone=UTC)
        scheduler.add_job(body if kind == "threads" else async_body, trigger, id=str(number))
    assert time.time() < due.timestamp() - 0.5, "defining them took too long"
    scheduler.resume()
    await starts.all()
    scheduler.shutdown(wait=False)
    return starts.figures(due)


async def everytick(count: int, address: str) -> Figures:
    """Let a node start them, with the slots it has unless told otherwise."""
    due, starts = instant(), Starts(count)

    async def body() -> None:
        starts.add()

    async with opened(address) as store:
        for number in range(count):
            await store.apply([Put(hourly(number, start=due))])
        assert time.time() < due.timestamp() - 0.5, "defining them took too long"
        async with running(store, body, slots=SLOTS):
            await starts.all()
        page = await store.history(HistoryFilter(limit=1))
        assert page.occurrences[0].scheduled_for == due, "the newest occurrence is not of the instant"
    return starts.figures(due)


async def everytick_on_sqlite(count: int) -> Figures:
    """Let a node on a SQLite file of its own start them."""
    with tempfile.TemporaryDirectory() as folder:
        return await everytick(count, f"sqlite:///{Path(folder) / 'store.db'}")


async def everytick_on_postgres(count: int, address: str) -> Figures:
    """Let a node on a fresh schema start them."""
    db = await asyncpg.connect(address)
    await db.execute("drop schema if exists everytick cascade")
    await db.close()
    return await everytick(count, address)


async def everytick_in_memory(count: int) -> Figures:
    """Let a node on the memory store start them."""
    return await everytick(count, "memory://")


async def apscheduler_threads(count: int) -> Figures:
    """Let APScheduler 3 start them in its threads."""
    return await apscheduler(count, "threads")


async def apscheduler_loop(count: int) -> Figures:
    """Let APScheduler 3 start them on its loop."""
    return await apscheduler(count, "loop")


PEERS: dict[str, Side] = {"APScheduler 3, threads": apscheduler_threads, "APScheduler 3, loop": apscheduler_loop}
OURS = "everytick, memory"
DURABLE: dict[str, Side] = {"everytick, SQLite": everytick_on_sqlite, "everytick, PostgreSQL": everytick_on_postgres}
SIDES = {**PEERS, OURS: everytick_in_memory, **DURABLE}


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    if asked(SIDES):
        return 0
    found = in_turns([*PEERS, OURS], rounds(), count=MANY)
    for side, times in found.items():
        print(f"{MANY:6,} due at once: {side:23} {told(times)}")
    best = min(PEERS, key=lambda peer: middle(found[peer], "p99"))
    against = ratio(column(found[OURS], "p99"), column(found[best], "p99"), more_is_better=False)
    enough = against.worse <= HALF
    print(f"{MANY:6,} due at once: p99 {against} of {best}, at most {HALF}: {judged(enough)}", flush=True)
    with durable_server() as (address, _):
        for side in DURABLE:
            place = {"address": address} if side.endswith("PostgreSQL") else {}
            times = in_turns([side], rounds(), count=SOME, **place)[side]
            passed = middle(times, "p99") <= SOME_WITHIN
            print(
                f"{SOME:6,} due at once: {side:23} {told(times)}, at most {SOME_WITHIN} s: {judged(passed)}", flush=True
            )
            enough &= passed
    return int(not enough)


def told(times: list[Figures]) -> str:
    """Return the medians, in words."""
    assert min(column(times, "min")) >= 0, "one started before its instant"
    return ", ".join(f"{name} {1e3 * middle(times, name):4.0f} ms" for name in ("p50", "p99", "max"))


if __name__ == "__main__":
    sys.exit(main())
