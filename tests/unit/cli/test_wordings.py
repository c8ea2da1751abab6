"""Likely mistakes of the first hour, each with the sentence and the exit code it is answered with."""

import asyncio
from pathlib import Path

import pytest

from everytick import Everytick
from everytick.stores.addresses import store_of
from everytick.testing import drain
from tests.unit.cli.conftest import Cli, ran


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "occ_nope"], 3, "there is no occurrence 'occ_nope': everytick history lists"),
        (["history", "--status", "faild"], 2, "--status faild is not known (did you mean 'failed'?): give pending, "),
        (["export", "history", "--status", "x"], 2, "--status x is not known: give pending, queued, running"),
        (
            ["rollback", "nightly", "v9"],
            3,
            "there is no version 9 of job 'nightly': everytick versions nightly lists its versions",
        ),
        (["rename", "nightly", "x"], 5, "change it there, or detach it (detach=True, --detach)"),
        (["backfill", "nightly"], 2, "there is no verb 'nightly': to plan one, everytick backfill plan nightly"),
        (["backfill", "show", "3f2a1b2c"], 3, "everytick backfills lists them"),
        (
            ["backfill", "plan", "nightly", "--from", "2026-11-18", "--through", "2026-11-17"],
            2,
            "it begins at 2026-11-18 and ends before, at 2026-11-17: swap the two",
        ),
        (["user", "remove", "ann", "--yes"], 3, "there is no user 'ann': everytick user list names them all"),
        (["limit", "set", "tag:night", "--most", "2"], 0, "tag:night is limited: at most 2 at once"),
        (["limit", "set", "all", "--rate", "60/1m"], 0, "all is limited: 60/1m starts"),
        (
            ["brake", "--tag", "night", "--reason", "x"],
            0,
            "tag:night is braked until everytick release: nothing starts",
        ),
        (["brake", "--reason", "x", "--until", "2035-01-01T00:00Z"], 0, "everything is braked until 2035-01-01T00:00"),
        (["history", "--since", "24"], 2, 'has no unit: write "24s", "24m" or "24h"'),
        (
            ["trigger", "nightly", "--overlap", "foo"],
            2,
            "--overlap foo is not known: give skip, queue, queue_latest, allow",
        ),
        (["validate", "nothere"], 3, "there is no file or folder nothere: correct its name"),
        (["apply", "nothere"], 3, "there is no file or folder nothere: correct its name"),
        (["replay", "--reason", "x"], 2, "everytick replay OCCURRENCE --reason TEXT"),
        (["pause", "nightly", "--until", "2035-11-15T23:00"], 0, "until 2035-11-15T23:00:00+00:00"),
        (["remove", "nightly"], 2, "not a terminal, cannot ask for confirmation: pass --yes"),
        (["history", "nightly"], 0, "no matching runs"),
        (["nodes"], 0, "no node has ever run on this store: everytick run starts one"),
        (["skip", "nightly", "2035-11-15T02:30[Europe/Berlin]"], 0, "'nightly' will skip 2035"),
        (["explain", "* * * *"], 2, "must have exactly 5 fields (minute hour day month weekday), got 4"),
        (["explain", "0 * * * * *"], 2, "got 6: with seconds first, say dialect quartz"),
        (["explain", "5/15 * * * *"], 2, "must have a range before a step, like 5-59/15"),
        (["explain", "0 0 * * fri-sun"], 2, "(write fri-7)"),
        (
            ["next", "--tz", "CEST"],
            2,
            "but the letters of one: name the place, like Europe/Berlin",
        ),
        (["next", "--tz", "Europe/Berln"], 2, "is not a known time zone; did you mean Europe/Berlin"),
        (["explain", "every: 5 minutes"], 2, "cannot be read at character 1: write 5m"),
        (["list", "--store", "x.db"], 2, "is not an address; write one like sqlite:///path"),
        (["list", "--store", "sqlite://x.db"], 2, "must name a file: sqlite:///jobs.db (relative)"),
    ],
)
def test_a_likely_mistake_is_answered_with_what_to_type(
    cli: Cli, shop: Everytick, arguments: list[str], code: int, said: str
) -> None:
    """B20–B25, B41, part E and the table of likely mistakes."""
    done = cli(*arguments)

    assert said in done.err
    assert done.code == code


@pytest.mark.parametrize("verb", [["list"], ["db", "migrate"], ["db", "status"]], ids=" ".join)
def test_a_file_that_is_no_database_is_said_to_be_none(plain: Cli, tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "notes.txt").write_text("these are notes, and long enough to be looked at")
    done = plain("--store", "sqlite:///notes.txt", *verb)
    assert (done.code, done.err) == (69, "everytick: notes.txt: is no SQLite database: name another file\n")


