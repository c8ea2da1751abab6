"""Return values and payloads come out: of a handle, of an occurrence, of a report, of the test kit."""

from pathlib import Path
from typing import Any

import pytest

from everytick import EndedOccurrence, Everytick, ExecutionReport, cron
from everytick.testing import drain, simulate

YEARLY = cron("0 0 1 1 *")


@pytest.fixture
def tick(tmp_path: Path) -> Everytick:
    tick = Everytick(f"sqlite:///{tmp_path / 'jobs.db'}", name="shop")

    @tick.job(YEARLY, payload={"x": 1})
    def adds(x: int, y: int = 0) -> dict[str, int]:
        return {"answer": x + y}

    @tick.job(YEARLY)
    def fails() -> None:
        raise ValueError("boom")

    etl = tick.define("etl", YEARLY)

    @etl.task
    def extract() -> int:
        return 3

    @etl.task
    async def load() -> str:
        return "three rows"

    return tick


async def ended(tick: Everytick, name: str, payload: Any = None) -> EndedOccurrence:
    async with tick:
        return await (await tick.trigger(name, payload=payload)).wait("30s")


async def test_a_handle_gives_what_the_function_returned(tick: Everytick) -> None:
    """A8: `(await handle.wait()).result`."""
    done = await ended(tick, "adds", {"x": 40, "y": 2})
    assert (done.status, done.result, done.results) == ("completed", {"answer": 42}, {"adds": {"answer": 42}})
    assert done.payload == {"x": 40, "y": 2}


async def test_a_job_of_several_tasks_gives_each_result_and_the_last_as_its_own(tick: Everytick) -> None:
    """A8: per task too."""
    done = await ended(tick, "etl")
    assert (done.result, done.results) == ("three rows", {"extract": 3, "load": "three rows"})
    assert done.payload is None


async def test_what_failed_has_an_error_and_no_result(tick: Everytick) -> None:
    done = await ended(tick, "fails")
    assert (done.status, done.error, done.result, done.results) == ("failed", "ValueError: boom", None, {})


async def test_an_occurrence_and_its_report_tell_the_results(tick: Everytick) -> None:
    """A8: long after the end, and to the hook that is called at the end."""
    told: list[ExecutionReport] = []
    etl = next(each for each in tick.definitions if each.name == "etl")

    @etl.on_complete
    def report(report: ExecutionReport) -> None:
        told.append(report)

    handle = await tick.trigger("etl")
    await drain(tick)

    whole = await tick.occurrence(handle.id)
    assert (whole.result, whole.results) == ("three rows", {"extract": 3, "load": "three rows"})
    assert [run.result for run in whole.runs] == [3, "three rows"]
    assert [(task.name, task.result) for task in told[0].tasks] == [("extract", 3), ("load", "three rows")]
    await tick.close()


def test_the_test_kit_tells_results_and_payloads() -> None:
    """A8: `testing.Entry`."""
    tick = Everytick("memory://", name="shop")

    @tick.job(cron("0 * * * *"), payload={"x": 2})
    def doubles(x: int) -> int:
        return 2 * x

    chronicle = simulate(tick, "2026-11-16T00:30:00Z", "2026-11-16T01:30:00Z")
    [entry] = chronicle.ran("doubles")
    assert (entry.result, entry.results, entry.payload) == (4, {"doubles": 4}, {"x": 2})
