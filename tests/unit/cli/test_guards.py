"""Guarded operations on the command line: --yes, proposals, approve, reject, sync."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Cli

FILE = 'version: 1\njobs: {{report: {{schedule: "0 3 * * *", command: "true", protected: {protected}{more}}}}}\n'


@pytest.fixture
def on(plain: Cli, tmp_path: Path) -> Cli:
    """Call the command on the store of a folder with one protected job."""
    (tmp_path / "jobs").mkdir()
    write(tmp_path, "true")
    assert plain("apply", "jobs").code == 0
    return lambda *arguments: plain("--jobs", "jobs", *arguments)


def write(folder: Path, protected: str, more: str = "") -> None:
    (folder / "jobs/a.yaml").write_text(FILE.format(protected=protected, more=more))


def test_a_change_of_a_protected_job_needs_yes(on: Cli, tmp_path: Path) -> None:
    write(tmp_path, "true", ", priority: 5")
    refused = on("apply")

    assert refused.code == 2
    assert "the change of 1 job (0 runs): job 'report' is protected; go on" in refused.err
    assert "pass --yes" in refused.err
    assert on("disable", "report").code == 2
    assert on("apply", "--yes").code == 0
    assert json.loads(on("show", "report", "--json").out)["version"] == 2


def test_a_second_person_carries_out_what_the_first_has_proposed(
    on: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "two_people")
    assert on("apply", "--yes").code == 0
    monkeypatch.setenv("LOGNAME", "alice")
    proposed = on("remove", "report", "--yes")

    assert proposed.code == 75
    assert "is proposed as" in proposed.err
    [[id_, what, jobs, by, _]] = on("proposals").rows
    assert (what, jobs, by) == ("the removal of job 'report'", "report", "alice")
    assert json.loads(on("proposals", "--json").out)[0]["expired"] is False
    assert [row[0] for row in on("list").rows] == ["report"]
    assert ["proposed", f"{id_}: the removal of job 'report', by alice"] in on("show", "report").rows
    assert json.loads(on("show", "report", "--json").out)["proposals"] == [id_]
    same = on("approve", id_)
    assert (same.code, "another person must approve it" in same.err) == (5, True)
    monkeypatch.setenv("LOGNAME", "bob")
    assert on("approve", id_).code == 0
    assert on("list").rows == []
    assert on("proposals").rows == []
    gone = on("approve", id_)
    assert (gone.code, "it is done or dropped: everytick proposals lists them" in gone.err) == (3, True)


def test_a_proposal_is_dropped(on: Cli, tmp_path: Path) -> None:
    write(tmp_path, "two_people")
    on("apply", "--yes")
    on("rename", "report", "other", "--detach", "--yes")
    [[id_, *_]] = on("proposals").rows

    assert on("reject", id_).code == 0
    assert (on("proposals").rows, on("reject", id_).code) == ([], 3)


def test_the_changes_of_code_are_stored_by_sync(plain: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from everytick import Everytick, every\n"
        "tick = Everytick('sqlite:///guarded.db', name='shop')\n"
        "tick.define('report', every('{every}'), protected=True).command('work', 'true')\n"
    )
    (tmp_path / "guarded_one.py").write_text(code.format(every="1h"))
    (tmp_path / "guarded_two.py").write_text(code.format(every="2h"))

    assert plain("sync", "-a", "guarded_one:tick").rows == [["added", "report", ""]]
    assert plain("sync", "-a", "guarded_two:tick").code == 2
    assert plain("sync", "-a", "guarded_two:tick", "--yes").rows == [["changed", "report", "schedule"]]
