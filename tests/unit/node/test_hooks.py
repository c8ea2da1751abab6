"""Hooks around an occurrence: once before its first attempt, and always with the report after its end."""

import asyncio
import re
import threading
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest

from everytick.domain.facts import Cancel, Trigger
from everytick.domain.ids import job_id
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import Occurrence
from everytick.domain.report import Report
from everytick.domain.retry import Retry
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import StoreUnavailable
from everytick.node.hooks import HookTable
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.runners.catalogue import Catalogue
from everytick.runners.context import current
from everytick.schedules.interval import every
from everytick.stores.base import NodeScope
from everytick.stores.memory import MemoryStore
from tests.stores.acting import plan_once, put
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, Function, World, living, passing, pause


async def _reporting(world: World, body: Function, **policies: object) -> Job:
    written = [define_task("hooked", "a")]
    job = define_job("hooked", every("P1Y", start=NOON), policies=policies, tasks=written, reports=True)
    world.functions[job.id] = {"a": body}
    await put(world.store, job)
    return job


@pytest.mark.parametrize(
    ("failure", "outcome"), [("fail_fast", "failed"), ("continue", "completed"), ("retry_on_failure", "failed")]
)
def test_hooks_are_called_in_order_whatever_becomes_of_the_tasks(live: Live, failure: str, outcome: str) -> None:
    """S0-024, S0-025: on_start before any task, on_complete with the report, also when everything failed."""

    async def story(world: World) -> None:
        told: list[object] = []

        async def body() -> None:
            told.append("body")
            raise ValueError("boom")

        async def on_start(occurrence: Occurrence) -> None:
            told.append(("start", occurrence.id))

        async def on_complete(report: Report) -> None:
            told.append(report)

        job = await _reporting(world, body, retry=Retry(1, "10s"), failure=failure)
        world.hooks[job.id] = {"on_start": on_start, "on_complete": on_complete}
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await world.ended(asked)
        await pause("1s")
        start, first, second, report = told
        assert (start, first, second) == (("start", asked), "body", "body")
        assert isinstance(report, Report)
        assert (report.occurrence_id, report.outcome, report.failure) == (asked, outcome, failure)
        assert (report.task("a").status, report.task("a").attempts) == ("failed", 2)
        assert report.task("a").waits == (timedelta(seconds=10),)
        assert await world.store.reports(NodeScope("node-1"), 10) == []
        await node.stop()

    live(story)


