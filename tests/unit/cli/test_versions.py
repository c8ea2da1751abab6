"""update, versions, diff of two versions, rollback, and a plan that is stored exactly or not at all."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Cli

FILE = """\
version: 1
jobs:
  nightly:
    schedule: "0 5 * * *"
    update_policy: graceful
    command: "true"
"""


@pytest.fixture
def jobs(tmp_path: Path, cli: Cli) -> Path:
    """A file of one job, in the store as its first version; then it says six instead of five."""
    path = tmp_path / "jobs.yaml"
    path.write_text(FILE)
    assert cli("db", "migrate").code == 0
    assert cli("apply", str(path)).code == 0
    path.write_text(FILE.replace("0 5", "0 6"))
    return path


def plan_of(cli: Cli, path: Path) -> str:
    [found] = json.loads(cli("diff", str(path), "--json").out)
    plan: str = found["plan"]
    return plan


def test_a_plan_is_shown_stored_exactly_and_stored_once(cli: Cli, jobs: Path) -> None:
    """S0-121, S0-124, S0-118."""
    shown = cli("diff", str(jobs))
    assert "comes into force after" in shown.out
    assert "of them moved" in shown.out
    assert f"to store exactly this: everytick apply {jobs} --plan " in shown.err
    plan = plan_of(cli, jobs)
    for _ in range(2):
        assert cli("apply", str(jobs), "--plan", plan).code == 0
    assert [row[0] for row in cli("versions", "nightly").rows] == ["v2", "v1"]
    [newest, first] = json.loads(cli("versions", "nightly", "--json").out)
    assert (newest["is_coming"], first["is_in_force"]) == (True, True)
    assert newest["changes"][0]["part"] == "schedule"
    told = cli("show", "nightly").out
    assert "in force\tversion 1: cron: 0 5 * * *" in told
    assert "to come\tversion 2 after " in told


def test_a_plan_that_no_longer_holds_stores_nothing_and_says_why(cli: Cli, jobs: Path) -> None:
    plan = plan_of(cli, jobs)
    cli("pause", "nightly")
    done = cli("apply", str(jobs), "--plan", plan)
    assert (done.code, "no longer holds: job 'nightly' was paused at" in done.err) == (5, True)
    assert cli("apply", str(jobs), "--plan", "soon").code == 5
    assert len(cli("versions", "nightly").rows) == 1


def test_an_update_is_shown_stored_compared_and_rolled_back(cli: Cli, jobs: Path) -> None:
    """S0-120, S0-131: the policy of this update alone."""
    dry = cli("update", "nightly", "--schedule", "0 7 * * *", "--detach", "--policy", "immediate", "--dry-run")
    plan = dry.err.split("--plan ")[1].strip()
    change = ("update", "nightly", "--schedule", "0 7 * * *", "--detach", "--policy", "immediate")
    assert cli(*change, "--plan", plan).out == "2\n"
    assert cli("update", "nightly", "--set", "priority=5", "--set", "description=a b").out == "3\n"
    compared = cli("diff", "nightly", "v1", "v3")
    assert [row[0] for row in compared.rows[:4]] == ["schedule", "description", "priority", "owner"]
    assert compared.rows[4][0] == "moved"
    assert cli("diff", "nightly", "v3", "v3").err.strip() == "v3 and v3 say the same"
    assert json.loads(cli("diff", "nightly", "2", "3", "--json").out)["changes"][0]["part"] == "description"
    assert cli("rollback", "nightly", "v1", "--yes", "--policy", "immediate").out == "4\n"
    found = json.loads(cli("show", "nightly", "--json").out)
    assert (found["schedule"], found["description"]) == ("cron: 0 5 * * *; tz=UTC", "")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["update", "nightly"], 2, "nothing is to be changed"),
        (["update", "nightly", "--set", "priority"], 2, "is no pair"),
        (["update", "nightly", "--set", "confirmed=true", "--detach"], 2, "there is no policy 'confirmed'"),
        (["update", "nightly", "--unset", "by", "--detach"], 2, "there is no policy 'by'"),
        (["update", "nightly", "--set", "priority=5"], 5, "a file defines it"),
        (["update", "nightly", "--set", "priority=5", "--detach", "--policy", "later"], 2, "update_policy 'later'"),
        (["update", "nightly", "--set", "priority=5", "--detach", "--expected-version", "7"], 5, "not 7"),
        (["rollback", "nightly", "third"], 2, "third is no version"),
        (["rollback", "nightly", "v9", "--yes", "--detach"], 3, "9 of job 'nightly'"),
        (["diff", "nightly", "v1", "v9"], 3, "9 of job 'nightly'"),
        (["versions", "nobody"], 3, "nobody"),
    ],
)
def test_mistakes_are_told(cli: Cli, jobs: Path, arguments: list[str], code: int, said: str) -> None:
    done = cli(*arguments)
    assert (done.code, said in done.err) == (code, True), done.err


def test_a_rollout_is_begun_shown_and_ended(cli: Cli, jobs: Path) -> None:
    assert cli("rollout", "nightly").err.strip() == "no version of 'nightly' is on trial"
    assert cli("rollout", "nightly", "--back", "--yes").code == 3
    shown = cli("diff", str(jobs), "--policy", "rollout 10% after 20")
    assert "tried first: 10% after 20" in shown.out
    assert cli("apply", str(jobs), "--policy", "rollout 10% after 20").code == 0
    assert [row[3] for row in cli("versions", "nightly").rows] == ["tried by 10% of the occurrences", "now"]
    assert "on trial\tversion 2: 10% of the occurrences" in cli("show", "nightly").out
    found = json.loads(cli("rollout", "nightly", "--json").out)
    assert (found["version"], found["in_force"], found["rollout"], found["failed"]) == (2, 1, "10% after 20", 0)
    assert "0 of 20 ended" in cli("rollout", "nightly").out
    assert cli("rollout", "nightly", "--keep", "--back").code == 2
    assert cli("rollout", "nightly", "--back", "--yes").out == "3\n"
    assert cli("apply", str(jobs)).code == 0
    assert [row[3] for row in cli("versions", "nightly").rows] == ["now, after v2", "", ""]
