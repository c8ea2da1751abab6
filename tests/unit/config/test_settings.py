"""Settings come from four places, later wins, and each says where it came from."""

from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from everytick import Everytick
from everytick.cli.applications import _configured
from everytick.config.settings import KEYS, NODE_KEYS, SettingPlace, gather, shown_value, without_password
from everytick.errors import InvalidSetting
from everytick.node.settings import NodeSettings


def test_without_anybodys_word_every_setting_is_built_in(tmp_path: Path) -> None:
    found = gather({}, {}, tmp_path)

    assert set(found) == set(KEYS)
    assert {setting.origin for setting in found.values()} == {"built-in"}


def test_the_built_in_values_are_those_of_a_node() -> None:
    settings = {field.name: getattr(NodeSettings(), field.name) for field in fields(NodeSettings)}

    assert {key: KEYS[key].built_in for key in NODE_KEYS} == settings


def test_a_later_place_wins_and_every_value_has_its_origin(tmp_path: Path) -> None:
    (tmp_path / "everytick.toml").write_text('slots = 1\nthreads = 2\npoll = "3s"\nqueues = ["a", "b"]\n')

    found = gather({"slots": ("--slots", "7")}, {"EVERYTICK_SLOTS": "5", "EVERYTICK_THREADS": "6"}, tmp_path)

    assert found["slots"][:3] == (7, SettingPlace.OPTION, "--slots")
    assert found["threads"][:3] == (6, SettingPlace.ENVIRONMENT, "EVERYTICK_THREADS")
    assert found["poll"][:3] == (timedelta(seconds=3), SettingPlace.FILE, "everytick.toml")
    assert found["queues"].value == ("a", "b")
    assert found["heartbeat"][:3] == (timedelta(seconds=5), SettingPlace.BUILT_IN, "built-in")


def test_a_project_file_will_do(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.everytick]\napp = "shop:tick"\n[project]\nname = "shop"\n')

    assert gather({}, {}, tmp_path)["app"][:3] == ("shop:tick", SettingPlace.FILE, "pyproject.toml [tool.everytick]")


def test_a_project_that_only_mentions_everytick_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["everytick"]\n')

    assert gather({}, {}, tmp_path)["app"].value is None


def test_two_files_side_by_side_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.everytick]\n")
    (tmp_path / "everytick.toml").write_text("")

    with pytest.raises(InvalidSetting, match="keep one of the two"):
        gather({}, {}, tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slot = 5", r"slot=5 in everytick\.toml is not known \(did you mean 'slots'\?\)"),
        ('slots = "many"', r"slots=many in everytick\.toml must be a whole number"),
        ("slots = true", "must be a whole number"),
        ("poll = 5", r"poll=5 in everytick\.toml is no length of time: .*5"),
        ("queues = 5", "must be a list of names"),
        ('log_format = "jsn"', r"must be one of text, json \(did you mean 'json'\?\)"),
        ("app = 5", "must be a text"),
        ("slots = = 5", r"is not TOML: .*line 1"),
    ],
)
def test_mistakes_in_a_file_are_named_with_a_way_out(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "everytick.toml").write_text(text)

    with pytest.raises(InvalidSetting, match=said):
        gather({}, {}, tmp_path)


def test_a_misspelt_variable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"did you mean 'EVERYTICK_SLOTS'\?"):
        gather({}, {"EVERYTICK_SLOT": "5"}, tmp_path)


def test_slots_may_be_called_max_concurrent_jobs(tmp_path: Path) -> None:
    """S0-104: MaxConcurrentJobs is a setting of the node."""
    (tmp_path / "everytick.toml").write_text("max_concurrent_jobs = 3\n")

    assert gather({}, {}, tmp_path)["slots"][:3] == (3, SettingPlace.FILE, "everytick.toml")
    assert gather({}, {"EVERYTICK_MAX_CONCURRENT_JOBS": "4"}, tmp_path)["slots"].value == 4


