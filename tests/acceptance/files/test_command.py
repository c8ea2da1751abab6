"""validate, diff, apply and schema, as a person or a pipeline calls them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.cli.terminal import Said, Terminal, everytick

STORE = {"EVERYTICK_STORE": "sqlite:///jobs.db"}
TWO = (
    'version: 1\njobs:\n  a: {schedule: "0 0 1 1 *", command: "true"}\n  b: {schedule: "0 0 1 1 *", command: "true"}\n'
)
ONE = 'version: 1\njobs:\n  a: {schedule: "0 0 1 1 *", command: "true", priority: 1}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    return tmp_path


def write(folder: Path, text: str, file: str = "a.yaml") -> None:
    (folder / "jobs" / file).write_text(text)


def call(folder: Path, *arguments: str) -> Said:
    return everytick(folder, *arguments, **STORE)


def test_files_without_a_mistake_are_said_to_be_so(folder: Path) -> None:
    write(folder, TWO)

    done = everytick(folder, "validate", "jobs")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "1 file with 2 jobs: no mistakes\n"


def test_every_mistake_of_all_files_is_told_and_the_exit_code_is_65(folder: Path) -> None:
    write(folder, TWO.replace("schedule", "shedule", 1))
    write(folder, "version: 1\njobs: {c: {schedule: '61 * * * *', command: x}, c: {}}", "b.yaml")
    write(
        folder,
        "version: 1\njobs: {a: {schedule: '@daily', command: x, recovery: execute_all, late_overlap: skip}}",
        "c.yaml",
    )

    done = everytick(folder, "validate", "jobs")

    assert done.returncode == 65
    assert done.stderr == "4 mistakes in 3 files\n"
    assert [line[:60] for line in done.stdout.splitlines()] == [
        "jobs/a.yaml:3:3: job 'a' has no schedule: add `schedule:`",
        "jobs/a.yaml:3:7: job 'a': unknown key 'shedule' (did you mea",
        'jobs/b.yaml:2:22: schedule: Invalid cron expression "61 * * ',
        "jobs/b.yaml:2:49: the key 'c' stands here twice, first in li",
        "jobs/c.yaml:2:8: warning: job 'a': recovery execute_all with",
    ]


def test_mistakes_are_marked_for_a_pull_request(folder: Path) -> None:
    write(folder, "version: 1\njobs: {'100%': {}}", "a,b.yaml")

    done = everytick(folder, "validate", "--format", "github", "jobs/a,b.yaml")

    assert done.returncode == 65
    assert done.stdout.splitlines()[0].startswith("::error file=jobs/a%2Cb.yaml,line=2,col=8::job name '100%25' must")


def test_nothing_of_a_hostile_file_reaches_the_terminal_raw(folder: Path) -> None:
    write(folder, 'version: 1\njobs: {"a\\e]0;x\\a": {}}')
    write(folder, "version: 1\n\x1b[31m: {}", "b.yaml")

    with Terminal(folder, "validate", "jobs", TERM="dumb") as terminal:
        assert terminal.ended() == 65

    assert "U+001B" in terminal.raw
    assert "\x1b" not in terminal.raw


def test_a_folder_without_files_of_jobs_is_not_found(folder: Path) -> None:
    done = everytick(folder, "validate", "jobs")

    assert done.returncode == 3
    assert "there is no .yaml or .yml file in jobs" in done.stderr


def test_apply_stores_diff_compares_and_a_second_time_changes_nothing(folder: Path) -> None:
    """C-21: with --prune, only what files own is removed."""
    write(folder, TWO)
    assert call(folder, "db", "migrate").returncode == 0

    assert [row[:3] for row in call(folder, "apply", "jobs", "--dry-run").rows] == [["new", "a", ""], ["new", "b", ""]]
    assert [row[:3] for row in call(folder, "apply", "jobs").rows] == [["new", "a", ""], ["new", "b", ""]]
    again = call(folder, "apply", "jobs", "--prune")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "0 changes, 2 unchanged\n")

    write(folder, ONE)
    assert call(folder, "apply", "jobs").rows == [["changed", "a", "priority", "as before"]]
    refused = call(folder, "apply", "jobs", "--prune")
    assert refused.returncode == 2
    assert "Remove 1 job: b: not a terminal, cannot ask for confirmation: pass --yes" in refused.stderr
    foreign = call(folder, "apply", "jobs", "--prune", "--owner", "other", "--yes")
    assert (foreign.returncode, foreign.stdout) == (5, "")
    assert "nothing was changed: all is stored, or nothing" in foreign.stderr
    assert [row[:2] for row in call(folder, "apply", "jobs", "--prune", "--yes").rows] == [["gone", "b"]]
    assert [row[0] for row in call(folder, "list").rows] == ["a"]


def test_diff_says_which_runs_to_come_are_added_removed_and_kept(folder: Path) -> None:
    twice = 'version: 1\njobs: {a: {schedule: "R2/2090-01-01T00:00:00Z/P1D", command: "true"}}\n'
    write(folder, twice.replace("jobs: {", 'jobs: {gone: {schedule: "once: 2090-01-01T00:00:00Z", command: "true"}, '))
    call(folder, "db", "migrate")
    call(folder, "apply", "jobs")
    write(folder, twice.replace("R2/2090-01-01", "R2/2090-01-02"))

    compared = call(folder, "diff", "jobs", "--json")
    listed = call(folder, "diff", "jobs", "--runs")

    changed, gone = json.loads(compared.stdout)
    assert changed["plan"] == gone["plan"]
    assert (changed["job"], changed["change"], changed["parts"]) == ("a", "changed", ["schedule"])
    # They are compared through the first run of each: the next 30 days have none.
    assert changed["runs_through"] == "2090-01-02T00:00:00Z"
    assert changed["runs"] == {
        "added": [],
        "removed": ["2090-01-01T00:00:00Z"],
        "kept": ["2090-01-02T00:00:00Z"],
        "moved": [],
    }
    assert (gone["job"], gone["change"], gone["version"], gone["runs_through"]) == ("gone", "gone", 1, None)
    assert gone["runs"] == {"added": [], "removed": ["2090-01-01T00:00:00Z"], "kept": [], "moved": []}
    assert listed.rows == [
        ["changed", "a", "schedule", "1 removed, 1 kept until 2090-01-02T00:00:00+00:00"],
        ["gone", "gone", "", "1 removed"],
        ["removed", "a", "2090-01-01T00:00:00+00:00"],
        ["removed", "gone", "2090-01-01T00:00:00+00:00"],
    ]
    assert [row[0] for row in call(folder, "list").rows] == ["a", "gone"]


def test_a_mistake_in_one_file_and_nothing_is_stored(folder: Path) -> None:
    write(folder, TWO)
    write(folder, "version: 2", "b.yaml")
    call(folder, "db", "migrate")

    done = call(folder, "apply", "jobs")

    assert done.returncode == 65
    assert "jobs/b.yaml:1:10: version '2' is not known here" in done.stderr
    assert done.stderr.endswith("everytick: 1 mistake: nothing was stored\n")
    assert call(folder, "list").stdout == ""


def test_the_schema_is_written_as_json(folder: Path) -> None:
    done = everytick(folder, "schema")

    assert done.returncode == 0
    assert json.loads(done.stdout)["required"] == ["version"]


def test_what_takes_more_than_a_second_tells_a_terminal_so(folder: Path) -> None:
    """Another program writes to the store for a while."""
    write(folder, TWO)
    call(folder, "db", "migrate")
    with closing(sqlite3.connect(folder / "jobs.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        with Terminal(folder, "apply", "jobs", **STORE) as terminal:
            terminal.see(r"comparing 1\.\ds")
            other.execute("rollback")

            assert terminal.ended() == 0
            terminal.see("2 changes, 0 unchanged")
