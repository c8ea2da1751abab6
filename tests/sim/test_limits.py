"""A fleet in trouble that people limit, brake and release: no limit is broken, and everything runs in the end."""

from dataclasses import field
from datetime import timedelta
from typing import ClassVar

import pytest

from everytick.domain.facts import DropLimit, PutBrake, ReleaseBrake, SetLimit
from everytick.domain.limits import Rate
from everytick.domain.lookups import LimitsAndBrakes
from everytick.stores.base import HistoryFilter
from tests.sim.jobs import JOBS, Words
from tests.sim.laws import lived, seeds
from tests.sim.world import World

REACHES = ("tag:odd", "tag:even", "job:wide", "queue:default", "all")
TAGGED: Words = {
    name: {**words, "policies": {**words["policies"], "tags": ["odd" if place % 2 else "even"]}}
    for place, (name, words) in enumerate(JOBS.items())
    if name != "local"
}


class Limited(World):
    """A world in which people limit and brake what the nodes may start."""

    faults: ClassVar[tuple[str, ...]] = (
        "govern",
        "govern",
        "govern",
        "crash",
        "freeze",
        "partition",
        "outage",
        "weather",
    )
    bounds: dict[str, int] = field(default_factory=dict)

    @property
    def words(self) -> Words:
        """What there is to do, each with a tag."""
        return TAGGED

    def __post_init__(self) -> None:
        super().__post_init__()
        self.bounds = {}

    async def govern(self) -> None:
        """Limit, brake or release something."""
        name, chance = self.chance.choice(REACHES), self.chance
        rate = Rate(chance.choice([3, 20]), timedelta(seconds=20), chance.random() < 0.5)
        match chance.choice(["limit", "limit", "rate", "drop", "brake", "release", "freeze"]):
            case "limit":
                most = chance.choice([1, 2, 4])
                await self.store.request(name, SetLimit(most=most))
                # What runs when a limit is set goes on.
                self.bounds[name] = max(most, (await self.owned()).get(name, 0))
            case "rate":
                await self.store.request(name, SetLimit(rate=rate))
                self.bounds.pop(name, None)
            case "drop":
                await self.store.request(name, DropLimit())
                self.bounds.pop(name, None)
            case "brake":
                await self.store.request(name, PutBrake())
            case "freeze":
                now = await self.store.now()
                length = timedelta(seconds=chance.choice([10, 40]))
                await self.store.request(name, PutBrake(now + length / 2, now + length))
            case _:
                await self.store.request(name, ReleaseBrake(chance.choice([None, rate]), chance.random() < 0.3))

    async def owned(self) -> dict[str, int]:
        """Return how many occurrences of each reach nodes own, counted from the records."""
        found = dict.fromkeys(REACHES, 0)
        jobs = {record.job.id: record.job for record in await self.store.list()}
        for each in (await self.store.history(HistoryFilter(limit=100_000))).occurrences:
            if each.owner is not None:
                job = jobs[each.job_id]
                for name in ("all", "queue:default", f"job:{job.name}", *(f"tag:{tag}" for tag in job.settings.tags)):
                    found[name] = found.get(name, 0) + 1
        return found

    async def look(self) -> None:
        """Hold the store to its limits, too: they are kept, and nothing starts under a brake."""
        await super().look()
        running = await self.owned()
        for name, bound in self.bounds.items():
            assert running[name] <= bound, f"{running[name]} of {name} run, and {bound} may"
        limits = await self.store.ask(LimitsAndBrakes())
        for record in limits.reaches:
            name, limit = record.reach.name, record.reach.limit
            if limit is not None and limit.most is not None and name in self.bounds:
                self.bounds[name] = max(limit.most, min(self.bounds[name], running[name]))
            brake = record.reach.brake(limits.now)
            if brake is not None:
                assert not await self._begun_since(name, brake.since), f"{name} is braked"

    async def _begun_since(self, name: str, since: object) -> list[str]:
        jobs = {record.job.id: record.job for record in await self.store.list()}
        begun = (await self.store.history(HistoryFilter(limit=100_000))).occurrences
        return [
            each.id
            for each in begun
            if each.started_at is not None
            and each.started_at > since  # type: ignore[operator]
            and name
            in ("all", "queue:default", f"job:{jobs[each.job_id].name}", f"tag:{jobs[each.job_id].settings.tags[0]}")
        ]

    async def recover(self) -> None:
        """End all trouble, and let everything go."""
        await super().recover()
        for name in REACHES:
            for _ in range(2):
                await self.store.request(name, ReleaseBrake(at_once=True))
            await self.store.request(name, DropLimit())
            self.bounds.pop(name, None)


@pytest.mark.parametrize("seed", seeds(1, 2, 3, 4))
def test_limits_and_brakes_hold_in_a_fleet_in_trouble(seed: int) -> None:
    """S1-040: nothing is lost, nothing doubled, everything over, and no limit broken meanwhile."""
    world = lived(seed, Limited)
    assert {line.split()[1] for line in world.told} >= {"govern"}