def test_both_words_for_slots_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="EVERYTICK_MAX_CONCURRENT_JOBS"):
        gather({}, {"EVERYTICK_SLOTS": "4", "EVERYTICK_MAX_CONCURRENT_JOBS": "4"}, tmp_path)
    (tmp_path / "everytick.toml").write_text("max_concurrent_jobs = 3\nslots = 3\n")
    with pytest.raises(InvalidSetting, match="another word for slots"):
        gather({}, {}, tmp_path)


@pytest.mark.parametrize("text", ['timezone = "UTC"', 'name = "x"', "[retention]", "[defaults]\nretry = 3"])
def test_what_jobs_are_is_not_set_where_nodes_are(tmp_path: Path, text: str) -> None:
    (tmp_path / "everytick.toml").write_text(text)
    word = text.strip("[]").split("]")[0].split(" ")[0]

    with pytest.raises(InvalidSetting, match=rf"write it in Everytick\({word}=…\)"):
        gather({}, {}, tmp_path)
    with pytest.raises(InvalidSetting, match="part of what jobs are"):
        gather({}, {f"EVERYTICK_{word.upper()}": "x"}, tmp_path / "empty")


def test_variables_of_an_attempt_and_of_kubernetes_are_not_ours(tmp_path: Path) -> None:
    others = {
        "EVERYTICK_JOB": "backup",
        "EVERYTICK_PAYLOAD": "{}",
        "EVERYTICK_SERVICE_HOST": "10.0.0.1",
        "EVERYTICK_PORT_80_TCP_ADDR": "10.0.0.1",
        "OTHER": "x",
    }

    assert {setting.place for setting in gather({}, others, tmp_path).values()} == {SettingPlace.BUILT_IN}


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("postgresql://app:pass@db/app\n")

    found = gather({}, {"EVERYTICK_STORE_FILE": str(tmp_path / "secret")}, tmp_path)["store"]

    assert found[:3] == ("postgresql://app:pass@db/app", SettingPlace.ENVIRONMENT, "EVERYTICK_STORE_FILE")


def test_a_secret_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="names a file that cannot be read: No such file"):
        gather({}, {"EVERYTICK_STORE_FILE": str(tmp_path / "gone")}, tmp_path)


def test_a_variable_and_its_file_together_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sqlite:///a.db")

    with pytest.raises(InvalidSetting, match="says what EVERYTICK_STORE says too"):
        gather({}, {"EVERYTICK_STORE": "sqlite:///b.db", "EVERYTICK_STORE_FILE": str(tmp_path / "secret")}, tmp_path)


def test_a_refused_secret_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "everytick.toml").write_text("store = 4711")

    with pytest.raises(InvalidSetting) as caught:
        gather({}, {}, tmp_path)

    assert "4711" not in str(caught.value)


def test_a_log_folder_lies_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text('log_folder = "logs"')

    found = gather({}, {}, Path("/"), file=tmp_path / "node.toml")

    assert found["log_folder"].value == str(tmp_path / "logs")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://app:s3cret@db:5432/app", "postgresql://app:…@db:5432/app"),
        ("postgresql://app:s3@cret@db/app", "postgresql://app:…@db/app"),
        ("postgresql://db/app?user=app&password=s3cret&x=1", "postgresql://db/app?user=app&password=…&x=1"),
        ("postgresql://app@db/app", "postgresql://app@db/app"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
    ],
)
def test_a_password_is_never_shown(address: str, shown: str) -> None:
    assert without_password(address) == shown
    assert shown_value("store", address) == shown


def test_the_kinds_of_targets_over_http_come_from_file_or_environment(tmp_path: Path) -> None:
    (tmp_path / "everytick.toml").write_text('api_targets = ["command"]')
    from_file = _configured(Everytick("memory://", name="shop"), gather({}, {}, tmp_path))
    named = {"EVERYTICK_API_TARGETS": "command,http"}
    from_environment = _configured(Everytick("memory://", name="shop"), gather({}, named, tmp_path))

    assert from_file.api_targets == {"command"}
    assert from_environment.api_targets == {"command", "http"}
    with pytest.raises(InvalidSetting, match=r"command, http, celery, dask, ray \(did you mean 'command'\?"):
        gather({}, {"EVERYTICK_API_TARGETS": "comand"}, tmp_path)
