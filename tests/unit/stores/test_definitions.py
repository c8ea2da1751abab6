"""Definitions as text: what is stored reads back equal, and what cannot be stored is refused at the door."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from everytick import Everytick, InvalidSchedule, Retry, any_of, calendar, cron, every
from everytick.domain.job import Job
from everytick.schedules import codec
from everytick.stores.definitions import read_definition, write_definition
from tests.unit.schedules.tides import Tide
from tests.unit.schedules.tides import read as read_tide

CLOSED = calendar("closed", dates=["2026-12-24"], weekdays=["sun"])


def jobs() -> Sequence[Job]:
    tick = Everytick(timezone="Europe/Berlin", name="shop", defaults={"retry": Retry(2, "10s"), "grace": "5m"})
    tick.define("plain", every("10s"))
    tick.define("spread", cron("0 * * * *"), spread="15m", payload={"x": [1, None]}, tags=["a", "b"])
    tick.define("closed", any_of(cron("0 9 * * *"), every("1h")).excluding(CLOSED, roll="next"))
    tick.define(
        "full",
        cron("H 3 * * *", tz="Asia/Tokyo"),
        overlap="queue",
        recovery={"strategy": "bounded_window", "max_duration": "6h"},
        stop_schedule=cron("0 6 * * *").excluding(CLOSED),
        on_create={"backfill_from": "2026-01-01T00:00:00Z"},
        start="2026-01-01T00:00:00Z",
        retention={"success": "7d"},
    )
    tick.template("nightly", "0 3 * * *", retry=None, stop_schedule=cron("0 6 * * *").excluding(CLOSED), queue="night")
    tick.define("templated", template=["nightly", "Daily 9 AM"], priority=3)
    graph = tick.define("graph", every("1d"), retry=None)
    graph.task(name="one")(print)
    graph.task(name="two", after=["one"], retry=Retry(5, "1m", factor=2.0), task_timeout=None)(print)
    return tuple(definition.job for definition in tick.definitions)


@pytest.mark.parametrize("job", jobs(), ids=lambda job: job.name)
def test_a_definition_reads_back_equal(job: Job) -> None:
    now = datetime(2026, 11, 16, tzinfo=UTC)
    tasks = tuple(replace(task, created_at=now, updated_at=now) for task in job.tasks)
    stored = replace(job, tasks=tasks, version=3, created_at=now, updated_at=now)
    text = write_definition(stored)
    found = read_definition(text, id=stored.id, version=3, created_at=now, updated_at=now)

    assert found == stored
    assert write_definition(found) == text
    assert found.settings.effective() == stored.settings.effective()
    assert str(found.schedule) == str(job.schedule)


def test_equal_definitions_give_equal_text() -> None:
    assert [write_definition(job) for job in jobs()] == [write_definition(job) for job in jobs()]


def test_a_schedule_without_a_text_form_is_refused_where_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-037: and a store in memory needs none."""
    monkeypatch.setattr(codec, "_registered", {})
    mine, tick = Tide(datetime(2026, 11, 16, tzinfo=UTC)), Everytick(name="shop")
    for written in (mine, any_of(cron("0 9 * * *"), mine)):
        with pytest.raises(
            InvalidSchedule, match=r"of job 'mine' is a Tide, .* call schedule_kind\(word, read\) before"
        ):
            tick.define("mine", written)
    with pytest.raises(InvalidSchedule, match="is a Tide"):
        tick.define("mine", every("1d"), stop_schedule=mine)
    assert tick.definitions == ()

    in_memory = Everytick("memory://", name="shop").define("mine", mine)
    with pytest.raises(InvalidSchedule, match="is a Tide"):
        write_definition(in_memory.job)


def test_a_schedule_of_ones_own_reads_back_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-037"""
    monkeypatch.setattr(codec, "_registered", {"tide": read_tide})
    mine = Tide(datetime(2026, 11, 16, tzinfo=UTC))
    job = Everytick(name="shop").define("mine", any_of(mine, every("1d")).excluding(CLOSED), stop_schedule=mine).job

    assert read_definition(write_definition(job), id=job.id, version=1) == replace(job, version=1)
