"""Backfills beside live jobs, while nodes and the store fail: each instant is filled once, and live ones go on."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import ClassVar

import pytest

from everytick.deciding.past import past_instants
from everytick.domain import ids
from everytick.domain.backfills import BackfillOrder, BackfillStatus
from everytick.domain.facts import PlanBackfill, SteerBackfill
from everytick.domain.lookups import Editions, NewestBackfills
from everytick.domain.statuses import ENDED
from everytick.errors import EverytickError
from everytick.stores.base import HistoryFilter
from tests.sim.chance import passing
from tests.sim.jobs import JOBS, Words
from tests.sim.laws import (
    HEALED_SECONDS,
    TROUBLE_SECONDS,
    require_everything_over,
    require_nothing_doubled,
    seeds,
    settle,
)
from tests.sim.world import World, run_world

MINUTE = timedelta(minutes=1)


class Backfills(World):
    """A world in which people fill the past of jobs, pause what they fill and go on with it."""

    faults: ClassVar[tuple[str, ...]] = (
        *("fill", "fill", "steer"),
        *("crash", "crash", "freeze", "partition", "outage", "weather"),
    )

    @property
    def words(self) -> Words:
        return {name: said for name, said in JOBS.items() if name not in ("local", "often")}

    async def fill(self) -> None:
        """The minutes before the job was made are filled, so that no live run is among them."""
        record = self.chance.choice(await self.store.list())
        assert record.job.created_at is not None
        through = record.job.created_at - MINUTE
        begin = through - self.chance.choice([1, 2]) * MINUTE
        order = BackfillOrder(f"k{self.chance.randint(0, 2)}", begin, through, rate=self.chance.choice([30, 600]))
        with suppress(EverytickError):
            await self.store.request(record.job.id, PlanBackfill(order, True))

    async def steer(self) -> None:
        """One backfill is paused, and another one goes on."""
        for to in (BackfillStatus.PAUSED, BackfillStatus.RUNNING):
            known = await self.store.ask(NewestBackfills())
            if known:
                each = self.chance.choice(known)
                [job_id] = [record.job.id for record in await self.store.list() if record.job.name == each.job]
                with suppress(EverytickError):
                    await self.store.request(job_id, SteerBackfill(each.id, to, "somebody"))

    async def go_on(self) -> None:
        """What was paused goes on."""
        for each in await self.store.ask(NewestBackfills()):
            if each.status is BackfillStatus.PAUSED:
                [job_id] = [record.job.id for record in await self.store.list() if record.job.name == each.job]
                await self.store.request(job_id, SteerBackfill(each.id, BackfillStatus.RUNNING, "somebody"))


async def life(world: Backfills) -> None:
    """Trouble, then none; afterwards every backfill is over and each of its instants has one occurrence."""
    await world.define()
    world.begin()
    watching = asyncio.create_task(world.watch())
    await world.fill()
    await world.trouble(TROUBLE_SECONDS)
    await world.recover()
    await world.go_on()
    await passing(20 * HEALED_SECONDS)
    await world.end_schedules()
    await settle(world)
    assert not watching.done() or watching.result() is None
    watching.cancel()
    await world.look()
    await require_everything_filled(world)
    await require_nothing_doubled(world)
    await require_everything_over(world)


async def require_everything_filled(world: World) -> None:
    """Each backfill has filled every instant of its time, and all of it has ended."""
    found = await world.store.ask(NewestBackfills())
    assert found, "somebody has filled something"
    for each in found:
        assert each.status is BackfillStatus.COMPLETED, f"{each.id} of {each.job} is {each.status}"
        [record] = [one for one in await world.store.list() if one.job.name == each.job]
        known = await world.store.ask(Editions(record.job.id, [1]))
        named = [at for at, _ in past_instants(known, each.order.after, each.order.through)]
        made = (await world.store.history(HistoryFilter(job_id=record.job.id, limit=100_000))).occurrences
        ended = {one.id for one in made if one.status in ENDED}
        assert {ids.occurrence_id(record.job.id, at) for at in named} <= ended, f"{each.id} of {each.job}"


@pytest.mark.parametrize("seed", seeds(0))
def test_a_backfill_beside_live_jobs_fills_each_instant_once(seed: int) -> None:
    """A23: also if the node that fills is killed, frozen or cut off in the middle of it."""
    run_world(seed, life, Backfills)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_a_backfill_beside_live_jobs_fills_each_instant_once_at_length(seed: int) -> None:
    run_world(seed, life, Backfills)
