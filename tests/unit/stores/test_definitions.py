"""Definitions as text: what is stored reads back equal, and what cannot be stored is refused at the door."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from everytick import DefinitionWarning, Everytick, InvalidSchedule, Retry, any_of, calendar, cron, every
from everytick.domain.job import Job
from everytick.stores.definitions import read_definition, write_definition

CLOSED = calendar("closed", dates=["2026-12-24"], weekdays=["sun"])


def jobs() -> Sequence[Job]:
    tick = Everytick(timezone="Europe/Berlin", name="shop", defaults={"retry": Retry(2, "10s"), "grace": "5m"})
    tick.define("plain", every("10s"))
    tick.define("spread", cron("0 * * * *"), spread="15m", payload={"x": [1, None]}, tags=["a", "b"])
    tick.define("closed", any_of(cron("0 9 * * *"), every("1h")).excluding(CLOSED, roll="next"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefinitionWarning)  # depends_on is kept, and nothing obeys it yet
        tick.define(
            "full",
            cron("H 3 * * *", tz="Asia/Tokyo"),
            overlap="queue",
            recovery={"strategy": "bounded_window", "max_duration": "6h"},
            stop_schedule=cron("0 6 * * *").excluding(CLOSED),
            on_create={"backfill_from": "2026-01-01T00:00:00Z"},
            start="2026-01-01T00:00:00Z",
            retention={"success": "7d"},
            depends_on={"plain": "2h"},
        )
    graph = tick.define("graph", every("1d"), retry=None)
    graph.task(name="one")(print)
    graph.task(name="two", after=["one"], retry=Retry(5, "1m", factor=2.0), task_timeout=None)(print)
    return tuple(definition.job for definition in tick.definitions)


@pytest.mark.parametrize("job", jobs(), ids=lambda job: job.name)
def test_a_definition_reads_back_equal(job: Job) -> None:
    now = datetime(2026, 11, 16, tzinfo=UTC)
    stored = replace(job, version=3, created_at=now, updated_at=now)
    text = write_definition(stored)
    found = read_definition(text, id=stored.id, version=3, created_at=now, updated_at=now)

    assert found == stored
    assert write_definition(found) == text
    assert found.settings.effective() == stored.settings.effective()
    assert str(found.schedule) == str(job.schedule)


def test_equal_definitions_give_equal_text() -> None:
    assert [write_definition(job) for job in jobs()] == [write_definition(job) for job in jobs()]


def test_a_schedule_without_a_text_form_is_refused() -> None:
    class Mine:
        def next_after(self, instant: datetime) -> datetime | None:
            return datetime(2030, 1, 1, tzinfo=UTC)

        last_at = next_after

        def instants(self, *_: Any) -> list[datetime]:
            return []

        def describe(self) -> str:
            return "mine"

    tick = Everytick(name="shop")
    tick.define("mine", Mine())
    with pytest.raises(InvalidSchedule, match="of class Mine has no text form"):
        write_definition(tick.definitions[0].job)
