"""What it costs to read job files: a folder of 300 jobs, a thousand files copied at once, and hostile ones.

    python3 dev.py bench files

CPU time of this process, the least of several rounds: others on the machine make it larger,
never smaller. Budgets: 300 jobs in 200 ms; what is hostile is refused within a second; a
thousand copied files are in the store within 2 s of the last one (wall time, on a quiet machine).
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from everytick.sources.files import Folder
from everytick.sources.job_files import read_jobs
from everytick.sources.watching import FolderWatch
from everytick.sources.yaml_reader import read_yaml
from everytick.stores.addresses import store_of

if TYPE_CHECKING:
    from everytick.sources.syncing import Synced

ROUNDS = 7
HEAD = "version: 1\ndefaults: {timezone: Europe/Berlin, retry: {max: 3, interval: 30s, factor: 2}}\njobs:\n"


def job(number: int) -> str:
    return f"""  job-{number}:
    schedule: "{number % 60} {number % 24} * * 1-5"
    execution_timeout: 1h
    recovery: {{strategy: bounded_window, max_duration: 6h}}
    tasks:
      - {{name: dump, command: "pg_dump app-{number}"}}
      - {{name: ship, command: [rclone, copy, x-{number}], retry: {{max: 10, interval: 1m}}}}
"""


def text(first: int, jobs: int) -> str:
    return HEAD + "".join(map(job, range(first, first + jobs)))


def least(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the CPU seconds of the cheapest round."""
    spent = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def show(what: str, seconds: float, note: str = "") -> None:
    print(f"  {seconds * 1e3:8.1f} ms  {what:52} {note}")


def reading(folder: Path) -> None:
    raw = text(0, 300).encode()
    print(f"300 jobs of two tasks, {len(raw):,} bytes, CPU time:")
    show("PyYAML's C loader alone (no places, YAML 1.1)", least(lambda: yaml.load(raw, yaml.CSafeLoader)), "for scale")
    show("as plain data with places", least(lambda: read_yaml(raw, "jobs.yaml")))
    show("as whole definitions", least(lambda: read_jobs(raw, "jobs.yaml")))
    for files in (1, 300):
        # Other jobs each time: what equal words mean is read once in a process.
        places = [folder / f"{files}-{number}" for number in range(ROUNDS)]
        for number, place in enumerate(places):
            write(place, files, 300 // files, 300 * number)
        first = least(partial(load_next, iter(places)))
        show(f"a folder of {files} files, read for the first time", first, "budget 200 ms")
        known = Folder(places[0])
        known.load()
        show(f"a folder of {files} files, nothing changed", least(known.load))


def load_next(places: Iterator[Path]) -> None:
    Folder(next(places)).load()


def write(place: Path, files: int, jobs: int, first: int = 0) -> None:
    """Fill a folder with files that have rested for a while."""
    place.mkdir()
    for number in range(files):
        file = place / f"{number}.yaml"
        file.write_text(text(first + number * jobs, jobs))
        os.utime(file, (1_000_000_000, 1_000_000_000))


def hostile() -> None:
    nested = "\n".join([f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)])
    print("hostile files, CPU time until they are refused (budget 1 s):")
    for what, bad in {
        "anchors that stand for 9**30 values": f"a0: &a0 [x, x, x, x, x, x, x, x, x]\n{nested}",
        "half a million open brackets": "[" * 500_000,
        "half a million values": "[" + "a," * 500_000,
        "one key a hundred thousand times": "? a\n" * 100_000,
    }.items():
        show(what, least(partial(read_yaml, bad.encode(), "bad.yaml"), 3))


async def copying(folder: Path) -> None:
    """Copy a thousand files under a running watch, and wait until all are in the store."""
    store = store_of("memory://")
    await store.open()
    told: asyncio.Queue[Synced] = asyncio.Queue()
    watch = FolderWatch(store, Folder(folder), told=told.put_nowait)
    running = asyncio.create_task(watch.run())
    await told.get()
    for number in range(1000):
        (folder / f"{number}.yaml").write_text(text(number, 1))
    begun, spent, live = time.perf_counter(), time.process_time(), 0
    while live < 1000:
        live += sum(change.kind == "added" for change in (await told.get()).changes)
    print("1,000 files copied at once under a watch, from the last one until all are live in memory://:")
    show("wall time", time.perf_counter() - begun, "budget 2 s on a quiet machine")
    show("CPU time", time.process_time() - spent)
    watch.stop()
    await running
    await store.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        reading(Path(made))
        hostile()
        copied = Path(made) / "copied"
        copied.mkdir()
        asyncio.run(copying(copied))


if __name__ == "__main__":
    main()