def test_a_replay_takes_the_occurrence_as_cancel_does(cli: Cli, shop: Everytick) -> None:
    """B25; S0-103 keeps its own form."""
    [id_] = ran(shop, "nightly")

    assert cli("replay", id_, "--reason", "again").code == 0
    assert cli("replay", "--job-occurrence", id_, "--reason", "again").code == 0
    assert cli("replay", id_, "--job-occurrence", id_, "--reason", "again").code == 2


YAML_MISTAKES = {
    "a: {shedule: '@daily', command: x}": [
        "job 'a' has no schedule: add `schedule:`", "job 'a': unknown key 'shedule' (did you mean 'schedule'?)",
    ],
    "a: {schedule: '@daily'}": ["job 'a' has nothing to do: give it a call, a command, an http or a target"],
    "a: {schedule: '@daily', command: x, tasks: [{name: y, command: z}]}": [
        "a job with tasks does nothing itself: make this command a task",
    ],
    "a: {schedule: '@daily', command: x, task_timeout: 5}": ['has no unit: write "5s", "5m" or "5h"'],
    "a:\n    schedule: * * * * *\n    command: x": ['a value that begins with * needs quotes: "* * * * *"'],
}  # fmt: skip


@pytest.mark.parametrize("job", YAML_MISTAKES)
def test_a_mistake_in_a_file_is_told_in_plain_words(plain: Cli, tmp_path: Path, job: str) -> None:
    """B4–B7, part E."""
    (tmp_path / "a.yaml").write_text(f"version: 1\njobs:\n  {job}\n")

    done = plain("validate", "a.yaml")

    assert done.code == 65
    for said in YAML_MISTAKES[job]:
        assert said in done.out


def test_mistakes_of_every_kind_are_told_at_once(plain: Cli, tmp_path: Path) -> None:
    """B7."""
    jobs = [job.replace("a:", f"job{number}:", 1) for number, job in enumerate(YAML_MISTAKES) if "* *" not in job]
    (tmp_path / "a.yaml").write_text("version: 1\njobs:\n  " + "\n  ".join(jobs) + "\n")

    done = plain("validate", "a.yaml")

    assert "5 mistakes in 1 file" in done.err


def test_mistakes_of_the_configured_folder_begin_with_a_path_from_here(plain: Cli, tmp_path: Path) -> None:
    """B27."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text("jobs: {}\n")
    (tmp_path / "everytick.toml").write_text('jobs = "jobs"\n')

    done = plain("validate")

    assert done.out == "jobs/a.yaml:1:1: the file has no version: add `version: 1`\n"


def test_an_http_task_without_its_package_is_warned_of_when_the_file_is_read(
    plain: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8."""
    monkeypatch.setattr("everytick.sources.job_files.find_spec", lambda name: None)
    (tmp_path / "a.yaml").write_text(
        "version: 1\njobs:\n  a: {schedule: '@daily', http: {url: 'https://example.org/'}}\n"
    )

    done = plain("validate", "a.yaml")

    assert done.code == 0
    assert "job 'a': an http task needs an optional package; install it with: pip install 'everytick[http]'" in done.out


def test_a_default_of_a_file_is_set_by_the_file(plain: Cli, tmp_path: Path) -> None:
    """B26."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(
        "version: 1\ndefaults: {task_timeout: 1h}\njobs:\n  a: {schedule: '@daily', command: x}\n"
    )
    plain("apply", "jobs")

    rows = plain("show", "a", "--jobs", "jobs").rows

    assert ["policies", "task_timeout = 1h (set by the defaults of its file)"] in rows


def test_a_late_run_is_called_late_once(cli: Cli, address: str) -> None:
    """B37."""
    app = Everytick(address, name="late")
    app.job("* * * * *", name="minutely", recovery="execute_last", on_create={"backfill_from": "2026-01-01T00:00:00Z"})(
        int
    )

    async def run() -> None:
        await app.sync()
        await drain(app)
        await app.close()

    asyncio.run(run())
    whys = [row[-1] for row in cli("history", "minutely", "--status", "completed").rows]

    assert whys
    assert all(why.count("late") <= 1 for why in whys)


def test_a_result_has_one_word_in_list_and_history(cli: Cli, shop: Everytick) -> None:
    """B38."""
    ran(shop, "nightly")

    [listed] = cli("list", "-k", "nightly").rows
    [happened] = cli("history", "nightly").rows

    assert listed[5] == happened[2] == "completed"


def test_a_store_that_is_not_there_is_named_with_what_makes_it(plain: Cli) -> None:
    """B17."""
    done = plain("list", "--store", "sqlite:///no/such/dir/x.db")

    assert done.code == 3
    assert "there is no file no/such/dir/x.db" in done.err
    assert store_of("sqlite:///no/such/dir/x.db").address.file is not None
