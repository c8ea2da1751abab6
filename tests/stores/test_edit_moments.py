"""Edits at random moments between any two steps of the tick: each instant runs once, by the version of its time."""

import asyncio
import random
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain.changes import Put, Remove
from everytick.domain.facts import Pause, Resume
from everytick.domain.job import Job
from everytick.errors import VersionConflict
from everytick.stores.base import Commit
from everytick.stores.memory import MemoryStore
from tests.servers.launch import Server
from tests.stores.acting import AnyStore, began, ended, everything, job, occurrences, plan_once
from tests.stores.clock import ManualClock
from tests.stores.stepped.meeting import Meeting, meeting_on_file, meeting_on_server

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
        self.holding = asyncio.Lock()
        self.is_edited = False
        self.claimed: list[int] = []
        """The versions of what was claimed after the edit."""

    def _job(self, rule: str) -> Job:
        return job(self.name, rule, **POLICIES)

    async def live(self) -> None:
        """Define the job, tick ten times with random pauses between, and tick until nothing is left."""
        [stored] = await self.store.apply([Put(self.old)], "ann")
        self.job_id, self.began_at = stored.job_id, self.clock.time
        await self._begin()
        for _ in range(10):
            self.clock.move(seconds=self.random.choice([1, 60, 150, 300, 301, 1700]))
            await self._tick()
            await self._rest()
        await self._end()
        self.is_still = True
        for _ in range(50):
            await self._tick()
            if all(each.ended_at is not None for each in await occurrences(self.store, self.job_id)):
                break
        await self.store.apply([Remove(self.name)], "ann")

    async def _begin(self) -> None:
        """Prepare what is done while the node ticks."""

    async def _rest(self) -> None:
        """Let everything be done that has begun."""

    async def _end(self) -> None:
        """Let everything be done by now."""
        assert self.step >= 40, "the edit and the pause are over"

    async def _tick(self) -> None:
        scope = await everything(self.store)
        async with self.store.due(scope, 100) as batch:
            await self._between()
            plans = [plan(snapshot, batch.now) for snapshot in batch.snapshots]
            await self._between()
            answers = (await self.store.commit_plans(batch, plans)).answers
            assert all(isinstance(each, Commit) for each in answers), "no plan is refused: at most it is old"
        await self._between()
        was_edited = self.is_edited
        claims = await self.store.claim(scope, 100)
        self.claimed += [claim.job.version for claim in claims if was_edited]
        await self._between()
        now = await self.store.now()
        await self.store.commit_steps([(claim, ended(claim, began(claim, now), now)) for claim in claims])
        await self._between()

    async def _between(self) -> None:
        """Let a moment pass, and do what is due at this step."""
        if self.is_still:
            return
        self.step += 1
        self.clock.move(seconds=self.random.choice([0, 0, 1, 200]))
        if self.step == self.edit_at:
            await self._edit(self.store)
        elif self.step in self.held:
            await self._hold(self.store)

    async def _edit(self, store: AnyStore) -> None:
        await store.apply([Put(self.new, 1)], "ann")
        self.edited_at, self.is_edited = self.clock.time, True

    async def _hold(self, store: AnyStore) -> None:
        """Hold the schedule, or let it go if it is held."""
        async with self.holding:
            await store.request(self.job_id, Resume("ann") if self.pause else Pause(by="ann"))
            self.pause.append(self.clock.time)

    async def require_each_instant_once(self) -> None:
        """F6 to F9: nothing outside of old before and new after, nothing of the pause, nothing lost or doubled."""
        end, [since, until] = self.clock.time, self.pause
        before = self.old.bound(self.began_at).instants(self.began_at, self.edited_at, 10_000)
        after = self.new.bound(self.began_at).instants(self.edited_at, end, 10_000)
        wanted = [at for at in (*before, *after) if not since < at <= until]
        made = await occurrences(self.store, self.job_id)
        ran = [each.scheduled_for for each in made]
        lost, strange = sorted(set(wanted) - set(ran)), sorted(set(ran) - set(wanted))
        assert not lost, f"lost: {[str(at) for at in lost]}"
        assert not strange, f"out of place: {[str(at) for at in strange]}"
        assert ran == wanted, "none is doubled"
        assert {str(each.status) for each in made} <= {"completed"}
        assert set(self.claimed) <= {2}, "what starts after the edit has its version"


