"""Listings of APScheduler 3, one rule at a time.

The shapes are those that the printed script wrote with APScheduler 3.11 from a scheduler with jobs in SQLite and in
memory: functions, lambdas, partial functions, methods of classes and of objects, coroutines.
"""

import functools
import json
from types import SimpleNamespace
from typing import Any

import pytest

from everytick.sources.importing.apscheduler import read_listing, script
from everytick.sources.importing.findings import Findings

EVERY = {"type": "IntervalTrigger", "seconds": 30.0, "start_date": "2026-11-15T19:29:17.557748+01:00"}
USUAL = {"coalesce": True, "max_instances": 1, "misfire_grace_time": 1, "executor": "default", "paused": False}


def listing(**job: object) -> Findings:
    whole = {"id": "x", "name": "tick", "func": "myjobs:tick", "named": {}, "trigger": EVERY, **USUAL, **job}
    return read_listing(json.dumps({"jobs": [whole]}).encode(), "jobs.json")


def parts(**job: object) -> dict[str, Any]:
    found = listing(**job)
    assert found.jobs, [str(each) for each in found.left]
    return dict(found.jobs[0].parts)


def test_an_interval_keeps_its_phase_to_the_microsecond() -> None:
    assert parts()["schedule"] == "every 30s; start=2026-11-15T19:29:17.557748+01:00"


def test_a_grace_of_a_second_is_a_window_of_a_second() -> None:
    found = parts(max_instances=3, coalesce=False)

    assert (found["recovery"], found["grace"]) == ({"strategy": "bounded_window", "max_duration": "1s"}, "1s")
    assert found["max_concurrent"] == 3


def test_a_job_with_an_id_that_was_made_up_is_called_after_its_function() -> None:
    found = listing(id="797021776ea3433aa39a90e7fd4812b4", func="app:Worker.make")

    assert [job.name for job in found.jobs] == ["Worker-make"]
    assert "the id 797021776ea3433aa39a90e7fd4812b4" in found.left[0].what


def test_two_made_up_ids_of_one_function_get_two_names() -> None:
    jobs = [{"id": letter * 32, "func": "app:co", "named": {}, "trigger": EVERY, **USUAL} for letter in "ab"]

    found = read_listing(json.dumps({"jobs": jobs}).encode(), "jobs.json")

    assert [job.name for job in found.jobs] == ["co", "co-2"]


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"func": None}, "it calls no function of a module"),
        ({"named": None}, "some of its arguments have no name"),
        ({"named": {"not_json": "{'bcc': datetime.date(2020, 1, 1)}"}}, "or are not JSON"),
        ({"trigger": {"type": "CronTrigger", "timezone": "UTC+02:00", "fields": {"hour": "3"}}}, "not one by name"),
        ({"trigger": {"type": "AndTrigger", "triggers": []}}, "AndTrigger"),
    ],
)
def test_what_cannot_be_known_or_said_leaves_the_job(job: dict[str, object], reason: str) -> None:
    found = listing(**job)

    assert not found.jobs
    assert reason in found.left[-1].why


class Worker:
    def run(self) -> None: ...

    @classmethod
    def make(cls) -> None: ...


@pytest.mark.parametrize(
    ("function", "reference", "place"),
    [
        (functools.cache, "functools:cache", "functools:cache"),
        (Worker.make, "w:Worker.make", "w:Worker.make"),
        (Worker().run, "w:Worker.run", None),
        (functools.partial(print), None, None),
    ],
)
def test_the_script_tells_no_place_of_a_method_that_needs_its_object(
    function: object, reference: str | None, place: str | None
) -> None:
    """In memory APScheduler refers to it by its class; calling that would lack the object."""
    names: dict[str, Any] = {"__name__": "list_jobs"}
    exec(compile(script(), "list_jobs.py", "exec"), names)

    assert names["place_of"](SimpleNamespace(func=function, func_ref=reference)) == place
