"""How long a write waits when four processes write to one SQLite file without a pause.

    python3 dev.py bench sqlite_processes

Each process writes one beat after the other for a few seconds, as fast as it may; a wait is
what passes between the call and its commit. First in line before the lock file, then, to
compare, without it: by SQLite's lock alone, which each asks for again at random moments.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from everytick.stores.sqlite.store import SqliteStore

PROCESSES = 4
SECONDS = 5.0


async def written(path: Path, name: str, in_line: bool) -> list[float]:
    """Write until the time is over; return how long each write waited."""
    store = SqliteStore(path)
    # The bench's only way to do without: the store itself falls back where the file cannot be locked.
    store._access.turn._is_unsupported = not in_line
    await store.open()
    print("ready", flush=True)
    sys.stdin.readline()
    waits = []
    until = time.monotonic() + SECONDS
    while (began := time.monotonic()) < until:
        await store.beat(name, [])
        waits.append(time.monotonic() - began)
    await store.close()
    return waits


def measured(in_line: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        asyncio.run(made(path))
        command = [sys.executable, __file__, "writer", str(path), "line" if in_line else "alone"]
        workers = [
            subprocess.Popen([*command, f"node-{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for number in range(PROCESSES)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        said = [worker.communicate()[0] for worker in workers]
    each = [json.loads(text) for text in said]
    waits = sorted(wait for one in each for wait in one)
    counts = [len(one) for one in each]
    words = "in line before the lock file" if in_line else "by SQLite's lock alone"
    print(
        f"{PROCESSES} processes, {words}: {len(waits):,} writes, p50 {1e3 * waits[len(waits) // 2]:.1f} ms,"
        f" p99 {1e3 * waits[len(waits) * 99 // 100]:.1f} ms, longest {1e3 * waits[-1]:.1f} ms;"
        f" the fewest of one process {min(counts):,}, the most {max(counts):,}"
    )


async def made(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.close()


def main() -> int:
    if sys.argv[1:2] == ["writer"]:
        print(json.dumps(asyncio.run(written(Path(sys.argv[2]), sys.argv[4], sys.argv[3] == "line"))))
        return 0
    for in_line in (True, False):
        measured(in_line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
