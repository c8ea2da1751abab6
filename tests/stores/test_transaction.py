"""transaction: what a task writes and the success of its attempt are one commit, or nothing is."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from everytick.domain.outcome import Succeeded
from everytick.domain.payload import payload
from everytick.domain.steps import Step
from everytick.errors import TransactionsUnsupported
from everytick.stores.base import Claim, Commit, NodeScope
from everytick.stores.memory import MemoryStore
from tests.stores.acting import AnyStore, began, claim_one, ended, job, plan_once, put, statuses
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import SUITE

on_every_store_that_shares = pytest.mark.parametrize("store", ["sqlite", *SUITE], indirect=True)


class Ledger:
    """A table of the user's own in the store's database, read from outside of it."""

    def __init__(self, insert: str, select: str, read: Callable[[], Any]) -> None:
        self.insert, self.select, self.read = insert, select, read


@pytest.fixture
async def ledger(store: Any, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Ledger]:
    if (path := tmp_path / "store.db").exists():
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("create table ledger (entry text primary key)")

            async def of_the_file() -> list[str]:
                return [row[0] for row in file.execute("select entry from ledger order by entry")]

            yield Ledger("insert into ledger values (?)", "select entry from ledger", of_the_file)
        return
    table = f"{store.schema}.ledger"
    server = await asyncpg.connect(request.getfixturevalue("postgres").address)
    await server.execute(f"create table {table} (entry text primary key)")

    async def of_the_server() -> list[str]:
        return [row[0] for row in await server.fetch(f"select entry from {table} order by entry")]

    yield Ledger(f"insert into {table} values ($1)", f"select entry from {table}", of_the_server)
    await server.close()


async def running(store: AnyStore, clock: ManualClock, **policies: Any) -> tuple[Claim, Step]:
    """Return a claim and the step that its first task's success would be."""
    await put(store, job(**policies))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    return claim, ended(claim, began(claim, clock.time), clock.time, Succeeded(payload(42)))


@on_every_store_that_shares
async def test_the_writes_and_the_success_are_one_commit(store: AnyStore, clock: ManualClock, ledger: Ledger) -> None:
    claim, success = await running(store, clock)
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "paid")
        assert [tuple(row) for row in await own.fetch(ledger.select)] == [("paid",)]
        assert own.connection is not None
        assert await ledger.read() == [], "nobody else sees it yet"
        assert await own.commit(success) is Commit.COMMITTED
    assert await ledger.read() == ["paid"]
    whole = await store.whole(claim.occurrence.id)
    assert (whole.occurrence.status, whole.occurrence.owner) == ("completed", None)
    [(task, attempt)] = whole.attempts
    assert (task, attempt.status, attempt.ended_at) == ("main", "success", clock.time)


@on_every_store_that_shares
async def test_an_end_in_a_transaction_is_an_end_as_any_other(
    store: AnyStore, clock: ManualClock, ledger: Ledger
) -> None:
    """Its report is due, its job is woken, and the waiting occurrence comes next."""
    claim, success = await running(store, clock, overlap="queue", recovery="execute_all")
    clock.move(hours=1)
    await plan_once(store)
    assert await statuses(store) == ["running", "queued"]
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "paid")
        assert await own.commit(success) is Commit.COMMITTED
    assert [each.id for each in await store.reports(NodeScope("node-1"), 10)] == [claim.occurrence.id]
    assert await plan_once(store) == [Commit.COMMITTED]
    assert await statuses(store) == ["completed", "pending"]


@on_every_store_that_shares
async def test_an_occurrence_goes_on_after_the_transaction_of_its_first_task(
    store: AnyStore, clock: ManualClock, ledger: Ledger
) -> None:
    claim, success = await running(store, clock, tasks=("one", "two"))
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "one")
        assert await own.commit(success) is Commit.COMMITTED
    assert await statuses(store) == ["running"]
    last = ended(claim, success, clock.time)
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "two")
        assert await own.commit(last) is Commit.COMMITTED
    assert await ledger.read() == ["one", "two"]
    whole = await store.whole(claim.occurrence.id)
    assert [(task, str(attempt.status)) for task, attempt in whole.attempts] == [("one", "success"), ("two", "success")]


@on_every_store_that_shares
async def test_fenced_out_nothing_is_written(store: AnyStore, clock: ManualClock, ledger: Ledger) -> None:
    """E8: the zombie's own writes go the way of its step."""
    claim, success = await running(store, clock)
    [taken] = await store.orphans("node-2", 1, {}, [claim.key])
    before = await store.whole(claim.occurrence.id)
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "paid twice")
        assert await own.commit(success) is Commit.STALE
    assert await ledger.read() == []
    assert await store.whole(claim.occurrence.id) == before
    async with store.transaction(taken) as own:
        await own.execute(ledger.insert, "paid once")
        assert await own.commit(ended(taken, began(taken, clock.time), clock.time)) is Commit.COMMITTED
    assert await ledger.read() == ["paid once"]


