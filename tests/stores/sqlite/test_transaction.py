"""A task's transaction on SQLite: it holds the only pen, so nothing it does may keep it for long or let go of it."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from everytick.domain.steps import Step
from everytick.errors import StoreUnavailable
from everytick.stores.base import Claim, Commit
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import began, claim_one, ended, job, plan_once, put, statuses
from tests.stores.clock import ManualClock
from tests.stores.sqlite.processes import begin, killed


@pytest.fixture
async def running(opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock) -> tuple[Claim, Step]:
    """A claim, and the step that its success would be; beside the store's tables there is one of the user's."""
    sql.execute("create table ledger (job text primary key)")
    await put(opened, job())
    clock.move(hours=1)
    await plan_once(opened)
    claim = await claim_one(opened)
    return claim, ended(claim, began(claim, clock.time), clock.time)


def ledger(sql: sqlite3.Connection) -> list[str]:
    return [row[0] for row in sql.execute("select job from ledger order by job")]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("commit", "begin, commit or roll back"),
        ("rollback", "begin, commit or roll back"),
        ("begin", "begin, commit or roll back"),
        ("attach ':memory:' as other", "attach a database"),
        ("detach other", "detach a database"),
        ("pragma query_only = 1", "use a pragma"),
        ("update occurrence set status = 10", "change occurrence"),
        ("delete from main.job", "change job"),
        ("insert into node (id, beat_at) values ('ghost', 0)", "change node"),
        ("insert into migration values (9, '', '', '')", "change migration"),
        ("update sqlite_sequence set seq = 0", "change sqlite_sequence"),
        ("drop table attempt", "change attempt"),
        ("drop view jobs", "change jobs"),
        ("drop index occurrence_ready", "change occurrence"),
        ("alter table span add column mine text", "change span"),
        ("create index mine on occurrence (error)", "change occurrence"),
        ("create trigger mine after insert on job begin delete from ledger; end", "change job"),
        ("create temp trigger mine after insert on job begin delete from ledger; end", "change job"),
    ],
)
async def test_what_would_end_it_or_change_our_tables_is_refused_and_the_rest_goes_on(
    opened: SqliteStore, sql: sqlite3.Connection, running: tuple[Claim, Step], statement: str, reason: str
) -> None:
    claim, success = running
    async with opened.transaction(claim) as own:
        await own.execute("insert into ledger values (?)", "paid")
        with pytest.raises(RuntimeError, match=f"a transaction of a task must not {reason}"):
            await own.execute(statement)
        assert ledger(sql) == []
        assert await own.commit(success) is Commit.COMMITTED
    assert ledger(sql) == ["paid"]
    assert await statuses(opened) == ["completed"]


async def test_a_trigger_of_the_task_cannot_reach_our_tables_either(
    opened: SqliteStore, sql: sqlite3.Connection, running: tuple[Claim, Step]
) -> None:
    sql.execute("create trigger mine after insert on ledger begin delete from task_run; end")
    async with opened.transaction(running[0]) as own:
        with pytest.raises(RuntimeError, match="must not change task_run"):
            await own.execute("insert into ledger values ('paid')")


async def test_a_task_may_use_everything_that_is_its_own(
    opened: SqliteStore, sql: sqlite3.Connection, running: tuple[Claim, Step]
) -> None:
    """Tables, indexes, savepoints, numbers that count by themselves; and it may read what is ours."""
    claim, success = running
    async with opened.transaction(claim) as own:
        await own.execute("create table invoice (number integer primary key autoincrement, job text)")
        await own.execute("create index invoice_job on invoice (job)")
        await own.execute("create temp table node (id text)")
        await own.execute("insert into temp.node values ('mine')")
        await own.execute("savepoint one")
        await own.execute("insert into invoice (job) values ('a')")
        await own.execute("rollback to one")
        await own.execute("insert into invoice (job) values ('b')")
        await own.execute("update invoice set job = 'c' where job = 'b'")
        assert await own.fetch("select status from occurrences") == [("running",)]
        await own.execute("create table gone (number integer primary key autoincrement)")
        await own.execute("insert into gone values (7)")
        await own.execute("drop table gone")
        assert await own.commit(success) is Commit.COMMITTED
    assert sql.execute("select number, job from invoice").fetchall() == [(1, "c")]


async def test_the_connection_itself_may_be_used_and_does_not_commit(
    opened: SqliteStore, sql: sqlite3.Connection, running: tuple[Claim, Step]
) -> None:
    claim, success = running
    async with opened.transaction(claim) as own:
        own.connection.executemany("insert into ledger values (?)", [("a",), ("b",)])
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            own.connection.commit()
        assert ledger(sql) == []
        assert await own.commit(success) is Commit.COMMITTED
    assert ledger(sql) == ["a", "b"]
    with pytest.raises(RuntimeError, match="this transaction is over"):
        _ = own.connection
    with pytest.raises(RuntimeError, match="this transaction is over"):
        await own.execute("insert into ledger values ('c')")


async def test_a_transaction_that_is_open_for_too_long_is_taken_back(
    opened: SqliteStore, sql: sqlite3.Connection, running: tuple[Claim, Step]
) -> None:
    """A task that waits inside for another write would otherwise wait for itself."""
    claim, success = running
    opened._sessions.longest = 0.05
    async with opened.transaction(claim) as own:
        await own.execute("insert into ledger values ('paid')")
        assert (await put(opened, job("another"))).changed
        with pytest.raises(TimeoutError, match=r"open for more than 0\.05 s.*all of it was taken back"):
            await own.fetch("select 1")
        with pytest.raises(TimeoutError):
            await own.commit(success)
    assert ledger(sql) == []
    assert await opened.commit_steps([(claim, success)]) == [Commit.COMMITTED]


async def test_a_statement_that_takes_too_long_is_broken_off(opened: SqliteStore, running: tuple[Claim, Step]) -> None:
    opened._sessions.longest = 0.05
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    async with opened.transaction(running[0]) as own:
        with pytest.raises(TimeoutError):
            await own.fetch(endless)
    assert (await put(opened, job("another"))).changed


async def test_a_statement_that_takes_everything_back_ends_it(
    opened: SqliteStore, sql: sqlite3.Connection, running: tuple[Claim, Step]
) -> None:
    """Else whatever comes behind it would be committed by itself."""
    claim, success = running
    async with opened.transaction(claim) as own:
        await own.execute("insert into ledger values ('same')")
        with pytest.raises(sqlite3.IntegrityError):
            await own.execute("insert or rollback into ledger values ('same')")
        with pytest.raises(RuntimeError, match="took the whole transaction back"):
            await own.execute("insert into ledger values ('stray')")
        with pytest.raises(RuntimeError, match="took the whole transaction back"):
            await own.commit(success)
    assert ledger(sql) == []
    assert await statuses(opened) == ["running"]


async def test_a_transaction_waits_for_another_process_and_gives_up_its_place_when_canceled(
    opened: SqliteStore, sql: sqlite3.Connection, running: tuple[Claim, Step]
) -> None:
    claim, success = running

    async def pay(entry: str) -> Commit:
        async with opened.transaction(claim) as own:
            await own.execute("insert into ledger values (?)", entry)
            return await own.commit(success)

    sql.execute("begin immediate")
    begun, waiting, last = (asyncio.create_task(pay(entry)) for entry in "abc")
    await opened.list()
    for canceled in (waiting, begun):
        canceled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await canceled
    sql.execute("commit")
    assert await last is Commit.COMMITTED
    assert ledger(sql) == ["c"]


async def test_closing_the_store_takes_back_what_is_open(
    path: Path, opened: SqliteStore, sql: sqlite3.Connection, running: tuple[Claim, Step]
) -> None:
    claim, success = running

    async def pay() -> None:
        async with opened.transaction(claim):
            raise AssertionError("the store is closed")

    async with opened.transaction(claim) as own:
        await own.execute("insert into ledger values ('paid')")
        waiting = asyncio.create_task(pay())
        await asyncio.sleep(0)
        await opened.close()
        with pytest.raises(StoreUnavailable, match="the store was closed"):
            await own.commit(success)
        with pytest.raises(StoreUnavailable, match="the store is not open"):
            await waiting
    assert ledger(sql) == []


async def test_what_a_transaction_logged_is_moved_into_the_file_too(
    opened: SqliteStore, path: Path, running: tuple[Claim, Step]
) -> None:
    claim, success = running
    await _is_moved(opened, path)
    async with opened.transaction(claim) as own:
        await own.commit(success)
    await _is_moved(opened, path)


async def _is_moved(opened: SqliteStore, path: Path) -> None:
    async with asyncio.timeout(60):
        while os.stat(f"{path}-wal").st_size:
            await opened.bell(0.02)


async def test_a_cancel_at_the_moment_of_the_turn_passes_the_turn_on(opened: SqliteStore) -> None:
    line = opened._sessions
    await line._enter()
    following, last = (asyncio.create_task(line._enter()) for _ in range(2))
    await asyncio.sleep(0)
    line._leave()
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    async with asyncio.timeout(60):
        await last
    line._leave()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_kill_around_the_commit_of_a_transaction_leaves_both_or_neither(
    path: Path, clock: ManualClock, moment: str
) -> None:
    """The task's rows and its success: never one without the other."""
    code = """
from tests.stores.acting import began, claim_one, ended, plan_once, put
async def main():
    clock = ManualClock()
    store = SqliteStore(path, clock=clock)
    await store.open()
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    async with store.transaction(claim) as own:
        await own.execute("create table ledger (job text)")
        await own.execute("insert into ledger values ('paid')")
        if sys.argv[2] == "before": die()
        await own.commit(ended(claim, began(claim, clock.time), clock.time))
        die()
asyncio.run(main())
"""
    await asyncio.to_thread(killed, begin(code, path, moment))
    clock.move(hours=1)
    store = SqliteStore(path, clock=clock)
    await store.open()
    both = moment == "after"
    assert await statuses(store) == (["completed"] if both else ["running"])
    assert (await put(store, job("another"))).changed
    await store.close()
    connection = sqlite3.connect(path)
    assert len(connection.execute("select * from sqlite_schema where name = 'ledger'").fetchall()) == both
    connection.close()
