"""A test that hangs ends the run, whatever swallows the exception of its time limit."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

IN_A_CALLBACK = """
import asyncio

async def test_swallows_its_time_limit():
    loop = asyncio.get_running_loop()
    def callback():
        loop.call_soon(callback)
        while True:
            pass
    loop.call_soon(callback)
    await asyncio.Event().wait()
"""

IN_A_FIXTURE = """
import pytest, threading

@pytest.fixture
def stuck():
    yield
    threading.Event().wait()

def test_fails_and_its_fixture_hangs(stuck):
    assert False
"""

SHORT = """
import pytest
from tests import hanging

hanging.GRACE_SECONDS = 1

def pytest_configure(config):
    config.pluginmanager.register(hanging, "hanging")
"""


@pytest.mark.parametrize(
    ("text", "stack"), [(IN_A_CALLBACK, "in callback"), (IN_A_FIXTURE, "in stuck")], ids=["callback", "fixture"]
)
def test_a_hanging_test_ends_its_process_and_tells_all_stacks(tmp_path: Path, text: str, stack: str) -> None:
    (tmp_path / "conftest.py").write_text(SHORT)
    (tmp_path / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto"]
    done = subprocess.run(
        [*command, "-o", "timeout=1", "--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert "Timeout (0:00:02)!" in done.stderr, done.stdout + done.stderr
    assert stack in done.stderr
