"""What one tick of a beat costs: ours on Redis, Celery's own scheduler, and RedBeat on Redis.

    python3 dev.py bench beat [rounds]

First S3-034: a tick over 100 schedules takes less than 10 ms, while none is due and while all are. Then a tick of
1,000 and of 10,000 entries of which none is due, which is what a beat does most of its life: ours must not cost more
for more entries. Last, 100 of 10,000 are due at once; each beat hands them over in its own way, ours to Redis lists,
the others as Celery's messages through Redis. Each side runs in a process of its own, in turns with the others. Times
are milliseconds of one tick, on the wall and of the processor.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import redis
from redis.asyncio import Redis

from bench._beside import Figures, Side, asked, column, in_turns, judged, middle, ratio, rounds
from everytick.beat import BeatService, Priority, RedisQueue, Registry, Schedule, ScheduleLock
from tests.servers.launch import redis_server

TICKS, DUE = 30, 100
MOST_MILLISECONDS = 10.0
MOST_GROWTH = 2.0
"""What a tick of 10,000 entries may cost in tenfold units of one of 1,000: noise, and not ten times as much."""

OURS, CELERY, REDBEAT = "everytick", "Celery", "RedBeat"
NOON = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


def spent(ticks: list[tuple[float, float]]) -> Figures:
    """Return the median of what ticks took, in milliseconds."""
    wall, processor = zip(*ticks, strict=True)
    return {"wall": 1e3 * statistics.median(wall), "processor": 1e3 * statistics.median(processor)}


def timed(tick: Callable[[], object], count: int) -> Iterator[tuple[float, float]]:
    """Give the seconds of so many ticks, on the wall and of the processor."""
    for _ in range(count):
        begun, used = time.perf_counter(), time.process_time()
        tick()
        yield time.perf_counter() - begun, time.process_time() - used


# -------------------------------------------------------------------------------------------------------------- ours


def registry_of(entries: int, due: int) -> Registry:
    """Return so many schedules, of which the first ones are due every minute."""
    registry = Registry()
    for number in range(entries):
        rule = "* * * * *" if number < due else f"{number % 60} 3 {1 + number % 28} {1 + number % 12} *"
        registry.register(Schedule(id=f"entry-{number}", cron=rule, job="work", priority=Priority.NORMAL))
    return registry


async def ours(address: str, entries: int, due: int) -> Figures:
    """Tick a beat of ours; with some due, the clock moves a minute between two ticks."""
    async with Redis.from_url(address) as client:
        await client.flushall()
    moment = NOON

    async def clock() -> datetime:
        return moment

    queue = RedisQueue(address)
    async with BeatService(registry_of(entries, due), queue, address, clock=clock, on_create="next") as beat:
        await beat.tick()
        found = []
        for _ in range(TICKS):
            moment += timedelta(minutes=1) if due else timedelta(0)
            begun, used = time.perf_counter(), time.process_time()
            sent = await beat.tick()
            found.append((time.perf_counter() - begun, time.process_time() - used))
            assert sent == due, f"{sent} jobs instead of {due}"
    await queue.close()
    return spent(found)


async def lock_and_record(address: str) -> Figures:
    """Take and release a lock, and read a record, one after another: what a beat would do without pipelines."""
    async with Redis.from_url(address) as client:
        await client.flushall()
        begun = time.perf_counter()
        for _ in range(1_000):
            lock = await ScheduleLock.acquire(client, "lock", timedelta(seconds=60))
            assert lock is not None
            await lock.release()
        locked = time.perf_counter()
        async with BeatService(registry_of(1, 1), RedisQueue(client), client) as beat:
            await beat.tick()
            for _ in range(1_000):
                await beat.state("entry-0")
        return {"lock": 1e6 * (locked - begun) / 1_000, "record": 1e6 * (time.perf_counter() - locked) / 1_000}


# ------------------------------------------------------------------------------------------------------------ theirs


def celery_app(address: str, entries: int, due: int) -> Any:
    """Return a Celery application with so many entries; those that are to be due were sent a minute ago."""
    from celery import Celery
    from celery.schedules import crontab

    redis.Redis.from_url(address).flushall()
    app = Celery("bench", broker=address)
    # A crontab of yesterday's minute is never due while we look.
    yesterday = datetime.now(UTC) - timedelta(days=1)
    never = crontab(minute=0, hour=0, day_of_month=yesterday.day, month_of_year=yesterday.month)
    app.conf.beat_schedule = {
        f"entry-{number}": {"task": "work", "schedule": timedelta(milliseconds=1) if number < due else never}
        for number in range(entries)
    }
    app.conf.redbeat_redis_url = address
    app.conf.redbeat_lock_key = None
    app.conf.timezone = "UTC"
    return app


def celery_ticks(scheduler: Any, due: int) -> Figures:
    """Tick a scheduler of Celery's. With some due, a tick is as many calls as it takes to send all of them."""
    calls = due or 1
    scheduler.tick()

    def tick() -> None:
        for _ in range(calls):
            scheduler.tick()

    return spent(list(timed(tick, TICKS if not due else 3)))


