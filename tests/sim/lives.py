"""Writes everything that happens in the first minutes of each simulated world. The seed is the argument.

A second argument `leaping` lets every real clock of the process leap before anything of everytick is imported.
"""

import random
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import time_machine

if TYPE_CHECKING:
    from tests.sim.world import World

TROUBLE_SECONDS = 100.0
ANOTHER_YEAR = 1_000_000_000
"""In September 2001, in seconds since 1970."""


def leap() -> None:
    """Let the wall clock show another year, and let each look at a clock find that up to 30 s have passed."""
    chance = random.SystemRandom()
    time_machine.travel(ANOTHER_YEAR, tick=True).start()
    for name in ("monotonic", "perf_counter"):
        setattr(time, name, _leaping(getattr(time, name), chance))


def _leaping(clock: Callable[[], float], chance: random.Random) -> Callable[[], float]:
    passed = 0.0

    def leaping() -> float:
        nonlocal passed
        passed += chance.random() * 30
        return clock() + passed

    return leaping


async def _troubled(world: "World") -> None:
    await world.define()
    world.begin()
    await world.trouble(TROUBLE_SECONDS)
    await _write_store(world)


async def _write_store(world: "World") -> None:
    from everytick.stores.base import HistoryFilter, Nodes

    for record in await world.store.list():
        _write("job", record)
    for occurrence in (await world.store.history(HistoryFilter(limit=100_000))).occurrences:
        _write("occurrence", await world.store.whole(occurrence.id))
    for node in await world.store.ask(Nodes()):
        _write("node", node.id, node.beat_at, node.facts and node.facts.clock_offset)


def _write(*parts: object) -> None:
    sys.stdout.write(" ".join(map(str, parts)) + "\n")


def main(seed: int) -> None:
    """Write the life of one world of each kind."""
    from tests.sim.test_applications import Applications
    from tests.sim.test_claims import Bursts
    from tests.sim.test_instances import Deploys
    from tests.sim.test_sql_errors import Picky, Refusing
    from tests.sim.world import World, run_world

    for kind in (World, Applications, Bursts, Refusing, Picky, Deploys):
        _write("world", kind.__name__)
        world = run_world(seed, _troubled, kind)
        for entry in (*world.told, *world.deeds, *getattr(world, "calls", ())):
            _write(entry)


if __name__ == "__main__":
    if "leaping" in sys.argv[2:]:
        leap()
    main(int(sys.argv[1]))
