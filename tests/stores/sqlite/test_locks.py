"""The locks of a process on its file last as long as one of its stores has the file open."""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from everytick.stores.addresses import migration_of
from everytick.stores.sqlite.opening import Driver
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job, put
from tests.stores.clock import ManualClock
from tests.stores.sqlite.processes import begin, finished

ANOTHER_PROGRAM = """
import sqlite3
connection = sqlite3.connect(path)
print(connection.execute("select count(*) from job").fetchone()[0])
connection.close()
"""
"""Opens the file, reads and closes it: if it believes itself the last one, SQLite deletes the log."""


def log_of(path: Path) -> tuple[int, int]:
    """Return which files the log and its index are."""
    return Path(f"{path}-wal").stat().st_ino, Path(f"{path}-shm").stat().st_ino


async def open_another(path: Path, driver: Driver) -> None:
    other = SqliteStore(path, driver=driver)
    await other.open()
    await other.close()


async def ask_which_tables(path: Path, driver: Driver) -> None:
    assert await migration_of(SqliteStore(path, driver=driver).address) == 1


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
@pytest.mark.parametrize("act", [open_another, ask_which_tables])
async def test_a_second_store_on_the_file_leaves_the_locks_of_the_first(
    path: Path, clock: ManualClock, driver: Driver, act: Callable[[Path, Driver], Awaitable[None]]
) -> None:
    """F4, S0-058: another program that comes and goes afterwards does not delete the log under the first store."""
    store = SqliteStore(path, clock=clock, driver=driver)
    await store.open()
    await put(store, job("before"))

    await act(path, driver)
    await store.list()
    before = log_of(path)
    assert finished(begin(ANOTHER_PROGRAM, path)) == "1\n"

    assert log_of(path) == before
    await put(store, job("after"))
    assert finished(begin(ANOTHER_PROGRAM, path)) == "2\n"
    await store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    connection.close()


async def test_a_link_to_a_file_that_is_not_there_yet_is_followed(tmp_path: Path) -> None:
    """The file is made, readable by its owner alone, where the link leads."""
    link, file = tmp_path / "link.db", tmp_path / "file.db"
    link.symlink_to(file)
    store = SqliteStore(link)
    await store.open()
    await store.close()
    assert file.stat().st_mode & 0o777 == 0o600
