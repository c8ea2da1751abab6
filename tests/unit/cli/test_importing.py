"""`import`: YAML on stdout or into a folder, what was left on stderr, and exit codes that say which."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Cli

CRONTAB = "CRON_TZ=Europe/Berlin\nMAILTO=me\n30 2 * * 1-5 /bin/backup\n@reboot /bin/warm\n"
SAMPLES = Path(__file__).parents[1] / "sources/importing/samples"


def written(path: Path, text: str = CRONTAB) -> str:
    path.write_text(text)
    return str(path)


def test_what_is_imported_goes_to_stdout_and_the_rest_to_stderr(plain: Cli, tmp_path: Path) -> None:
    said = plain("import", "crontab", written(tmp_path / "c"))

    assert said.code == 0
    assert "  backup:\n" in said.out
    mail, reboot, count = said.err.splitlines()
    advice = "output is not mailed: on_failure: {email: {to: me}} under defaults mails once per outage"
    assert mail == f"{tmp_path}/c:2: MAILTO: {advice}"
    assert reboot.startswith(f"{tmp_path}/c:4: @reboot /bin/warm: not imported: there is no schedule that begins with")
    assert count == "1 job imported, 2 things not carried over"


def test_what_is_imported_passes_validation(plain: Cli, tmp_path: Path) -> None:
    plain("import", "crontab", written(tmp_path / "c"), "-o", "jobs")

    assert plain("validate", "jobs").code == 0


def test_it_can_come_in_on_stdin(plain: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CRONTAB.encode())))

    assert "stdin:2: MAILTO" in plain("import", "crontab", "-").err


def test_a_folder_stands_for_its_timers_and_each_becomes_a_file(plain: Cli) -> None:
    said = plain("import", "systemd", str(SAMPLES / "units"), "-o", "jobs")

    assert said.code == 0
    assert sorted(path.name for path in Path("jobs").iterdir()) == [
        "backup.yaml", "certbot.yaml", "poll.yaml", "tidy.yaml",
    ]  # fmt: skip
    assert plain("validate", "jobs").code == 0


def test_a_service_from_elsewhere_can_be_named(plain: Cli, tmp_path: Path) -> None:
    timer, service = tmp_path / "x.timer", tmp_path / "elsewhere" / "x.service"
    service.parent.mkdir()
    written(timer, "[Timer]\nOnCalendar=daily UTC\n")

    assert plain("import", "systemd", str(timer)).code == 1
    assert plain("import", "systemd", str(timer), "--service", written(service, "[Service]\nExecStart=a\n")).code == 0


def test_drop_ins_are_noticed(plain: Cli, tmp_path: Path) -> None:
    written(tmp_path / "x.timer", "[Timer]\nOnCalendar=daily UTC\n")
    written(tmp_path / "x.service", "[Service]\nExecStart=a\n")
    (tmp_path / "x.timer.d").mkdir()

    said = plain("import", "systemd", str(tmp_path / "x.timer"))

    assert "drop-ins are not read: systemctl cat x.timer" in said.err


@pytest.mark.parametrize(
    ("kind", "sample"),
    [("celery-beat", "beat.json"), ("apscheduler", "apscheduler.json"), ("cronjob", "cronjobs.yaml")],
)
def test_every_kind_has_its_verb(plain: Cli, kind: str, sample: str) -> None:
    said = plain("import", kind, str(SAMPLES / sample), "-o", "jobs")

    assert said.code == 0
    assert plain("validate", "jobs").code == 0


def test_nothing_is_overwritten_and_then_nothing_is_written(plain: Cli, tmp_path: Path) -> None:
    Path("jobs").mkdir()
    written(Path("jobs/two.yaml"), "mine")

    said = plain("import", "crontab", written(tmp_path / "one"), written(tmp_path / "two"), "-o", "jobs")

    assert said.code == 5
    assert "jobs/two.yaml is there already" in said.err
    assert [path.read_text() for path in Path("jobs").iterdir()] == ["mine"]


def test_strict_ends_with_one_if_anything_was_left(plain: Cli, tmp_path: Path) -> None:
    clean = written(tmp_path / "clean", "@daily a\n")

    assert plain("import", "crontab", "--strict", written(tmp_path / "c")).code == 1
    assert plain("import", "crontab", "--strict", "--timezone", "Europe/Berlin", clean).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["crontab", "nowhere"], 3, "there is no file nowhere: correct its name"),
        (["crontab", "."], 2, ". is a folder: name a file in it"),
        (["crontab"], 2, "no file was named: give FILE, or - for what comes in on stdin"),
        (["crontab", "x", "--timezone", "Europe/Berln"], 2, "did you mean Europe/Berlin"),
        (["contab", "x"], 2, "there is no verb 'contab' (did you mean 'crontab'?)"),
        (["apscheduler", "bad"], 65, "bad:1: is not JSON"),
        (["cronjob", "bad"], 65, "bad:1: "),
    ],
)
def test_mistakes_are_one_sentence_and_a_code(plain: Cli, arguments: list[str], code: int, sentence: str) -> None:
    written(Path("bad"), "\t{")

    said = plain("import", *arguments)

    assert said.code == code
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1


def test_a_file_without_a_job_ends_with_one(plain: Cli, tmp_path: Path) -> None:
    said = plain("import", "crontab", written(tmp_path / "c", "# nothing\n"))

    assert (said.code, said.out) == (1, "")


def test_the_script_for_apscheduler_says_how_it_is_used(plain: Cli) -> None:
    script = plain("import", "apscheduler", "--script").out

    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert told.returncode == 1
    assert "python list_jobs.py myapp.scheduling:scheduler > jobs.json" in told.stderr


def test_escapes_in_what_was_read_reach_no_terminal(plain: Cli, tmp_path: Path) -> None:
    said = plain("import", "crontab", written(tmp_path / "c", "# \x1b[31m\n@daily a\n@reboot \x1b[31m\n"))

    assert "\x1b" not in said.out + said.err
