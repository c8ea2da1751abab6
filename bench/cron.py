"""Cron beside its peers: next instant, a year of instants, memory per schedule.

    python3 dev.py bench cron

Peers and everytick take turns in one run, so that a busy machine slows all of them alike;
only the ratios count. Aware datetimes go in and come out. croniter-rs is written in Rust
and drops the zone of its argument; it is here for its speed.
"""

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

EXPRESSIONS = [
    ("* * * * *", "UTC"),
    ("*/5 * * * *", "UTC"),
    ("0 9 * * 1-5", "UTC"),
    ("30 2 * * *", "America/New_York"),
    ("0 0 29 2 *", "UTC"),
    ("0 0 1,15 * 1", "UTC"),
]
ROUNDS = 7
START = datetime(2027, 1, 1, tzinfo=UTC)
Next = Callable[[datetime], Any]


def everytick_next(expression: str, tz: str) -> Next:
    from everytick import cron

    return cron(expression, tz=tz).next_after


def cronsim_next(expression: str, tz: str) -> Next:
    from cronsim import CronSim

    return lambda at: next(CronSim(expression, at))


def croniter_next(expression: str, tz: str) -> Next:
    from croniter import croniter

    kept = croniter(expression, START.astimezone(ZoneInfo(tz)))
    return lambda at: kept.get_next(datetime, start_time=at)


def croniter_rs_next(expression: str, tz: str) -> Next:
    from croniter_rs import croniter

    kept = croniter(expression, START.astimezone(ZoneInfo(tz)))

    def after(at: datetime) -> Any:
        kept.set_current(at)
        return kept.get_next(datetime)

    return after


PEERS = {
    "everytick": everytick_next,
    "cronsim": cronsim_next,
    "croniter": croniter_next,
    "croniter-rs": croniter_rs_next,
}


def seconds_per_call(call: Next, moments: list[datetime]) -> float:
    """The time of one call, over at least 20 ms of calls."""
    loops = 1
    while True:
        begun = time.perf_counter()
        for _ in range(loops):
            for at in moments:
                call(at)
        spent = time.perf_counter() - begun
        if spent > 0.02:
            return spent / (loops * len(moments))
        loops *= 4


def bench_next() -> None:
    print(
        f"next instant, microseconds a call (median of {ROUNDS} interleaved rounds), and how often faster everytick is"
    )
    random = Random(7)
    for expression, tz in EXPRESSIONS:
        zone = UTC if tz == "UTC" else ZoneInfo(tz)
        moments = [(START + timedelta(seconds=random.randrange(365 * 86400))).astimezone(zone) for _ in range(200)]
        calls = {name: make(expression, tz) for name, make in PEERS.items()}
        spent: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            gc.collect()
            for name, call in calls.items():
                spent[name].append(seconds_per_call(call, moments))
        ours = spent["everytick"]
        cells = [f"everytick {statistics.median(ours) * 1e6:6.2f}"]
        for name in list(calls)[1:]:
            ratios = sorted(theirs / our for theirs, our in zip(spent[name], ours, strict=True))
            cells.append(
                f"{name} {statistics.median(spent[name]) * 1e6:7.2f} = {statistics.median(ratios):5.1f}x"
                f" (lower quartile {ratios[len(ratios) // 4]:.1f}x)"
            )
        print(f"  {expression:14} {tz:17} " + "   ".join(cells))


def bench_year() -> None:
    from cronsim import CronSim

    from everytick import cron

    print("a year of instants as aware datetimes, a second")
    end = START.replace(year=2028)
    for expression, tz in EXPRESSIONS[:4]:
        schedule = cron(expression, tz=tz)
        rates, ratios = [], []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            count = len(schedule.instants(START - timedelta(seconds=1), end))
            ours = count / (time.perf_counter() - begun)
            begun, month, theirs = time.perf_counter(), START + timedelta(days=30), 0
            for at in CronSim(expression, START.astimezone(ZoneInfo(tz))):
                if at > month:
                    break
                theirs += 1
            rates.append(ours)
            ratios.append(ours / (theirs / (time.perf_counter() - begun)))
        print(
            f"  {expression:14} {tz:17} {statistics.median(rates):12,.0f}   cronsim = {statistics.median(ratios):5.1f}x"
        )


MEMORY = """
import gc, sys, tracemalloc
make = {make}
texts = [f"{{i % 60}} {{i // 60 % 24}} * * 1-{{1 + i % 5}}" for i in range(14400)]
make(texts[0]); gc.collect()
tracemalloc.start(); before = tracemalloc.get_traced_memory()[0]
kept = [make(text) for text in texts]
gc.collect(); print((tracemalloc.get_traced_memory()[0] - before) / len(kept))
"""


def bench_memory() -> None:
    print("bytes per schedule beyond its text (14,400 kept, 7,200 distinct expressions)")
    makers = {
        "everytick": "__import__('everytick').cron",
        "cronsim": "lambda e: __import__('cronsim').CronSim(e, __import__('datetime').datetime(2027, 1, 1))",
        "croniter": "lambda e: __import__('croniter').croniter(e)",
        "croniter-rs": "lambda e: __import__('croniter_rs').croniter(e, 0.0)",
    }
    sizes = {}
    for name, make in makers.items():
        done = subprocess.run(
            [sys.executable, "-c", MEMORY.format(make=make)], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            sizes[name] = float(done.stdout)
    for name, size in sizes.items():
        print(f"  {name:12} {size:8.0f}   {size / sizes['everytick']:5.1f}x of everytick's")


def main() -> None:
    print(json.dumps({name: version(name) for name in ("cronsim", "croniter", "croniter-rs")}), sys.version.split()[0])
    bench_next()
    bench_year()
    bench_memory()


if __name__ == "__main__":
    main()