class MetTick(EditedTick):
    """The same between single statements: two editors, one who holds the job, and another node meet the tick there."""

    statements = 100
    """How many statements such a life has, about; the last life says it."""

    def __init__(self, meeting: Meeting, clock: ManualClock, seed: int) -> None:
        super().__init__(meeting.held, clock, seed)
        self.meeting, self.third = meeting, self._job("11 * * * *")

    async def _begin(self) -> None:
        numbers = self.random.sample(range(1, max(MetTick.statements, 20)), 6)
        for number in numbers[:3]:
            self.meeting.before(number, self._tick_beside)
        self.meeting.before(numbers[3], self._edit_both)
        for number in sorted(numbers[4:]):
            self.meeting.before(number, partial(self._hold, self.meeting.free))
        self.begun = self.meeting.count

    async def _between(self) -> None:
        """Let a moment pass, unless a caller waits for a lock of this node: it acts at the moment at which it began."""
        if self.is_still:
            return
        await self.meeting.between()
        await self.meeting.still()
        if not self.meeting.is_open:
            self.clock.move(seconds=self.random.choice([0, 0, 1, 200]))

    async def _rest(self) -> None:
        await self.meeting.rest()

    async def _end(self) -> None:
        MetTick.statements = self.meeting.count - self.begun
        await self.meeting.over()

    async def _edit_both(self) -> None:
        """Two people edit the same version: one of them does."""
        news = [self.new, self.third]
        self.random.shuffle(news)
        edits = [self.meeting.free.apply([Put(new, 1)], "ann") for new in news]
        answers = await asyncio.gather(*edits, return_exceptions=True)
        [refused] = [each for each in answers if isinstance(each, BaseException)]
        assert isinstance(refused, VersionConflict), refused
        self.new = next(new for new, answer in zip(news, answers, strict=True) if answer is not refused)
        self.edited_at, self.is_edited = self.clock.time, True

    async def _tick_beside(self) -> None:
        """Let another node plan, claim and run what there is."""
        free = self.meeting.free
        assert all(isinstance(each, Commit) for each in await plan_once(free)), "no plan is refused"
        claims = await free.claim(await everything(free, "node-2"), 2)
        now = await free.now()
        await free.commit_steps([(claim, ended(claim, began(claim, now), now)) for claim in claims])


async def edited(store: AnyStore, clock: ManualClock, seed: int) -> None:
    await judged(EditedTick(store, clock, seed))


async def judged(tick: EditedTick) -> None:
    await tick.live()
    try:
        await tick.require_each_instant_once()
    except AssertionError as error:
        moments = f"began {tick.began_at}, edited {tick.edited_at}, held {tick.pause}, now {tick.clock.time}"
        said = f"{tick.name}: {tick.old.schedule} to {tick.new.schedule}, {moments}: {error}"
        raise AssertionError(said) from error


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


FEW, SOME = range(12), range(60)
MANY = pytest.param(range(1000), marks=[pytest.mark.slow, pytest.mark.timeout(3600)])


@pytest.mark.parametrize("seeds", [SOME, MANY], ids=["some", "many"])
async def test_edits_between_any_two_statements_move_no_other_run_on_sqlite(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    """S0-115, F6, F7, F8, F9. Memory has no moments but those between its verbs."""
    async with meeting_on_file(tmp_path, clock, monkeypatch) as meeting:
        for seed in seeds:
            await judged(MetTick(meeting, clock, seed))


@pytest.mark.parametrize("seeds", [FEW, MANY], ids=["few", "many"])
async def test_edits_between_any_two_statements_move_no_other_run_on_postgres(
    postgres: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    """S0-115, F6, F7, F8, F9."""
    async with meeting_on_server(postgres, clock, monkeypatch) as meeting:
        for seed in seeds:
            await judged(MetTick(meeting, clock, seed))
