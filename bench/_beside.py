"""Sides that do the same work, beside each other: each in a process of its own, taking turns.

A busy machine slows all of them alike, so only ratios within one run count. What the
processor did, for the side and for the server behind it, stands beside the time on the
wall, since others may be using the same cores.
"""

import asyncio
import inspect
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.servers import keeper
from tests.servers.installations import postgres_installations

ROUNDS = 5
CHILD_WITHIN = 300
Figures = dict[str, Any]
Side = Callable[..., Any]


# ---------------------------------------------------------------------------------------------------- what is spent


class Watch:
    """Keeps the seconds, on the wall, of this process and of the server's processes, that pass inside `with`."""

    def __init__(self, server: int | None = None) -> None:
        self.server_pid = server
        self.wall = self.client = self.server = 0.0

    def __enter__(self) -> "Watch":
        self.wall, self.client, self.server = self._read()
        return self

    def __exit__(self, *_: object) -> None:
        wall, client, server = self._read()
        self.wall, self.client, self.server = wall - self.wall, client - self.client, server - self.server

    def _read(self) -> tuple[float, float, float]:
        server = 0.0 if self.server_pid is None else family_seconds(self.server_pid)
        return time.perf_counter(), time.process_time(), server

    def figures(self, count: int) -> Figures:
        """Return the rate, and microseconds of the processor for one of so many."""
        return {
            "rate": count / self.wall,
            "client": 1e6 * self.client / count,
            "server": 1e6 * self.server / count,
        }


def family_seconds(pid: int) -> float:
    """Return the processor's time of a process, its children, and those of them that have ended."""
    members = [Path("/proc", str(pid))]
    members += [found for found in Path("/proc").glob("[0-9]*") if _stat(found)[1:2] == [str(pid)]]
    ticks = sum(int(tick) for member in members for tick in _stat(member)[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(process: Path) -> list[str]:
    """Return what the kernel tells of a process, from its state on; nothing of one that has gone."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def resident_bytes() -> int:
    """Return how much memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


# ------------------------------------------------------------------------------------------------------------- turns


def asked(sides: Mapping[str, Side]) -> bool:
    """In a side's own process, do what it was started for and say the figures; return whether this is one."""
    if sys.argv[1:2] != ["--side"]:
        return False
    name, given = sys.argv[2], json.loads(sys.argv[3])
    found = sides[name](**given)
    if inspect.iscoroutine(found):
        found = asyncio.run(found)
    print(json.dumps({"figures": found}), flush=True)
    return True


def ask(name: str, **given: object) -> Figures:
    """Return the figures of one side, done once in a process of its own."""
    command = [sys.executable, sys.argv[0], "--side", name, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CHILD_WITHIN)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith('{"figures"'):
            found: Figures = json.loads(line)["figures"]
            return found
    raise SystemExit(f"{name} with {given} gave no figures, exit code {done.returncode}:\n{done.stderr[-3000:]}")


def in_turns(sides: Sequence[str], rounds: int, **given: object) -> dict[str, list[Figures]]:
    """Return each side's figures of every round; who begins changes from round to round."""
    found: dict[str, list[Figures]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            found[side].append(ask(side, **given))
    return found


def rounds() -> int:
    """Return how often each side runs: as the first argument says, else as often as a verdict needs."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS


# ----------------------------------------------------------------------------------------------------------- verdicts


class Ratio(NamedTuple):
    """How two sides stand to each other: the median of the pairs, and the quartile that is the worse for us."""

    median: float
    worse: float

    def __str__(self) -> str:
        return f"{self.median:.2f} (worse quartile {self.worse:.2f})"


def ratio(over: Sequence[float], under: Sequence[float], *, more_is_better: bool = True) -> Ratio:
    """Return how the pairs of one run stand to each other."""
    found = sorted(a / b for a, b in zip(over, under, strict=True))
    quarter = (len(found) - 1) // 4
    return Ratio(statistics.median(found), found[quarter] if more_is_better else found[-1 - quarter])


def column(figures: Sequence[Figures], name: str) -> list[float]:
    return [each[name] for each in figures]


def middle(figures: Sequence[Figures], name: str) -> float:
    return statistics.median(column(figures, name))


def judged(passed: bool) -> str:
    return "ok" if passed else "MISSED"


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


# ------------------------------------------------------------------------------------------------------------- server


class DurableServer(NamedTuple):
    """A PostgreSQL that writes to disk before it answers."""

    address: str
    pid: int


@contextmanager
def durable_server() -> Iterator[DurableServer]:
    """Give a fresh server that loses nothing in a power cut; it has stopped afterwards."""
    with keeper.folder() as scratch:
        given = keeper.postgres_command(keeper.programs(postgres_installations()[0], scratch), scratch)
        process, port = keeper.started([part.replace("=off", "=on") for part in given], scratch)
        try:
            yield DurableServer(keeper.ADDRESSES["postgres"].format(port=port), process.pid)
        finally:
            keeper.stop(process)
