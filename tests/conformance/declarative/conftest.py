"""Which implementation the suite runs against: everytick on each of its stores, unless somebody brings another.

`DECLARATIVE_ADAPTER="package.module:name, …"` names functions without arguments that return
an Adapter; the suite then runs against those and nothing of everytick is imported.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count

import pytest

from tests.conformance.declarative.adapter import Adapter

BROUGHT = [name.strip() for name in os.environ.get("DECLARATIVE_ADAPTER", "").split(",") if name.strip()]
KINDS = BROUGHT or ["memory", "reference", "sqlite", "postgres"]


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
        address = request.getfixturevalue("postgres").address
        names = [f"declarative_{os.getpid()}"]
        yield everytick.in_postgres(address, _new_schema(names))
        asyncio.run(_drop(address, names[1:]))


def _new_schema(names: list[str]) -> Callable[[], str]:
    numbers = count(1)

    def name() -> str:
        names.append(f"{names[0]}_{next(numbers)}")
        return names[-1]

    return name


async def _drop(address: str, names: list[str]) -> None:
    import asyncpg

    db = await asyncpg.connect(address)
    for name in names:
        await db.execute(f"drop schema if exists {name} cascade")
    await db.close()


@pytest.fixture(scope="module", params=KINDS)
def adapter(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    """Each implementation in turn."""
    yield from made(request.param, request)


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    """The first of them, for properties that play many stories."""
    yield from made(KINDS[0], request)
