"""The browser tests find a Chromium in the order that the page for contributors gives, or say how to get one."""

import sys
from pathlib import Path

import pytest

from tests.servers.browsers import BROWSER_VARIABLE, MissingBrowser, bring_browser, found_browser


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_a_named_browser_comes_before_the_path_and_the_path_before_a_download(tmp_path: Path) -> None:
    named, on_path = program(tmp_path / "named", "mine"), program(tmp_path / "path", "chromium")
    downloaded = program(tmp_path / "downloads" / "chromium-1" / "linux", "headless_shell")
    folders = {"path": str(tmp_path / "path"), "downloads": tmp_path / "downloads"}

    assert found_browser({BROWSER_VARIABLE: str(named)}, **folders) == named  # type: ignore[arg-type]
    assert found_browser({}, **folders) == on_path  # type: ignore[arg-type]
    on_path.unlink()
    assert found_browser({}, **folders) == downloaded  # type: ignore[arg-type]


def test_a_headless_shell_comes_before_a_whole_browser(tmp_path: Path) -> None:
    program(tmp_path, "chromium")
    shell = program(tmp_path, "chromium-headless-shell")

    assert found_browser({}, str(tmp_path), tmp_path / "downloads") == shell


def test_without_a_browser_the_error_names_each_way_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(MissingBrowser, match=r"EVERYTICK_TEST_BROWSER.*PATH.*dev\.py test"):
        found_browser({}, str(tmp_path), tmp_path)


def test_bringing_a_browser_tells_how_each_step_ended() -> None:
    told = bring_browser([[sys.executable, "-c", "raise SystemExit('no way to the index')"]], lambda: False)
    assert "exit code 1: no way to the index" in told


def test_a_step_that_brings_a_browser_is_the_last_one(tmp_path: Path) -> None:
    brought = tmp_path / "browser"
    steps = [[sys.executable, "-c", f"open({str(brought)!r}, 'w')"], ["this-is-never-started"]]
    assert bring_browser(steps, brought.exists) == ""


def test_a_browser_that_is_there_is_not_brought_again() -> None:
    assert bring_browser([["this-is-never-started"]], lambda: True) == ""
