"""A seed is one life, in every process: otherwise a seed that failed would tell nothing."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lives(seed: int, hash_seed: int, *clocks: str) -> list[str]:
    """Return what a process writes about the first minutes of all worlds."""
    command = [sys.executable, "-m", "tests.sim.lives", str(seed), *clocks]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def test_the_same_seed_is_the_same_life_whatever_the_clocks_and_the_hashes_are() -> None:
    """No world reads a real clock, and none depends on the order of a set."""
    one, same = lives(7, 1), lives(7, 2, "leaping")
    assert len(one) > 1000
    differing = [pair for pair in zip(one, same, strict=False) if pair[0] != pair[1]]
    assert not differing, f"{len(differing)} lines differ, at first: {differing[0]}"
    assert len(one) == len(same)
    assert one != lives(8, 1), "another seed is the same life"
