"""The examples run as a user starts them: a process of their own, in a folder of their own."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.launch import Server

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture
def begin(tmp_path: Path) -> "Begin":
    return Begin(tmp_path)


class Begin:
    """Starts a copy of an example, so that what it writes beside itself stays out of the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str, *words: str) -> "subprocess.Popen[str]":
        copy = shutil.copy(EXAMPLES / name, self.folder / name)
        return subprocess.Popen(
            [sys.executable, copy, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )

    def finished(self, name: str, complains: str = "") -> str:
        """Run it to its end and return what it printed; it must end well and complain of nothing else."""
        said, complaints = self.ended(name)
        assert complaints == complains
        return said

    def ended(self, name: str) -> tuple[str, str]:
        """Run it to its end, which must be a good one, and return what it printed and what it complained of."""
        with self(name) as child:
            said, complaints = child.communicate(timeout=60)
        assert child.returncode == 0, complaints
        return said, complaints


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_basic_ticks_until_it_is_stopped(begin: Begin, number: signal.Signals) -> None:
    """S4-005, S0-130, S0-109, A19: one signal stops it cleanly, and its jobs are kept beside it.

    It says what it runs and that it stops, and complains of nothing.
    """
    with begin("basic.py") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "tick\n"
        child.send_signal(number)
        _, said = child.communicate(timeout=60)

    started, stopping = said.splitlines()
    assert child.returncode == 0
    assert started.startswith(
        f"everytick: running 1 job on {begin.folder / 'everytick.db'}; the first run is heartbeat at"
    )
    assert stopping.startswith(f"everytick: {number.name}: stopping; once more leaves at once")
    assert (begin.folder / "everytick.db").exists()


def test_parallel_cleans_up_though_a_task_has_failed_for_good(begin: Begin) -> None:
    """S0-036, S0-130, S0-029…031, S0-033, S0-081: task 7 fails after three attempts, task 10 still runs."""
    said, complaints = begin.ended("parallel.py")
    before, after = said.split("\n\n")

    assert before.splitlines() == [
        "copy-7: attempt 1 fails",
        "copy-7: attempt 2 fails",
        "copy-7: attempt 3 fails",
        "clean-up-10: done, though a peer has failed",
    ]
    status, *tasks = after.splitlines()
    told = [line for line in complaints.splitlines() if line.startswith("nightly ")]
    assert [each.partition(" task copy-7 ")[2].partition(";")[0] for each in told[:2]] == [
        "attempt 1 of 3 failed: OSError: the disk is full",
        "attempt 2 of 3 failed: OSError: the disk is full",
    ]
    assert "Traceback (most recent call last):" in complaints
    aborted = "task copy-7 failed, aborting due to fail-fast"
    assert status == f"nightly is failed: {aborted}: OSError: the disk is full (3 attempts)"
    ended = {name: (how, int(attempts)) for name, how, _, attempts in (line.split() for line in tasks)}
    assert ended.pop("copy-7") == ("failed", 3)
    assert ended.pop("clean-up-10") == ("success", 1)
    assert len(ended) == 8
    assert set(ended.values()) == {("canceled", 1)}


def test_recovery_shows_what_each_strategy_makes_of_an_outage(begin: Begin) -> None:
    """S0-130, S0-090, S0-092…096: five hours down, hourly."""
    missed = (
        "job 'mark_as_missed': 5 instants from 2026-01-01 02:00:00+00:00 through 2026-01-01 06:00:00+00:00 "
        "did not run (missed) and will not be made up for; the next run is at 2026-01-01 07:00:00+00:00\n"
    )
    late, recorded = begin.finished("recovery.py", complains=missed).split("\n\n")

    assert recorded.splitlines() == [
        "what is recorded:",
        "  execute_all    5 of 5 run, 0 do not",
        "  execute_last   1 of 5 run, 4 do not (skipped: not last)",
        "  mark_as_missed 0 of 5 run, 5 do not (missed: missed)",
        "  bounded_window 2 of 5 run, 3 do not (skipped: window)",
        "  compressed     1 of 5 run, 4 do not (skipped: compressed)",
    ]
    assert len(late.splitlines()) == 1 + 5 + 1 + 2 + 1
    assert "  compressed     runs late for 01:00 to 06:00" in late.splitlines()


def test_the_time_engine_shows_itself(begin: Begin) -> None:
    assert begin.finished("time_engine.py")


def test_every_example_has_a_test() -> None:
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))

    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in text] == []


def test_the_beat_hands_jobs_to_its_worker_until_it_is_stopped(begin: Begin, redis: Server) -> None:
    """S3-001: both schedules have never run, so that each runs at once, the urgent one first or second."""
    with begin("beat.py", redis.address) as child:
        assert child.stdout is not None
        told = sorted(child.stdout.readline().split(" for ")[0] for _ in range(2))
        child.send_signal(signal.SIGINT)
        _, complaints = child.communicate(timeout=60)

    assert told == ["send_report None", "tidy_up {'max_age_days': 30}"]
    assert (child.returncode, complaints) == (0, "")
