"""Operating a running node from another terminal: trigger and follow, answer questions, be interrupted."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli.terminal import Terminal, everytick


@pytest.fixture
def node(folder: Path) -> Iterator[Terminal]:
    with Terminal(folder, "run", "-a", "shop") as terminal:
        terminal.see(r"pulse \S+ completed")
        yield terminal


def test_trigger_and_wait_shows_progress_and_ends_with_the_outcome(folder: Path, node: Terminal) -> None:
    with Terminal(folder, "trigger", "nightly", "--payload", '{"pages": 30}', "--wait", "-a", "shop") as terminal:
        terminal.see(r"occ_[0-9a-f-]{36}")
        terminal.see(r"running  nightly \[#*\.+\] \d+/30 pages")
        terminal.see(r"completed after \d")

        assert terminal.ended() == 0


def test_waiting_for_what_fails_ends_with_1_and_in_a_pipe_without_a_progress_line(folder: Path, node: Terminal) -> None:
    done = everytick(folder, "trigger", "broken", "--wait", "-a", "shop")

    assert done.returncode == 1
    assert done.stdout.startswith("occ_")
    assert "failed" in done.stderr
    assert "\r" not in done.stderr
    assert "\x1b" not in done.stderr


def test_waiting_ends_in_time_or_when_interrupted_and_the_work_goes_on(folder: Path) -> None:
    timed = everytick(folder, "trigger", "nightly", "--wait", "--timeout", "100ms", "-a", "shop")
    with Terminal(folder, "trigger", "nightly", "--wait", "-a", "shop") as terminal:
        terminal.see("asked for, not planned yet")
        terminal.signal(signal.SIGINT)
        code = terminal.ended()

    assert timed.returncode == 124
    assert "no node is alive" in timed.stderr
    assert "it has not ended within 100ms and waits for a node" in timed.stderr
    assert code == 130
    assert "no longer waiting; it goes on" in terminal.text


def test_who_waits_is_told_that_no_living_node_can_run_it(tmp_path: Path) -> None:
    """A16: no node plans such a job, so nothing but this sentence tells why the wait has no end."""
    (tmp_path / "jobs").mkdir()
    file = tmp_path / "jobs/here.yaml"
    file.write_text('version: 1\njobs:\n  here:\n    schedule: "0 0 1 1 *"\n    call: os:getcwd\n')
    (tmp_path / "everytick.toml").write_text('jobs = "jobs"\n')
    with Terminal(tmp_path, "run", EVERYTICK_HEARTBEAT="100ms") as node:
        node.see("1 job in 1 file")
        with Terminal(tmp_path, "trigger", "here", "--wait") as terminal:
            terminal.see(re.escape('no living node can run here: start one that has allow_calls = ["os"]'))
            terminal.signal(signal.SIGINT)
            assert terminal.ended() == 130


def test_a_verb_that_destroys_asks_at_a_terminal(folder: Path) -> None:
    everytick(folder, "run", "--once", "-a", "shop")

    with Terminal(folder, "remove", "nightly", "-a", "shop") as terminal:
        terminal.see(r"remove 'nightly', which runs next at .*\? \[y/N\]")
        terminal.type("n\n")
        assert terminal.ended() == 1
        assert "nothing was changed" in terminal.text
    with Terminal(folder, "remove", "nightly", "--store", "sqlite:///jobs.db") as terminal:
        terminal.see(r"\[y/N\]")
        terminal.type("y\n")
        assert terminal.ended() == 0

    assert [row[0] for row in everytick(folder, "list", "--store", "sqlite:///jobs.db").rows] == ["broken", "pulse"]


def test_without_a_terminal_yes_is_needed(folder: Path) -> None:
    everytick(folder, "run", "--once", "-a", "shop")

    refused = everytick(folder, "remove", "nightly", "-a", "shop", answer="y\n")

    assert refused.returncode == 2
    assert "not a terminal, cannot ask for confirmation: pass --yes" in refused.stderr
