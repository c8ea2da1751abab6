"""1,000 tasks handed over to a Celery worker, run and recorded, beside Celery's own `delay` and `get`.

    python3 dev.py bench celery_runner

Both sides use the same Redis and the same worker of two processes, and take turns; every other round, ours is first.
Results of earlier rounds are gone. `delay` is timed from the first call until the last result was read. Ours is timed
from the start of the node, when 1,000 requests wait in its store, until the last end is in the store, a file: plans,
claims, notes, results and history included. The requests themselves are not: where `delay` is called, everytick has a
schedule.

Beside the rate stands what the processors did for one task: in the calling process, and in all of them (worker and
Redis included). Where other programs use the same cores only these count: the rate is then that of the machine.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import redis

from bench._beside import family_seconds
from everytick import Everytick, on_request
from everytick.node.events import Event, Happening
from everytick.stores.base import HistoryFilter
from tests.servers.launch import redis_server

ROOT = Path(__file__).resolve().parents[1]
COUNT = 1_000
ROUNDS = 5
AIM = 0.5


@dataclass
class Round:
    """Seconds of one side: on the wall, of the processors in the calling process, and in all processes."""

    wall: float
    caller: float
    all: float

    def told(self) -> str:
        """Return the figures as text."""
        caller, everywhere = (1e6 * seconds / COUNT for seconds in (self.caller, self.all))
        return f"{COUNT / self.wall:7,.0f}/s {caller:7,.0f} µs {everywhere:7,.0f} µs"


class Meter:
    """Reads what this process, the worker and Redis have spent."""

    def __init__(self, worker: int, server: int | None) -> None:
        self._others = [worker, *([] if server is None else [server])]

    def spent(self) -> tuple[float, float, float]:
        """Return the seconds until now."""
        caller = time.process_time()
        return time.perf_counter(), caller, caller + sum(family_seconds(pid) for pid in self._others)

    def since(self, begun: tuple[float, float, float]) -> Round:
        """Return what was spent since then."""
        return Round(*(now - then for now, then in zip(self.spent(), begun, strict=True)))


def delayed(address: str, meter: Meter) -> Round:
    """Let Celery's own calls bring the tasks to their results."""
    from celery import Celery

    app = Celery("bench", broker=address, backend=address)
    begun = meter.spent()
    results = [app.send_task("shop.thing") for _ in range(COUNT)]
    for result in results:
        result.get(timeout=120)
    spent = meter.since(begun)
    app.close()
    return spent


async def handed_over(address: str, folder: Path, meter: Meter) -> Round:
    """Let a node hand them over and record them."""
    tick = Everytick(f"sqlite:///{folder / 'bench.db'}", name="bench", celery=address, slots=200)
    tick.define("thing", on_request(), runner="celery", overlap="allow", max_queued=COUNT).target("shop.thing")
    ends, is_last = [0], asyncio.Event()

    @tick.on_event
    def count(event: Event) -> None:
        ends[0] += event.kind is Happening.ENDED
        if ends[0] == COUNT:
            is_last.set()

    await tick.sync()
    for number in range(COUNT):
        await tick.trigger("thing", key=str(number))
    begun = meter.spent()
    async with tick:
        await is_last.wait()
        spent = meter.since(begun)
        page = await (await tick._opened()).history(HistoryFilter(limit=COUNT + 1))
    await tick.close()
    assert [each.status for each in page.occurrences] == ["completed"] * COUNT, "an end is not in the store"
    return spent


def ratio(theirs: list[Round], ours: list[Round], of: Callable[[Round], float]) -> float:
    """Return the median, over the rounds, of how often ours goes into theirs."""
    return statistics.median(of(one) / of(other) for one, other in zip(theirs, ours, strict=True))


def measured(address: str, folder: Path, meter: Meter) -> None:
    """Run all rounds and print them."""
    delayed(address, meter)
    theirs, ours = [], []
    print(f"{'':8}{'delay':^36}{'everytick':^36}")
    for number in range(ROUNDS):
        own = folder / str(number)
        own.mkdir()
        sides: list[Callable[[], None]] = [
            lambda: theirs.append(delayed(address, meter)),
            lambda own=own: ours.append(asyncio.run(handed_over(address, own, meter))),  # type: ignore[misc]
        ]
        for side in sides if number % 2 else sides[::-1]:
            forget_results(address)
            side()
        print(f"round {number}  {theirs[-1].told()}     {ours[-1].told()}")
    verdict("our rate, as a share of delay's", ratio(theirs, ours, lambda each: each.wall))
    verdict("delay's processor time, as a share of ours", ratio(theirs, ours, lambda each: each.all))
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    print(f"load {load:.1f} on {cores} cores: {'the processor time counts' if load > 2 * cores else 'the rate counts'}")


def verdict(name: str, found: float) -> None:
    """Print one ratio, and whether it is what we aim at."""
    print(f"{name}: {found:.2f} ({'as aimed' if found >= AIM else 'BELOW the aim'}: {AIM})")


def forget_results(address: str) -> None:
    """Delete the results of the round before: both sides begin with the same Redis."""
    with redis.Redis.from_url(address) as server:
        for key in server.scan_iter("celery-task-meta-*", count=1_000):
            server.delete(key)


def main() -> None:
    """Measure with a worker and a Redis of our own."""
    with redis_server() as server, tempfile.TemporaryDirectory() as folder:
        programs = os.pathsep.join([str(ROOT / "tests/acceptance/engines/programs"), str(ROOT)])
        variables = dict.fromkeys(("ENGINE_BROKER", "ENGINE_RESULTS", "ENGINE_TOLD"), server.address)
        words = ("-m", "celery", "-A", "engine_tasks", "worker", "--concurrency", "2", "--loglevel", "error")
        worker = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **variables, "PYTHONPATH": programs},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            measured(server.address, Path(folder), Meter(worker.pid, server.pid))
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


if __name__ == "__main__":
    main()
