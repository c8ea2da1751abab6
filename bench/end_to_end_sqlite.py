"""End to end on SQLite: jobs without a body, from the backlog to their last record, beside huey.

    python3 dev.py bench end_to_end_sqlite

20,000 wait when a node with 50 slots starts, at synchronous NORMAL and FULL. huey runs as
many from its own SQLite queue in one loop without threads, which is its fastest way, with
`fsync=False` (synchronous OFF, less than NORMAL keeps) and `fsync=True` (FULL), and without
results; it keeps no history. Afterwards everytick's rows are counted.
"""

import importlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._backlog import drained
from bench._beside import Figures, Watch, asked, column, in_turns, judged, middle, ratio, rounds

BACKLOG = 20_000
SLOTS = 50
BAR = 20_000
HUEY_BACKLOG = 4_000


def huey(synchronous: str) -> Figures:
    """Run the backlog with huey; one at a time, as it does, a smaller one tells as much."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "huey.db")
        peer = importlib.import_module("huey").SqliteHuey(filename=file, fsync=synchronous == "full", results=False)
        bodies = 0

        @peer.task()  # type: ignore[untyped-decorator]
        def body() -> None:
            nonlocal bodies
            bodies += 1

        for _ in range(HUEY_BACKLOG):
            body()
        with Watch() as watch:
            while (found := peer.dequeue()) is not None:
                peer.execute(found)
        assert (bodies, peer.pending_count()) == (HUEY_BACKLOG, 0), f"{bodies} of {HUEY_BACKLOG} ran"
        return watch.figures(HUEY_BACKLOG)


async def everytick(synchronous: str) -> Figures:
    """Run the backlog with a node."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{Path(folder) / 'store.db'}?synchronous={synchronous}"
        return await drained(address, SLOTS, BACKLOG, tasks=1)


SIDES = {"huey": huey, "everytick": everytick}


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    if asked(SIDES):
        return 0
    enough = True
    for synchronous in ("normal", "full"):
        found = in_turns(list(SIDES), rounds(), synchronous=synchronous)
        for side, figures in found.items():
            rate, cpu = middle(figures, "rate"), middle(figures, "client")
            print(f"{synchronous:6} {side:9} {rate:>7,.0f} a second, processor {cpu:5.1f} µs for each")
        faster = ratio(column(found["everytick"], "rate"), column(found["huey"], "rate"))
        rate = middle(found["everytick"], "rate")
        told = f"{rate:,.0f} a second, at least {BAR:,}: {judged(rate >= BAR)}"
        print(f"{synchronous:6} {faster} times huey's rate; {told}", flush=True)
        enough &= rate >= BAR
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main())
