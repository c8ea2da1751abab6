"""One writer with group commit: calls share a transaction and not their mistakes."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from everytick.domain.facts import Trigger
from everytick.errors import NotFound, StoreUnavailable
from everytick.stores.base import Nodes, Stored
from everytick.stores.sqlite.store import SqliteStore
from everytick.stores.sqlite.writer import Transaction
from tests.stores.acting import job, occurrences, plan_once, put
from tests.stores.clock import ManualClock
from tests.stores.sqlite.processes import begin, finished, killed


async def test_a_call_that_fails_does_not_undo_its_neighbours(opened: SqliteStore, clock: ManualClock) -> None:
    """All are queued before the writer looks, so they share one commit."""
    answers = await asyncio.gather(
        put(opened, job("a")),
        opened.request("job_none", Trigger("k")),
        put(opened, job("b")),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [Stored, NotFound, Stored]
    assert [record.job.name for record in await opened.list()] == ["a", "b"]


async def test_a_call_that_fails_halfway_leaves_nothing_of_itself(opened: SqliteStore) -> None:
    def half(transaction: Transaction) -> None:
        transaction.execute("insert into node (id, beat_at) values ('ghost', 0)")
        raise AssertionError("our own mistake")

    with pytest.raises(AssertionError, match="our own mistake"):
        await opened._write(half)
    assert await opened.ask(Nodes()) == []


async def test_a_writer_waits_for_another_process_and_loses_nothing(
    opened: SqliteStore, sql: sqlite3.Connection
) -> None:
    """G6: no caller sees "database is locked"."""
    sql.execute("begin immediate")
    waiting = asyncio.create_task(put(opened, job()))
    await opened.list()
    assert not waiting.done()
    sql.execute("commit")
    assert (await waiting).changed


async def test_an_error_of_the_disk_is_told_and_the_next_call_is_served(opened: SqliteStore) -> None:
    """G1: one short failure must not end the writer thread."""

    def full(transaction: Transaction) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with pytest.raises(StoreUnavailable, match=r"store\.db.*disk is full"):
        await opened._write(full)
    assert (await put(opened, job())).changed


async def test_two_processes_on_one_file_lose_no_write(opened: SqliteStore, path: Path) -> None:
    """G6."""
    code = """
async def main():
    store = SqliteStore(path)
    await store.open()
    for number in range(100):
        await put(store, job(f"{sys.argv[2]}-{number}"))
    await store.close()
asyncio.run(main())
"""
    others = [begin(code, path, name) for name in ("a", "b")]
    for number in range(100):
        await put(opened, job(f"own-{number}"))
    for other in others:
        await asyncio.to_thread(finished, other)
    assert len(await opened.list()) == 300


async def test_of_two_processes_one_gets_each_occurrence(opened: SqliteStore, path: Path, clock: ManualClock) -> None:
    """S0-070: claims from several processes share the work and never a piece of it."""
    for number in range(60):
        await put(opened, job(f"job-{number}"))
    clock.move(hours=1)
    await plan_once(opened)
    code = """
async def main():
    clock = ManualClock(); clock.move(hours=1)
    store = SqliteStore(path, clock=clock)
    await store.open()
    print("ready", flush=True); sys.stdin.readline()
    for _ in range(30):
        for claim in await store.claim(NodeScope(sys.argv[2]), 1):
            print(claim.occurrence.id)
    await store.close()
asyncio.run(main())
"""
    others = [begin(code, path, name) for name in ("a", "b", "c")]
    for other in others:
        assert other.stdout is not None
        assert await asyncio.to_thread(other.stdout.readline) == "ready\n"
    said = await asyncio.gather(*(asyncio.to_thread(finished, other, "go\n") for other in others))
    taken = [line for lines in said for line in lines.split()]
    assert len(taken) == len(set(taken)) == 60
    assert {str(each.status) for each in await occurrences(opened)} == {"running"}


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_kill_around_the_commit_leaves_all_or_nothing(path: Path, clock: ManualClock, moment: str) -> None:
    """S0-055; a process that dies blocks no other, and its uncommitted rows never existed."""
    code = """
async def main():
    store = SqliteStore(path, clock=ManualClock())
    await store.open()
    def work(transaction):
        for number in range(1000):
            transaction.execute("insert into node (id, beat_at) values (?, 0)", (f"node-{number}",))
        if sys.argv[2] == "before": die()
    await store._write(work)
    die()
asyncio.run(main())
"""
    process = begin(code, path, moment)
    await asyncio.to_thread(killed, process)
    store = SqliteStore(path, clock=clock)
    await store.open()
    assert len(await store.ask(Nodes())) == (0 if moment == "before" else 1000)
    assert (await put(store, job())).changed
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


async def test_the_log_is_moved_into_the_file_when_idle(opened: SqliteStore, path: Path) -> None:
    await put(opened, job())
    async with asyncio.timeout(60):
        while os.stat(f"{path}-wal").st_size:
            await opened.bell(0.02)


async def test_memory_is_given_back_when_idle(opened: SqliteStore) -> None:
    """An idle node with thousands of jobs holds none of their pages."""
    loop, is_given_back = asyncio.get_running_loop(), asyncio.Event()

    def look(statement: str) -> None:
        if statement == "pragma shrink_memory":
            loop.call_soon_threadsafe(is_given_back.set)

    await opened._write(lambda transaction: transaction.connection.set_trace_callback(look))
    async with asyncio.timeout(60):
        await is_given_back.wait()


async def test_what_another_process_writes_rings_here(opened: SqliteStore, path: Path, clock: ManualClock) -> None:
    """Another connection stands for another process: SQLite tells them apart by connection."""
    while await opened.bell(0):
        pass
    other = SqliteStore(path, clock=clock)
    await other.open()
    waiting = asyncio.create_task(opened.bell(30))
    await asyncio.sleep(0)
    await put(other, job())
    assert await waiting
    await other.close()
