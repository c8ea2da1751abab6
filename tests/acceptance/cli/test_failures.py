"""Why a run failed, seen by a person at a terminal of 80 columns and by a program."""

import csv
import json
from pathlib import Path

import pytest

from tests.acceptance.cli.terminal import Terminal, everytick

APPLICATION = """
from everytick import Everytick, Retry, cron

tick = Everytick("sqlite:///jobs.db", name="shop")


@tick.job(cron("0 0 1 1 *"), on_create="immediately", retry=Retry(3, "20ms"))
def flaky():
    print("about to fail")
    raise ValueError("boom")
"""

ERROR = "ValueError: boom (4 attempts)"
FRAME = 'shop.py", line 10, in flaky'


@pytest.fixture
def failed(tmp_path: Path) -> str:
    """The id of a run that failed."""
    (tmp_path / "shop.py").write_text(APPLICATION)
    done = everytick(tmp_path, "run", "--once", "-a", "shop", "--log-level", "warning")
    assert done.returncode == 1, "it waited for the retries that its node waited for"
    [[*_, id_, _]] = everytick(tmp_path, "history", "-a", "shop").rows
    return id_


def seen(folder: Path, *arguments: str) -> str:
    """What a person sees at 80 columns, without colours; no line is longer, but for a row of the table itself."""
    with Terminal(folder, *arguments, "-a", "shop", COLUMNS="80", NO_COLOR="1") as terminal:
        terminal.ended()
    return terminal.text.replace("\r\n", "\n")


def test_a_person_sees_the_error_at_80_columns(tmp_path: Path, failed: str) -> None:
    """A2: type and message stand at the right end of a traceback, so nothing may be cut there."""
    assert ERROR in " ".join(seen(tmp_path, "history", "--failed").split()), "it may go on in its column"
    shown = seen(tmp_path, "show", failed)
    assert f"error          {ERROR}" in shown
    assert shown.count("ValueError: boom\n") == 5, "a line for each attempt, and the last traceback"
    assert "\nflaky, attempt 4:\nTraceback (most recent call last):\n  File " in shown
    assert "".join(FRAME.split()) in "".join(shown.split()), "a long path is wrapped"
    assert shown.endswith('    raise ValueError("boom")\nValueError: boom\n')
    at = json.loads(everytick(tmp_path, "show", failed, "--json", "-a", "shop").stdout)["scheduled_for"]
    assert ERROR in seen(tmp_path, "explain", "flaky", "--at", at)
    assert "last error   ValueError: boom\n" in seen(tmp_path, "show", "flaky")


def test_logs_end_with_the_error(tmp_path: Path, failed: str) -> None:
    """A2: behind the output of the attempts, and beside it in a pipe."""
    shown = seen(tmp_path, "logs", "flaky")
    assert shown.count("about to fail") == 4
    assert "\n==> flaky, attempt 4 failed <==\nTraceback (most recent call last):\n" in shown
    assert shown.endswith("ValueError: boom\n")
    piped = everytick(tmp_path, "logs", "flaky", "-a", "shop")
    assert piped.stdout == "about to fail\n" * 4
    assert piped.stderr.endswith("ValueError: boom\n")
    second = everytick(tmp_path, "logs", failed, "--attempt", "2", "-a", "shop")
    assert "==> flaky, attempt 2 failed <==" in second.stderr


def test_a_program_reads_the_error(tmp_path: Path, failed: str) -> None:
    """A2: JSON, CSV and SQL say the same."""
    [told] = json.loads(everytick(tmp_path, "history", "--json", "-a", "shop").stdout)
    assert told["error"] == ERROR
    exported = everytick(tmp_path, "export", "history", "--format", "csv", "-a", "shop").stdout
    assert [row["error"] for row in csv.DictReader(exported.splitlines())] == [ERROR]
    [line] = everytick(tmp_path, "export", "history", "-a", "shop").stdout.splitlines()
    assert json.loads(line)["error"] == ERROR
    attempts = json.loads(everytick(tmp_path, "show", failed, "--json", "-a", "shop").stdout)["attempts"]
    assert len(attempts) == 4
    assert all(each["error"].endswith("\nValueError: boom") for each in attempts)


def test_who_waits_for_a_trigger_is_told_the_error(tmp_path: Path, failed: str) -> None:
    """A2."""
    with Terminal(tmp_path, "run", "-a", "shop") as node:
        node.see("scheduler started")
        done = everytick(tmp_path, "trigger", "flaky", "--wait", "-a", "shop")
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(f": {ERROR}")
