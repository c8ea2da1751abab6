"""What it costs to fold: the processor's time for each end, beside that of the run which it follows.

    python3 dev.py bench fold [rounds]

A node runs a backlog; then everything that has ended is folded, in batches as a node takes them, with the same open
store. While it runs, the node does not fold. Both are measured by the time of the processor, of
this process and of the server's, so that others on the same machine count little. The least of some rounds is the
figure: at most 3 % of the run may go to the fold.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._backlog import drained
from bench._beside import Figures, Watch, asked, column, durable_server, in_turns, judged, rounds
from everytick.node import node
from everytick.stores.addresses import AnyStore

BACKLOG = 160_000
"""How many ends are folded. A server's time is told in ticks of 10 ms: with 40,000, a quarter of a microsecond each."""

SLOTS = 50
BAR = 0.03


class Folding:
    """Folds what a run has left; `watch` keeps what that takes, `count` how many that were."""

    def __init__(self, server: int | None) -> None:
        self.watch, self.count = Watch(server), 0

    async def __call__(self, store: AnyStore) -> None:
        """Fold until nothing is left."""
        with self.watch:
            while (folded := await store.fold(store.folds_at_once)) >= store.folds_at_once:
                self.count += folded
        self.count += folded


async def measured(address: str, server: int | None = None) -> Figures:
    """Run the backlog and fold it; return microseconds of the processor for each."""
    vars(node)["_FOLD_SECONDS"] = 3600.0
    folding = Folding(server)
    run = await drained(address, SLOTS, BACKLOG, 1, server, folding)
    fold = folding.watch.figures(folding.count)
    return {"run": run["client"] + run["server"], "fold": fold["client"] + fold["server"]}


async def sqlite() -> Figures:
    """Measure with a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return await measured(f"sqlite:///{Path(folder) / 'store.db'}")


async def postgres() -> Figures:
    """Measure with a server of its own."""
    with durable_server() as (address, pid):
        return await measured(address, pid)


SIDES = {"sqlite": sqlite, "postgres": postgres}


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    if asked(SIDES):
        return 0
    enough = True
    for side, figures in in_turns(list(SIDES), rounds()).items():
        run, fold = min(column(figures, "run")), min(column(figures, "fold"))
        told = f"{fold / run:.1%}, at most {BAR:.0%}: {judged(fold / run <= BAR)}"
        print(f"{side:8} run {run:5.1f} µs, fold {fold:5.2f} µs for each end: {told}", flush=True)
        enough &= fold / run <= BAR
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main())
