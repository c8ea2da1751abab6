"""What is late, and what backfills make, gets a share of the slots: bounded, and guaranteed."""

from time import monotonic
from typing import Any

import pytest

from everytick.domain.needs import LATE, are_late, is_met, late_needs, on_time_needs
from everytick.errors import InvalidSetting
from everytick.node.claimer import Claimer
from everytick.node.health import Health
from everytick.node.inbox import Arrived, Inbox
from everytick.node.scope import Scope
from everytick.node.settings import node_settings
from everytick.node.slots import Slots
from everytick.stores.base import Claim
from everytick.stores.memory.store import MemoryStore
from tests.stores.acting import job, plan_once, put
from tests.stores.clock import ManualClock
from tests.unit.node.parts import EveryJob, inbox


class Held:
    """What a node of some slots holds; `drop` ends one of it."""

    waiting = 0

    def __init__(self, slots: int, store: MemoryStore, **settings_: Any) -> None:
        self.claims: dict[int, Claim] = {}
        self.came: list[str] = []
        self.slots = Slots(slots, monotonic)
        health = Health(inbox(), monotonic, 60, 60)
        health.has_beaten()
        settings = node_settings(slots=slots, **settings_)
        self.scope = Scope("node-1", "", settings, EveryJob())
        box = Inbox({Arrived: self.take})
        self.claimer = Claimer(store, self.scope, settings, health, self.slots, self, box, monotonic, self)  # type: ignore[arg-type]
        self.store = store

    def take(self, arrived: Arrived) -> None:
        for claim in arrived.claims:
            self.claims[claim.key.handle] = claim
            self.came.append("late" if claim.occurrence.late else "live")
            self.slots.take()

    def find(self, key: object) -> Claim | None:
        return next((each for each in self.claims.values() if each.key == key), None)

    def drop(self, kind: str) -> None:
        handle = next(
            handle for handle, each in self.claims.items() if ("late" if each.occurrence.late else "live") == kind
        )
        del self.claims[handle]
        self.slots.busy -= 1

    async def claim(self) -> None:
        self.scope.hear((await self.store.ahead(self.scope.current)).needs)
        self.claimer.wake()
        await self.claimer.claim()

    def count(self, kind: str) -> int:
        return sum(1 for each in self.claims.values() if ("late" if each.occurrence.late else "live") == kind)


async def crowded(late: int, live: int) -> MemoryStore:
    """A store with so many late occurrences, which are older, and so many on time."""
    clock = ManualClock()
    store = MemoryStore(clock)
    rules: dict[str, Any] = {"recovery": "execute_all", "overlap": "allow", "late_overlap": "allow"}
    await put(store, job("late", "0 * * * *", **rules))
    await plan_once(store)
    clock.move(hours=late, minutes=30)
    for number in range(live):
        await put(store, job(f"live-{number}", on_create="immediately"))
    await plan_once(store)
    return store


@pytest.mark.parametrize(("slots", "share"), [(8, 2), (4, 1), (3, 1), (40, 10)])
async def test_late_ones_get_a_quarter_of_the_slots_and_no_more(slots: int, share: int) -> None:
    """A23: they are older than all others, and still leave the rest of the slots to what is on time."""
    held = Held(slots, await crowded(late=50, live=50))
    await held.claim()
    assert (held.count("late"), held.count("live")) == (share, slots - share)


@pytest.mark.parametrize(("late_share", "share"), [(0.5, 4), (1, 8), (0.3, 2), (0.01, 1)])
async def test_a_setting_says_how_large_the_share_is(late_share: float, share: int) -> None:
    held = Held(8, await crowded(late=50, live=50), late_share=late_share)
    await held.claim()
    assert (held.count("late"), held.count("live")) == (share, 8 - share)


@pytest.mark.parametrize("given", [0, -0.1, 1.01, True, "much"])
def test_a_share_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(InvalidSetting, match="share above 0"):
        node_settings(late_share=given)


async def test_a_node_that_is_never_idle_gives_them_their_share() -> None:
    """Apache/airflow#58554: each slot of the share that is free goes to them first."""
    held = Held(4, await crowded(late=50, live=50))
    await held.claim()
    for _ in range(5):
        held.drop("late")
        held.drop("live")
        await held.claim()
        assert (held.count("late"), held.count("live")) == (1, 3)


async def test_late_ones_never_have_more_than_their_share_however_slots_come_free() -> None:
    """The late ones that still run count: what is on time gets the slots that it leaves."""
    held = Held(8, await crowded(late=50, live=50))
    await held.claim()
    for _ in range(5):
        held.drop("live")
        await held.claim()
        assert (held.count("late"), held.count("live")) == (2, 6)


async def test_idle_slots_beyond_the_share_stay_free_for_what_is_on_time() -> None:
    held = Held(8, await crowded(late=50, live=0))
    await held.claim()
    assert (held.count("late"), held.count("live")) == (2, 0)


async def test_on_one_slot_they_take_turns() -> None:
    held = Held(1, await crowded(late=50, live=50))
    for _ in range(6):
        await held.claim()
        held.drop(held.came[-1])
    assert held.came == ["late", "live"] * 3


async def test_a_node_that_never_saw_any_asks_for_none() -> None:
    """It costs nothing where it is not used: the scope of a claim is that of before."""
    held = Held(4, await crowded(late=0, live=2))
    await held.claim()
    assert held.scope.late is None
    assert held.scope.on_time is held.scope.current


def test_the_lane_is_a_line_of_needs_that_asks_nothing_of_a_node() -> None:
    for needs in ("", "code:shop", "code:shop\nqueue:gpu"):
        late = late_needs(needs)
        assert are_late(late)
        assert not are_late(needs)
        assert on_time_needs(late) == needs
        for has in (lambda label: label != "queue:gpu", lambda _: True):
            assert is_met(late, has) == is_met(needs, has)
    assert not are_late(f"code:{LATE}")
