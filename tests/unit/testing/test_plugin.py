"""The pytest plugin, as a user's test run sees it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock
from everytick.testing import plugin as kit

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[3]
ENTRY = "everytick.testing.plugin"


def test_it_is_found_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["entry-points"]["pytest11"] == {"everytick": ENTRY}
    assert kit.__name__ == ENTRY


def test_the_fixtures_of_a_test_belong_together(everytick_clock: ManualClock, everytick_store: MemoryStore) -> None:
    assert isinstance(everytick_store, MemoryStore)
    assert everytick_clock() == ManualClock()()


async def test_the_store_is_on_the_clock(everytick_clock: ManualClock, everytick_store: MemoryStore) -> None:
    everytick_clock.advance("1h")

    assert await everytick_store.now() == everytick_clock()


def test_a_users_test_finds_both_with_nothing_to_import(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio

        def test_time(everytick_clock, everytick_store):
            before = asyncio.run(everytick_store.now())
            everytick_clock.advance("1d")
            assert (asyncio.run(everytick_store.now()) - before).days == 1
        """
    )

    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_test_run_that_does_not_ask_loads_nothing() -> None:
    """Neither asyncio, nor a store, nor any other part of the package than its two front doors."""
    code = (
        "import sys, pytest; before = set(sys.modules); import everytick.testing.plugin; "
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('_')))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said.strip() == str(["everytick", "everytick.testing", ENTRY])
