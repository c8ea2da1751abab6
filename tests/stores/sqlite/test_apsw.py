"""The same store by another driver: the suite runs over it too, and its errors are those of the standard one.

Nothing here opens the file by Python's own SQLite in this process: two libraries in one
process do not see each other's locks.
"""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import pytest

from everytick.errors import MissingExtra, SchemaMismatch
from everytick.stores.addresses import store_of
from everytick.stores.base import Commit, Nodes
from everytick.stores.sqlite import opening
from everytick.stores.sqlite.opening import has_reset_fault, library
from everytick.stores.sqlite.store import SqliteStore
from tests.stores import (
    test_ahead,
    test_apply_put,
    test_beat,
    test_claim,
    test_commit_plans,
    test_commit_steps,
    test_look,
    test_note,
    test_request,
)
from tests.stores.acting import AnyStore, began, claim_one, ended, job, plan_once, put, statuses
from tests.stores.clock import ManualClock
from tests.stores.sqlite.processes import begin, finished, killed

SUITE: tuple[ModuleType, ...] = (
    test_ahead,
    test_beat,
    test_claim,
    test_commit_plans,
    test_commit_steps,
    test_look,
    test_note,
    test_apply_put,
    test_request,
)
for _module in SUITE:
    for _name, _test in list(vars(_module).items()):
        if _name.startswith("test_") and callable(_test):
            globals()[f"{_name}_by_apsw"] = _test


@pytest.fixture
async def store(path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(path, clock=clock, driver="apsw")
    await made.open()
    yield made
    await made.close()


def test_the_suite_is_there() -> None:
    assert sum(name.endswith("_by_apsw") for name in globals()) > 70


async def test_the_file_is_opened_by_the_newer_library(store: SqliteStore) -> None:
    assert store.library == f"apsw, SQLite {library('apsw')}"
    assert not has_reset_fault(library("apsw"))


@pytest.mark.parametrize(("version", "faulty"), [("3.40.1", True), ("3.51.2", True), ("3.51.3", False), ("4.0", False)])
def test_which_libraries_have_the_fault(version: str, faulty: bool) -> None:
    assert has_reset_fault(version) == faulty


async def test_without_the_package_it_is_said_how_to_get_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apsw", None)
    monkeypatch.delitem(sys.modules, "everytick.stores.sqlite.apsw_driver", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'everytick\[sqlite\]'"):
        await SqliteStore(path, driver="apsw").open()


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("no database " * 100)
    with pytest.raises(SchemaMismatch, match="is no SQLite database"):
        opening.prepare(path, driver="apsw")


HOLDING = """
file = opening.connect(path)
file.execute("pragma busy_timeout = 20000")
file.execute("begin immediate")
print("holding", flush=True)
sys.stdin.readline()
file.execute("commit")
"""


async def test_it_waits_for_another_process_whatever_its_driver(store: SqliteStore, path: Path) -> None:
    """G6: two libraries in two processes do see each other's locks."""
    other = begin(HOLDING, path)
    assert other.stdout is not None
    assert await asyncio.to_thread(other.stdout.readline) == "holding\n"
    waiting = asyncio.create_task(put(store, job()))
    await store.list()
    assert not waiting.done()
    await asyncio.to_thread(finished, other, "\n")
    assert (await waiting).changed


async def test_a_task_has_its_transaction(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    async with store.transaction(claim) as own:
        await own.execute("create table ledger (entry text primary key)")
        await own.execute("insert into ledger values (?)", "paid")
        with pytest.raises(sqlite3.IntegrityError):
            await own.execute("insert into ledger values (?)", "paid")
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await own.fetch("select * from nowhere")
        with pytest.raises(sqlite3.ProgrammingError):
            await own.fetch("select ?")
        for statement in ("commit", "pragma query_only = 1", "delete from job"):
            with pytest.raises(RuntimeError, match="a transaction of a task must not"):
                await own.execute(statement)
        assert await own.fetch("select entry from ledger") == [("paid",)]
        assert await own.commit(ended(claim, began(claim, clock.time), clock.time)) is Commit.COMMITTED
    assert await statuses(store) == ["completed"]


async def test_a_kill_before_the_commit_leaves_nothing(path: Path, clock: ManualClock) -> None:
    code = """
async def main():
    store = SqliteStore(path, clock=ManualClock(), driver="apsw")
    await store.open()
    def work(transaction):
        transaction.execute("insert into node (id, beat_at) values ('ghost', 0)")
        die()
    await store._write(work)
asyncio.run(main())
"""
    await asyncio.to_thread(killed, begin(code, path))
    store = SqliteStore(path, clock=clock, driver="apsw")
    await store.open()
    assert await store.ask(Nodes()) == []
    assert (await put(store, job())).changed
    await store.close()


def test_an_import_that_fails_for_another_reason_is_not_mistaken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "everytick.stores.sqlite.apsw_driver", None)
    with pytest.raises(ModuleNotFoundError):
        opening.apsw_driver()


async def test_an_address_may_name_the_driver(path: Path) -> None:
    """Dependencies 3.4: the address of the store chooses the newer SQLite."""
    made = store_of(f"sqlite:///{path}?driver=apsw&synchronous=full")
    assert isinstance(made, SqliteStore)
    assert made.library == f"apsw, SQLite {library('apsw')}"
    await made.open()
    await put(made, job())
    await made.close()
    assert store_of(f"sqlite:///{path}?driver=sqlite3").library.startswith("sqlite3, SQLite ")  # type: ignore[attr-defined]


def test_an_address_whose_driver_is_not_installed_is_refused_before_anything_is_opened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, "apsw", None)
    with pytest.raises(MissingExtra, match=r"the driver apsw needs .* pip install 'everytick\[sqlite\]'"):
        store_of(f"sqlite:///{path}?driver=apsw")
    assert not path.exists()
