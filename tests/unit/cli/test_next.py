"""`next`: what runs next, and what moved it."""

import json
from datetime import datetime
from pathlib import Path

from everytick import Everytick
from tests.unit.cli.conftest import Cli


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
    # With a number it is an agenda again, at whatever hour it is asked for: one night is never two.
    assert [row[1] for row in cli("next", "-n", "3").rows].count("broken") >= 2


def test_next_says_from_where_a_run_was_moved(cli: Cli, shop: Everytick) -> None:
    """B42."""
    [[at, *_]] = cli("next", "both", "-n", "1", "--utc").rows
    year = int(at[:4])
    cli("move", "both", at, f"{year}-01-02T03:00:00Z")

    [[moved, _, note]] = cli("next", "both", "-n", "1", "--utc").rows
    [told] = json.loads(cli("next", "both", "-n", "1", "--json").out)

    assert moved == f"{year}-01-02T03:00:00+00:00"
    assert note.startswith(f"moved from {at} by ")
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
