"""B1, B3: jobs in a real notebook kernel, cell by cell."""

import os
import sys
from collections.abc import Iterator

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.acceptance.frameworks.project import STARTED_WITHIN

SETUP = """
from everytick import Everytick, every
tick = Everytick("sqlite:///jobs.db", name="notes")
"""
JOB = """
@tick.job(every("P1Y"))
def report() -> str:
    return "{answer}"
"""
RUN = "print(tick.wait(tick.wait(tick.trigger('{job}')), timeout='60s').result)"


class Kernel:
    """A kernel that runs one cell after the other."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client

    def run(self, cell: str) -> tuple[str, str]:
        """Return what the cell printed, and what it raised or wrote to standard error."""
        printed: dict[str, list[str]] = {"stdout": [], "stderr": []}

        def hear(message: dict[str, dict[str, str]]) -> None:
            content = message["content"]
            if "name" in content and "text" in content:
                printed[content["name"]].append(content["text"])
            elif "ename" in content:
                printed["stderr"].append(f"{content['ename']}: {content['evalue']}")

        self._client.execute_interactive(cell, output_hook=hear, timeout=STARTED_WITHIN, allow_stdin=False)
        return "".join(printed["stdout"]), "".join(printed["stderr"])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingKernelClient]:
    """A kernel in a folder of its own; it is the slow part, so that all tests here share it."""
    folder = tmp_path_factory.mktemp("notebook")
    manager = KernelManager(connection_file=str(folder / "connection.json"))
    spec = manager.kernel_spec
    assert spec is not None, "ipykernel brings a kernel along"
    # Another Python's kernel may be installed for this user.
    spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    settings = {**os.environ, "IPYTHONDIR": str(folder), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    manager.start_kernel(cwd=str(folder), env=settings)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=STARTED_WITHIN)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(client: BlockingKernelClient) -> Kernel:
    """The kernel, with an application on an empty store."""
    kernel = Kernel(client)
    kernel.run("if 'tick' in globals(): tick.stop_background()")
    kernel.run("import pathlib; [each.unlink() for each in pathlib.Path().glob('jobs.db*')]")
    kernel.run(SETUP)
    return kernel


def test_a_cell_that_is_run_again_replaces_its_job(kernel: Kernel) -> None:
    """B1: before the start and afterwards, also where only the body of the function is another."""
    assert kernel.run(JOB.format(answer="one")) == ("", "")
    assert kernel.run(JOB.format(answer="two")) == ("", "")
    assert kernel.run("tick.start_background()") == ("", "")
    assert kernel.run(RUN.format(job="report")) == ("two\n", "")
    assert kernel.run(JOB.format(answer="three")) == ("", "")
    assert kernel.run(RUN.format(job="report")) == ("three\n", "")


def test_a_job_of_a_later_cell_runs_on_the_node_that_runs_already(kernel: Kernel) -> None:
    """Its schedule is stored at once, and so is another one."""
    kernel.run("tick.start_background()")
    assert kernel.run(JOB.format(answer="late")) == ("", "")
    assert kernel.run("print([each.job.name for each in await tick.jobs()])") == ("['report']\n", "")
    assert kernel.run(RUN.format(job="report")) == ("late\n", "")
    assert kernel.run(JOB.format(answer="later").replace("P1Y", "P2Y")) == ("", "")
    assert kernel.run("print((await tick.job('report')).job.version)") == ("2\n", "")


def test_a_job_of_a_later_cell_runs_on_the_loop_of_the_notebook_too(kernel: Kernel) -> None:
    """`await tick.start()` in a cell."""
    kernel.run("await tick.start()")
    assert kernel.run(JOB.format(answer="here")) == ("", "")
    cell = "print((await (await report.trigger()).wait(timeout='60s')).result)"
    assert kernel.run(cell) == ("here\n", "")
    assert kernel.run("await tick.stop()") == ("", "")


def test_two_jobs_of_one_name_in_one_cell_are_refused(kernel: Kernel) -> None:
    """B1."""
    _, refused = kernel.run(JOB.format(answer="one") + JOB.format(answer="two"))
    assert "'report' is defined at line 1 of this cell; give one of the two another name with name=" in refused


def test_run_in_a_cell_says_what_to_call_instead(kernel: Kernel) -> None:
    """B3."""
    _, refused = kernel.run("tick.run()")
    assert refused.startswith("RuntimeError: run() needs an event loop of its own")
    assert "call tick.start_background(), or write `async with tick:`" in refused
    assert "never awaited" not in refused
