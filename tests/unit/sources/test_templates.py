"""Templates in files: what a job does not say itself it has from them, and a change of one is a change of its jobs."""

import json
import os
from pathlib import Path

from everytick.domain.config import Level
from everytick.domain.job import Job
from everytick.sources.drafting import draft
from everytick.sources.exporting import export_jobs
from everytick.sources.job_files import JobFile, read_jobs
from tests.unit.sources.writing import JobFolder

NIGHTLY = """
version: 1
templates:
  nightly-report:
    description: Reports that run at night
    schedule: "0 3 * * *"
    retry: {max: 3, interval: 30s}
    catchup_window: 6h
    command: [report, "{{ job }}"]
jobs:
"""


def read(text: str) -> JobFile:
    return read_jobs(text.encode(), "jobs.yaml")


def job(line: str, before: str = NIGHTLY) -> Job:
    found = read(f"{before}  {line}\n")
    assert [str(each) for each in found.mistakes] == []
    return found.jobs[0].job


def mistakes(text: str) -> list[str]:
    found = read(text)
    assert found.jobs == ()
    return [str(each).removeprefix("jobs.yaml:") for each in found.mistakes]


def test_a_job_has_from_its_template_what_it_does_not_say() -> None:
    """S1-039."""
    sales = job("sales: {template: nightly-report, priority: 2}")

    assert str(sales.schedule) == "cron: 0 3 * * *; tz=UTC"
    assert [(task.name, json.loads(task.target)) for task in sales.tasks] == [
        ("sales", {"command": ["report", "{{ job }}"]})
    ]
    assert sales.settings.origin("retry") is sales.settings.origin("recovery") is Level.TEMPLATE
    assert (sales.settings.priority, sales.settings.origin("priority")) == (2, Level.JOB)
    assert sales.settings.description == ""
    assert sales.templates is not None
    assert sales.templates.names == ("nightly-report",)
    assert dict(sales.templates.parts) == dict.fromkeys(("recovery", "retry", "schedule", "tasks"), "nightly-report")


def test_what_a_job_says_itself_counts_more() -> None:
    sales = job("sales: {template: nightly-report, schedule: every 1h, retry: null, command: own}")

    assert (str(sales.schedule), sales.settings.retry) == ("every: 1h; tz=UTC", None)
    assert json.loads(sales.tasks[0].target) == {"command": "own"}
    assert sales.templates is not None
    assert dict(sales.templates.parts) == {"recovery": "nightly-report"}


def test_the_environment_and_the_folder_of_a_command_are_overridden_alone() -> None:
    sales = job("sales: {template: nightly-report, env: {DB: sales}, cwd: /srv}")

    assert json.loads(sales.tasks[0].target) == {
        "command": ["report", "{{ job }}"],
        "env": {"DB": "sales"},
        "cwd": "/srv",
    }


def test_a_schedule_comes_from_a_built_in_template_in_the_zone_of_the_job() -> None:
    """S1-039."""
    found = job("a: {template: Weekly Monday 8 AM, timezone: Europe/Berlin, command: work}", "version: 1\njobs:\n")

    assert str(found.schedule) == "cron: 0 8 * * 1; tz=Europe/Berlin"


def test_of_several_templates_a_later_one_counts_more() -> None:
    sales = job("sales: {template: [nightly-report, hourly]}")

    assert str(sales.schedule) == "cron: @hourly; tz=UTC"
    assert sales.templates is not None
    assert (sales.templates.source("schedule"), sales.templates.source("retry")) == ("Hourly", "nightly-report")


def test_an_own_template_hides_a_built_in_one() -> None:
    own = 'version: 1\ntemplates: {HOURLY: {schedule: "5 * * * *"}}\njobs:\n'

    assert str(job("a: {template: hourly, command: work}", own).schedule) == "cron: 5 * * * *; tz=UTC"


def test_mistakes_in_templates_are_told_at_their_place_and_once() -> None:
    text = """version: 1
templates:
  bad: {shedule: "0 3 * * *", priority: many}
  empty: {description: says nothing}
  two: {tasks: [{name: a, command: work}], call: "a:b"}
  ok: {schedule: every 1h, command: work}
  OK: {schedule: every 2h}
jobs:
  a: {template: bad}
  d: {template: hourly}
  e: {template: [hourly, two]}
  f: {priority: 3}
"""

    assert mistakes(text) == [
        "3:9: template 'bad': unknown key 'shedule' (did you mean 'schedule'?)",
        "3:41: priority 'many' must be a whole number from -32,768 to 32,767",
        "4:3: template 'empty' says nothing: give it a schedule, policies or something to do",
        "5:44: a job with tasks does nothing itself: make this call a task",
        "7:3: template 'ok' has this name already",
        "10:3: job 'd' has nothing to do: give it a call, a command, an http or a target",
        "12:3: job 'f' has no schedule: add `schedule:`",
    ]


