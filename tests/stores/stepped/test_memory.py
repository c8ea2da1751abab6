"""Any two deeds on one job, one after the other, by the specification itself."""

import pytest

from everytick.stores.memory import MemoryStore
from tests.stores.clock import ManualClock
from tests.stores.stepped.scene import DEEDS, done, require_settles, require_sound, set_up


@pytest.mark.parametrize("first", sorted(DEEDS))
async def test_whatever_comes_next_nothing_is_doubled_lost_or_slept_through(first: str) -> None:
    for second in DEEDS:
        clock = ManualClock()
        store = MemoryStore(clock)
        scene = await set_up(store, clock)
        for name in (first, second):
            await done(name, store, scene)
            await require_sound(store, scene, clock)
        await require_settles(store, scene, clock)
