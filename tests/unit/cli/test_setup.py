"""config, init, completion and systemd: from nothing to a service."""

import json
import tomllib
from pathlib import Path

import pytest

from everytick.config.settings import KEYS
from tests.unit.cli.conftest import Cli


def test_every_setting_is_shown_with_its_origin(plain: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "everytick.toml").write_text('slots = 3\npoll = "2s"\n')
    monkeypatch.setenv("EVERYTICK_SLOTS", "4")
    monkeypatch.setenv("EVERYTICK_STORE", "postgresql://app:s3cret@db/app")

    done = plain("config", "show", "--origin")

    rows = {row[0]: row[1:] for row in done.rows}
    assert set(rows) == set(KEYS)
    assert rows["slots"] == ["4", "EVERYTICK_SLOTS"]
    assert rows["poll"] == ["2s", "everytick.toml"]
    assert rows["threads"] == ["32", "built-in"]
    assert rows["store"] == ["postgresql://app:…@db/app", "EVERYTICK_STORE"]
    assert "s3cret" not in done.out
    assert json.loads(plain("config", "show", "--json").out)["slots"] == {"value": "4", "origin": "EVERYTICK_SLOTS"}


def test_what_the_code_says_has_the_application_as_its_origin(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "config_show_app.py").write_text(
        "from everytick import Everytick\ntick = Everytick('memory://', slots=7, threads=9)\n"
    )

    done = plain("config", "show", "--origin", "-a", "config_show_app")

    rows = {row[0]: row[1:] for row in done.rows}
    assert rows["slots"] == ["7", "application"]
    assert rows["app"] == ["config_show_app", "--app"]


def test_another_file_may_be_named(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("slots = 5")

    assert ["slots", "5", "node.toml"] in plain("config", "show", "--origin", "--config", "node.toml").rows
    assert plain("config", "show", "--config", "gone.toml").code == 65


def test_init_writes_a_configuration_of_known_keys(plain: Cli, tmp_path: Path) -> None:
    done = plain("init", "fresh")

    assert done.rows == [["fresh/jobs.py"], ["fresh/everytick.toml"]]
    text = (tmp_path / "fresh/everytick.toml").read_text()
    told = text.replace("\n# ", "\n").split("over both.\n")[1]
    assert set(tomllib.loads(told)) <= set(KEYS)
    assert tomllib.loads(text) == {"app": "jobs:tick"}


def test_init_overwrites_nothing(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "everytick.toml").write_text("")

    done = plain("init")

    assert (done.code, done.out) == (5, "")
    assert "everytick.toml exists already" in done.err
    assert not (tmp_path / "jobs.py").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_completion(plain: Cli, shell: str) -> None:
    done = plain("completion", shell)

    assert done.code == 0
    assert f"_EVERYTICK_COMPLETE={shell}_complete" in done.out


def test_a_unit_runs_this_command_in_this_folder(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "unit_app.py").write_text(
        "from everytick import Everytick\ntick = Everytick('memory://', grace_period='60s')\n"
    )

    done = plain("systemd", "print-unit", "-a", "unit_app:tick", "--user", "ada")

    lines = done.out.splitlines()
    assert "User=ada" in lines
    assert "Environment=EVERYTICK_APP=unit_app:tick" in lines
    assert f"WorkingDirectory={tmp_path}" in lines
    assert {"TimeoutStopSec=75s", "Type=notify", "WatchdogSec=2min"} <= {*lines}
    [start] = [line for line in lines if line.startswith("ExecStart=")]
    assert Path(start.removeprefix("ExecStart=").split()[0]).exists()


def test_what_means_something_to_systemd_is_spelled_out(
    plain: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "100% odd").mkdir()
    monkeypatch.chdir(tmp_path / "100% odd")
    (Path.cwd() / "odd_app.py").write_text("from everytick import Everytick\ntick = Everytick('memory://')\n")

    assert "100%% odd" in plain("systemd", "print-unit", "-a", "odd_app").out
    assert plain("systemd", "print-unit", "-a", "odd_app", "--user", "a\nExecStartPre=evil").code == 2
