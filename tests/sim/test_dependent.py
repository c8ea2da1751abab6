"""Jobs that depend on one another, while nodes die, replies get lost and people edit."""

from datetime import datetime, timedelta
from typing import ClassVar

import pytest

from everytick.deciding.plan import plan
from everytick.domain.changes import Put
from everytick.domain.occurrence import Cause, Occurrence
from everytick.stores.base import HistoryFilter
from tests.sim.jobs import Words, defined
from tests.sim.laws import life, seeds
from tests.sim.world import FAULTS, World, run_world

WAIT, MARGIN = timedelta(seconds=90), timedelta(seconds=10)
CATCH_UP = {"overlap": "queue", "recovery": "execute_all", "on_orphan": "restart", "max_lost": None}
LINKED: Words = {
    "extract": {"when": "every: 20s", "policies": CATCH_UP},
    "load": {"when": "every: 20s", "policies": {**CATCH_UP, "depends_on": {"job": "extract", "deadline": "90s"}}},
    "strict": {
        "when": "every: 40s",
        "policies": {
            "overlap": "allow",
            "max_concurrent": 3,
            "depends_on": {"job": "extract", "otherwise": "skip", "deadline": "2m"},
        },
    },
    "report": {
        "when": "every: 40s",
        "policies": {
            "depends_on": [
                {"job": "extract", "within": "30s", "deadline": "50s"},
                {"job": "load", "within": "1m", "deadline": "70s"},
            ]
        },
    },
    "seldom": {"when": "every: 2m", "policies": {"depends_on": {"job": "extract", "deadline": "110s"}}},
    "newest": {
        "when": "every: 30s",
        "policies": {"overlap": "cancel_running", "depends_on": {"job": "load", "within": "15s", "deadline": "1m"}},
    },
}


class Linked(World):
    """A world in which most jobs need the success of others."""

    @property
    def words(self) -> Words:
        """What there is to do."""
        return LINKED

    async def define(self) -> None:
        """Bring all jobs in at once, those first that depend on others."""
        await self.store.apply([Put(defined(name, words=LINKED)) for name in [*LINKED][::-1]])


class Steady(Linked):
    """The same, on a store whose clock is never set."""

    faults: ClassVar[tuple[str, ...]] = tuple(fault for fault in FAULTS if fault != "clock_step")

    async def look(self) -> None:
        """Hold besides that nothing could be released that no planner will look at."""
        await super().look()
        now = await self.store.now()
        records = {record.job.id: record for record in await self.store.list()}
        due = {id_ for id_, record in records.items() if record.wake_at is not None and record.wake_at <= now}
        for id_, seen in (await self.store.look(list(records))).items():
            needed = {each.job_id for each in seen.dependence.upstreams} if seen.dependence is not None else set()
            if needed and id_ not in due and not needed & due:
                assert not plan(seen, now).releases, f"{records[id_].job.name} sleeps through a success at {now}"


async def runs_of(world: World, name: str) -> list[Occurrence]:
    [job_id] = [record.job.id for record in await world.store.list() if record.job.name == name]
    return list((await world.store.history(HistoryFilter(job_id=job_id, limit=100_000))).occurrences)


async def live(world: Linked) -> None:
    """Live, and hold that nothing of a job ran for an instant for which the one it needs has not succeeded."""
    await life(world)
    done = {each.covers_through for each in await runs_of(world, "extract") if each.status == "completed"}
    for name in ("load", "strict", "seldom"):
        began = {deed.occurrence_id for deed in world.deeds if deed.job == name}
        made = [each for each in await runs_of(world, name) if each.cause is Cause.SCHEDULE]
        early = [each for each in made if each.id in began and each.covers_through not in done]
        assert not early, early
        assert began, f"{name} has never run"


async def live_steadily(world: Linked) -> None:
    """Live, and hold besides that nothing was given up although its success was known before the deadline."""
    await live(world)
    known: dict[datetime | None, datetime] = {}
    for each in await runs_of(world, "extract"):
        if each.status == "completed" and each.updated_at is not None:
            known[each.covers_through] = min(each.updated_at, known.get(each.covers_through, each.updated_at))
    for each in await runs_of(world, "load"):
        if each.status == "skipped" and each.covers_through in known and each.created_at is not None:
            assert each.error is not None
            assert each.error.startswith("dependency on extract"), each
            since = each.created_at if each.late else each.scheduled_for
            assert known[each.covers_through] + MARGIN > since + WAIT, each


@pytest.mark.parametrize("seed", seeds(1, 2, 3))
def test_nothing_runs_before_what_it_depends_on_whatever_goes_wrong(seed: int) -> None:
    """S1-042, E1, E8: every instant has one decision, and everything ends."""
    run_world(seed, live, Linked)


@pytest.mark.parametrize("seed", seeds(11, 12, 13))
def test_no_success_is_slept_through_whatever_goes_wrong(seed: int) -> None:
    """S1-042, E8."""
    run_world(seed, live_steadily, Steady)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_dependent_jobs_come_right_at_length(seed: int) -> None:
    run_world(seed, live_steadily, Steady)
    run_world(seed, live, Linked)
