"""How soon the callbacks of a declarative scheduler start when all are due at once (S2-069, S2-070).

    python3 dev.py bench declarative [tasks]

R1: that many registrations (100,000 unless said) and 1,000 whose minute comes at the same
time, on each store. R2: 1,000 callbacks in flight when their process is killed, started again by the next.
Lateness is from the minute, or from the call of initialize, to the first line of the last
callback. The store's clock is moved to a little before the minute once all are registered;
the node beats and polls as it always does.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._beside import Figures, ask, asked, durable_server, judged
from everytick.app.foreground import calm_collector
from everytick.declarative import DeclarativeScheduler
from everytick.stores.addresses import store_of

MANY, SOME, FLYING = 100_000, 1_000, 1_000
MANY_WITHIN, SOME_WITHIN, AGAIN_WITHIN = 60.0, 2.0, 60.0
BEFORE = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = datetime(2026, 1, 1, 12, 1, tzinfo=UTC)
EXPRESSION = "1 12 * * *"
MOMENT = timedelta(seconds=0.2)
A_POLL = timedelta(seconds=7)
"""In which a node that sleeps has surely looked at the clock again."""


class Clock:
    """Stands at a time until it is let go, and then runs on from another."""

    def __init__(self, at: datetime) -> None:
        self._at, self._since = at, 0.0

    def __call__(self) -> datetime:
        passed = time.monotonic() - self._since if self._since else 0.0
        return self._at + timedelta(seconds=passed)

    def go(self, at: datetime) -> float:
        """Run on from there; return when it was, on the monotonic clock."""
        self._at, self._since = at, time.monotonic()
        return self._since


class Starts:
    """When each callback began; those that stay do not end."""

    def __init__(self, tasks: int, *, stay: bool = False) -> None:
        self._tasks, self._stay = tasks, stay
        self.moments: list[float] = []
        self.all = asyncio.Event()

    async def callback(self) -> None:
        """Note the moment."""
        self.moments.append(time.monotonic())
        if len(self.moments) >= self._tasks:
            self.all.set()
        if self._stay:
            await asyncio.Event().wait()

    def registrations(self) -> list[tuple[object, ...]]:
        """Return as many tasks of one minute."""
        delay = timedelta(minutes=5)
        return [(f"task {number}", EXPRESSION, self.callback, delay) for number in range(self._tasks)]


async def due_at_once(address: str, tasks: int) -> Figures:
    """R1: register, let the minute come, and see when the last callback starts."""
    clock, starts = Clock(BEFORE), Starts(tasks)
    store = store_of(address, clock=clock)
    await store.open()
    scheduler = DeclarativeScheduler(store)
    calm_collector()
    began = time.monotonic()
    await scheduler.initialize(starts.registrations())
    registered = time.monotonic() - began
    spent = time.process_time()
    minute = clock.go(MINUTE - A_POLL) + A_POLL.total_seconds()
    await starts.all.wait()
    spent = time.process_time() - spent
    await scheduler.stop()
    await store.close()
    late = sorted(moment - minute for moment in starts.moments)
    return {"registered": registered, "p50": late[len(late) // 2], "last": late[-1], "cpu": spent}


async def doomed(address: str, tasks: int) -> Figures:
    """Start every callback, say so, and wait to be killed."""
    starts = Starts(tasks, stay=True)
    scheduler = DeclarativeScheduler(address, clock=Clock(MINUTE + MOMENT))
    await scheduler.initialize(starts.registrations())
    await starts.all.wait()
    os.write(1, b"all are in flight\n")
    await asyncio.Event().wait()
    return {}


async def again(address: str, tasks: int) -> Figures:
    """R2: begin where a killed process had every callback in flight."""
    clock, starts = Clock(MINUTE), Starts(tasks)
    clock.go(MINUTE + timedelta(seconds=30))
    scheduler = DeclarativeScheduler(address, clock=clock)
    began, spent = time.monotonic(), time.process_time()
    await scheduler.initialize(starts.registrations())
    await starts.all.wait()
    spent = time.process_time() - spent
    await scheduler.stop()
    return {"last": max(starts.moments) - began, "cpu": spent}


SIDES = {"due at once": due_at_once, "doomed": doomed, "again": again}


def killed_in_flight(address: str, tasks: int) -> None:
    """Let a process have every callback in flight, and kill it."""
    given = f'{{"address": "{address}", "tasks": {tasks}}}'
    command = [sys.executable, sys.argv[0], "--side", "doomed", given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it was asked for"
        assert process.stdout.readline() == "all are in flight\n", "it ended too early"
        process.kill()


def told(what: str, tasks: int, found: Figures, within: float) -> bool:
    """Print one line of figures and return whether they are good enough."""
    passed: bool = found["last"] <= within
    registered = f", registered in {found['registered']:.1f} s" if "registered" in found else ""
    print(
        f"{what:22} {tasks:7,} tasks: last start {found['last']:6.2f} s (at most {within:g}) "
        f"{judged(passed):6}, {found['cpu'] / tasks * 1e6:4.0f} µs of the processor each{registered}",
        flush=True,
    )
    return passed


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    if asked(SIDES):
        return 0
    many = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
    passed = []
    with tempfile.TemporaryDirectory() as folder, durable_server() as server:
        files = [f"sqlite:///{folder}/{number}.db" for number in range(3)]
        runs = [
            ("R1 memory", "memory://", SOME, SOME_WITHIN),
            ("R1 SQLite", files[0], SOME, SOME_WITHIN),
            ("R1 PostgreSQL", f"{server.address}?schema=some", SOME, SOME_WITHIN),
            ("R1 memory", "memory://", many, MANY_WITHIN),
            ("R1 SQLite", files[1], many, MANY_WITHIN),
            ("R1 PostgreSQL", f"{server.address}?schema=many", many, MANY_WITHIN),
        ]
        for what, address, tasks, within in runs:
            passed.append(told(what, tasks, ask("due at once", address=address, tasks=tasks), within))
        killed_in_flight(files[2], FLYING)
        passed.append(told("R2 SQLite", FLYING, ask("again", address=files[2], tasks=FLYING), AGAIN_WITHIN))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
