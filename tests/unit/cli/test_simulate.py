"""`simulate`: what it says of the coming days, from a store or from files."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from everytick import Everytick
from tests.unit.cli.conftest import Cli, ran

JOBS = """\
version: 1
defaults: {task_timeout: null}
jobs:
  hourly: {schedule: "0 * * * *", command: "a"}
  poll: {schedule: "*/10 * * * *", command: "a"}
  nightly: {schedule: "30 2 * * *; tz=Europe/Berlin", command: "a"}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "jobs.yaml"
    path.write_text(JOBS)
    return str(path)


def told(cli: Cli, *arguments: str) -> dict[str, Any]:
    said = cli("simulate", "--json", *arguments)
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def of(found: dict[str, Any], job: str) -> dict[str, Any]:
    [only] = [each for each in found["jobs"] if each["job"] == job]
    return dict(only)


def test_files_of_jobs_need_no_store(plain: Cli, file: str) -> None:
    found = told(plain, file, "--days", "7")

    assert of(found, "hourly")["runs"] == 7 * 24
    assert of(found, "poll")["runs"] == 7 * 24 * 6
    assert of(found, "hourly")["length_from"] == "unknown"


def test_a_length_that_is_given_makes_overlaps(plain: Cli, file: str) -> None:
    found = told(plain, file, "--days", "2", "--duration", "poll=15m")

    assert of(found, "poll")["skipped_overlaps"] == of(found, "poll")["runs"] == 2 * 24 * 3
    assert of(found, "poll")["not_run"] == [{"status": "skipped", "why": "overlap", "count": 144}]


def test_a_slot_too_few_makes_some_late(plain: Cli, file: str) -> None:
    found = told(plain, file, "--days", "1", "--duration", "poll=5m", "--slots", "1")

    assert found["most_at_once"] == 1
    assert of(found, "hourly")["late"] + of(found, "poll")["late"] > 0
    assert found["longest_line"] >= 1


def test_jobs_that_share_an_instant_are_told(plain: Cli, file: str) -> None:
    [first, *_] = told(plain, file, "--days", "1")["collisions"]

    assert sorted(first["jobs"])[:1] == ["hourly"]
    assert "poll" in first["jobs"]


def test_an_outage_is_made_up_for_as_recovery_says(plain: Cli, file: str) -> None:
    now = datetime.now(UTC)
    begin, end = now + timedelta(hours=2), now + timedelta(hours=8)
    outage = f"{begin:%Y-%m-%dT%H:%M}..{end:%Y-%m-%dT%H:%M}"

    found = told(plain, file, "--days", "1", "--outage", outage)

    assert sum(each["count"] for each in of(found, "hourly")["not_run"]) in (5, 6)
    assert of(found, "hourly")["runs"] < 24


def test_every_hour_of_the_week_has_its_load(plain: Cli, file: str) -> None:
    found = told(plain, file, "--days", "28", "--duration", "hourly=30m")

    assert [(each["weekday"], each["hour"]) for each in found["load"]][23:25] == [("Mon", 23), ("Tue", 0)]
    assert len(found["load"]) == 7 * 24
    # The hours at both ends of the 28 days are seen in part.
    assert sum(6.9 < each["starts"] < 8.1 for each in found["load"]) >= 166
    assert sum(each["running"] for each in found["load"]) / 168 == pytest.approx(0.5, abs=0.01)


def test_changes_of_the_clock_are_told(plain: Cli, file: str) -> None:
    # From one autumn's change to the next are up to 371 days.
    nights = told(plain, file, "--days", "380")["clock_changes"]

    assert {each["job"] for each in nights} == {"nightly"}
    assert len(nights) >= 2


def test_lengths_come_from_history(shop: Everytick, cli: Cli) -> None:
    ran(shop, "nightly")

    found = told(cli, "--days", "3")

    assert of(found, "nightly")["length_from"] == "history"
    assert of(found, "nightly")["runs"] in (2, 3, 4)  # three days of 24 hours, and a night may have 23 or 25


def test_lengths_come_from_a_file_too(plain: Cli, file: str) -> None:
    Path("lengths").write_text("# the long ones\npoll = 15m\n\nhourly=10m\n")

    found = told(plain, file, "--days", "1", "--durations", "lengths", "--duration", "hourly=20m")

    assert (of(found, "poll")["length"], of(found, "hourly")["length"]) == (900, 1200)


def test_a_run_that_is_longer_than_it_may_be_is_told(plain: Cli, tmp_path: Path) -> None:
    path = tmp_path / "short.yaml"
    path.write_text('version: 1\njobs: {x: {schedule: "0 * * * *", command: a, execution_timeout: 10m}}')

    found = told(plain, str(path), "--days", "1", "--duration", "x=4m")
    assert of(found, "x")["timed_out"] == 0
    found = told(plain, str(path), "--days", "1", "--duration", "x=20m")
    assert of(found, "x")["timed_out"] == 24


def test_people_get_tables_and_a_map(plain: Cli, file: str) -> None:
    said = plain("simulate", file, "--days", "7", "--duration", "poll=15m", "--utc")

    titles = [line[2:] for line in said.out.splitlines() if line.startswith("# ")]
    assert titles[:3] == ["Jobs", "All together", "Instants that jobs share"]
    assert titles[-1] == "Starts per hour (UTC)"
    days = [row for row in said.rows if row[0] in ("Mon", "Sun")]
    assert [len(row) for row in days] == [25, 25]
    assert "it is not known how long these take" in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--duration", "poll"], 2, "must be JOB=TIME"),
        (["--duration", "poll=5"], 2, "has no unit"),
        (["--duration", "pol=5m"], 3, "there is no such job (did you mean 'poll'?)"),
        (["--durations", "nowhere"], 3, "there is no file nowhere"),
        (["--durations", "bad"], 65, "bad:2: "),
        (["--outage", "2026-01-01"], 2, "must be FROM..THROUGH"),
        (["--outage", "2020-01-01..2020-01-02"], 2, "lie in the days to come"),
        (["--outage", "x..y"], 2, "write it like"),
    ],
)
def test_mistakes_are_one_sentence_and_a_code(
    plain: Cli, file: str, arguments: list[str], code: int, sentence: str
) -> None:
    Path("bad").write_text("poll=1m\npoll=later\n")

    said = plain("simulate", file, *arguments)

    assert (said.code, len(said.err.splitlines())) == (code, 1)
    assert sentence in said.err


def test_an_application_that_has_stored_nothing_is_simulated_as_it_would_be(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "fresh.py").write_text(
        "from everytick import Everytick, cron\ntick = Everytick('sqlite:///fresh.db')\n"
        "@tick.job(cron('0 * * * *'))\ndef hourly() -> None: ...\n"
    )

    assert of(told(plain, "-a", "fresh:tick", "--days", "1"), "hourly")["runs"] == 24


def test_a_store_without_a_job_is_told(plain: Cli, address: str) -> None:
    plain("db", "migrate", "--store", address)

    said = plain("simulate", "--store", address)

    assert (said.code, "there is no job to simulate" in said.err) == (3, True)


def test_a_file_with_a_mistake_is_refused(plain: Cli, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("version: 1\njobs: {x: {}}")

    assert plain("simulate", str(path)).code == 65