def celery(address: str, entries: int, due: int) -> Figures:
    """Tick Celery's own scheduler. One call of its `tick` sends one task that is due."""
    from celery.beat import Scheduler

    return celery_ticks(Scheduler(celery_app(address, entries, due)), due)


def redbeat(address: str, entries: int, due: int) -> Figures:
    """Tick RedBeat's scheduler. One call of its `tick` sends all tasks that are due."""
    from redbeat import RedBeatScheduler

    scheduler = RedBeatScheduler(celery_app(address, entries, due))
    scheduler.tick()
    return spent(list(timed(scheduler.tick, TICKS if not due else 3)))


SIDES: dict[str, Side] = {
    OURS: ours,
    CELERY: celery,
    REDBEAT: redbeat,
    "lock": lambda address: asyncio.run(lock_and_record(address)),
}


def main() -> int:
    """Print every figure; 0 if all of ours are good enough."""
    if asked(SIDES):
        return 0
    with redis_server() as server:
        enough = small(server.address)
        enough &= idle(server.address)
        some_due(server.address)
    return int(not enough)


def small(address: str) -> bool:
    """S3-034."""
    parts = in_turns(["lock"], 1, address=address)["lock"]
    print(f"a lock taken and released: {middle(parts, 'lock'):.0f} µs; a record read: {middle(parts, 'record'):.0f} µs")
    enough = True
    for due in (0, DUE):
        found = in_turns([OURS], rounds(), address=address, entries=100, due=due)[OURS]
        passed = middle(found, "wall") < MOST_MILLISECONDS
        told = f"{middle(found, 'wall'):6.2f} ms, {middle(found, 'processor'):6.2f} of the processor"
        print(f"100 schedules, {due:3} due: {told}, less than {MOST_MILLISECONDS:.0f} ms: {judged(passed)}", flush=True)
        enough &= passed
    return enough


def idle(address: str) -> bool:
    """What a tick costs while nothing is due, beside the others."""
    sizes: dict[int, float] = {}
    enough = True
    for entries in (1_000, 10_000):
        found = in_turns([OURS, CELERY, REDBEAT], rounds(), address=address, entries=entries, due=0)
        sizes[entries] = middle(found[OURS], "processor")
        for side, figures in found.items():
            told = f"{middle(figures, 'wall'):8.3f} ms, {middle(figures, 'processor'):8.3f} of the processor"
            beside = ratio(column(figures, "processor"), column(found[OURS], "processor"))
            print(f"{entries:6,} entries, none due, {side:9} {told}, {beside.median:7.1f} times ours", flush=True)
        enough &= ratio(column(found[CELERY], "processor"), column(found[OURS], "processor")).worse > 1
    growth = sizes[10_000] / sizes[1_000]
    passed = growth < MOST_GROWTH
    print(f"ours with 10,000 entries over 1,000: {growth:.2f}, less than {MOST_GROWTH:.0f}: {judged(passed)}")
    return enough and passed


def some_due(address: str) -> None:
    """What it costs to send 100 of 10,000; the queues differ, so this is no verdict."""
    found = in_turns([OURS, CELERY, REDBEAT], rounds(), address=address, entries=10_000, due=DUE)
    for side, figures in found.items():
        told = f"{middle(figures, 'wall'):8.1f} ms, {middle(figures, 'processor'):8.1f} of the processor"
        print(f"10,000 entries, {DUE} due, {side:9} {told}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
