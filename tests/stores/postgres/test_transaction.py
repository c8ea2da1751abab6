"""A task's transaction: its rows and its success together, or neither, also after cut connections and take-overs."""

import asyncio
from typing import Any

import asyncpg
import pytest

from everytick.domain.steps import Step
from everytick.errors import StoreUnavailable
from everytick.stores.base import Claim, Commit, NodeScope
from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import began, ended, job, plan_once, put, statuses, unheard
from tests.stores.clock import ManualClock
from tests.stores.postgres.proxy import Cut, Proxy


@pytest.fixture
async def book(store: PostgresStore, db: Any) -> str:
    """The name of a table of the task's own."""
    await db.execute("create table booking (seat int primary key)")
    return f"{store.schema}.booking"


@pytest.fixture
async def running(store: PostgresStore, clock: ManualClock) -> tuple[Claim, Step]:
    """A claim, and the step that ends it well."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 1)
    return claim, ended(claim, began(claim, clock.time), clock.time)


async def seats(db: Any) -> list[int]:
    return [row["seat"] for row in await db.fetch("select seat from booking order by seat")]


async def test_what_a_task_writes_and_its_success_become_true_together(
    store: PostgresStore, running: tuple[Claim, Step], book: str, db: Any
) -> None:
    claim, step = running
    async with store.transaction(claim) as begun:
        await begun.execute(f"insert into {book} values ($1)", 7)
        assert await begun.fetch(f"select seat from {book}") == [(7,)]
        assert await begun.connection.fetchval("select 1") == 1
        assert await seats(db) == []
        assert await statuses(store) == ["running"]
        assert await begun.commit(step) is Commit.COMMITTED
        assert await seats(db) == [7]
    assert await statuses(store) == ["completed"]


async def test_a_task_that_was_fenced_out_has_written_nothing(
    store: PostgresStore, other: PostgresStore, running: tuple[Claim, Step], book: str, db: Any, clock: ManualClock
) -> None:
    """E8: the node looks dead, another takes over, and then the zombie comes to its commit."""
    claim, step = running
    async with store.transaction(claim) as begun:
        await begun.execute(f"insert into {book} values (7)")
        clock.move(seconds=30)
        await other.beat("reaper", [])
        assert len(await other.orphans("reaper", 10, await unheard(other))) == 1
        assert await begun.commit(step) is Commit.STALE
    assert await seats(db) == []
    assert await db.fetchrow("select status, owner from occurrences") == ("running", "reaper")


async def test_leaving_without_a_commit_takes_everything_back(
    store: PostgresStore, running: tuple[Claim, Step], book: str, db: Any
) -> None:
    claim, step = running

    async def body() -> None:
        async with store.transaction(claim) as begun:
            await begun.execute(f"insert into {book} values (7)")
            raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await body()
    assert await seats(db) == []
    assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]


async def test_a_task_that_is_canceled_in_a_statement_takes_everything_back(
    store: PostgresStore, running: tuple[Claim, Step], book: str, db: Any
) -> None:
    claim, _ = running

    async def body() -> None:
        async with store.transaction(claim) as begun:
            await begun.execute(f"insert into {book} values (7)")
            await begun.execute("select pg_sleep(600)")

    task = asyncio.create_task(body())
    while not await db.fetchval("select exists (select from pg_stat_activity where wait_event = 'PgSleep')"):
        pass
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await seats(db) == []
    assert await db.fetchval("select count(*) from pg_stat_activity where state like 'idle in transaction%'") == 0
    assert await statuses(store) == ["running"]


async def test_what_the_server_says_to_a_tasks_own_statement_is_for_the_task(
    store: PostgresStore, running: tuple[Claim, Step], book: str
) -> None:
    """A broken rule, a missing argument and a timeout of the task's own are not a store that is unavailable."""
    claim, _ = running
    async with store.transaction(claim) as begun:
        with pytest.raises(asyncpg.InterfaceError):
            await begun.execute(f"insert into {book} values ($1)", 7, 8)
        await begun.execute("savepoint here")
        await begun.execute("set local statement_timeout = 1")
        with pytest.raises(asyncpg.QueryCanceledError):
            await begun.execute("select pg_sleep(600)")
        await begun.execute("rollback to here")
        await begun.execute(f"insert into {book} values (7)")
        with pytest.raises(asyncpg.UniqueViolationError):
            await begun.execute(f"insert into {book} values (7)")


