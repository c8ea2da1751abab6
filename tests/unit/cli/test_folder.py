"""`--jobs FOLDER`: a folder of files as the application of a call, or beside one."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Cli

ONE = 'version: 1\njobs: {nightly: {schedule: "0 0 1 1 *", command: "true"}}'


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "place/jobs").mkdir(parents=True)
    (tmp_path / "place/jobs/a.yaml").write_text(ONE)
    return tmp_path / "place/jobs"


def test_the_store_of_a_folder_stands_beside_it_wherever_one_calls_from(
    plain: Cli, jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plain("run", "--once", "--jobs", "place/jobs").code == 0
    assert (tmp_path / "place/everytick.db").exists()
    monkeypatch.chdir(jobs)

    assert [row[0] for row in plain("list", "--jobs", ".").rows] == ["nightly"]
    assert plain("--jobs", str(jobs), "next", "nightly", "-n", "1").code == 0
    assert plain("trigger", "nightly", "--jobs", str(jobs)).out.startswith("occ_")


def test_the_store_of_the_current_folder_is_made_in_it_and_found_from_elsewhere(
    plain: Cli, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A14: `--jobs .` writes nothing outside of the folder, unless its store is already beside it."""
    monkeypatch.chdir(jobs)
    assert plain("apply", ".").code == 0
    assert (jobs / "everytick.db").exists()
    assert not (jobs.parent / "everytick.db").exists()
    monkeypatch.chdir(jobs.parent)
    assert plain("list", "--jobs", jobs.name).rows == plain("list", "--store", f"sqlite:///{jobs}/everytick.db").rows


