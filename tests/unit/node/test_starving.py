"""Jobs whose plans are refused: however many they are, they disturb no other."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from everytick import every
from everytick.domain.decisions import Plan
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.schedule import Schedule
from everytick.node.planner import BATCH
from everytick.stores.base import Batch, Offer
from tests.stores.acting import put_all
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, pause


class Picky:
    """A store that refuses the plans of jobs whose names begin with bad, as long as it is told to.

    They reach the real store with a watermark that moves back, which each store refuses about one plan.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self.refuses = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Any:
        names = {each.job_id: each.editions[-1].job.name for each in batch.snapshots}
        spoilt = [
            replace(plan, watermark=NOON - timedelta(days=1))
            if self.refuses and names[plan.job_id].startswith("bad")
            else plan
            for plan in plans
        ]
        return await self._store.commit_plans(batch, spoilt, offer)


async def _with_many_bad(world: World, count: int, good: Any, schedule: Schedule) -> tuple[Picky, Job]:
    """So many bad jobs that are longer due than one good one."""

    async def never() -> None:
        raise AssertionError("it is never planned")

    for first in range(0, count, 100):
        named = [f"bad {number}" for number in range(first, first + 100)]
        bad = [define_job(name, schedule, policies={}, tasks=[define_task(name, "a")]) for name in named]
        await put_all(world.store, bad)
        world.functions.update({job.id: {"a": never} for job in bad})
    await pause("1s")
    made = await world.define("good", good, schedule)
    picky = world.store = Picky(world.store)
    return picky, made


def test_more_unwritable_jobs_than_a_batch_starve_no_other(live: Live) -> None:
    """D7: they are set aside for a minute, and what is due beside them is planned when it is due."""

    async def story(world: World) -> None:
        ran: list[datetime] = []

        async def body() -> None:
            ran.append(world.now())

        _, job = await _with_many_bad(world, BATCH + 100, body, every("1m", start=NOON))
        node = world.node()
        await node.start()
        await pause("2m")
        assert ran == [NOON + timedelta(minutes=n) for n in (1, 2)]
        assert len(await world.history(job)) == 2
        await node.stop()

    live(story)


def test_what_could_not_be_written_is_planned_soon_after_it_can_be(live: Live) -> None:
    """D7, V3: whether it was the store or the jobs; the others need not wait for it."""

    async def story(world: World) -> None:
        ran: list[datetime] = []

        async def body() -> None:
            ran.append(world.now())

        store, _ = await _with_many_bad(world, 100, body, every("1m", start=NOON))
        bad = [record.job for record in await world.store.list() if record.job.name.startswith("bad")]
        for job in bad:
            world.functions[job.id] = {"a": body}
        node = world.node(slots=200)
        await node.start()
        await pause("90s")
        assert len(ran) == 1
        store.refuses = False
        await pause("2m")
        last = NOON + timedelta(minutes=3)
        assert ran.count(last) == 101
        await node.stop()

    live(story)
