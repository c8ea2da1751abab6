"""Ends the process of a test that hangs although pytest-timeout has stopped it.

pytest-timeout raises an exception in the main thread. If an event loop runs a callback at
that moment, it logs the exception and goes on, and the test hangs for ever. A fixture that
hangs after such a failure is not stopped at all. Therefore a thread of the interpreter
prints all stacks and ends the process. Under pytest-xdist the test then counts as failed,
and a new worker runs the other tests.
"""

import faulthandler
import os
from collections.abc import Generator

import pytest

GRACE_SECONDS = 30
"""How long after the time limit a test may still take: what a fixture stops has 10 s to end, thrice."""

_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Remember where stderr leads while pytest does not capture it."""
    config.stash[_stderr] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_stderr])
    del config.stash[_stderr]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    yield from _within_limit(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield from _within_limit(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield from _within_limit(item)


def _within_limit(item: pytest.Item) -> Generator[None, None, None]:
    """Run one phase of a test. If it outlives the time limit and the grace, the process ends and all stacks are told.

    Each phase has its own limit, since pytest ends the dump of a phase that failed.
    """
    limit = _limit_seconds(item)
    if limit:
        faulthandler.dump_traceback_later(limit + GRACE_SECONDS, exit=True, file=item.config.stash[_stderr])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _limit_seconds(item: pytest.Item) -> float:
    """Return the time limit of a test: that of its mark, else of the command, else of pyproject.toml; 0 for none."""
    mark = item.get_closest_marker("timeout")
    if mark and mark.args:
        return float(mark.args[0])
    given = item.config.getoption("timeout")
    return float(item.config.getini("timeout") if given is None else given)
