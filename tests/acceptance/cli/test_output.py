"""The output of a job as a person meets it: kept by `everytick logs`, told apart by job on the terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.acceptance.cli.terminal import WITHIN, Terminal, environment, everytick

APPLICATION = """
import logging
from everytick import Context, Everytick, cron

tick = Everytick("sqlite:///jobs.db", name="shop")
mylib = logging.getLogger("mylib")


@tick.job(cron("0 0 1 1 *"), on_create="immediately")
async def counts(ctx: Context):
    print("from a coroutine")
    ctx.log.info("page 3")
    ctx.log.warning("page 4")
    mylib.warning("from a library")


@tick.job(cron("0 0 1 1 *"), on_create="immediately")
def sends(ctx: Context):
    print("from a thread")
    ctx.log.info("letter 1")
    mylib.warning("from the same library")


if __name__ == "__main__":
    tick.run()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APPLICATION)
    return tmp_path


def kept(folder: Path, job: str) -> list[str]:
    """What `everytick logs` gives of the job, without the times."""
    lines = everytick(folder, "logs", job, "-a", "shop").stdout.splitlines()
    return [line.split(" ", 2)[2] if line[:2] == "20" else line for line in lines]


COUNTS = ["from a coroutine", "INFO page 3", "WARNING page 4", "WARNING mylib from a library"]
SENDS = ["from a thread", "INFO letter 1", "WARNING mylib from the same library"]


def test_a_script_that_configures_no_logging_keeps_all_of_it_and_says_on_the_terminal_whose_it_is(shop: Path) -> None:
    """A11: prints of coroutines, `ctx.log` from INFO on, and the records of libraries; each once."""
    master, inner = pty.openpty()
    script = subprocess.Popen(
        [sys.executable, "shop.py"], cwd=shop, env=environment(), stdin=inner, stdout=inner, stderr=inner
    )
    os.close(inner)
    limit = threading.Timer(WITHIN, script.kill)
    limit.start()
    seen = ""
    while not all(each in seen for each in ("from a library", "from the same library")):
        seen += os.read(master, 65536).decode()
    limit.cancel()
    script.send_signal(signal.SIGINT)
    assert script.wait(WITHIN) == 0
    os.close(master)

    lines = [line.strip() for line in seen.splitlines()]
    assert [line for line in lines if line.startswith("counts | ")] == [
        "counts | from a coroutine",
        "counts | page 4",
        "counts | from a library",
    ]
    assert [line for line in lines if line.startswith("sends | ")] == [
        "sends | from a thread",
        "sends | from the same library",
    ]
    assert kept(shop, "counts") == COUNTS
    assert kept(shop, "sends") == SENDS


def test_everytick_run_keeps_the_same_and_names_the_job_on_each_line(shop: Path) -> None:
    """A11: the lines of `run` in its own format, the prints as they are in a pipe."""
    done = everytick(shop, "run", "--once", "-a", "shop", "--log-level", "info")

    # In a pipe nothing is added, and `print` ends its line with a write of its own: two jobs may share a line.
    assert sorted(done.stdout) == sorted("from a coroutine\nfrom a thread\n")
    said = [line[13:] for line in done.stderr.splitlines() if " | " in line]
    assert sorted(said) == [
        "info    counts | page 3",
        "info    sends | letter 1",
        "warning counts | from a library",
        "warning counts | page 4",
        "warning sends | from the same library",
    ]
    assert kept(shop, "counts") == COUNTS
    assert kept(shop, "sends") == SENDS


def test_json_lines_of_run_carry_the_job_and_the_attempt(shop: Path) -> None:
    """A11."""
    done = everytick(shop, "run", "--once", "-a", "shop", "--log-format", "json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    [library] = [each for each in lines if each["event"] == "from a library"]
    assert (library["job"], library["task"], library["attempt"]) == ("counts", "counts", 1)
    assert library["occurrence"].startswith("occ_")


def test_what_run_prints_on_a_terminal_names_its_job(shop: Path) -> None:
    """A11."""
    with Terminal(shop, "run", "-a", "shop", NO_COLOR="1") as terminal:
        terminal.see(r"counts \| from a coroutine")
        terminal.see(r"sends \| from a thread")
        terminal.signal(signal.SIGINT)
        assert terminal.ended() == 0
