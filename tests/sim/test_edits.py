"""Definitions that change all the time, by two editors, while nodes and the store fail: F6 to F9.

No run at an instant that the version in force then does not name, none lost, none doubled.
"""

import asyncio
from contextlib import suppress
from typing import ClassVar

import pytest

from everytick.deciding.past import past_instants
from everytick.domain import ids
from everytick.domain.changes import Put
from everytick.domain.lookups import Editions, Spans
from everytick.domain.occurrence import Cause
from everytick.domain.policies import update_policy
from everytick.domain.updates import switched
from everytick.errors import InvalidPolicies, JobDisabled, TooManyEditions, VersionConflict
from everytick.stores.base import HistoryFilter
from everytick.stores.storing_rules import in_force_at
from tests.sim.chance import passing
from tests.sim.jobs import JOBS, Words
from tests.sim.laws import life, seeds
from tests.sim.world import World, run_world

POLICIES = (
    *("immediate", "graceful", "graceful 3", "graceful 45s", "windowed 2", "windowed 40s"),
    *("rollout 50% 100% after 2 failures 1", "rollout dry 2 30% after 1 failures 9"),
)
LENGTHS = (5, 7, 11, 20, 30, 45)


class Edits(World):
    """A world in which jobs get other schedules, at once, later or for a while, and go back to old ones."""

    faults: ClassVar[tuple[str, ...]] = (
        *("edit", "edit", "edit", "both", "rollback", "switch"),
        *("crash", "freeze", "partition", "outage", "weather"),
    )

    @property
    def words(self) -> Words:
        """What there is to do: without what does not wait for the store, since its nodes cannot know of an edit."""
        return {name: said for name, said in JOBS.items() if name not in ("local", "often")}

    async def people(self) -> None:
        """A request is made, which a disabled job refuses."""
        with suppress(JobDisabled):
            await super().people()

    async def edit(self) -> None:
        """One job gets another schedule."""
        await self._put(self.chance.choice(sorted(self.words)))

    async def both(self) -> None:
        """Two editors change the same job at the same moment, from the same version: one of them is told."""
        name = self.chance.choice(sorted(self.words))
        version = await self._version(name)
        answers = await asyncio.gather(self._put(name, version), self._put(name, version))
        assert sum(answers) <= 1, f"two edits of {name} came from version {version}"

    async def rollback(self) -> None:
        """One job goes back to a version that it had."""
        name = self.chance.choice(sorted(self.words))
        [record] = [each for each in await self.store.list() if each.job.name == name]
        old = self.chance.randint(1, record.job.version)
        [edition] = await self.store.ask(Editions(record.job.id, [old]))
        policy = update_policy(self.chance.choice(POLICIES))
        await self._apply(Put(switched(edition.job, record.job), record.job.version, policy))

    async def switch(self) -> None:
        """One job is disabled, or enabled."""
        name = self.chance.choice(sorted(self.words))
        [record] = [each for each in await self.store.list() if each.job.name == name]
        other = self.defined(name, str(record.job.schedule), enabled=not record.job.enabled)
        await self._apply(Put(other, record.job.version))

    async def _version(self, name: str) -> int:
        [record] = [each for each in await self.store.list() if each.job.name == name]
        return record.job.version

    async def _put(self, name: str, expected: int | None = None) -> bool:
        when = f"every: {self.chance.choice(LENGTHS)}s"
        new, policy = self.defined(name, when), update_policy(self.chance.choice(POLICIES))
        await passing(self.chance.choice([0.0, 0.3]))
        return await self._apply(Put(new, expected, policy))

    async def _apply(self, change: Put) -> bool:
        try:
            [stored] = await self.store.apply([change], "somebody")
        except (VersionConflict, TooManyEditions, InvalidPolicies):
            # Another was first; too many wait; a window counts runs, and a pause holds them for an unknown time.
            return False
        return stored.changed


async def edited_life(world: Edits) -> None:
    """Trouble and edits, then neither; afterwards every instant of every version is decided once."""
    await life(world, require_each_instant_decided_once)


async def require_each_instant_decided_once(world: World) -> None:
    """Every instant that the version in force at it names has one decision, and no other one ran by the schedule."""
    for record in await world.store.list():
        job = record.job
        assert job.created_at is not None
        assert job.updated_at is not None
        known = await world.store.ask(Editions(job.id, range(1, job.version + 1)))
        made = (await world.store.history(HistoryFilter(job_id=job.id, limit=100_000))).occurrences
        scheduled = {each.id: each for each in made if each.cause is Cause.SCHEDULE}
        spans = await world.store.ask(Spans(job.id, job.created_at, job.updated_at))
        named = set()
        for instant, _ in past_instants(known, job.created_at, job.updated_at):
            named.add(ids.occurrence_id(job.id, instant))
            skipped = sum(span.after < instant <= span.through for span in spans)
            made_here = scheduled.get(ids.occurrence_id(job.id, instant))
            # What a person has moved ran elsewhere, and a span says so here.
            ran = made_here is not None and made_here.scheduled_for == instant
            assert skipped + ran == 1, f"{job.name} at {instant}: {skipped} skips and {ran} occurrences"
        for id_, each in scheduled.items():
            by = in_force_at(known, each.scheduled_for).job
            assert id_ in named, f"{job.name} ran at {each.scheduled_for}, which version {by.version} does not name"


@pytest.mark.parametrize("seed", seeds(*range(3)))
def test_whenever_jobs_are_edited_each_instant_runs_by_the_version_of_its_time(seed: int) -> None:
    """F6, F7, F8, F9, S0-117, S0-118, S0-119, S0-124: edits, rollbacks and two editors, between any two statements."""
    run_world(seed, edited_life, Edits)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_whenever_jobs_are_edited_each_instant_runs_by_the_version_of_its_time_at_length(seed: int) -> None:
    run_world(seed, edited_life, Edits)
