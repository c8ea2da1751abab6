"""Whatever is done to the store in memory, its indexes hold what a walk over all rows would find."""

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everytick.domain.changes import Put
from everytick.domain.statuses import ACTIVE, BUSY, OccurrenceStatus
from everytick.stores.base import NodeScope
from everytick.stores.memory import MemoryStore
from everytick.stores.memory.ordered import Ordered
from everytick.stores.memory.rows import JobRow, OccurrenceRow
from everytick.stores.memory.tables import Tables
from tests.stores.acting import job
from tests.stores.agreement import NAMES, VARIANTS, Pair
from tests.stores.clock import ManualClock


def walked(rows: Iterable[Any], wanted: Callable[[Any], bool], place: Callable[[Any], tuple[Any, ...]]) -> list[Any]:
    return sorted(filter(wanted, rows), key=place)


def is_unclaimed(row: OccurrenceRow) -> bool:
    """Whether a node may claim it: none may while its job is disabled."""
    freed = row.status is OccurrenceStatus.AWAITING_RETRY and row.owner is None
    return (row.status is OccurrenceStatus.PENDING or freed) and row.job.job.enabled


def require_in_step(tables: Tables) -> None:
    """Hold every index beside a walk over all rows."""
    jobs, rows = list(tables.jobs.values()), list(tables.occurrences.values())
    assert tables.names == {row.name: row for row in jobs}
    assert tables.handles == {row.handle: row for row in rows}
    assert tables.promising == {row.id: row for row in jobs if row.promises or row.breaches}
    texts = {"", *(row.needs for row in jobs), *(row.needs for row in rows)}
    for needs in {*texts, *tables.wakes, *tables.unreported}:
        alike = [row for row in jobs if row.needs == needs]
        wakes = walked(alike, lambda row: row.wake_at is not None, lambda row: (row.wake_at, row.id))
        unreported = walked(
            [row for row in rows if row.needs == needs], lambda row: row.report_due, lambda row: (row.ended_at, row.id)
        )
        assert (list(tables.wakes[needs]), list(tables.unreported[needs])) == (wakes, unreported)
    assert tables.needs.keys() >= texts - {""}
    for each in jobs:
        require_job_in_step(each, [row for row in rows if row.job is each])
    for needs in {"", *(row.needs for row in rows), *tables.ready, *tables.early}:
        unclaimed = [row for row in rows if row.needs == needs and is_unclaimed(row)]
        ready = walked(
            unclaimed,
            lambda row: row.ready_at <= tables.time,
            lambda row: (-row.priority, row.line_at, row.id),
        )
        early = walked(unclaimed, lambda row: row.ready_at > tables.time, lambda row: (row.ready_at, row.id))
        assert (list(tables.ready[needs]), list(tables.early[needs])) == (ready, early)
    for owner in {*(row.owner for row in rows if row.owner is not None), *tables.owned}:
        assert tables.owned[owner] == {row.handle: row for row in rows if row.owner == owner}


def require_job_in_step(of: JobRow, rows: list[OccurrenceRow]) -> None:
    def line_place(row: OccurrenceRow) -> tuple[Any, ...]:
        return row.line_at, row.id

    assert list(of.busy) == walked(rows, lambda row: row.status in BUSY, line_place)
    assert list(of.waiting) == walked(rows, lambda row: row.status in ACTIVE - BUSY, line_place)
    assert list(of.history) == walked(rows, lambda row: True, lambda row: (row.creation.scheduled_for, row.id))


class Busier(Pair):
    """Deeds on jobs whose reports are waited for, that often start later than their instant."""

    async def do_put(self) -> None:
        name, queue = self.random.choice(NAMES), self.random.choice(["default", "default", "other"])
        variant = {**self.random.choice(VARIANTS), "queue": queue, "priority": self.random.randrange(3)}
        if self.random.random() < 0.5:
            variant = {"when": "*/3 * * * *", "overlap": "allow", "jitter": "4m", "recovery": "execute_all"}
        wanted = replace(job(name, **variant), reports=self.random.random() < 0.7)
        await self.both("apply", [Put(wanted)])

    async def do_set_clock_back(self) -> None:
        """Do nothing: what was ready stays ready then, which a walk over the rows cannot tell."""

    async def do_refused_step(self) -> None:
        """Do nothing: memory holds any number, so that both stores here would write such a step."""


async def act_and_look(seed: int, deeds: int) -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    pair = Busier(store, MemoryStore(clock), clock, seed)
    for _ in range(deeds):
        await pair.act()
        # As a claim for everything would: only then what has become ready is moved.
        store._shared.tables.release_early([*store._shared.tables.early])
        require_in_step(store._shared.tables)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_after_any_deeds_the_indexes_are_what_a_walk_finds(seed: int) -> None:
    asyncio.run(act_and_look(seed, deeds=150))


@given(st.integers(0, 2**32), st.integers(2, 9))
def test_rows_in_order_are_found_from_both_ends_and_from_any_place(seed: int, longest: int) -> None:
    chance = random.Random(seed)
    rows: Ordered[str] = Ordered(longest)
    order: list[tuple[int, int]] = []
    for grows in [0.8, 0.2] * 3:
        for _ in range(30):
            place = (chance.randrange(20), chance.randrange(4))
            if chance.random() < grows and place not in order:
                rows.add((*place, str(place)))
                order = sorted([*order, place])
            elif order:
                gone = order.pop(chance.randrange(len(order)))
                rows.remove((*gone, str(gone)))
        require_order(rows, order)


def require_order(rows: Ordered[str], order: list[tuple[int, int]]) -> None:
    assert (len(rows), list(rows), list(reversed(rows))) == (len(order), names(order), names(order[::-1]))
    for bound in [(-1,), *((at, id_) for at in (0, 7, 13, 21) for id_ in (0, 2))]:
        assert list(rows.since(bound)) == names(place for place in order if place >= bound)
        assert list(rows.before(bound)) == names(place for place in order[::-1] if place < bound)
        assert list(rows.through(bound[0])) == names(place for place in order if place[0] <= bound[0])


def names(places: Iterable[tuple[int, int]]) -> list[str]:
    return [str(place) for place in places]


class Unwalked(dict[str, JobRow]):
    """Jobs that may be looked up, and not gone through."""

    def values(self) -> Any:
        """Refuse."""
        raise AssertionError("a node that asks for promises went through all jobs")


async def test_promises_are_found_without_a_walk_over_all_jobs(clock: ManualClock) -> None:
    """Every node asks for them every few seconds: an idle one must not pay for jobs that promise nothing."""
    store = MemoryStore(clock)
    await store.apply([Put(job("plain"), None), Put(job("report", success_within="26h"), None)])
    tables = store._shared.tables
    tables.jobs = Unwalked(tables.jobs)
    [due] = (await store.promises(NodeScope("node-1"), 100)).snapshots
    assert due.seen.editions[-1].job.name == "report"
