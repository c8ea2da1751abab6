"""Jobs that never run, and say so: a schedule that is over, a definition that no node knows (A9, A19)."""

import logging

import pytest

from everytick.app import Everytick
from everytick.schedules.once import on_request, once
from everytick.stores.memory import MemoryStore
from tests.stores.clock import ManualClock


def work() -> None:
    """Do nothing."""


async def test_a_job_whose_schedule_is_over_says_so_when_it_is_stored(
    tick: Everytick, caplog: pytest.LogCaptureFixture
) -> None:
    """A9: once; a script that is started again after the run is no mistake. `list` shows such a job as over."""
    tick.job(once("2020-01-01T00:00:00Z"), name="old")(work)
    tick.job(once("2020-01-01T00:00:00Z"), name="at once", on_create="immediately")(work)
    tick.job(on_request(), name="asked")(work)
    tick.job("after: 10m", name="following")(work)
    with caplog.at_level(logging.WARNING):
        await tick.sync()
        await tick.sync()
    [said] = [record.getMessage() for record in caplog.records if "will not run" in record.getMessage()]
    assert said.startswith("job 'old' will not run: its schedule (once, at 2020-01-01 00:00:00Z) is over")
    assert not (await tick.status("old")).is_active
    assert (await tick.status("asked")).is_active


async def test_a_job_whose_function_was_renamed_says_how_to_keep_its_history(caplog: pytest.LogCaptureFixture) -> None:
    """B36: at the start that finds one job new and one gone; what only looks like it is only a hint."""
    store = MemoryStore(ManualClock())
    await store.open()
    before, after = Everytick(store, name="shop"), Everytick(store, name="shop")
    before.job("0 3 * * *", name="report")(work)
    await before.sync()
    after.job("0 3 * * *", name="daily_report")(work)
    await after.sync()
    await store.close()

    said = [record.getMessage() for record in caplog.records if "is gone" in record.getMessage()]
    text = "job 'daily_report' is new and job 'report' is gone: if it is the same one, give it name='report'"
    assert said == [f"{text}, and it keeps its history and all that waits"]


async def test_a_job_defined_after_the_start_says_what_to_call(caplog: pytest.LogCaptureFixture) -> None:
    """A19: unless it has an owner of its own, as a job that is made at run time."""
    tick = Everytick("memory://", name="shop")
    tick.job("0 0 1 1 *", name="first")(work)
    async with tick:
        tick.job("0 0 1 1 *", name="late")(work)
        await tick.sync()
        assert {record.job.name for record in await tick.jobs()} == {"first", "late"}
        made = tick.define("hers", "0 0 1 1 *", owner="customers").call("os:getcwd")
        await tick.apply([made])
        again = tick.define("hers", "0 0 2 1 *", owner="customers").call("os:getcwd", name="other")
        [change] = await tick.apply([again])
    said = [record.getMessage() for record in caplog.records if "after the start" in record.getMessage()]
    text = "job 'late' is defined after the start: the node does not run it before await tick.sync() stores it"
    assert said == [text]
    assert (change.kind, [task.name for task in again.job.tasks]) == ("changed", ["other"])
