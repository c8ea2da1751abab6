"""Other Python processes that work on the same file, and some that die while they do."""

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PREAMBLE = """
import asyncio, os, signal, sys
from pathlib import Path
from everytick.stores.sqlite import opening
from everytick.stores.base import NodeScope
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job, put
from tests.stores.clock import ManualClock
path = Path(sys.argv[1])
def die(): os.kill(os.getpid(), signal.SIGKILL)
"""


def begin(code: str, path: Path, *arguments: object) -> "subprocess.Popen[str]":
    """Start a process that runs the code; `path` and `sys.argv[2:]` are what it is given."""
    command = [sys.executable, "-c", PREAMBLE + code, str(path), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finished(process: "subprocess.Popen[str]", told: str | None = None) -> str:
    """Return what the process printed after it was told this; it must have ended well."""
    said, _ = process.communicate(told, timeout=60)
    assert process.returncode == 0, f"exit code {process.returncode}"
    return said


def killed(process: "subprocess.Popen[str]", told: str | None = None) -> None:
    """Return once the process, after it was told this, has been killed, and not ended otherwise."""
    process.communicate(told, timeout=60)
    assert process.returncode == -signal.SIGKILL, f"exit code {process.returncode}"
