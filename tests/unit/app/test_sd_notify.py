"""Notices to a supervisor: a real socket, and a process that is started as systemd would."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from everytick.app.sd_notify import Supervisor

PROGRAM = """
import os
from everytick import Everytick, every
tick = Everytick("memory://", name="test")

@tick.job(every("1s"))
def work():
    print([name for name in os.environ if name.startswith(("NOTIFY_", "WATCHDOG_"))], flush=True)

tick.run()
"""


@pytest.fixture
def supervisor() -> Iterator[socket.socket]:
    # Not in tmp_path: the name of a socket may have some hundred letters at most.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(f"{folder}/notify")
        line.settimeout(60)
        yield line


def test_a_supervisor_hears_that_it_runs_that_it_lives_and_that_it_stops(
    supervisor: socket.socket, tmp_path: Path
) -> None:
    """`Type=notify` with `WatchdogSec=`; no task of ours is told where to speak."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    asked = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "20000"}
    started = [sys.executable, str(program)]
    with subprocess.Popen(started, env=os.environ | asked, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert supervisor.recv(100) == b"READY=1"
            assert [supervisor.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3
            assert process.stdout is not None
            assert process.stdout.readline() == "[]\n"
            process.send_signal(signal.SIGTERM)
            while (said := supervisor.recv(100)) != b"STOPPING=1":
                assert said == b"WATCHDOG=1"
            assert process.wait(60) == 0
        finally:
            process.kill()


async def test_the_watchdog_of_another_process_is_not_ours_to_feed(
    supervisor: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WATCHDOG_PID names whose it is."""
    asked = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid() + 1)}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    notify = Supervisor.from_environment()
    notify.ready()
    notify.stopping()

    assert [supervisor.recv(100) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]
    assert not asked.keys() & os.environ.keys()


@pytest.mark.parametrize("address", ["", "nonsense", "/nowhere/to/be/found", "@nobody-listens-here"])
async def test_without_a_supervisor_nothing_is_sent_and_nothing_breaks(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    monkeypatch.setenv("WATCHDOG_USEC", "soon")
    notify = Supervisor.from_environment()
    notify.ready()
    notify.stopping()
    notify.stopped()


async def test_a_name_without_a_file_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(f"\0everytick-{os.getpid()}")
        line.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@everytick-{os.getpid()}")
        Supervisor.from_environment().ready()

        assert line.recv(100) == b"READY=1"
