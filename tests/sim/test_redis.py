"""The fleet on Redis: every node works on a copy of its own, and whatever goes wrong, the laws of the fleet hold."""

from functools import partial

import pytest

from tests.servers.launch import Server
from tests.sim.laws import lived, seeds
from tests.sim.on_redis import RedisWorld


@pytest.fixture(autouse=True)
def turns_pass_on_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world ends turns itself: the server's clock goes on while that of the world stands still."""
    monkeypatch.setattr("everytick.stores.redis.log._TURN_MILLISECONDS", 600_000)


def lived_on(server: Server, seed: int) -> RedisWorld:
    """Return a world on this server after its life."""
    world = lived(seed, partial(RedisWorld, address=server.address))
    world.erase()
    return world


def test_copies_lose_races_and_ask_for_turns(redis: Server) -> None:
    """A simulation in which no commit is refused would hold for any code."""
    world = lived_on(redis, 100)
    assert world.refused > 50
    assert world.turns.count > 0
    assert len(world.deeds) > 50


@pytest.mark.parametrize("seed", seeds(*range(3)))
def test_whatever_goes_wrong_on_redis_everything_comes_right(seed: int, redis: Server) -> None:
    """E1, E2, E8, G1, G9, I4, C11."""
    lived_on(redis, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_whatever_goes_wrong_on_redis_everything_comes_right_at_length(seed: int, redis: Server) -> None:
    lived_on(redis, seed)
