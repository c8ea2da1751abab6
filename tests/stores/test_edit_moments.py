"""Edits at random moments between any two steps of the tick: each instant runs once, by the version of its time."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain.changes import Put, Remove
from everytick.domain.facts import Pause, Resume
from everytick.domain.job import Job
from everytick.stores.memory import MemoryStore
from tests.stores.acting import AnyStore, began, ended, everything, job, occurrences
from tests.stores.clock import ManualClock

RULES = ("*/5 * * * *", "*/7 * * * *", "2-59/10 * * * *", "0 * * * *", "every 4m", "30 9 * * *")
POLICIES: dict[str, Any] = {"overlap": "allow", "recovery": "execute_all", "late_overlap": "allow"}
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class EditedTick:
    """A node's tick on one job, step by step. At one random step the job is edited, at two it is held and let go."""

    def __init__(self, store: AnyStore, clock: ManualClock, seed: int) -> None:
        self.store, self.clock, self.random = store, clock, random.Random(seed)
        self.name = f"report-{seed}"
        self.old, self.new = (self._job(rule) for rule in self.random.sample(RULES, 2))
        self.edit_at, *self.held = sorted(self.random.sample(range(1, 40), 3), key=lambda _: self.random.random())
        self.held.sort()
        self.job_id, self.step, self.is_still = "", 0, False
        self.began_at = self.edited_at = clock.time
        self.pause: list[datetime] = []
        self.claimed: list[tuple[datetime, int]] = []

    def _job(self, rule: str) -> Job:
        return job(self.name, rule, **POLICIES)

    async def live(self) -> None:
        """Define the job, tick ten times with random pauses between, and tick until nothing is left."""
        [stored] = await self.store.apply([Put(self.old)], "ann")
        self.job_id, self.began_at = stored.job_id, self.clock.time
        for _ in range(10):
            self.clock.move(seconds=self.random.choice([1, 60, 150, 300, 301, 1700]))
            await self._tick()
        assert self.step >= 40, "the edit and the pause are over"
        self.is_still = True
        for _ in range(50):
            await self._tick()
            if all(each.ended_at is not None for each in await occurrences(self.store, self.job_id)):
                break
        await self.store.apply([Remove(self.name)], "ann")

    async def _tick(self) -> None:
        scope = await everything(self.store)
        async with self.store.due(scope, 100) as batch:
            await self._between()
            plans = [plan(snapshot, batch.now) for snapshot in batch.snapshots]
            await self._between()
            await self.store.commit_plans(batch, plans)
        await self._between()
        claims = await self.store.claim(scope, 100)
        self.claimed += [(self.clock.time, claim.job.version) for claim in claims]
        await self._between()
        now = await self.store.now()
        await self.store.commit_steps([(claim, ended(claim, began(claim, now), now)) for claim in claims])

    async def _between(self) -> None:
        """Let a moment pass, and do what is due at this step."""
        if self.is_still:
            return
        self.step += 1
        self.clock.move(seconds=self.random.choice([0, 0, 1, 200]))
        if self.step == self.edit_at:
            await self.store.apply([Put(self.new, 1)], "ann")
            self.edited_at = self.clock.time
            self.claimed.clear()
        elif self.step in self.held:
            fact = Resume("ann") if self.pause else Pause(by="ann")
            await self.store.request(self.job_id, fact)
            self.pause.append(self.clock.time)

    async def require_each_instant_once(self) -> None:
        """F6 to F9: nothing outside of old before and new after, nothing of the pause, nothing lost or doubled."""
        end, [since, until] = self.clock.time, self.pause
        before = self.old.bound(self.began_at).instants(self.began_at, self.edited_at, 10_000)
        after = self.new.bound(self.began_at).instants(self.edited_at, end, 10_000)
        wanted = [at for at in (*before, *after) if not since < at <= until]
        made = await occurrences(self.store, self.job_id)
        ran = [each.scheduled_for for each in made]
        assert (sorted(set(wanted) - set(ran)), sorted(set(ran) - set(wanted))) == ([], []), "lost, and out of place"
        assert ran == wanted, "none is doubled"
        assert {str(each.status) for each in made} <= {"completed"}
        assert all(version == 2 for _, version in self.claimed), "what starts after the edit has its version"


async def edited(store: AnyStore, clock: ManualClock, seed: int) -> None:
    tick = EditedTick(store, clock, seed)
    await tick.live()
    try:
        await tick.require_each_instant_once()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {tick.old.schedule} to {tick.new.schedule}: {error}") from error


async def test_edits_at_a_thousand_moments_move_no_other_run_in_memory() -> None:
    """S0-115, F6, F7, F8, F9."""
    for seed in range(1000):
        clock = ManualClock(NOON)
        await edited(MemoryStore(clock), clock, seed)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", [range(8)])
async def test_edits_at_random_moments_move_no_other_run(store: AnyStore, clock: ManualClock, seeds: range) -> None:
    """S0-115, F6, F7, F8, F9."""
    for seed in seeds:
        await edited(store, clock, seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_edits_at_a_thousand_moments_move_no_other_run(store: AnyStore, clock: ManualClock) -> None:
    for seed in range(1000):
        await edited(store, clock, seed)