def test_an_unknown_template_is_told_with_the_nearest_name() -> None:
    assert mistakes(f"{NIGHTLY}  sales: {{template: nightly-repot}}\n") == [
        "11:21: there is no template 'nightly-repot' (did you mean 'nightly-report'?)"
    ]


def test_an_environment_needs_a_template_with_one_command() -> None:
    text = """version: 1
templates: {ping: {schedule: every 1h, http: "https://example.org/"}}
jobs:
  a: {template: ping, env: {A: b}}
"""

    assert mistakes(text) == ["4:23: env belongs to a command, and its template has none alone"]


def test_a_change_of_a_template_is_an_edit_of_the_jobs_that_use_it() -> None:
    """S1-039: and of those alone for which it changes something."""
    lines = "  sales: {template: nightly-report}\n  stock: {template: nightly-report, retry: null}\n"
    before, after = (
        [each.job for each in read(text + lines).jobs] for text in (NIGHTLY, NIGHTLY.replace("max: 3", "max: 4"))
    )

    assert draft(after[0], before[0]).change.parts == ("retry",)
    assert draft(after[1], before[1]).change.kind == "unchanged"


def test_a_new_name_of_the_template_is_told() -> None:
    before = job("sales: {template: nightly-report}")
    after = job("sales: {template: nightly}", NIGHTLY.replace("nightly-report", "nightly"))

    assert draft(after, before).change.parts == ("template",)


def test_a_job_from_a_template_is_exported_whole() -> None:
    [text] = export_jobs([job("sales: {template: nightly-report}")], one_file=True).texts
    [found] = read(text).jobs

    assert found.job.templates is None
    assert (str(found.job.schedule), found.job.settings.retry is None) == ("cron: 0 3 * * *; tz=UTC", False)


# ------------------------------------------------------------------------------------------------------- other files


def test_files_use_the_templates_and_calendars_of_another_one(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "jobs")
    folder.text("shared.yaml", NIGHTLY.replace("jobs:\n", "calendars: {closed: {dates: [2026-12-24]}}\n"))
    use = "version: 1\nuse: ../shared.yaml\njobs:\n"
    folder.text("a/sales.yaml", f"{use}  sales: {{template: nightly-report}}\n")
    folder.text("a/stock.yaml", f'{use}  stock: {{schedule: "(every 1d) - closed", command: work}}\n')

    assert folder.load() == [("added", "sales"), ("added", "stock")]
    assert folder.mistakes == []


def test_a_change_of_a_used_file_changes_the_jobs_of_those_that_use_it(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "jobs")
    folder.text("shared.yaml", NIGHTLY.replace("jobs:\n", ""))
    folder.text("sales.yaml", "version: 1\nuse: [shared.yaml]\njobs: {sales: {template: nightly-report}}\n")
    for file in ("shared.yaml", "sales.yaml"):
        os.utime(folder.path / file, (1_000_000_000, 1_000_000_000))
    folder.load()
    folder.text("shared.yaml", NIGHTLY.replace("jobs:\n", "").replace('"0 3', '"0 4'))

    assert folder.load() == [("updated", "sales")]

    folder.text("shared.yaml", "version: 2\n")

    said = "version '2' is not known here: write version: 1"
    assert folder.load() == []
    assert folder.mistakes == [
        f"sales.yaml:2:7: use 'shared.yaml': has a mistake, {folder.path}/shared.yaml:1:10: {said}",
        f"shared.yaml:1:10: {said}",
    ]


def test_a_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "jobs")
    folder.text("a.yaml", "version: 1\nuse: b.yaml\ntemplates: {x: {schedule: every 1h}}\n")
    folder.text("b.yaml", "version: 1\nuse: [a.yaml, gone.yaml]\ntemplates: {y: {schedule: every 1h}}\n")
    folder.text("c.yaml", "version: 1\nuse: 3\njobs: {}\n")
    folder.load()

    told = "\n".join(folder.mistakes)
    assert "it uses this file itself, directly or through others" in told
    assert "b.yaml:2:15: use 'gone.yaml': cannot be read: No such file or directory" in told
    assert "c.yaml:2:6: use must be the path of a file, or a list of paths, like [shared.yaml]" in told


def test_a_file_with_neither_jobs_nor_templates_is_refused() -> None:
    assert mistakes("version: 1\n") == ["1:1: the file has no jobs: add `jobs:`"]
