"""Runs asked for later, on the command line (A9)."""

import json
from pathlib import Path

import pytest

from everytick import Everytick
from tests.unit.cli.conftest import Cli


def test_trigger_at_is_listed_by_next_and_ended_by_cancel(cli: Cli, shop: Everytick) -> None:
    """A9: `next` marks it as asked for, `cancel` takes its id."""
    id_ = cli("trigger", "nightly", "--at", "2035-03-26T02:30", "--utc", "--reason", "call back").out.strip()
    listed = json.loads(cli("next", "nightly", "--until", "2036-01-01", "-n", "10000", "--json").out)
    [asked] = [each for each in listed if each["asked_for"]] or [None]
    assert asked == {
        "at": "2035-03-26T02:30:00Z",
        "job": "nightly",
        "clock_change": None,
        "moved_from": None,
        "asked_for": id_,
        "mark": None,
        "detail": asked["detail"],
    }
    assert asked["detail"].endswith(", call back")
    shown = json.loads(cli("show", id_, "--json").out)
    assert (shown["status"], shown["scheduled_for"]) == ("pending", "2035-03-26T02:30:00Z")
    assert cli("cancel", id_, "--yes").code == 0
    assert json.loads(cli("show", id_, "--json").out)["status"] == "canceled"


def test_trigger_after_comes_first_in_next(cli: Cli, shop: Everytick) -> None:
    """A9: with who asked and why, and the id."""
    id_ = cli("trigger", "nightly", "--after", "1s", "--reason", "call back").out.strip()
    first = cli("next", "nightly", "-n", "1").out
    assert "asked for, by " in first
    assert first.rstrip().endswith(f"call back, {id_}")
    assert cli("cancel", id_.removeprefix("occ_")[:12], "--yes").code == 0


def test_validate_says_that_a_job_will_not_run(plain: Cli, tmp_path: Path) -> None:
    """A9: `once` in the past is accepted, since a file outlives its job."""
    job = "  old: {schedule: 'once: 2020-01-01T00:00:00Z', tasks: [{name: a, command: [date]}]}"
    (tmp_path / "a.yaml").write_text(f"version: 1\njobs:\n{job}\n")
    done = plain("validate", str(tmp_path / "a.yaml"))
    assert done.code == 0, done.err
    assert "job 'old' will not run: its schedule (once, at 2020-01-01 00:00:00Z) is over" in done.err


def test_apply_says_that_a_job_will_not_run_when_it_is_new(plain: Cli, tmp_path: Path) -> None:
    """A9: the second time it is no news."""
    (tmp_path / "jobs").mkdir()
    job = "  old: {schedule: 'once: 2020-01-01T00:00:00Z', command: [date]}"
    (tmp_path / "jobs/a.yaml").write_text(f"version: 1\njobs:\n{job}\n")

    first, second = plain("apply", "jobs"), plain("apply", "jobs")

    assert (first.code, second.code) == (0, 0)
    assert "job 'old' will not run: its schedule (once, at 2020-01-01 00:00:00Z) is over; give it" in first.err
    assert "will not run" not in second.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "2035-03-26T02:30", "--after", "10m"], "--at and --after both say when it runs: give one of them"),
        (["--at", "soon"], "write it like 2026-07-01T09:00"),
        (["--after", "soon"], "soon"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(cli: Cli, shop: Everytick, arguments: list[str], said: str) -> None:
    """A9: nothing is asked for."""
    done = cli("trigger", "nightly", *arguments)
    assert done.code == 2
    assert said in done.err