@on_every_store_that_shares
async def test_leaving_without_a_commit_takes_everything_back(
    store: AnyStore, clock: ManualClock, ledger: Ledger
) -> None:
    claim, success = await running(store, clock)
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "forgotten")
    assert await ledger.read() == []
    assert await statuses(store) == ["running"]
    assert await store.commit_steps([(claim, success)]) == [Commit.COMMITTED]


@on_every_store_that_shares
async def test_what_is_raised_inside_takes_everything_back_and_comes_out(
    store: AnyStore, clock: ManualClock, ledger: Ledger
) -> None:
    claim, _ = await running(store, clock)

    async def spend() -> None:
        async with store.transaction(claim) as own:
            await own.execute(ledger.insert, "spent")
            raise LookupError("no such account")

    with pytest.raises(LookupError, match="no such account"):
        await spend()
    assert await ledger.read() == []
    assert await statuses(store) == ["running"]


@on_every_store_that_shares
async def test_a_statement_that_is_refused_leaves_the_store_as_it_was(
    store: AnyStore, clock: ManualClock, ledger: Ledger
) -> None:
    """The driver's own error comes out: the task knows what to do about its table."""
    claim, success = await running(store, clock)

    async def twice() -> None:
        async with store.transaction(claim) as own:
            await own.execute(ledger.insert, "same")
            await own.execute(ledger.insert, "same")

    with pytest.raises((sqlite3.IntegrityError, asyncpg.UniqueViolationError)):
        await twice()
    assert await ledger.read() == []
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "same")
        assert await own.commit(success) is Commit.COMMITTED
    assert await ledger.read() == ["same"]


@on_every_store_that_shares
async def test_a_step_that_was_written_before_is_stale_in_a_transaction(
    store: AnyStore, clock: ManualClock, ledger: Ledger
) -> None:
    """COMMITTED promises that the task's own writes are in, which a repeat cannot promise."""
    claim, success = await running(store, clock, tasks=("one", "two"))
    assert await store.commit_steps([(claim, success)]) == [Commit.COMMITTED]
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "again")
        assert await own.commit(success) is Commit.STALE
    assert await ledger.read() == []
    last = ended(claim, success, clock.time)
    assert await store.commit_steps([(claim, last)]) == [Commit.COMMITTED]
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "after the end")
        assert await own.commit(last) is Commit.STALE
    assert await ledger.read() == []


@on_every_store_that_shares
async def test_a_take_over_beside_an_open_transaction_comes_before_or_after_it(
    store: AnyStore, clock: ManualClock, ledger: Ledger
) -> None:
    """Never between its writes and its step: either both are there, or neither."""
    claim, success = await running(store, clock)
    async with store.transaction(claim) as own:
        await own.execute(ledger.insert, "paid")
        taking = asyncio.create_task(store.orphans("node-2", 1, {}, [claim.key]))
        for _ in range(100):
            await asyncio.sleep(0)
        answer = await own.commit(success)
    taken = await taking
    if answer is Commit.COMMITTED:
        assert (await ledger.read(), taken, await statuses(store)) == (["paid"], [], ["completed"])
    else:
        assert (await ledger.read(), len(taken), await statuses(store)) == ([], 1, ["running"])


@on_every_store_that_shares
async def test_two_claims_have_their_transactions_at_once(store: AnyStore, clock: ManualClock, ledger: Ledger) -> None:
    for name in ("one", "two"):
        await put(store, job(name))
    clock.move(hours=1)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), 5)
    begun = asyncio.Event()

    async def pay(claim: Claim, entry: str) -> Commit:
        async with store.transaction(claim) as own:
            await own.execute(ledger.insert, entry)
            begun.set()
            await own.fetch(ledger.select)
            return await own.commit(ended(claim, began(claim, clock.time), clock.time))

    first, second = (asyncio.create_task(pay(claim, name)) for claim, name in zip(claims, "ab", strict=True))
    await begun.wait()
    assert await store.list(), "people are answered meanwhile"
    assert list(await asyncio.gather(first, second)) == [Commit.COMMITTED] * 2
    assert await ledger.read() == ["a", "b"]
    assert await statuses(store) == ["completed"] * 2


@on_every_store_that_shares
async def test_a_task_canceled_in_its_transaction_blocks_no_other(
    store: AnyStore, clock: ManualClock, ledger: Ledger
) -> None:
    claim, _ = await running(store, clock)
    written = asyncio.Event()

    async def pay() -> None:
        async with store.transaction(claim) as own:
            await own.execute(ledger.insert, "half")
            written.set()
            await asyncio.Event().wait()

    paying = asyncio.create_task(pay())
    await written.wait()
    paying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await paying
    assert await ledger.read() == []
    assert await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))]) == [Commit.COMMITTED]


async def test_a_store_without_transactions_says_which_have_them(clock: ManualClock) -> None:
    store = MemoryStore(clock)
    claim, _ = await running(store, clock)
    with pytest.raises(TransactionsUnsupported, match="use sqlite:/// or postgresql://"):
        async with store.transaction(claim):
            pass
