"""`foresee`: simulates a store's jobs through the coming days, and summarises them."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from everytick.domain.lookups import LaterRequests, LimitsAndBrakes
from everytick.domain.values import value
from everytick.simulate.durations import Length, Origin, known_lengths
from everytick.simulate.gates import Gate, left_out
from everytick.simulate.record import EPOCH, QUARTER, JobTally, SimulationRecord
from everytick.simulate.simulated_job import SimulatedJob
from everytick.simulate.upstreams import connect
from everytick.simulate.world import Downtime, World
from everytick.stores.protocols import HistoryStore, JobStore, QuestionStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from everytick.domain.job import Job
    from everytick.domain.snapshots import JobSnapshot, Request

HOURS_OF_WEEK = 7 * 24

_LATER_READ = 10_000
"""Most runs asked for at a time that are simulated: a plan looks through those of its job, so more would take long."""


class ForecastStore(JobStore, HistoryStore, QuestionStore, Protocol):
    """The verbs that a forecast calls on a store."""

    async def now(self) -> datetime:
        """Return the store's time."""
        ...


@value
class Collision:
    """An instant that several jobs share."""

    at: datetime
    jobs: tuple[str, ...]


@value
class HourLoad:
    """One hour of the week: how many runs start in it and how many run at a time, on average."""

    weekday: int
    hour: int
    starts: float
    running: float


@value
class Forecast:
    """The runs of the coming days.

    `lengths` says by job id how long each was taken to run. `longest_line` is how many were
    ready at once and found no slot. `left_out` says what was not simulated, and for which jobs.
    """

    start: datetime
    through: datetime
    slots: int
    jobs: tuple[Job, ...]
    lengths: Mapping[str, Length]
    record: SimulationRecord
    left_out: tuple[str, ...] = ()

    @property
    def tallies(self) -> list[JobTally]:
        """The counts of each job, by name."""
        return sorted(self.record.tallies.values(), key=lambda tally: tally.name)

    @property
    def unknown(self) -> list[str]:
        """The jobs whose length is unknown."""
        return sorted(job.name for job in self.jobs if self.lengths[job.id].origin is Origin.UNKNOWN)

    def collisions(self, most: int) -> list[Collision]:
        """Return the instants that most jobs share, the most crowded first."""
        shared = ((at, tuple(names)) for at, names in self.record.sharing.items())
        crowded = sorted(shared, key=lambda pair: (-len(pair[1]), pair[0]))
        return [Collision(at, names) for at, names in crowded[:most]]

    def habits(self, most: int) -> list[tuple[tuple[str, ...], int, datetime]]:
        """Return which jobs share instants, how often, and when first; the largest groups first."""
        groups: Counter[tuple[str, ...]] = Counter()
        first: dict[tuple[str, ...], datetime] = {}
        for at, names in sorted(self.record.sharing.items()):
            group = tuple(sorted(names))
            groups[group] += 1
            first.setdefault(group, at)
        ranked = sorted(groups.items(), key=lambda pair: (-len(pair[0]), -pair[1], pair[0]))
        return [(group, number, first[group]) for group, number in ranked[:most]]

    def load(self, zone: tzinfo) -> list[HourLoad]:
        """Return every hour of the week in a zone, Monday first."""
        starts, busy, quarters = [0] * HOURS_OF_WEEK, [timedelta(0)] * HOURS_OF_WEEK, [0] * HOURS_OF_WEEK
        for quarter in range((self.start - EPOCH) // QUARTER, (self.through - EPOCH) // QUARTER):
            local = (EPOCH + quarter * QUARTER).astimezone(zone)
            hour = local.weekday() * 24 + local.hour
            quarters[hour] += 1
            starts[hour] += self.record.starts.get(quarter, 0)
            busy[hour] += self.record.busy.get(quarter, timedelta(0))
        return [
            HourLoad(hour // 24, hour % 24, 4 * starts[hour] / seen, busy[hour] / (seen * QUARTER))
            for hour, seen in enumerate(max(quarter, 1) for quarter in quarters)
        ]


async def foresee(
    store: ForecastStore,
    length: timedelta,
    *,
    slots: int,
    given: Mapping[str, timedelta] | None = None,
    outages: Sequence[Downtime] = (),
    record: SimulationRecord | None = None,
    tell: Callable[[datetime], None] | None = None,
    late_share: float | None = None,
) -> Forecast:
    """Simulate every job of a store in the time to come, and return the forecast. The store is not changed.

    A job takes as long as `given` says by its name, else as its latest runs did in the middle. `tell` is called
    with the virtual time now and then. Limits and brakes of the store hold as they are now; `late_share` is the share
    of slots that late runs get, all of them if it is not given.
    """
    start = await store.now()
    jobs = [record.job for record in await store.list()]
    lengths = await known_lengths(store, jobs, given or {})
    snapshots = await store.look([job.id for job in jobs])
    later: dict[str, list[Request]] = {}
    for job_id, request in await store.ask(LaterRequests(list(snapshots), _LATER_READ)):
        later.setdefault(job_id, []).append(request)
    record = SimulationRecord() if record is None else record
    simulated_jobs = [
        _simulated_job(snapshots[job.id], lengths[job.id].length, record, later.get(job.id, ()))
        for job in jobs
        if job.id in snapshots
    ]
    connect(simulated_jobs, [snapshots[simulated.job.id].dependence for simulated in simulated_jobs])
    limits = await store.ask(LimitsAndBrakes())
    gate = Gate(limits, None if late_share is None else max(int(slots * late_share), 1))
    world = World(simulated_jobs, start, record, slots=slots, outages=outages, tell=tell, gate=gate)
    with _without_collector():
        world.run(start + length)
    missing = tuple(left_out(limits, jobs, snapshots.values()))
    return Forecast(start, start + length, slots, tuple(jobs), lengths, record, missing)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Stop the garbage collector in the block: a simulation makes no reference cycles, and the search takes 20 %."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _simulated_job(
    snapshot: JobSnapshot, length: timedelta, record: SimulationRecord, later: Sequence[Request]
) -> SimulatedJob:
    job = snapshot.editions[-1].job
    timeouts = [job.settings.execution_timeout]
    if len(job.tasks) == 1:
        timeouts.append(job.tasks[0].settings.task_timeout)
    limit = min((timeout for timeout in timeouts if timeout is not None), default=None)
    simulated = SimulatedJob(snapshot, length, limit, later)
    record.know(simulated)
    return simulated
