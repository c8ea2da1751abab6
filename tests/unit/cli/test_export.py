"""`export`: jobs that another store takes, and history that other programs read."""

import csv
import io
import json
from pathlib import Path

import pytest

from everytick import Everytick
from tests.unit.cli.conftest import Cli, ran

JOBS = """\
version: 1
defaults: {timezone: Europe/Berlin}
jobs:
  nightly: {schedule: "30 2 * * *", command: "pg_dump app", retry: {max: 3, interval: 30s}}
  ping: {schedule: "*/5 * * * *", http: "https://example.org/", spread: 1m}
"""


@pytest.fixture
def applied(cli: Cli, address: str) -> Cli:
    """The command on a store that holds jobs of a file."""
    cli("db", "migrate")
    Path("jobs.yaml").write_text(JOBS)
    assert cli("apply", "jobs.yaml").code == 0
    return cli


def test_what_is_exported_is_taken_by_an_empty_store_and_then_nothing_differs(applied: Cli, plain: Cli) -> None:
    said = applied("export", "jobs", "-o", "out")

    assert said.code == 0
    assert plain("validate", "out").code == 0
    plain("--store", "sqlite:///other.db", "db", "migrate")
    assert plain("--store", "sqlite:///other.db", "apply", "out").code == 0
    assert plain("--store", "sqlite:///other.db", "diff", "jobs.yaml").out == ""
    assert applied("diff", "out").out == ""


def test_jobs_can_be_named_and_chosen_by_their_owner(applied: Cli) -> None:
    assert "ping:" not in applied("export", "jobs", "nightly").out
    assert applied("export", "jobs", "--owner", "code").code == 3
    assert applied("export", "jobs", "nowhere").code == 3


def test_a_file_that_is_there_is_not_overwritten(applied: Cli) -> None:
    Path("out").mkdir()
    Path("out/jobs.yaml").write_text("mine")

    assert applied("export", "jobs", "-o", "out").code == 5
    assert Path("out/jobs.yaml").read_text() == "mine"


def test_a_pause_is_told_and_not_written(applied: Cli) -> None:
    applied("pause", "ping")

    said = applied("export", "jobs")

    assert "job 'ping' is paused, and no file says so" in said.err
    assert "suspended" not in said.out


def test_functions_are_listed_and_end_with_one_or_become_calls(shop: Everytick, cli: Cli) -> None:
    said = cli("export", "jobs")

    assert said.code == 1
    assert said.err.count("not exported: ") == 3


def test_history_is_a_line_of_json_for_each(shop: Everytick, cli: Cli) -> None:
    ids = ran(shop, "nightly", "broken")

    said = cli("export", "history")

    rows = [json.loads(line) for line in said.out.splitlines()]
    assert {row["id"] for row in rows} == set(ids)
    assert {row["job"]: row["status"] for row in rows} == {"nightly": "completed", "broken": "failed"}
    assert said.err == "2 exported\n"


def test_history_is_csv_with_a_heading(shop: Everytick, cli: Cli) -> None:
    ran(shop, "broken")

    said = cli("export", "history", "broken", "--format", "csv", "--status", "failed")

    [row] = csv.DictReader(io.StringIO(said.out))
    assert (row["job"], row["status"], row["late"], row["replay_of"]) == ("broken", "failed", "false", "")
    assert row["started_at"].endswith("Z")
    assert "\x1b" not in said.out


def test_history_longer_than_a_page_is_written_whole(
    shop: Everytick, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everytick.cli.export._PAGE_ROWS", 2)
    ids = ran(shop, *["nightly"] * 5)

    rows = [json.loads(line) for line in cli("export", "history").out.splitlines()]

    assert sorted(row["id"] for row in rows) == sorted(ids)


def test_of_history_only_what_was_asked_for_is_written(shop: Everytick, cli: Cli) -> None:
    ran(shop, "nightly")

    assert cli("export", "history", "--through", "2020-01-01").out == ""
    assert len(cli("export", "history", "--since", "1h").out.splitlines()) == 1
    assert cli("export", "history", "--since", "1h", "--after", "2020-01-01").code == 2
