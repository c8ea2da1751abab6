"""The simulation of the coming days and a real node on virtual time do the same."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from everytick.domain.job import Job
from everytick.domain.lookups import Spans
from everytick.domain.statuses import OccurrenceStatus
from everytick.schedules.codec import schedule
from everytick.simulate.forecast import foresee
from everytick.simulate.record import SimulationRecord
from everytick.simulate.simulated_job import Run
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock
from tests.stores.acting import put_all
from tests.unit.node.worlds import NOON, World, living, passing

HOURS = 2
UNTIL = NOON + timedelta(hours=HOURS)

# Never on the moment at which the world begins; there, looking once more is a matter of luck.
RULES = st.sampled_from(
    ["3-59/5 * * * *", "20 * * * *", "every 7m", "1-59/20 * * * *", "(9-59/10 * * * *) | (every 25m)", "after: 11m"]
)
# No whole number of periods: which run ends first and which begins at the same moment is not determined.
LENGTHS = st.integers(0, 25).map(lambda n: timedelta(seconds=n * 97 + 0.5))
JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "rule": RULES,
            "length": LENGTHS,
            "overlap": st.sampled_from(["skip", "queue", "queue_latest", "allow", "cancel_running"]),
            "recovery": st.sampled_from(["execute_last", "execute_all", "mark_as_missed", "compressed"]),
            "priority": st.integers(0, 2),
            "max_concurrent": st.none() | st.integers(1, 2),
            "on_orphan": st.sampled_from(["fail", "restart"]),
        }
    ),
    min_size=1,
    max_size=3,
)
OUTAGES = st.none() | st.tuples(st.integers(5, 60), st.integers(1, 40)).map(
    lambda pair: (
        NOON + timedelta(minutes=pair[0], seconds=13),
        NOON + timedelta(minutes=pair[0] + pair[1], seconds=29),
    )
)
Outage = tuple[datetime, datetime] | None
Happened = set[tuple[str, datetime, datetime, datetime | None]]


class Diary(SimulationRecord):
    """Keeps every single run."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, tuple[str, datetime, datetime, datetime | None]] = {}

    def started(self, run: Run, now: datetime, taken: int) -> None:
        super().started(run, now, taken)
        # One that begins anew keeps its first start.
        first = self.runs[run.id][2] if run.id in self.runs else near(now)
        self.runs[run.id] = (run.simulated.job.name, run.scheduled_for, first, None)

    def ended(self, run: Run, now: datetime) -> None:
        super().ended(run, now)
        self.runs[run.id] = (*self.runs[run.id][:3], near(now))


def near(moment: datetime) -> datetime:
    """The moment to a second: a node needs a little for what takes no time."""
    second = timedelta(seconds=1)
    return NOON + (moment - NOON + second / 4) // second * second


def _sleeper(length: timedelta) -> Callable[[], Any]:
    async def sleeps() -> None:
        await passing(length.total_seconds())

    return sleeps


async def defined(world: World, jobs: list[dict[str, Any]]) -> list[Job]:
    keys = ("overlap", "recovery", "priority", "max_concurrent", "on_orphan")
    return [
        await world.define(
            f"job-{number}",
            _sleeper(job["length"]),
            schedule(job["rule"]),
            task_timeout=None,
            **{key: job[key] for key in keys},
        )
        for number, job in enumerate(jobs)
    ]


def by_a_node(jobs: list[dict[str, Any]], slots: int, outage: Outage) -> tuple[Happened, dict[str, int], list[Job]]:
    """Let a node live through the time; what it ran, how many instants it left out, and the jobs."""
    ran: Happened = set()
    left_out: dict[str, int] = {}
    made: list[Job] = []

    async def story(world: World) -> None:
        made.extend(await defined(world, jobs))
        node = world.node(slots=slots)
        await node.start()
        if outage is not None:
            await passing((outage[0] - world.now()).total_seconds())
            await node.stop()
            await passing((outage[1] - world.now()).total_seconds())
            node = world.node(slots=slots)
            await node.start()
        await passing((UNTIL - world.now()).total_seconds())
        for job in made:
            await told(world, job)
        await node.stop()

    async def told(world: World, job: Job) -> None:
        left_out[job.name] = sum(each.count or 0 for each in await world.store.ask(Spans(job.id, NOON, UNTIL)))
        for each in await world.history(job):
            if each.status is OccurrenceStatus.SUPERSEDED:
                left_out[job.name] += 1
            if each.started_at is not None:
                # One that was put back and then gave way did not end by running.
                gave_way = each.status is OccurrenceStatus.SUPERSEDED or each.ended_at is None
                ended = None if gave_way or each.ended_at is None else near(each.ended_at)
                ran.add((job.name, each.scheduled_for, near(each.started_at), ended))

    living(story)
    return ran, left_out, made


async def by_the_model(
    made: list[Job], jobs: list[dict[str, Any]], slots: int, outage: Outage
) -> tuple[Happened, dict[str, int]]:
    store, diary = MemoryStore(ManualClock(NOON)), Diary()
    await put_all(store, made)
    lengths = {f"job-{number}": job["length"] for number, job in enumerate(jobs)}
    outages = [] if outage is None else [outage]
    found = await foresee(store, UNTIL - NOON, slots=slots, given=lengths, outages=outages, record=diary)
    return set(diary.runs.values()), {each.name: sum(each.not_run.values()) for each in found.tallies}


BUSY = {"rule": "3-59/5 * * * *", "length": timedelta(seconds=1649.5), "overlap": "queue", "recovery": "execute_all",
        "priority": 0, "max_concurrent": 2, "on_orphan": "restart"}  # fmt: skip


@settings(max_examples=6, phases=[Phase.explicit, Phase.generate])
@given(JOBS, st.integers(1, 4), OUTAGES)
@example([BUSY, BUSY], 3, (NOON + timedelta(minutes=31), NOON + timedelta(minutes=47)))
def test_the_model_and_a_node_run_the_same_at_the_same_times(
    jobs: list[dict[str, Any]], slots: int, outage: Outage
) -> None:
    if any(job["overlap"] == "cancel_running" for job in jobs):
        # A canceled run frees its slot when it ends: of two at one moment, either may be the first.
        slots = 20
    if outage is not None:
        # The model does not know the share of the slots that late ones get (decision 0035): here it is enough for all.
        slots = 200
    ran, skipped, made = by_a_node(jobs, slots, outage)
    foreseen, left_out = asyncio.run(by_the_model(made, jobs, slots, outage))

    assert sorted(foreseen, key=str) == sorted(ran, key=str)
    assert left_out == skipped
