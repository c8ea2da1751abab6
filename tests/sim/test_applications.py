"""Two applications on one store: neither plans, nor runs, nor spends the recovery of the other's jobs."""

from typing import Any, ClassVar

import pytest

from everytick import Everytick, schedule
from everytick.domain.facts import Trigger
from everytick.domain.job import Job
from everytick.stores.base import HistoryFilter
from tests.sim.chance import passing
from tests.sim.jobs import NEVER, Words, defined
from tests.sim.laws import lived, seeds
from tests.sim.world import FAULTS, Peer, World
from tests.stores.acting import put

LOCAL: dict[str, Any] = {"overlap": "allow", "on_store_outage": "fire_local", "recovery": "execute_all"}
SHOP: Words = {
    "orders": {"when": "every: 20s", "policies": {"overlap": "queue", "recovery": "execute_all"}},
    "stock": {"when": "every: 9s", "policies": {"recovery": "execute_last"}, "lasts": 0.5},
    "shop resumes": {"when": "every: 45s", "policies": {"on_orphan": "resume", "max_lost": None}, "tasks": ("a", "b")},
    "shop local": {"when": "every: 12s", "policies": LOCAL},
    "common": {"when": "every: 15s", "policies": {}},
}
BANK: Words = {
    "rates": {"when": "every: 25s", "policies": {"queue": "gpu", "overlap": "queue", "recovery": "compressed"}},
    "books": {"when": "every: 30s", "policies": {"recovery": "execute_all", "overlap": "allow", "max_concurrent": 3}},
    "bank local": {"when": "every: 14s", "policies": {**LOCAL, "queue": "gpu"}},
    "common": {"when": "every: 40s", "policies": {"overlap": "queue_latest"}, "tasks": ("a", "b")},
}
ANYBODY: Words = {
    "anybody": {"when": "every: 10s", "policies": {}},
    "any gpu": {"when": "every: 35s", "policies": {"queue": "gpu"}},
}
APPLICATIONS: dict[str, Words] = {"shop": SHOP, "bank": BANK}
QUEUES = {"shop": ("default",), "bank": ("default", "gpu")}


def definitions(application: Everytick, when: str | None, **policies: Any) -> Everytick:
    """Let an application define all of its jobs, with another schedule or other policies where they are given."""
    for name, said in APPLICATIONS[application.name].items():
        definition = application.define(name, schedule(when or said["when"]), **{**said["policies"], **policies})
        for task in said.get("tasks", ("main",)):
            definition.task(name=task)(lambda: None)
    return application


