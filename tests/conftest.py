"""What every test finds in place: real servers on demand, and hypothesis set for shared machines."""

import gc
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests import hanging, order
from tests.servers.launch import Server, postgres_server, redis_server

# A deadline per example measures the machine, not the code; pytest-timeout stops what hangs.
# Said in full, since hypothesis has other defaults where it finds a CI.
settings.register_profile(
    "explore",
    deadline=None,
    print_blob=True,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
)
# The examples are the same for the same code: a change is judged by what it changes.
settings.register_profile("fixed", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("fixed")

MEMORY = Path("/dev/shm")
MEMORY_BYTES_NEEDED = 4 << 30
"""The tests of one run leave some 200 MB; several runs may share a machine."""

# On a disk, SQLite's tests spend most of their time in fsync. No test here cuts the power.
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES_NEEDED:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


TEST_SECONDS = 120
"""As `timeout` in pyproject.toml says."""


_OWN = "_hypothesis_internal_use_settings"
"""Hypothesis has no public way to change the settings of a test that has its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", type=int, default=1, help="so many times the examples of every law: for --explore")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector, and never show it what was collected.

    Millions of objects come to exist here and stay. To look through them took a sixth of the time of each worker.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    if workers > 1:
        items[:] = order.spread(items, workers, lambda item: item.nodeid.partition("::")[0])
    times = config.getoption("--times")
    laws = [item for item in items if times > 1 and hasattr(item, "obj") and hasattr(item.obj, _OWN)]
    for law in {item.obj for item in laws}:  # several items may share a function
        own: settings = getattr(law, _OWN)
        setattr(law, _OWN, settings(own, max_examples=own.max_examples * times))
    for item in laws:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS * times))


def pytest_configure(config: pytest.Config) -> None:
    # Nodes of tests serve no dashboard unless a test says so: they would all want the same port.
    os.environ.setdefault("EVERYTICK_WEB", "off")
    config.pluginmanager.register(hanging, "hanging")
    # Some runners of CI have umask 0000: each new file can be written by all users, and such files of jobs are refused.
    os.umask(0o022)
    # A shell starts what runs in the background with SIGINT ignored, and the processes of tests would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


SEVEN_PAST_NOON = datetime(2026, 11, 20, 12, 7, tzinfo=UTC)


@pytest.fixture
def at_noon() -> Iterator[None]:
    """The wall clock of this process shows seven past noon, and goes on from there.

    For tests that read the host's clock, because a command or a page of theirs does: no hour and no day ends
    within them, and what is next has one answer whenever they run. Other processes keep their own time.
    """
    with time_machine.travel(SEVEN_PAST_NOON, tick=True):
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL for this session, started when the first test asks; each xdist worker has its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[Server]:
    """A Redis for this session, started when the first test asks; each xdist worker has its own."""
    with redis_server() as server:
        yield server
