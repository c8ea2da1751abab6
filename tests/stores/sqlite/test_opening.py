"""Opening the file: whose it is, which schema it has, and what a crash in between leaves."""

import asyncio
import errno
import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from everytick.errors import SchemaMismatch, StoreBroken, StoreUnavailable
from everytick.stores.queries import Migration, load_migrations
from everytick.stores.sqlite.opening import prepare, statements
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job, put
from tests.stores.clock import ManualClock
from tests.stores.sqlite.processes import begin, finished, killed

MIGRATIONS = load_migrations("everytick.stores.sqlite")


def tables(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [count] = connection.execute("select count(*) from sqlite_schema").fetchone()
    return int(count)


def files_of(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


async def test_the_file_and_its_log_are_readable_by_their_owner_alone(opened: SqliteStore, path: Path) -> None:
    await put(opened, job())
    for made in (path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}-turn")):
        assert stat.S_IMODE(made.stat().st_mode) == 0o600, made.name


async def test_what_was_stored_is_there_after_closing_and_opening(path: Path, clock: ManualClock) -> None:
    """S0-058: and the log has been moved into the file, which can then be copied alone."""
    first = SqliteStore(path, clock=clock)
    await first.open()
    stored = await put(first, job())
    await first.close()
    await first.close()
    assert files_of(path) == ["store.db", "store.db-turn"]

    again = SqliteStore(path, clock=clock)
    await again.open()
    assert list(await again.get([stored.job_id])) == [stored.job_id]
    await again.close()


async def test_a_store_opens_and_closes_while_the_pool_of_the_loop_is_held_up(path: Path) -> None:
    """A program may have filled every thread of asyncio's with work of its own, and nothing of ours waits for that."""
    loop, has_begun, may_end = asyncio.get_running_loop(), asyncio.Event(), Event()

    def hold_up() -> None:
        loop.call_soon_threadsafe(has_begun.set)
        may_end.wait()

    with ThreadPoolExecutor(1) as pool:
        loop.set_default_executor(pool)
        held_up = asyncio.ensure_future(asyncio.to_thread(hold_up))
        await has_begun.wait()
        store = SqliteStore(path)
        try:
            async with asyncio.timeout(60):
                await store.open()
                await put(store, job())
                await store.close()
        finally:
            may_end.set()
            await held_up
    assert tables(path)


def test_a_newer_schema_than_the_code_is_refused(path: Path) -> None:
    prepare(path, (*MIGRATIONS, Migration(len(MIGRATIONS) + 1, "later", "create table later (x integer);")))
    with pytest.raises(SchemaMismatch, match=f"has schema {len(MIGRATIONS) + 1}, .* install the newer everytick"):
        prepare(path)


def test_a_changed_migration_is_refused(path: Path) -> None:
    prepare(path)
    changed = replace(MIGRATIONS[0], text=MIGRATIONS[0].text + "create table more (x integer);\n")
    with pytest.raises(SchemaMismatch, match=r"migration 1 \(initial\) was applied with another text"):
        prepare(path, (changed, *MIGRATIONS[1:]))


def test_a_file_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table theirs (x integer)")
    with pytest.raises(SchemaMismatch, match="tables of another program"):
        prepare(path)
    assert tables(path) == 1


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("dear diary " * 1000)
    with pytest.raises(SchemaMismatch, match="is no SQLite database"):
        prepare(path)
    assert path.read_text().startswith("dear diary")


def test_a_folder_that_is_not_there_is_an_unavailable_store(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="No such file or directory"):
        prepare(path / "deeper" / "store.db")


def test_a_folder_that_may_not_be_written_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B17: the folder is there, so the advice is not to make it. Root may write everywhere, so the system is played."""

    def refused(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StoreBroken, match="cannot be used: Permission denied: let this user write to the folder, or"):
        prepare(path)


async def test_verbs_of_a_closed_store_say_so(path: Path, clock: ManualClock) -> None:
    store = SqliteStore(path, clock=clock)
    for verb in (lambda: put(store, job()), store.list):
        with pytest.raises(StoreUnavailable, match="not open"):
            await verb()


@pytest.mark.parametrize("at", [0, 1, 5, 20, "end"])
async def test_a_kill_at_any_statement_of_a_migration_leaves_all_or_nothing(
    path: Path, clock: ManualClock, at: int | str
) -> None:
    """A schema is never half there: the next node to start applies it whole."""
    code = """
def dying(text, whole=opening.statements):
    for number, statement in enumerate(whole(text)):
        if str(number) == sys.argv[2]: die()
        yield statement
    if sys.argv[2] == "end": die()
opening.statements = dying
opening.prepare(path)
"""
    killed(begin(code, path, at))
    assert tables(path) == 0
    store = SqliteStore(path, clock=clock)
    await store.open()
    assert (await put(store, job())).changed
    await store.close()


def test_several_nodes_that_start_at_once_migrate_once(path: Path) -> None:
    nodes = [begin("opening.prepare(path)", path) for _ in range(4)]
    for node in nodes:
        finished(node)
    with closing(sqlite3.connect(path)) as connection:
        [applied] = connection.execute("select count(*) from migration").fetchone()
    assert applied == len(MIGRATIONS)


def test_a_text_is_cut_into_its_statements() -> None:
    table = "-- why;\ncreate table a (\n  x text default ';'\n);\n"
    trigger = "create trigger t after insert on a\nbegin\n  select 1;\nend;"
    assert [each.rstrip().split("\n")[-1] for each in statements(table + trigger)] == [");", "end;"]
