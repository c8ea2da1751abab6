"""1,000 tasks handed over to a Celery worker, run and recorded, beside Celery's own `delay` and `get`.

    python3 dev.py bench celery_runner

Both sides use the same Redis and the same worker of two processes, and take turns. `delay` is timed until the last
result was read. Ours is timed from the moment at which all 1,000 occurrences are due until the last end is in the
store, a file: claims, notes, results and history included.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis

from everytick import Everytick, on_request
from everytick.stores.base import HistoryFilter
from tests.servers.launch import redis_server

ROOT = Path(__file__).resolve().parents[1]
COUNT = 1_000
ROUNDS = 5


def delayed(address: str) -> float:
    """Return how many tasks a second Celery's own calls bring to their results."""
    from celery import Celery

    app = Celery("bench", broker=address, backend=address)
    since = time.perf_counter()
    results = [app.send_task("shop.thing") for _ in range(COUNT)]
    for result in results:
        result.get(timeout=120)
    seconds = time.perf_counter() - since
    app.close()
    return COUNT / seconds


async def handed_over(address: str, folder: Path) -> float:
    """Return how many occurrences a second are handed over, run and recorded."""
    tick = Everytick(f"sqlite:///{folder / 'bench.db'}", name="bench", celery=address, slots=200)
    tick.define("thing", on_request(), runner="celery", overlap="allow", max_queued=COUNT).target("shop.thing")
    await tick.sync()
    for number in range(COUNT):
        await tick.trigger("thing", key=str(number))
    since = time.perf_counter()
    async with tick:
        store = await tick._opened()
        while await _left(store):  # noqa: ASYNC110, nothing tells of the last of a thousand ends
            await asyncio.sleep(0.02)
        seconds = time.perf_counter() - since
    await tick.close()
    return COUNT / seconds


async def _left(store: object) -> bool:
    """Whether an occurrence has not ended: the oldest requests are answered last."""
    page = await store.history(HistoryFilter(limit=COUNT + 1))  # type: ignore[attr-defined]
    return sum(each.ended_at is not None for each in page.occurrences) < COUNT


def main() -> None:
    with redis_server() as server, tempfile.TemporaryDirectory() as folder:
        programs = os.pathsep.join([str(ROOT / "tests/acceptance/engines/programs"), str(ROOT)])
        variables = dict.fromkeys(("ENGINE_BROKER", "ENGINE_RESULTS", "ENGINE_TOLD"), server.address)
        words = ("-m", "celery", "-A", "engine_tasks", "worker", "--concurrency", "2", "--loglevel", "error")
        worker = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **variables, "PYTHONPATH": programs},
            cwd=folder,
            start_new_session=True,
        )
        try:
            delayed(server.address)
            theirs, ours = [], []
            for number in range(ROUNDS):
                theirs.append(delayed(server.address))
                own = Path(folder) / str(number)
                own.mkdir()
                ours.append(asyncio.run(handed_over(server.address, own)))
                print(f"delay {theirs[-1]:7,.0f}/s   everytick {ours[-1]:7,.0f}/s   {ours[-1] / theirs[-1]:.2f}")
            ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
            print(f"median ratio {ratio:.2f} (aim: 0.5)")
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
            redis.Redis.from_url(server.address).close()


if __name__ == "__main__":
    main()
