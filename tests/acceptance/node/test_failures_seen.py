"""A job that fails is seen where people look: on stderr, with logging unconfigured, however the node was started."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WITHIN = 60.0

JOB = """
import asyncio, signal, threading
from everytick import Everytick, Retry, every

tick = Everytick("memory://")


@tick.job(every("P1Y"), on_create="immediately", retry=Retry(1, "100ms"))
def flaky():
    raise ValueError("boom")

"""

RUN = """
if __name__ == "__main__":
    tick.run()
"""

INSIDE = """
async def main():
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stopped.set)
    async with {context}:
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
"""

BACKGROUND = """
if __name__ == "__main__":
    stopped = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    tick.start_background()
    stopped.wait()
    tick.stop_background()
"""

FACES = {
    "run": JOB + RUN,
    "async with": JOB + INSIDE.format(context="tick"),
    "lifespan": JOB + INSIDE.format(context="tick.lifespan(None)"),
    "start_background": JOB + BACKGROUND,
}

PROGRAM = "jobs.py"


@contextmanager
def begun(folder: Path, *command: str) -> Iterator["subprocess.Popen[str]"]:
    """A process in the folder; it is killed if it does not say what the test waits for."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("EVERYTICK_", "PYTEST_"))}
    with subprocess.Popen(
        command, cwd=folder, env=plain, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        limit = threading.Timer(WITHIN, child.kill)
        limit.start()
        try:
            yield child
        finally:
            limit.cancel()
            child.kill()


def lines_until(child: "subprocess.Popen[str]", last: str) -> list[str]:
    """Return what the process said on stderr, through the line that is `last`."""
    assert child.stderr is not None
    said: list[str] = []
    for line in child.stderr:
        said.append(line.rstrip("\n"))
        if said[-1] == last:
            return said
    raise AssertionError(f"{last!r} was never said, but: {said}")


@pytest.mark.parametrize("face", FACES)
def test_a_failure_reaches_the_terminal_though_logging_is_not_configured(face: str, tmp_path: Path) -> None:
    """A1, M1: a WARNING for the attempt that is retried, an ERROR with the traceback for the occurrence, once each."""
    (tmp_path / PROGRAM).write_text(FACES[face])

    with begun(tmp_path, sys.executable, PROGRAM) as child:
        said = lines_until(child, "ValueError: boom")
        child.send_signal(signal.SIGINT)
        _, rest = child.communicate(timeout=WITHIN)

    # A busy machine may make the node say more, that its loop stood still for example.
    retried, failed = [line for line in said if line.startswith("flaky ")]
    assert "attempt 1 of 2 failed: ValueError: boom; it is tried again in 0.1s, at " in retried
    assert failed.endswith(" failed: ValueError: boom (2 attempts); it is not tried again")
    assert said[said.index(failed) + 1] == "Traceback (most recent call last):"
    assert any('jobs.py", line 10, in flaky' in line for line in said)
    assert (child.returncode, "flaky" in rest, "Traceback" in rest) == (0, False, False)


def test_everytick_run_logs_a_failure_once_with_its_time_and_level(tmp_path: Path) -> None:
    """A1: the same two lines from the command, in its own format, and no third."""
    (tmp_path / PROGRAM).write_text(JOB)
    command = str(Path(sys.executable).with_name("everytick"))

    with begun(tmp_path, command, "run", "-a", "jobs", "--log-level", "warning") as child:
        said = lines_until(child, "ValueError: boom")
        child.send_signal(signal.SIGINT)
        _, rest = child.communicate(timeout=WITHIN)

    retried, failed = [line for line in said if " flaky " in line and "failed" in line]
    assert " warning flaky " in retried
    assert "attempt 1 of 2 failed: ValueError: boom; it is tried again in 0.1s, at " in retried
    assert " error   flaky " in failed
    assert failed.endswith(" failed: ValueError: boom (2 attempts); it is not tried again")
    assert said[said.index(failed) + 1] == "Traceback (most recent call last):"
    assert (child.returncode, "flaky" in rest, "Traceback" in rest) == (0, False, False)


def test_an_application_that_configured_logging_gets_levels_and_no_second_copy(tmp_path: Path) -> None:
    """A1: what the application's own format says of a record is all that is said of it."""
    configured = 'import logging\nlogging.basicConfig(level="WARNING", format="%(levelname)s %(name)s %(message)s")\n'
    (tmp_path / PROGRAM).write_text(configured + JOB + RUN)

    with begun(tmp_path, sys.executable, PROGRAM) as child:
        said = lines_until(child, "ValueError: boom")
        child.send_signal(signal.SIGINT)
        _, rest = child.communicate(timeout=WITHIN)

    retried, failed = [line for line in said if "everytick.events" in line]
    assert retried.startswith("WARNING everytick.events flaky ")
    assert failed.startswith("ERROR everytick.events flaky ")
    assert (child.returncode, "flaky" in rest, "Traceback" in rest) == (0, False, False)


IMPORTING = """
import os, signal, sys
from everytick import Everytick


class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "everytick.node.node":
            os.kill(os.getpid(), signal.SIGINT)


sys.meta_path.insert(0, Interrupted())
Everytick("memory://").run()
"""


def test_ctrl_c_while_the_node_is_imported_shows_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(IMPORTING)
    done = subprocess.run([sys.executable, "jobs.py"], cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
