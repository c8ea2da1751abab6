"""The tests of RabbitMQ find a broker in the order that the page for contributors gives, or say how to get one."""

import sys
from pathlib import Path

import pytest

from tests.servers.rabbit_packages import RABBITMQ_VARIABLE, MissingRabbit, Programs, bring_rabbit, found_rabbit


def program(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def found(folder: Path, **variables: str) -> Programs:
    return found_rabbit(variables, str(folder / "path"), folder / "unpacked", folder / "debian")


def test_a_named_broker_comes_before_the_system_and_the_system_before_unpacked_packages(tmp_path: Path) -> None:
    unpacked = program(tmp_path / "unpacked/usr/lib/rabbitmq/bin/rabbitmq-server")
    assert found(tmp_path) == Programs(unpacked, tmp_path / "unpacked/usr/lib/erlang")
    on_path = program(tmp_path / "path/rabbitmq-server")
    assert found(tmp_path) == Programs(on_path)
    debian = program(tmp_path / "debian")
    assert found(tmp_path) == Programs(debian)
    assert found(tmp_path, **{RABBITMQ_VARIABLE: "/own/rabbitmq-server"}) == Programs(Path("/own/rabbitmq-server"))


def test_without_a_broker_the_error_names_each_way_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(MissingRabbit, match=r"EVERYTICK_TEST_RABBITMQ.*PATH.*dev\.py test"):
        found(tmp_path)


def test_what_was_tried_in_vain_is_told() -> None:
    step = [sys.executable, "-c", "raise SystemExit('no way to the lists')"]
    told = bring_rabbit([step], lambda: "no way to the packages", lambda: False)
    assert "no way to the packages" in told
    assert "exit code 1: no way to the lists" in told


def test_packages_are_downloaded_again_after_their_lists_were_read_anew(tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    step = [sys.executable, "-c", f"open({str(lists)!r}, 'w')"]
    assert bring_rabbit([step], lambda: "" if lists.exists() else "unknown package", lambda: False) == ""


def test_a_broker_that_is_there_is_not_brought_again() -> None:
    assert bring_rabbit([["this-is-never-started"]], lambda: "never asked", lambda: True) == ""
