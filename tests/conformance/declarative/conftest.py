"""Which implementation the suite runs against: everytick on each of its stores, unless another one is named.

`DECLARATIVE_ADAPTER="package.module:name, …"` names functions without arguments that return
an Adapter; the suite then runs against those and nothing of everytick is imported.
"""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.conformance.declarative.adapter import Adapter

FOLDER = Path(__file__).parent
BROUGHT = [name.strip() for name in os.environ.get("DECLARATIVE_ADAPTER", "").split(",") if name.strip()]
KINDS = BROUGHT or ["memory", "reference", "sqlite", "postgres"]

DECIDED = ("test_daylight_saving.py", "test_determinism.py", "test_time_semantics.py")
"""Files about what is decided before anything is written. The store in memory and SQLite hold them in every run, and
PostgreSQL with `-m slow`: how it keeps instants in hostile time zones is a matter of the tests of the stores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in DECIDED and item.path.parent == FOLDER and "[postgres" in item.name:
            item.add_marker(pytest.mark.slow)


def made(kind: str, request: pytest.FixtureRequest) -> Iterator[Adapter]:
    """Give the adapter of this kind."""
    if BROUGHT:
        module, _, name = kind.partition(":")
        yield getattr(import_module(module), name)()
        return
    if kind == "reference":
        from tests.conformance.declarative.reference import ReferenceAdapter

        yield ReferenceAdapter()
        return
    from tests.conformance.declarative import everytick_adapter as everytick

    if kind == "memory":
        yield everytick.in_memory()
    elif kind == "sqlite":
        yield everytick.in_sqlite(request.getfixturevalue("tmp_path_factory").mktemp("declarative"))
    else:
        yield everytick.in_postgres(request.getfixturevalue("postgres"))


@pytest.fixture(scope="module", params=KINDS)
def adapter(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    """Each implementation in turn."""
    yield from made(request.param, request)


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    """The first of them, for properties that play many stories."""
    yield from made(KINDS[0], request)