def test_a_hook_that_raises_is_logged_and_changes_nothing(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """S0-025: the tasks run, the end stands, and the report is not repeated without end."""

    async def story(world: World) -> None:
        async def body() -> None:
            return

        async def broken() -> None:
            raise RuntimeError("hook")

        job = await _reporting(world, body)
        world.hooks[job.id] = {"on_start": broken, "on_complete": broken}
        node = world.node()
        await node.start()
        ended = await world.ended(await world.trigger(job))
        assert ended.status is OccurrenceStatus.COMPLETED
        await pause("1s")
        assert await world.store.reports(NodeScope("node-1"), 10) == []
        await node.stop()

    live(story)
    first, second = [record for record in caplog.records if record.name == "everytick.hooks"]
    assert first.getMessage() == "on_start of job 'hooked' failed: RuntimeError: hook; its tasks run all the same"
    assert re.fullmatch(
        r"on_complete failed for occurrence occ_\S+: RuntimeError: .*; the occurrence stays as it ended",
        second.getMessage(),
    )
    assert first.exc_info is not None
    assert second.exc_info is not None


def test_the_tasks_and_the_report_of_a_missed_occurrence_know_that_it_is_a_recovery(live: Live) -> None:
    """S0-099, S0-033: each task is told so, and so is the report; of an occurrence on time it is not said."""

    async def story(world: World) -> None:
        known: list[tuple[timedelta, bool]] = []

        async def body() -> None:
            known.append((current().scheduled_for - NOON, current().late))

        async def on_complete(report: Report) -> None:
            known.append((report.scheduled_for - NOON, report.is_recovery_run))

        written = [define_task("hooked", task) for task in ("a", "b")]
        job = define_job("hooked", every("10m", start=NOON), tasks=written, reports=True)
        world.functions[job.id] = {"a": body, "b": body}
        world.hooks[job.id] = {"on_complete": on_complete}
        await put(world.store, job)
        await pause("25m")
        node = world.node()
        await node.start()
        await pause("10m")
        await node.stop()
        two, three = timedelta(minutes=20), timedelta(minutes=30)
        assert known == [(two, True)] * 3 + [(three, False)] * 3

    live(story)


def test_an_undelivered_report_is_delivered_by_the_next_node(live: Live) -> None:
    """Ended by the planner or on a node that fell silent before its hook: told at least once."""

    async def story(world: World) -> None:
        told: list[str] = []

        async def body() -> None:
            await passing(1000)

        async def on_complete(report: Report) -> None:
            told.append(report.occurrence_id)

        job = await _reporting(world, body, overlap="queue", task_timeout="1h")
        node = world.node()
        await node.start()
        await world.trigger(job, "first")
        await pause("1s")
        waiting = await world.trigger(job, "second")
        await pause("1s")
        await world.store.request(waiting, Cancel())
        assert told == []
        world.hooks[job.id] = {"on_complete": on_complete}
        other = world.node()
        await other.start()
        await pause("31s")
        assert told == [waiting]
        await other.stop()
        await node.stop()

    live(story)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_whatever_a_hook_raises_the_node_goes_on(live: Live, error: BaseException) -> None:
    """S0-025: neither the process nor a slot is lost by it."""

    async def story(world: World) -> None:
        async def body() -> None:
            return

        async def broken() -> None:
            raise error

        job = await _reporting(world, body)
        world.hooks[job.id] = {"on_start": broken, "on_complete": broken}
        node = world.node(slots=1)
        await node.start()
        for number in range(3):
            ended = await world.ended(await world.trigger(job, f"k{number}"), "5s")
            assert ended.status is OccurrenceStatus.COMPLETED
        await node.stop()

    live(story)


def test_on_start_is_called_though_another_node_had_given_it_back(live: Live) -> None:
    """S0-025: no attempt had begun, so the first one still has its hook before it."""

    async def story(world: World) -> None:
        told: list[str] = []

        async def body() -> None:
            told.append("body")

        async def on_start() -> None:
            told.append("on_start")

        job = await _reporting(world, body)
        world.hooks[job.id] = {"on_start": on_start}
        ignorant = world.node(knows={})
        await ignorant.start()
        asked = await world.trigger(job)
        await pause("2s")
        await ignorant.stop()
        node = world.node()
        await node.start()
        await world.ended(asked)
        assert told == ["on_start", "body"]
        await node.stop()

    live(story)


class _Full(MemoryStore):
    """A store that can be read, and takes no marks while its disk is full."""

    is_full = True

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        if self.is_full:
            raise StoreUnavailable("the store", "disk full")
        await super().reported(occurrence_ids)


async def _owed(world: World, name: str, count: int) -> list[str]:
    """Leave this many undelivered reports: of requests that are planned and then canceled."""
    tasks = [define_task(name, "a")]
    job = define_job(name, every("P1Y", start=NOON), policies={"overlap": "allow"}, tasks=tasks, reports=True)
    await put(world.store, job)
    asked = [await world.trigger(job, f"k{number}") for number in range(count)]
    while await plan_once(world.store):
        pass
    for each in asked:
        await world.store.request(each, Cancel())
    return asked


def test_reports_of_jobs_without_a_hook_here_hide_no_others(live: Live) -> None:
    """S0-025: an application that is gone may owe any number of them."""

    async def story(world: World) -> None:
        told: list[str] = []
        for number in range(3):
            await _owed(world, f"theirs {number}", 110)
        ours = await _owed(world, "ours", 1)
        world.hooks[job_id("ours")] = {"on_complete": lambda report: told.append(report.occurrence_id)}
        node = world.node()
        await node.start()
        await pause("1s")
        assert told == ours
        assert len(await world.store.reports(NodeScope("node-1"), 1000)) == 330
        await node.stop()

    live(story)


def test_a_hook_is_called_once_though_its_report_cannot_be_marked() -> None:
    """A disk that is full for an hour must not send a mail a second; the mark is made once it can be."""

    async def story(world: World) -> None:
        assert isinstance(world.store, _Full)
        told: list[str] = []

        async def body() -> None:
            return

        async def on_complete(report: Report) -> None:
            told.append(report.occurrence_id)

        job = await _reporting(world, body)
        world.hooks[job.id] = {"on_complete": on_complete}
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await pause("1h")
        assert told == [asked]
        assert len(await world.store.reports(NodeScope("node-1"), 10)) == 1
        world.store.is_full = False
        await pause("1m")
        assert await world.store.reports(NodeScope("node-1"), 10) == []
        assert told == [asked]
        await node.stop()

    living(story, _Full)


def test_a_hook_that_takes_long_holds_up_no_other(live: Live) -> None:
    """Neither what is left nor what ends now waits for the hooks of another job, however many of them hang."""

    async def story(world: World) -> None:
        told: list[str] = []

        async def hangs() -> None:
            await asyncio.Event().wait()

        await _owed(world, "slow", 300)
        ours = await _owed(world, "ours", 250)
        world.hooks[job_id("slow")] = {"on_complete": hangs}
        world.hooks[job_id("ours")] = {"on_complete": lambda report: told.append(report.occurrence_id)}
        node = world.node(grace_period="1s")
        await node.start()
        await pause("40s")
        assert sorted(told) == sorted(ours)
        assert len(await world.store.reports(NodeScope("node-1"), 1000)) == 300
        await node.stop()

    live(story)


def test_so_many_hooks_are_called_at_once_and_no_more(live: Live) -> None:
    """Ends that come faster than their hooks return are left in the store, and delivered all the same."""

    async def story(world: World) -> None:
        told: list[str] = []
        under_way = most = in_memory = 0

        async def slow(report: Report) -> None:
            nonlocal under_way, most, in_memory
            under_way += 1
            most, in_memory = max(most, under_way), max(in_memory, len(asyncio.all_tasks()))
            await pause("10s")
            under_way -= 1
            told.append(report.occurrence_id)

        async def body() -> None:
            return

        job = await _reporting(world, body, overlap="allow")
        world.hooks[job.id] = {"on_complete": slow}
        node = world.node()
        await node.start()
        asked = [await world.trigger(job, f"k{number}") for number in range(400)]
        await pause("10m")
        assert sorted(told) == sorted(asked)
        assert most == 8
        assert in_memory < 200
        await node.stop()

    live(story)


def test_hooks_that_hang_in_threads_keep_neither_the_node_nor_others_from_their_threads() -> None:
    """V4: asyncio's own threads are left to others, and the stop returns after the grace period."""
    hang = threading.Event()

    async def story() -> None:
        store, loop = MemoryStore(lambda: datetime.now(UTC)), asyncio.get_running_loop()
        begun: list[threading.Thread] = []
        are_begun = asyncio.Event()

        async def body() -> None:
            return

        def hangs() -> None:
            begun.append(threading.current_thread())
            if len(begun) == 8:
                loop.call_soon_threadsafe(are_begun.set)
            hang.wait()

        tasks = [define_task("hooked", "a")]
        job = define_job("hooked", every("P1Y"), policies={"overlap": "allow"}, tasks=tasks, reports=True)
        await put(store, job)
        catalogue, settings = Catalogue({job.id: {"a": body}}), node_settings(grace_period="100ms")
        node = Node(store, catalogue, settings, hooks=HookTable(on_complete={job.id: hangs}))
        await node.start()
        for number in range(50):
            await store.request(job.id, Trigger(f"k{number}"))
        async with asyncio.timeout(60):
            await are_begun.wait()
            assert await asyncio.to_thread(lambda: "a thread of asyncio's is free")
            await node.stop()
        assert all(thread.daemon for thread in begun)

    try:
        asyncio.run(story())
    finally:
        hang.set()


def test_a_hook_that_does_not_end_is_left_behind_after_a_while(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """Before the tasks they begin all the same; after them the report counts as delivered."""

    async def story(world: World) -> None:
        told: list[object] = []

        async def body() -> None:
            told.append("body")

        async def stubborn() -> None:
            told.append("hook")
            try:
                await passing(3600)
            except asyncio.CancelledError:
                told.append("told to stop")
                await passing(3600)

        job = await _reporting(world, body)
        world.hooks[job.id] = {"on_start": stubborn, "on_complete": stubborn}
        node = world.node(hook_timeout="10s")
        await node.start()
        begun = world.now()
        ended = await world.ended(await world.trigger(job))
        assert ended.started_at is not None
        assert ended.ended_at is not None
        assert timedelta(seconds=10) <= ended.ended_at - begun < timedelta(seconds=15)
        await pause("12s")
        assert told == ["hook", "told to stop", "body", "hook", "told to stop"]
        assert await world.store.reports(NodeScope("node-1"), 10) == []
        await node.stop()

    live(story)
    assert "TimeoutError: it has not ended after 10 seconds, and is left behind" in caplog.text
