"""Whatever goes wrong, and in whatever order: nothing is lost, nothing is doubled, and everything ends."""

import pytest

from tests.sim.laws import lived, seeds
from tests.sim.world import FAULTS, World


def test_a_life_is_full_of_trouble() -> None:
    """A simulation in which nothing goes wrong would hold for any code."""
    worlds = [lived(seed, World) for seed in (2, 4, 6)]
    deeds = [deed for world in worlds for deed in world.deeds]
    told = [entry.split()[1] for world in worlds for entry in world.told]
    assert len(deeds) > 300
    assert len([deed for deed in deeds if not deed.ended]) >= 3
    assert set(told) >= {*FAULTS, "people"}


@pytest.mark.parametrize("seed", seeds(*range(8)))
def test_whatever_goes_wrong_everything_comes_right(seed: int) -> None:
    """E1, E2, E8, G1, G9, I4, C11."""
    lived(seed, World)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_whatever_goes_wrong_everything_comes_right_at_length(seed: int) -> None:
    lived(seed, World)
