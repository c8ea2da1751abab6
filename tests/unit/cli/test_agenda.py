"""What comes, what a schedule means, and why an instant ran or did not."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from everytick import Everytick
from tests.unit.cli.conftest import Cli, ran


def test_next_is_an_agenda_of_all_jobs_in_order(cli: Cli, shop: Everytick) -> None:
    rows = cli("next", "-n", "30").rows

    times = [datetime.fromisoformat(row[0]) for row in rows]
    assert len(rows) == 30
    assert times == sorted(times)
    assert {row[1] for row in rows} >= {"broken", "nightly"}


def test_next_shows_times_in_the_zone_that_was_asked_for(cli: Cli, shop: Everytick) -> None:
    rows = cli("next", "nightly", "-n", "2", "--tz", "Europe/Berlin").rows

    # One of two nights may be the one on which the clock has no half past two.
    assert [row[0] for row in rows if "T02:30:00+0" in row[0]]


def test_next_marks_what_the_clock_moves(cli: Cli, shop: Everytick) -> None:
    rows = json.loads(cli("next", "nightly", "-n", "400", "--json").out)

    moved = [row for row in rows if row["clock_change"] and "comes right after" in row["clock_change"]]
    assert 1 <= len(moved) <= 2
    assert moved[0]["at"].endswith("T01:00:00Z")


def test_next_ends_where_it_is_told_to(cli: Cli, shop: Everytick) -> None:
    done = cli("next", "--until", "2020-01-01T00:00")

    assert (done.code, done.out) == (0, "")
    assert "nothing is to come" in done.err


def test_next_has_one_row_for_each_job(cli: Cli, shop: Everytick) -> None:
    """B16: a job that runs every few seconds does not hide the others."""
    rows = cli("next").rows

    assert sorted(row[1] for row in rows) == ["both", "broken", "nightly"]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert len(cli("next", "broken").rows) == 10
    assert {row[1] for row in cli("next", "-n", "3").rows} == {"broken"}


def test_next_says_from_where_a_run_was_moved(cli: Cli, shop: Everytick) -> None:
    """B42."""
    [[at, *_]] = cli("next", "both", "-n", "1", "--utc").rows
    year = int(at[:4])
    cli("move", "both", at, f"{year}-01-02T03:00:00Z")

    [[moved, _, note]] = cli("next", "both", "-n", "1", "--utc").rows
    [told] = json.loads(cli("next", "both", "-n", "1", "--json").out)

    assert moved == f"{year}-01-02T03:00:00+00:00"
    assert note == f"moved from {at}"
    assert told["moved_from"] == at.replace("+00:00", "Z")


def test_next_needs_no_store(plain: Cli, tmp_path: Path) -> None:
    """Neither for an application nor for a folder of files; and none is made."""
    (tmp_path / "next_app.py").write_text(
        "from everytick import Everytick, every\ntick = Everytick('sqlite:///own.db')\n"
        "@tick.job('0 0 1 1 *')\ndef yearly(): ...\n"
        "@tick.job(every('1h'), enabled=False)\ndef off(): ...\n"
    )
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(
        "version: 1\njobs:\n  leap: {schedule: '0 0 29 2 *', command: 'true'}\n"
        "  held: {schedule: '0 0 * * *', command: 'true', suspended: true}\n"
    )
    (tmp_path / "jobs/b.yaml").write_text("version: 2")

    code = plain("next", "-a", "next_app", "-n", "2")
    files = plain("next", "leap", "--jobs", "jobs", "-n", "1", "--json")
    gone = plain("next", "leep", "--jobs", "jobs")

    assert [row[1] for row in code.rows] == ["yearly", "yearly"]
    assert "there is no store own.db yet: this is what the definitions say" in code.err
    assert [each["job"] for each in json.loads(files.out)] == ["leap"]
    assert "jobs/b.yaml:1:10: version '2' is not known here" in files.err
    assert (gone.code, "did you mean 'leap'" in gone.err) == (3, True)
    assert {each.name for each in tmp_path.glob("*.db*")} == set()


def test_next_tells_what_is_defined_while_the_store_does_not_answer(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "next_far_app.py").write_text(
        "from everytick import Everytick\ntick = Everytick('postgresql://nobody@127.0.0.1:1/none')\n"
        "@tick.job('0 0 1 1 *')\ndef yearly(): ...\n"
    )

    done = plain("next", "-a", "next_far_app", "-n", "1")

    assert (done.code, [row[1] for row in done.rows]) == (0, ["yearly"])
    assert "does not answer" in done.err
    assert plain("next", "--store", "postgresql://nobody@127.0.0.1:1/none").code == 69


def test_an_unknown_zone_is_answered_with_the_nearest(cli: Cli, shop: Everytick) -> None:
    done = cli("next", "--tz", "Europe/Berln")

    assert done.code == 2
    assert "did you mean Europe/Berlin" in done.err


def test_a_schedule_is_explained_without_a_store(plain: Cli) -> None:
    done = plain("explain", "30 2 * * 1-5", "--tz", "Europe/Berlin")

    assert done.code == 0
    assert done.out.startswith("at 02:30 on Monday through Friday, Europe/Berlin time\n")
    pairs = [row for row in done.rows if len(row) == 2]
    assert len([name for name, _ in pairs if name == "next"]) == 5
    assert len([name for name, _ in pairs if name == "previous"]) == 2


def test_clock_changes_are_told(plain: Cli) -> None:
    explained = json.loads(plain("explain", "30 2 * * *", "--tz", "Europe/Berlin", "--json").out)

    assert {change["what"] for change in explained["clock_changes"]} == {"moved", "silenced"}
    assert explained["words"] == "at 02:30, Europe/Berlin time"


def test_clock_changes_are_found_inside_combined_schedules(plain: Cli) -> None:
    text = "(cron: 30 2 * * *; tz=Europe/Berlin) | (cron: 0 9 * * *; tz=UTC)"

    explained = json.loads(plain("explain", text, "--json").out)

    assert {change["what"] for change in explained["clock_changes"]} == {"moved", "silenced"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("after: 5m", "it depends on when the last occurrence ends"),
        ("once: 2020-01-01T00:00:00Z", "never again"),
        ("0 0 30 2 *", "next\tnever\n"),
        ("every 10s", "every 10 seconds"),
    ],
)
def test_schedules_of_every_kind_are_explained(plain: Cli, text: str, said: str) -> None:
    done = plain("explain", text)

    assert done.code == 0
    assert said in done.out


def test_a_schedule_that_needs_a_job_is_explained_by_example(plain: Cli) -> None:
    done = plain("explain", "H 2 * * *")

    assert done.code == 0
    assert "a job called 'example'" in done.err


def test_an_expression_that_does_not_parse_is_wrong_usage(plain: Cli) -> None:
    done = plain("explain", "61 * * * *")

    assert (done.code, done.out) == (2, "")
    assert 'Invalid cron expression "61 * * * *": minute field must be 0 to 59, got 61' in done.err


def test_a_job_is_explained_by_its_last_decisions_and_its_next_run(cli: Cli, shop: Everytick) -> None:
    """A17: in words, in one zone, without an instant."""
    [id_] = ran(shop, "broken")

    done = cli("explain", "broken", "--tz", "Europe/Berlin")

    assert done.code == 0
    past, *_, coming = done.rows
    assert past[1] == "ran"
    assert past[2].startswith(f"it ran as {id_}, from 20")
    assert "failed (ValueError: no" in past[2]
    assert "+00:00" not in done.out
    assert coming[1] == "will run"
    assert json.loads(cli("explain", "broken", "--json").out)[0]["verdict"] == "ran"


def test_what_is_neither_a_schedule_nor_a_job_is_not_found(cli: Cli, plain: Cli, shop: Everytick) -> None:
    """A17."""
    nothing, job, schedule = plain("explain", "hello"), cli("explain", "nihgtly"), cli("explain", "61 * * * *")

    assert (nothing.code, job.code, schedule.code) == (2, 3, 2)
    assert "to ask about a job, name its store: give -a" in nothing.err
    assert "there is no job 'nihgtly' (did you mean 'nightly'?)" in job.err
    assert "minute field must be 0 to 59, got 61" in schedule.err


def test_an_instant_of_a_job_is_explained(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly")

    past = cli("explain", "nightly", "--at", "2026-01-01T01:30:00Z")
    never = json.loads(cli("explain", "nightly", "--at", "2035-03-26 03:00", "--json").out)
    coming = json.loads(cli("explain", "nightly", "--at", "2035-03-26T02:30[Europe/Berlin]", "--json").out)

    assert past.out.startswith("before the job was known: ")
    assert never["verdict"] == "not named by the schedule"
    assert coming["verdict"] == "will run"
