"""Job files that come as texts: what they use comes with them, and the disk is never read."""

from pathlib import Path

from everytick.sources.file_texts import read_texts, texts_of
from everytick.sources.files import read_all

SHARED = """\
version: 1
calendars:
  closed: {ics: days.ics, since: 2026-01-01, dates: [2027-12-25]}
jobs: {}
"""
DAYS = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20270101\nEND:VEVENT\nEND:VCALENDAR\n"
JOBS = """\
version: 1
use: ../shared.yaml
jobs:
  a: {schedule: "(cron: 0 9 * * *) - closed", command: ls}
"""


def job(name: str, use: str = "") -> str:
    return f'version: 1\n{use}jobs: {{{name}: {{schedule: "@daily", command: ls}}}}\n'


def test_texts_give_the_same_jobs_as_the_files_they_are_of(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(JOBS)
    (tmp_path / "shared.yaml").write_text(SHARED)
    (tmp_path / "days.ics").write_text(DAYS)
    [read] = read_all([tmp_path / "jobs"])
    files, beside = texts_of([read])

    [again] = read_texts(files, beside, owner="file")

    assert len(beside) == 2
    assert again.mistakes == ()
    assert again.jobs == read.jobs


def test_a_file_that_did_not_come_along_is_not_read_from_the_disk(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text(job("b"))
    (tmp_path / "days.ics").write_text(DAYS)
    named = f"{tmp_path}/jobs.yaml"
    [uses] = read_texts({named: job("a", "use: shared.yaml\n")}, {}, owner="file")
    [dates] = read_texts({named: SHARED}, {}, owner="file")

    assert ["it did not come with this file" in each.message for each in uses.mistakes] == [True]
    assert ["there is no such file" in each.message for each in dates.mistakes] == [True]


def test_files_that_use_each_other_in_a_circle_are_refused() -> None:
    files = {"a.yaml": job("a", "use: x/../b.yaml\n"), "b.yaml": job("b", "use: ./a.yaml\n")}

    mistakes = [each.message for file in read_texts(files, {}, owner="file") for each in file.mistakes]

    assert len(mistakes) == 2
    assert all("uses this file itself" in said for said in mistakes)


def test_a_file_is_read_once_however_many_files_use_it() -> None:
    """Eighteen levels, each used twice by the one above, would be 262,144 readings."""
    levels = {f"{n}.yaml": f"version: 1\nuse: [{n + 1}.yaml, ./{n + 1}.yaml]\njobs: {{}}\n" for n in range(18)}

    read = read_texts({**levels, "18.yaml": job("a")}, {}, owner="file")

    assert [file.mistakes for file in read] == [()] * 19


def test_a_chain_of_files_that_is_too_deep_is_refused() -> None:
    chain = {f"{n}.yaml": f"version: 1\nuse: {n + 1}.yaml\njobs: {{}}\n" for n in range(100)}

    first, *_ = read_texts({**chain, "100.yaml": job("a")}, {}, owner="file")

    assert "more than 20 deep" in first.mistakes[0].message


def test_a_job_that_two_texts_name_is_a_mistake_in_the_second() -> None:
    first, second = read_texts({"a.yaml": job("a"), "b.yaml": job("a")}, {}, owner="file")

    assert first.mistakes == ()
    assert "stands in a.yaml:2 already" in second.mistakes[0].message
