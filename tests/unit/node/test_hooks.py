"""Hooks around an occurrence: once before its first attempt, and always with the report after its end."""

import asyncio
from datetime import timedelta

import pytest

from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import Occurrence
from everytick.domain.report import Report
from everytick.domain.retry import Retry
from everytick.domain.statuses import OccurrenceStatus
from everytick.schedules.interval import every
from tests.unit.node.worlds import NOON, Function, World, living, pause


async def _reporting(world: World, body: Function, **policies: object) -> Job:
    written = [define_task("hooked", "a")]
    job = define_job("hooked", every("P1Y", start=NOON), policies=policies, tasks=written, reports=True)
    await world.store.put(job)
    world.functions[job.id] = {"a": body}
    return job


def test_hooks_are_called_in_order_whatever_becomes_of_the_tasks() -> None:
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

        job = await _reporting(world, body, retry=Retry(1, "10s"))
        world.hooks[job.id] = {"on_start": on_start, "on_complete": on_complete}
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await world.ended(asked)
        await pause("1s")
        start, first, second, report = told
        assert (start, first, second) == (("start", asked), "body", "body")
        assert isinstance(report, Report)
        assert (report.occurrence_id, report.outcome, report.task("a").attempts) == (asked, "failed", 2)
        assert report.task("a").waits == (timedelta(seconds=10),)
        assert await world.store.reports(10) == []
        await node.stop()

    living(story)


def test_a_hook_that_raises_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """S0-025: the tasks run, the end stands, and the report is not told for ever."""

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
        assert await world.store.reports(10) == []
        await node.stop()

    living(story)
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "on_start of job 'hooked' failed" in said
    assert "on_complete failed" in said


def test_a_report_that_nobody_delivered_is_delivered_by_whoever_comes() -> None:
    """Ended by the planner or on a node that fell silent before its hook: told at least once."""

    async def story(world: World) -> None:
        told: list[str] = []

        async def body() -> None:
            await asyncio.sleep(1000)

        async def on_complete(report: Report) -> None:
            told.append(report.occurrence_id)

        job = await _reporting(world, body, overlap="queue", task_timeout="1h")
        node = world.node()
        await node.start()
        await world.trigger(job, "first")
        await pause("1s")
        waiting = await world.trigger(job, "second")
        await pause("1s")
        await world.store.cancel(waiting)
        assert told == []
        world.hooks[job.id] = {"on_complete": on_complete}
        other = world.node()
        await other.start()
        await pause("31s")
        assert told == [waiting]
        await other.stop()
        await node.stop()

    living(story)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_whatever_a_hook_raises_the_node_goes_on(error: BaseException) -> None:
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

    living(story)


def test_on_start_is_called_though_another_node_had_given_it_back() -> None:
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

    living(story)
