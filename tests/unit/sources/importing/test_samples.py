"""Samples of every kind come out as the files beside them say: the jobs, and below them everything that was left."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everytick.domain.schedule import Schedule
from everytick.schedules.codec import schedule
from everytick.schedules.combine import any_of
from everytick.sources.exporting import export_jobs, meaning
from everytick.sources.importing.apscheduler import script
from everytick.sources.importing.findings import Findings
from everytick.sources.importing.systemd_calendar import calendar_texts
from everytick.sources.job_files import read_jobs
from tests.unit.sources.importing.kept import NAMES, found_in, sample


def named(texts: Any) -> Schedule:
    return any_of(*map(schedule, [texts] if isinstance(texts, str) else texts))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_comes_out_as_it_is_written_beside_it(name: str) -> None:
    found = found_in(name)

    whole = found.text([name]) + "".join(f"# left: {each}\n" for each in found.left)

    assert whole.splitlines() == sample(f"expected/{name}.yaml").decode().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_what_was_imported_is_a_file_without_mistakes(name: str) -> None:
    found = found_in(name)

    read = read_jobs(found.text().encode(), name)

    assert read.mistakes == ()
    assert [each.job.name for each in read.jobs] == [job.name for job in found.jobs]


@pytest.mark.parametrize("name", NAMES)
def test_what_was_imported_can_be_exported_again_and_is_the_same(name: str) -> None:
    jobs = [each.job for each in read_jobs(found_in(name).text().encode(), name).jobs]

    exported = export_jobs(jobs, one_file=False)

    again = [each.job for text in exported.texts for each in read_jobs(text.encode(), name).jobs]
    assert exported.left == ()
    assert sorted(map(meaning, again), key=str) == sorted(map(meaning, jobs), key=str)


CALENDAR = json.loads(sample("systemd_calendar.json"))


@pytest.mark.parametrize("case", CALENDAR, ids=lambda case: f"{case['expression']} {case['base']}")
def test_a_calendar_expression_names_the_instants_that_systemd_names(case: dict[str, object]) -> None:
    """What `systemd-analyze calendar --base-time … --iterations 10` of systemd 252 answered, clock changes included."""
    base, expected = moment(str(case["base"])), [moment(str(each)) for each in case["instants"]]  # type: ignore[attr-defined]

    found = named(calendar_texts(str(case["expression"])))

    assert list(found.instants(base, base + timedelta(days=365 * 60), 10)) == expected


INSTANTS = json.loads(sample("apscheduler_instants.json"))
NIGHTLY = "nightly"
"""The one whose time a clock change skips and repeats: there the two differ, which is listed."""


def test_a_trigger_names_the_instants_that_apscheduler_names() -> None:
    """The listing was written by the script with APScheduler 3.11.3, and so were the instants."""
    found = found_in("apscheduler.json")

    compared = 0
    for job in found.jobs:
        rule = named(dict(job.parts)["schedule"])
        for base, expected in INSTANTS[job.name].items():
            if job.name == NIGHTLY and base != "2026-01-20T12:00:00Z":
                continue
            begin = moment(base) - timedelta(microseconds=1)
            through = moment(expected[-1]) if expected else datetime(2100, 1, 1, tzinfo=UTC)
            assert list(rule.instants(begin, through)) == [moment(each) for each in expected], job.name
            compared += len(expected)
    assert compared > 200


def test_what_differs_from_apscheduler_when_the_clocks_change_is_listed() -> None:
    [only] = [each for each in found_in("apscheduler.json").left if "clocks" in each.what]

    assert NIGHTLY in only.what


def test_the_script_for_apscheduler_is_python() -> None:
    compile(script(), "list_jobs.py", "exec")


def test_nothing_is_left_without_a_place_and_a_reason() -> None:
    every = [each for name in NAMES for each in found_in(name).left]

    assert all(each.line > 0 and each.what and each.why for each in every)


def test_two_files_of_one_call_share_their_names() -> None:
    taken: set[str] = set()
    findings = [Findings("one", {}, taken), Findings("other", {}, taken)]
    for each in findings:
        each.add("report", {"schedule": "@daily", "command": "true"}, 1)

    assert [job.name for each in findings for job in each.jobs] == ["report", "report-2"]
