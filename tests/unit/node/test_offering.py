"""Plans that bring what they make along: only into free slots, never lost on the way, never twice."""

import asyncio
from collections.abc import Iterable
from time import monotonic

import pytest

from everytick.node.claimer import Claimer
from everytick.node.health import Health
from everytick.node.scope import Scope
from everytick.node.settings import node_settings
from everytick.node.slots import Slots
from everytick.stores.base import Claim, ClaimKey, Commit, NodeScope, Offer
from everytick.stores.memory.store import MemoryStore
from tests.stores.acting import job, plan_once
from tests.stores.clock import ManualClock
from tests.unit.node.parts import EveryJob, inbox


class Desk:
    """Two slots, and what has arrived for them."""

    def __init__(self) -> None:
        self.taken: list[Claim] = []
        self.waiting = self.unwritten = 0
        self.slots = Slots(2, monotonic)

    def holds(self, key: ClaimKey) -> bool:
        return any(claim.key == key for claim in self.taken)

    def take(self, claims: Iterable[Claim], asked_at: float | None = None) -> None:
        for claim in claims:
            self.taken.append(claim)
            self.slots.take()


class Commits:
    """A commit of plans that is answered when it is told to be, with these claims."""

    def __init__(self, *claims: Claim) -> None:
        self.claims, self.offers = list(claims), list[Offer]()
        self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def __call__(self, offer: Offer) -> tuple[list[Commit], list[Claim]]:
        self.offers.append(offer)
        self.is_asked.set()
        await self.may_answer.wait()
        return [Commit.COMMITTED], self.claims if offer.limit else []


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(ManualClock())


@pytest.fixture
def claimer(desk: Desk, store: MemoryStore) -> Claimer:
    health = Health(inbox(), monotonic, 60, 60)
    health.has_beaten()
    settings = node_settings(slots=2)
    scope = Scope("node-1", "", settings, EveryJob())
    return Claimer(store, scope, settings, health, desk, monotonic)


async def claimed(store: MemoryStore, name: str) -> Claim:
    stored = await store.put(job(name, on_create="immediately"))
    await plan_once(store)
    [claim] = [each for each in await store.claim(NodeScope("node-1"), 10) if each.job.id == stored.job_id]
    return claim


async def test_a_plan_brings_along_what_there_are_free_slots_for(
    claimer: Claimer, desk: Desk, store: MemoryStore
) -> None:
    first = Commits(await claimed(store, "one"))
    first.may_answer.set()
    assert await claimer.offer(first) == ([Commit.COMMITTED], 1)
    assert [offer.limit for offer in first.offers] == [2]
    assert desk.taken == first.claims
    second = Commits(await claimed(store, "two"))
    second.may_answer.set()
    assert await claimer.offer(second) == ([Commit.COMMITTED], 1)
    assert [offer.limit for offer in second.offers] == [1]
    third = Commits()
    third.may_answer.set()
    assert await claimer.offer(third) == ([Commit.COMMITTED], 0)
    assert [offer.limit for offer in third.offers] == [0]


async def test_no_claim_takes_the_slots_that_were_offered(claimer: Claimer, desk: Desk, store: MemoryStore) -> None:
    commits = Commits(await claimed(store, "one"))
    await store.put(job("two", on_create="immediately"))
    await plan_once(store)
    offering = asyncio.ensure_future(claimer.offer(commits))
    await commits.is_asked.wait()
    assert await claimer.claim() == 0
    commits.may_answer.set()
    await offering
    assert await claimer.claim() == 1
    assert [each.job.name for each in desk.taken] == ["one", "two"]


async def test_nothing_is_offered_by_a_node_that_rests(claimer: Claimer) -> None:
    claimer.rest(True)
    commits = Commits()
    commits.may_answer.set()
    await claimer.offer(commits)
    assert [offer.limit for offer in commits.offers] == [0]


async def test_what_was_given_arrives_though_the_planner_is_told_to_stop(
    claimer: Claimer, desk: Desk, store: MemoryStore
) -> None:
    """Else it would be the node's own for good, and be counted as lost by the others."""
    running = asyncio.ensure_future(claimer.run())
    commits = Commits(await claimed(store, "one"))
    planning = asyncio.ensure_future(claimer.offer(commits))
    await commits.is_asked.wait()
    planning.cancel()
    claimer.stop()
    await asyncio.wait([planning])
    assert planning.cancelled()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not running.done(), "the end waits for what is on its way"
    commits.may_answer.set()
    await running
    assert desk.taken == commits.claims


async def test_what_a_commit_under_way_may_still_bring_is_not_adopted(
    claimer: Claimer, desk: Desk, store: MemoryStore
) -> None:
    """Though other calls come and go meanwhile: it would be taken twice."""
    commits = Commits(await claimed(store, "one"))
    offering = asyncio.ensure_future(claimer.offer(commits))
    await commits.is_asked.wait()
    for _ in range(3):
        claimer.adopt(commits.claims)
        assert desk.taken == []
        assert await claimer.claim() == 0
    commits.may_answer.set()
    await offering
    claimer.adopt(commits.claims)
    assert desk.taken == commits.claims
