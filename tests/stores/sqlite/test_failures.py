"""Which errors of SQLite say "not now", which "broken", and which are the fault of what was asked."""

import sqlite3
from pathlib import Path

import pytest

from everytick.domain.facts import Pause
from everytick.errors import StoreBroken, StoreUnavailable
from everytick.stores.base import NodeScope
from everytick.stores.sqlite.failures import named
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job, put
from tests.stores.clock import ManualClock

AWAY = ("BUSY", "LOCKED", "IOERR", "FULL", "READONLY", "CANTOPEN", "PERM", "NOMEM", "PROTOCOL")
BROKEN = ("CORRUPT", "NOTADB", "SCHEMA")


def error(code: int, text: str = "so it is") -> sqlite3.Error:
    made = sqlite3.OperationalError(text)
    made.sqlite_errorcode = code
    return made


@pytest.mark.parametrize("name", AWAY + BROKEN)
def test_a_code_has_one_meaning_whatever_stands_above_its_lowest_byte(path: Path, name: str) -> None:
    """C-46."""
    code = getattr(sqlite3, f"SQLITE_{name}")
    wanted = StoreUnavailable if name in AWAY else StoreBroken
    assert [type(named(error(each), path)) for each in (code, code | 7 << 8)] == [wanted] * 2


@pytest.mark.parametrize("text", ["no such table: job", "no such column: at", "table job has no column named at"])
def test_what_is_missing_is_a_broken_store(path: Path, text: str) -> None:
    assert type(named(error(sqlite3.SQLITE_ERROR, text), path)) is StoreBroken


@pytest.mark.parametrize(
    "wrong",
    [error(sqlite3.SQLITE_ERROR, "malformed JSON"), error(sqlite3.SQLITE_CONSTRAINT), error(sqlite3.SQLITE_TOOBIG)],
)
def test_what_is_wrong_with_one_item_is_not_about_the_store(path: Path, wrong: sqlite3.Error) -> None:
    assert named(wrong, path) is None


async def test_a_missing_table_fails_what_needs_it_and_nothing_else(
    opened: SqliteStore, sql: sqlite3.Connection
) -> None:
    """F20, C-46: other calls of the same commit go through, and the file is well again once it is mended.

    A beat needs the table as well, to tell which jobs are out of service.
    """
    stored = await put(opened, job())
    await opened.check_writable()
    sql.execute("alter table job_state rename to elsewhere")
    for asked in (
        opened.check_writable(),
        opened.ahead(NodeScope("node-1")),
        opened.request(stored.job_id, Pause()),
        opened.beat("node-1", []),
        opened.claim(NodeScope("node-1"), 1),
    ):
        with pytest.raises(StoreBroken, match=r"no such table: (main\.)?job_state; this does not pass by itself"):
            await asked
    await opened.leave("node-1")
    sql.execute("alter table elsewhere rename to job_state")
    await opened.check_writable()
    await opened.request(stored.job_id, Pause())


def damage(path: Path) -> None:
    """Write over everything but the first page."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))


async def test_a_damaged_file_is_a_broken_store(path: Path, clock: ManualClock) -> None:
    """C-46: what cannot be read any more is not merely away."""
    store = SqliteStore(path, clock=clock)
    await store.open()
    for number in range(50):
        await put(store, job(f"job {number}"))
    await store.close()
    damage(path)
    again = SqliteStore(path, clock=clock)
    with pytest.raises(StoreBroken, match="malformed"):
        await again.open()
    await again.close()