async def test_a_transaction_that_is_over_takes_nothing_more(
    store: PostgresStore, running: tuple[Claim, Step], book: str, db: Any
) -> None:
    """It would commit by itself, apart from everything."""
    claim, step = running
    async with store.transaction(claim) as begun:
        await begun.commit(step)
        with pytest.raises(RuntimeError, match="this transaction is over"):
            await begun.execute(f"insert into {book} values (7)")
    assert await seats(db) == []


async def test_a_task_that_ends_its_transaction_by_itself_is_told_so(
    store: PostgresStore, running: tuple[Claim, Step]
) -> None:
    claim, step = running
    async with store.transaction(claim) as begun:
        await begun.execute("commit")
        with pytest.raises(RuntimeError, match="leave commit and rollback to everytick"):
            await begun.commit(step)
    assert await statuses(store) == ["running"]


async def test_what_a_task_sets_for_its_session_is_gone_with_its_transaction(
    postgres: Server, store: PostgresStore, running: tuple[Claim, Step], clock: ManualClock
) -> None:
    claim, step = running
    one = PostgresStore(postgres.address, schema=store.schema, clock=clock, connections=2)
    await one.open()
    async with one.transaction(claim) as begun:
        await begun.execute("set timezone = 'Pacific/Apia'")
        await begun.commit(step)
    async with one.transaction(claim) as first, one.transaction(claim) as second:
        for each in (first, second):
            assert await each.fetch("show timezone") != [("Pacific/Apia",)]
    await one.close()


async def test_a_commit_whose_reply_is_lost_is_committed(
    through: tuple[Proxy, PostgresStore], running: tuple[Claim, Step], book: str, db: Any
) -> None:
    """G9: the line breaks after the server has committed and before the node hears of it."""
    (proxy, store), (claim, step) = through, running
    async with store.transaction(claim) as begun:
        await begun.execute(f"insert into {book} values (7)")
        proxy.arm(Cut.AFTER)
        assert await begun.commit(step) is Commit.COMMITTED
    assert proxy.cuts == 1
    assert await seats(db) == [7]
    assert await db.fetchval("select status from occurrences") == "completed"


async def test_a_commit_that_never_reached_the_server_is_unavailable_and_nothing_was_written(
    through: tuple[Proxy, PostgresStore], running: tuple[Claim, Step], book: str, db: Any
) -> None:
    (proxy, store), (claim, step) = through, running
    async with store.transaction(claim) as begun:
        await begun.execute(f"insert into {book} values (7)")
        proxy.arm(Cut.BEFORE)
        with pytest.raises(StoreUnavailable):
            await begun.commit(step)
    assert proxy.cuts == 1
    assert await seats(db) == []
    assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]


async def test_a_session_that_is_cut_in_a_task_is_unavailable_and_nothing_was_written(
    store: PostgresStore, running: tuple[Claim, Step], book: str, db: Any
) -> None:
    claim, step = running
    async with store.transaction(claim) as begun:
        await begun.execute(f"insert into {book} values (7)")
        [(pid,)] = await begun.fetch("select pg_backend_pid()")
        await db.fetchval("select pg_terminate_backend($1, 5000)", pid)
        with pytest.raises(StoreUnavailable):
            await begun.execute(f"insert into {book} values (8)")
    assert await seats(db) == []
    assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("leaves", ["told to", "by itself", "after its commit"])
async def test_a_task_leaves_its_transaction_though_the_server_is_frozen(
    through: tuple[Proxy, PostgresStore], running: tuple[Claim, Step], book: str, db: Any, leaves: str
) -> None:
    """C-28: a node that stops would wait for the rollback for ever."""
    (proxy, store), (claim, step), is_frozen = through, running, asyncio.Event()

    async def body() -> None:
        async with store.transaction(claim) as begun:
            await begun.execute(f"insert into {book} values (7)")
            if leaves == "after its commit":
                assert await begun.commit(step) is Commit.COMMITTED
            proxy.hold()
            is_frozen.set()
            if leaves == "told to":
                await begun.execute(f"insert into {book} values (8)")

    task = asyncio.create_task(body())
    await is_frozen.wait()
    if leaves == "told to":
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled() == (leaves == "told to")
    proxy.let_pass()
    assert await statuses(store) == ["completed" if leaves == "after its commit" else "running"]
    assert await seats(db) == ([7] if leaves == "after its commit" else [])
