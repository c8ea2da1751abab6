"""The demo of `dev.py run`: lines into a pipe, a view on a terminal, and a clean stop with a summary."""

import os
import pty
import re
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo.py"

# As a shell starts a program: on a terminal of its own, from which Ctrl-C is a signal.
ON_TERMINAL = f"""
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.argv = [{str(DEMO)!r}, "--port", "0"]
runpy.run_path({str(DEMO)!r}, run_name="__main__")
"""


def temporary(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), "COLUMNS": "120", "TERM": "xterm"}


@contextmanager
def demo(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Give a demo at work. Its dashboard has a port of its own: demos of other tests run beside it."""
    with subprocess.Popen(
        [sys.executable, DEMO, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=temporary(folder),
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def test_into_a_pipe_every_event_is_a_line_and_ctrl_c_brings_a_summary(tmp_path: Path) -> None:
    """S0-109: what overlaps is skipped, what fails is tried again, and a stop leaves nothing behind."""
    with demo(tmp_path) as child:
        assert child.stdout is not None
        wanted = {
            r"^dashboard: \S+:\d+/$",
            "overlapping +skipped",
            r"nightly\.upload #2 +retry planned",
            r"long +started",
            r"pulse +ended +completed",
        }
        while wanted:
            line = child.stdout.readline()
            assert line, "the demo ended by itself"
            assert "\x1b" not in line
            wanted = {each for each in wanted if not re.search(each, line)}
        child.send_signal(signal.SIGINT)
        rest, complaints = child.communicate(timeout=60)

    assert (child.returncode, complaints) == (0, "")
    _, summary = rest.split("\nstopped; what the store holds:\n")
    assert [line.split()[0] for line in summary.splitlines()] == ["long", "nightly", "overlapping", "pulse"]
    assert re.search(r"overlapping .*\d skipped", summary)
    assert list(tmp_path.iterdir()) == []


def test_it_shows_its_jobs_on_the_dashboard(tmp_path: Path) -> None:
    with demo(tmp_path) as child:
        assert child.stdout is not None
        try:
            address = next(line.split()[1] for line in child.stdout if line.startswith("dashboard: "))
            with urlopen(f"{address}jobs", timeout=60) as answer:
                page = answer.read().decode()
        finally:
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=60)

    assert child.returncode == 0
    assert all(f">{job}<" in page for job in ("long", "nightly", "overlapping", "pulse"))


def test_it_stops_itself_if_told_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, DEMO, "--seconds", "0.5", "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=temporary(tmp_path),
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "stopped; what the store holds:" in done.stdout


def test_the_dashboard_gets_a_free_port_where_its_usual_one_is_taken() -> None:
    web_address = runpy.run_path(str(DEMO))["web_address"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert web_address(port) == "127.0.0.1:0"
    assert web_address(port) == f"127.0.0.1:{port}"


@contextmanager
def on_terminal(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", ON_TERMINAL],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env=temporary(folder),
    ) as child:
        os.close(theirs)
        try:
            yield child, ours
        finally:
            os.close(ours)


def read_until(terminal: int, wanted: str) -> str:
    """Return what the terminal shows up to where the pattern is found; a closed one ends it."""
    shown = b""
    while not re.search(wanted, shown.decode(errors="replace")):
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            pytest.fail(f"the demo ended before it showed {wanted}:\n{shown.decode(errors='replace')}")
    return shown.decode(errors="replace")


def test_on_a_terminal_it_draws_a_view_and_ctrl_c_stops_it(tmp_path: Path) -> None:
    with on_terminal(tmp_path) as (child, terminal):
        shown = read_until(terminal, r"dashboard: \w+://") + read_until(terminal, r"pulse .*completed")
        os.write(terminal, b"\x03")
        shown += read_until(terminal, r"stopped; what the store holds:[\s\S]*pulse +\d+ completed")
        assert child.wait(60) == 0

    assert "everytick: a node at work (Ctrl-C stops it cleanly)" in shown
    assert re.search(r"dashboard: \w+://127\.0\.0\.1:\d+/", shown)
    assert re.search(r"\x1b\[\d+A\r\x1b\[J", shown), "it is drawn over the last one"
    assert "\x1b[?" not in shown, "nothing is switched that a killed process would leave switched"