class Applications(World):
    """A world of two applications that know nothing of each other, and of some jobs that need no code."""

    faults: ClassVar[tuple[str, ...]] = (*FAULTS, "abandon", "abandon", "deploy")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.owners: dict[str, str] = {}
        self.stands: dict[str, tuple[object, ...]] = {}
        self.deserted: set[str] = set()

    @property
    def words(self) -> Words:
        """What there is to do; a name that both have is the one's that came first."""
        return {**ANYBODY, **{name: APPLICATIONS[owner][name] for name, owner in self.owners.items()}}

    async def define(self) -> None:
        """Let both applications bring their jobs in, in any order."""
        for name in ANYBODY:
            await put(self.store, defined(name, words=ANYBODY))
        for application in self.chance.sample(sorted(APPLICATIONS), 2):
            await self._sync(application)
        for record in await self.store.list():
            if record.job.code:
                self.owners[record.job.name] = record.job.code

    async def _sync(self, application: str, when: str | None = None, **policies: Any) -> None:
        await definitions(Everytick(self.store, name=application), when, **policies).sync()

    def edited(self, name: str) -> Job:
        """Return the definition of a job at another priority."""
        priority = self.chance.randrange(9)
        if name in ANYBODY:
            return defined(name, words=ANYBODY, priority=priority)
        application = definitions(Everytick(self.store, name=self.owners[name]), None, priority=priority)
        return next(each.job for each in application.definitions if each.name == name)

    async def end_schedules(self) -> None:
        """Let no more instants come, and ask for two last occurrences of each job."""
        for application in APPLICATIONS:
            await self._sync(application, NEVER)
        for name in ANYBODY:
            await put(self.store, defined(name, NEVER, words=ANYBODY))
        for record in await self.store.list():
            for key in ("last", "and last"):
                await self.store.request(record.job.id, Trigger(key))

    # ---------------------------------------------------------------------------------------------------- its nodes

    def begin(self) -> None:
        """Let two nodes of each application come to life."""
        for application in sorted(APPLICATIONS) * 2:
            self.come(application)

    def come(self, application: str) -> None:
        """Let a node of this application come to life."""
        # Its functions are found by name. Only the needs say that a job of the same name is another's.
        known = {*APPLICATIONS[application], *ANYBODY}
        # It may plan at once and be gone again before anything looks.
        self.deserted = self.deserted - {application}
        self.join(application, QUEUES[application], known)

    def replace_dead(self, peer: Peer) -> None:
        """Let a node of the same application come."""
        self.come(peer.application)

    def living_of(self, application: str) -> list[Peer]:
        """Return the nodes of an application that have not crashed."""
        return [peer for peer in self.living if peer.application == application]

    def fill_up(self) -> None:
        """Let nodes come until each application has two."""
        for application in APPLICATIONS:
            while len(self.living_of(application)) < 2:
                self.come(application)

    async def abandon(self) -> None:
        """All nodes of an application are gone; they come back after a while."""
        application = self.chance.choice(sorted(APPLICATIONS))
        for peer in self.living_of(application):
            peer.wire.is_cut = True
        if not self.living:
            self.come("shop" if application == "bank" else "bank")
        seconds = self.chance.choice([10, 40, 90])

        async def come_back() -> None:
            await passing(seconds)
            self.come(application)

        self.returning = self.loop.create_task(come_back())

    async def deploy(self) -> None:
        """An application brings its definitions in again, changed or not."""
        application = self.chance.choice(sorted(APPLICATIONS))
        await self._sync(application, priority=self.chance.randrange(9))

    # ------------------------------------------------------------------------------------------ what is true meanwhile

    async def look(self) -> None:
        """Nothing moves of an application that has no node, and each job stays its owner's."""
        await super().look()
        deserted = {name for name in APPLICATIONS if not self.living_of(name)}
        for record in await self.store.list():
            job = record.job
            assert job.code == self.owners.get(job.name, ""), f"{job.name} is now the job of '{job.code}'"
            made = (await self.store.history(HistoryFilter(job_id=job.id, limit=100_000))).occurrences
            stands = record.watermark, frozenset(each.id for each in made)
            if job.code in deserted & self.deserted:
                assert stands == self.stands[job.name], f"{job.name} was planned though {job.code} has no node"
            self.stands[job.name] = stands
        self.deserted = deserted

    def require_own_work(self) -> None:
        """No node has run or planned what is another application's, or is in a queue that it does not take from."""
        peers = {peer.name: peer for peer in self.peers}
        gpu = {name for name, said in self.words.items() if said["policies"].get("queue") == "gpu"}
        for deed in self.deeds:
            application = peers[deed.node].application
            assert self.owners.get(deed.job, application) == application, f"{deed} is another application's"
            assert deed.job not in gpu or application == "bank", f"{deed} is of another queue"
        for peer in self.peers:
            for name in peer.wire.planned:
                assert self.owners.get(name, peer.application) == peer.application, f"{peer.name} planned {name}"
                assert name not in gpu or peer.application == "bank", f"{peer.name} planned {name}"


@pytest.mark.parametrize("seed", seeds(*range(4)))
def test_two_applications_leave_each_other_alone(seed: int) -> None:
    """C-41, C-42, A3, A4."""
    world = lived(seed, Applications)
    world.require_own_work()


def test_applications_come_and_go_and_share_a_name() -> None:
    """Otherwise this would hold for any code."""
    worlds = [lived(seed, Applications) for seed in (0, 1)]
    assert {world.owners["common"] for world in worlds} == {"shop", "bank"}
    assert {"shop", "bank"} == {peer.application for world in worlds for peer in world.peers if peer.wire.planned}
    assert "abandon" in {entry.split()[1] for world in worlds for entry in world.told}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_two_applications_leave_each_other_alone_at_length(seed: int) -> None:
    lived(seed, Applications).require_own_work()