def test_the_store_beside_the_current_folder_is_used(plain: Cli, jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain("apply", str(jobs)).code == 0
    monkeypatch.chdir(jobs)

    assert plain("list", "--jobs", ".").code == 0
    assert not (jobs / "everytick.db").exists()


def test_a_question_makes_no_store(plain: Cli, jobs: Path) -> None:
    done = plain("list", "--jobs", "place/jobs")

    assert done.code == 3
    assert "everytick.db yet: everytick run --jobs place/jobs makes it" in done.err
    assert not (jobs.parent / "everytick.db").exists()


def test_a_folder_runs_on_the_store_that_is_named(plain: Cli, jobs: Path, address: str) -> None:
    assert plain("run", "--once", "--jobs", "place/jobs", "--store", address).code == 0

    assert [row[0] for row in plain("list", "--store", address).rows] == ["nightly"]
    assert not (jobs.parent / "everytick.db").exists()


def test_a_folder_may_run_in_memory(plain: Cli, jobs: Path) -> None:
    assert plain("run", "--once", "--jobs", "place/jobs", "--store", "memory://").code == 0


def test_a_folder_adds_to_an_application(plain: Cli, jobs: Path, tmp_path: Path) -> None:
    (tmp_path / "folder_app.py").write_text(
        "from everytick import Everytick, every\ntick = Everytick('sqlite:///own.db')\n"
        "@tick.job(every('P1Y'))\ndef hello(): ...\n"
    )

    done = plain("run", "--once", "--jobs", "place/jobs", "-a", "folder_app")

    assert done.code == 0, done.err
    with closing(sqlite3.connect("own.db")) as db:
        assert db.execute("select name from job order by name").fetchall() == [("hello",), ("nightly",)]


def test_once_runs_what_files_ask_for_at_once_and_says_that_it_failed(plain: Cli, jobs: Path) -> None:
    (jobs / "a.yaml").write_text(ONE.replace('"true"', '"false", on_create: immediately'))

    assert plain("run", "--once", "--jobs", "place/jobs").code == 1


def test_files_may_call_functions_beside_them_if_the_node_allows_it(plain: Cli, jobs: Path, tmp_path: Path) -> None:
    """Only from packages that the configuration names."""
    (tmp_path / "folder_calls.py").write_text("import pathlib\ndef work(): pathlib.Path('called').touch()\n")
    text = ONE.replace('command: "true"', 'call: "folder_calls:work", on_create: immediately')
    (jobs / "a.yaml").write_text(text)
    (tmp_path / "everytick.toml").write_text('jobs = "place/jobs"\nallow_calls = ["folder_calls"]\n')

    done = plain("run", "--once")

    assert done.code == 0, done.err
    assert (tmp_path / "called").exists()


def test_a_folder_that_is_not_there_or_no_folder_is_refused(plain: Cli, jobs: Path, tmp_path: Path) -> None:
    gone, file = plain("run", "--jobs", "gone"), plain("run", "--jobs", "place/jobs/a.yaml")

    assert (gone.code, file.code) == (3, 3)
    assert "gone does not exist: make it, or name another one with --jobs" in gone.err
    assert "a.yaml is no folder" in file.err


def test_a_mere_store_does_not_run(plain: Cli, address: str) -> None:
    done = plain("run", "--store", address)

    assert done.code == 2
    assert "give -a module:object or --jobs FOLDER" in done.err


def test_a_folder_of_the_configuration_stands_beside_its_file(plain: Cli, jobs: Path) -> None:
    (jobs.parent / "everytick.toml").write_text('jobs = "jobs"\njobs_owner = "team"\n')

    done = plain("--config", "place/everytick.toml", "run", "--once")

    assert done.code == 0, done.err
    listed = plain("--config", "place/everytick.toml", "show", "nightly")
    assert ["owner", "team, version 1"] in listed.rows


def test_files_without_a_path_are_those_of_the_configuration(plain: Cli, jobs: Path) -> None:
    none = plain("validate")
    assert (none.code, "no file or folder was named" in none.err) == (2, True)

    assert plain("validate", "--jobs", "place/jobs").err == "1 file with 1 job: no mistakes\n"
    plain("db", "migrate", "--jobs", "place/jobs")
    assert [row[:2] for row in plain("apply", "--jobs", "place/jobs").rows] == [["new", "nightly"]]
    assert plain("diff", "--jobs", "place/jobs").out == ""


def test_init_writes_files_that_are_without_a_mistake(plain: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain("init", "--yaml", "fresh").rows == [["fresh/jobs/example.yaml"], ["fresh/everytick.toml"]]
    monkeypatch.chdir("fresh")

    assert plain("validate").err == "1 file with 3 jobs: no mistakes\n"
    assert plain("init", "--yaml").code == 5


def test_a_unit_runs_a_folder(plain: Cli, jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://app@db/app"

    done = plain("systemd", "print-unit", "--jobs", "place/jobs", "--store", address)

    assert f"Environment=EVERYTICK_JOBS={jobs}" in done.out.splitlines()
    assert f"Environment=EVERYTICK_STORE={address}" in done.out.splitlines()
    monkeypatch.setenv("EVERYTICK_STORE", "postgresql://app:s3cret@db/app")
    refused = plain("systemd", "print-unit", "--jobs", "place/jobs")
    assert refused.code == 2
    assert "s3cret" not in refused.err
    assert "EVERYTICK_STORE holds a password" in refused.err


def test_the_doctor_looks_at_the_files_and_their_rights(plain: Cli, jobs: Path) -> None:
    def told() -> list[tuple[bool, str]]:
        checks = json.loads(plain("doctor", "--jobs", "place/jobs", "--json").out)
        return [(each["ok"], each["text"]) for each in checks if each["check"] == "job files"]

    plain("db", "migrate", "--jobs", "place/jobs")
    assert told() == [(True, f"{jobs} holds 1 job in 1 file: no mistakes")]
    (jobs / "a.yaml").chmod(0o666)
    [(ok, text)] = told()
    assert not ok
    assert "everybody may write to this file" in text
    (jobs / "a.yaml").unlink()
    jobs.rmdir()
    assert told() == [(False, f"{jobs} is no folder: make it, or name another one")]


@pytest.mark.usefixtures("jobs")
def test_a_node_says_at_its_start_that_others_can_read_a_secret(plain: Cli, caplog: pytest.LogCaptureFixture) -> None:
    """S16 of the security checks."""
    Path("everytick.toml").write_text('token = "hidden"\n')
    Path("everytick.toml").chmod(0o644)
    done = plain("run", "--once", "--jobs", "place/jobs")

    assert done.code == 0
    assert "everytick.toml holds a secret (token), and every user of this host can read it: chmod o-r" in caplog.text
    assert "hidden" not in caplog.text + done.err
