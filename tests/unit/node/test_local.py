"""A store that is away, and jobs that do not wait for it: fired by the node, and written down afterwards."""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick.domain.fired import Fired
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.texts import FALLING_BACK
from everytick.errors import StoreUnavailable
from everytick.node import local
from everytick.node.events import Event, Happening
from everytick.schedules.interval import every
from everytick.stores.base import Ahead, Claim, Commit, JobRecord, Orders
from everytick.stores.memory import MemoryStore
from tests.unit.node.worlds import NOON, World, living, passing, pause


class Away(MemoryStore):
    """A store that can be away, for everybody or for one node."""

    is_away = False
    away_for: str | None = None

    def _there(self, node: str | None = None) -> None:
        if self.is_away or (node is not None and node == self.away_for):
            raise StoreUnavailable("the store", "away")

    async def now(self) -> datetime:
        self._there()
        return await super().now()

    async def ahead(self, queues: Collection[str]) -> Ahead:
        self._there()
        return await super().ahead(queues)

    async def claim(self, node: str, queues: Collection[str], limit: int, unknown: Collection[str] = ()) -> list[Claim]:
        self._there(node)
        return await super().claim(node, queues, limit, unknown)

    async def commit_steps(self, steps: Sequence[tuple[Claim, Any]]) -> list[Commit]:
        self._there()
        return await super().commit_steps(steps)

    async def beat(self, node: str, held: Collection[int]) -> Orders:
        self._there(node)
        return await super().beat(node, held)

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        self._there()
        return await super().look(job_ids)

    async def list(self) -> Sequence[JobRecord]:
        self._there()
        return await super().list()

    async def record(self, job_id: str, fired: Fired) -> Sequence[bool]:
        self._there()
        return await super().record(job_id, fired)


MINUTELY = every("1m", start=NOON)
LOCAL: dict[str, Any] = {"overlap": "allow", "on_store_outage": "fire_local"}


def test_a_job_that_says_so_is_fired_through_an_outage_and_recorded_afterwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """C-28, S1-020: every instant once, those of the outage with the flag `unverified`; others wait for the store."""

    async def story(world: World) -> None:
        ran: list[tuple[str, datetime]] = []

        def body(name: str) -> Any:
            async def run() -> None:
                ran.append((name, world.now()))

            return run

        here = await world.define("here", body("here"), MINUTELY, **LOCAL)
        waits = await world.define("waits", body("waits"), MINUTELY, overlap="allow")
        node = world.node()
        told: list[Event] = []
        node.events.listen(told.append)
        await node.start()
        await pause("2m30s")
        world.store.is_away = True
        await pause("3m")
        assert [at for name, at in ran if name == "here"] == [NOON + timedelta(minutes=n) for n in range(1, 6)]
        assert len([at for name, at in ran if name == "waits"]) == 2
        assert FALLING_BACK in caplog.text
        world.store.is_away = False
        await pause("100s")
        found = await world.history(here)
        assert [each.scheduled_for for each in found] == [NOON + timedelta(minutes=n) for n in range(1, 8)]
        assert {each.status for each in found} == {OccurrenceStatus.COMPLETED}
        assert [each.is_unverified for each in found] == [False, False, True, True, True, False, False]
        assert len([at for name, at in ran if name == "here"]) == 7
        assert len(await world.history(waits)) == 5
        assert not [event for event in told if event.kind is Happening.DUPLICATE]
        await node.stop()

    with caplog.at_level(logging.ERROR):
        living(story, Away)


def test_what_still_runs_when_the_store_is_back_is_recorded_when_it_ends() -> None:
    """C-28."""

    async def story(world: World) -> None:
        async def slow() -> str:
            await passing(100)
            return "done"

        job = await world.define("slow", slow, MINUTELY, **LOCAL)
        node = world.node()
        await node.start()
        await pause("30s")
        world.store.is_away = True
        await pause("45s")
        world.store.is_away = False
        await pause("20s")
        assert await world.history(job) == []
        await pause("2m")
        first, *rest = await world.history(job)
        assert (first.scheduled_for, first.status) == (NOON + timedelta(minutes=1), OccurrenceStatus.COMPLETED)
        assert first.is_unverified
        assert first.ended_at == NOON + timedelta(seconds=160)
        assert not any(each.is_unverified for each in rest)
        await node.stop()

    living(story, Away)


def test_two_nodes_that_both_fired_it_are_told_of_the_duplicate() -> None:
    """S1-029: one of them is recorded, the other is not, and is not silently lost either."""

    async def story(world: World) -> None:
        ran: list[datetime] = []

        async def body() -> None:
            ran.append(world.now())

        job = await world.define("both", body, MINUTELY, **LOCAL)
        nodes = [world.node(), world.node()]
        told: list[Event] = []
        for node in nodes:
            node.events.listen(told.append)
            await node.start()
        await pause("30s")
        world.store.is_away = True
        await pause("1m")
        world.store.is_away = False
        await pause("20s")
        [found] = await world.history(job)
        assert ran == [NOON + timedelta(minutes=1)] * 2
        assert found.is_unverified
        duplicates = [event for event in told if event.kind is Happening.DUPLICATE]
        assert [(event.job, event.occurrence_id) for event in duplicates] == [("both", found.id)]
        for node in nodes:
            await node.stop()

    living(story, Away)


def test_a_paused_job_and_a_short_absence_fire_nothing() -> None:
    async def story(world: World) -> None:
        ran: list[datetime] = []

        async def body() -> None:
            ran.append(world.now())

        job = await world.define("held", body, MINUTELY, **LOCAL)
        await world.store.pause(job.id)
        node = world.node()
        await node.start()
        await pause("30s")
        world.store.is_away = True
        await pause("5m")
        assert ran == []
        world.store.is_away = False
        await pause("10s")
        await world.store.resume(job.id)
        await pause("17s")
        # Away at the very instant, but not for as long as a poll.
        world.store.is_away = True
        await pause("4s")
        assert ran == []
        world.store.is_away = False
        await pause("10s")
        assert len(ran) == 1
        assert not any(each.is_unverified for each in await world.history(job))
        await node.stop()

    living(story, Away)


def test_what_is_kept_meanwhile_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """C-28: past the bound nothing more is fired; the strategy recovers the rest when the store is back."""
    monkeypatch.setattr(local, "MOST_UNRECORDED", 20)

    async def story(world: World) -> None:
        ran = 0

        async def body() -> None:
            nonlocal ran
            ran += 1

        job = await world.define("often", body, every("1s", start=NOON), recovery="mark_as_missed", **LOCAL)
        node = world.node()
        await node.start()
        await pause("10s")
        before = await world.history(job)
        world.store.is_away = True
        await pause("10m")
        assert 20 <= ran - len(before) <= 25
        world.store.is_away = False
        await pause("30s")
        flags = [each.is_unverified for each in await world.history(job)]
        assert 20 <= sum(flags) <= 25
        await node.stop()

    living(story, Away)


def test_a_node_that_stops_ends_and_records_what_it_fired() -> None:
    async def story(world: World) -> None:
        async def body() -> None:
            return

        job = await world.define("last", body, MINUTELY, **LOCAL)
        node = world.node()
        await node.start()
        await pause("30s")
        world.store.is_away = True
        await pause("1m")
        world.store.is_away = False
        await node.stop()
        assert [each.is_unverified for each in await world.history(job)] == [True]

    living(story, Away)
