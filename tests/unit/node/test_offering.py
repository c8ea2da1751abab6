"""Plans that bring what they make along: only into free slots, never lost on the way, never twice."""

import asyncio
from collections.abc import Sequence
from time import monotonic

import pytest

from everytick.domain.decisions import Plan
from everytick.node.claimer import Claimer
from everytick.node.health import Health
from everytick.node.inbox import Arrived, Inbox, Planned
from everytick.node.planner import Planner
from everytick.node.scope import Scope
from everytick.node.settings import node_settings
from everytick.node.slots import Slots
from everytick.stores.base import Batch, Claim, Committed, NodeScope, Offer
from everytick.stores.memory.store import MemoryStore
from tests.stores.acting import job, plan_once, put
from tests.stores.clock import ManualClock
from tests.unit.node.parts import EveryJob, inbox, tools


class Desk:
    """Two slots, and what has arrived for them."""

    def __init__(self) -> None:
        self.taken: list[Claim] = []
        self.waiting = 0
        self.slots = Slots(2, monotonic)
        self.inbox = Inbox({Arrived: self.take, Planned: self.take_along})
        self.claimer: Claimer | None = None

    def take_along(self, planned: Planned) -> None:
        self.take(Arrived(planned.done.claims, planned.asked_at))

    def take(self, arrived: Arrived) -> None:
        if self.claimer is not None:
            self.claimer.arrived(arrived.claims)
        for claim in arrived.claims:
            self.taken.append(claim)
            self.slots.take()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(ManualClock())


@pytest.fixture
def claimer(desk: Desk, store: MemoryStore) -> Claimer:
    return made(desk, store)


def made(desk: Desk, store: MemoryStore) -> Claimer:
    health = Health(inbox(), monotonic, 60, 60)
    health.has_beaten()
    settings = node_settings(slots=2)
    scope = Scope("node-1", "", settings, EveryJob())
    desk.claimer = Claimer(store, scope, settings, health, desk.slots, desk, desk.inbox, monotonic)
    return desk.claimer


async def claimed(store: MemoryStore, name: str) -> Claim:
    stored = await put(store, job(name, on_create="immediately"))
    await plan_once(store)
    [claim] = [each for each in await store.claim(NodeScope("node-1"), 10) if each.job.id == stored.job_id]
    return claim


def limit(offer: Offer | None) -> int:
    return 0 if offer is None else offer.limit


async def test_a_plan_brings_along_what_there_are_free_slots_for(
    claimer: Claimer, desk: Desk, store: MemoryStore
) -> None:
    for number, free in (("one", 2), ("two", 1)):
        claim = await claimed(store, number)
        with claimer.offer(True) as offer:
            assert limit(offer) == free
            desk.inbox.put(Arrived([claim]))
        assert desk.taken[-1] == claim
    with claimer.offer(True) as offer:
        assert offer is None


async def test_no_claim_takes_the_slots_that_were_offered(claimer: Claimer, desk: Desk, store: MemoryStore) -> None:
    first = await claimed(store, "one")
    await put(store, job("two", on_create="immediately"))
    await plan_once(store)
    with claimer.offer(True):
        assert await claimer.claim() == 0
        desk.inbox.put(Arrived([first]))
    assert await claimer.claim() == 1
    assert [each.job.name for each in desk.taken] == ["one", "two"]


async def test_no_slot_is_offered_that_a_claim_under_way_has_reserved(claimer: Claimer, desk: Desk) -> None:
    with desk.slots.reserve(1), claimer.offer(True) as offer:
        assert limit(offer) == 1
        with claimer.offer(True) as second:
            assert second is None
    assert desk.slots.free_now() == 2


async def test_nothing_is_offered_by_a_node_that_rests_or_while_more_is_to_be_planned(claimer: Claimer) -> None:
    with claimer.offer(False) as offer:
        assert offer is None
    claimer.rest(True)
    with claimer.offer(True) as offer:
        assert offer is None


class Slow(MemoryStore):
    """A store whose commits of plans are answered when they are told to be."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.is_written, self.may_answer = asyncio.Event(), asyncio.Event()

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        done = await super().commit_plans(batch, plans, offer)
        self.is_written.set()
        await self.may_answer.wait()
        return done


async def test_a_planner_that_is_told_to_stop_waits_for_what_was_claimed_along(desk: Desk) -> None:
    """Else it would be the node's own for good, and be counted as lost by the others."""
    store = Slow(ManualClock())
    await put(store, job("one", on_create="immediately"))
    claimer = made(desk, store)
    scope = Scope("node-1", "", node_settings(), EveryJob())
    planner = Planner(store, tools(), scope, claimer, desk.inbox)
    planning = asyncio.ensure_future(planner.round())
    await store.is_written.wait()
    stopping = asyncio.ensure_future(planner.stopped())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not stopping.done(), "the end waits for what is on its way"
    store.may_answer.set()
    await stopping
    assert [claim.job.name for claim in desk.taken] == ["one"]
    assert (await planning).jobs == 1
    assert (await planner.round()).jobs == 0, "nothing is planned after the end"


async def test_what_a_commit_under_way_may_still_bring_is_not_adopted(
    claimer: Claimer, desk: Desk, store: MemoryStore
) -> None:
    """Though other calls come and go meanwhile: it would be taken twice."""
    claims = [await claimed(store, "one")]
    with claimer.offer(True):
        for _ in range(3):
            claimer.adopt(claims)
            assert desk.taken == []
            assert await claimer.claim() == 0
        desk.inbox.put(Arrived(claims))
    claimer.adopt(claims)
    assert desk.taken == claims


async def test_a_claim_whose_reply_was_lost_is_adopted_by_the_second_beat_that_finds_it(
    claimer: Claimer, desk: Desk, store: MemoryStore
) -> None:
    """G9: one that began after the first of these beats cannot bring it, and keeps nothing waiting."""
    claims = [await claimed(store, "one")]
    claimer.adopt(claims)
    assert desk.taken == []
    with claimer.offer(True):
        claimer.adopt(claims)
        assert desk.taken == claims


async def test_a_claim_that_came_between_two_beats_is_not_adopted(
    claimer: Claimer, desk: Desk, store: MemoryStore
) -> None:
    """Though both beats were sent before it came: it may have ended since."""
    claims = [await claimed(store, "one")]
    claimer.adopt(claims)
    desk.inbox.put(Arrived(claims))
    claimer.adopt(claims)
    assert desk.taken == claims
