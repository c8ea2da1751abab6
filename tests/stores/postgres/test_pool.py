"""The connections kept between two verbs: who gets them, when they end, and that none is lost."""

import asyncio
from collections.abc import AsyncIterator
from itertools import product

import asyncpg
import pytest

from everytick.errors import StoreUnavailable
from everytick.stores.postgres import pool as pools
from everytick.stores.postgres.connections import Connections, read_address
from tests.servers.launch import Server
from tests.stores.postgres.proxy import proxied

pytestmark = pytest.mark.timeout(60)

NAME = "of-the-pool"
OPEN_ONES = f"select count(*) from pg_stat_activity where application_name = '{NAME}'"


@pytest.fixture
async def connections(postgres: Server) -> AsyncIterator[Connections]:
    made = Connections(read_address(postgres.address), most=3, settings={"application_name": NAME})
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def other(postgres: Server) -> AsyncIterator[asyncpg.Connection]:
    """A session that looks on."""
    db = await asyncpg.connect(postgres.address)
    yield db
    await db.close()


async def session(connections: Connections) -> int:
    """Return the session that a verb gets."""
    async with connections.connection() as db:
        return int(await db.fetchval("select pg_backend_pid()"))


async def three_sessions(connections: Connections) -> set[int]:
    async with connections.connection() as a, connections.connection() as b, connections.connection() as c:
        return {await db.fetchval("select pg_backend_pid()") for db in (a, b, c)}


async def refuse(connections: Connections) -> None:
    """Have the server refuse a write, as one does that is a standby now."""
    with pytest.raises(StoreUnavailable):
        async with connections.connection() as db:
            await db.execute("begin read only; create table strange (a int)")


async def reopen(connections: Connections) -> None:
    await connections.close()
    await connections.open()


async def until_open(other: asyncpg.Connection, count: int) -> None:
    """Return when the server has so many sessions of the pool."""
    while await other.fetchval(OPEN_ONES) != count:
        pass


async def test_verbs_one_after_another_use_one_session(connections: Connections, other: asyncpg.Connection) -> None:
    assert len({await session(connections) for _ in range(5)}) == 1
    assert await other.fetchval(OPEN_ONES) == 1


async def test_callers_who_wait_get_the_connections_that_are_given_back(connections: Connections) -> None:
    for _ in range(5):
        found = await asyncio.gather(*(session(connections) for _ in range(20)))
        assert len(set(found)) <= 3


async def test_a_caller_who_waits_is_served_before_one_who_comes_later(connections: Connections) -> None:
    served = []

    async def ask(name: str) -> None:
        async with connections.connection():
            served.append(name)

    async with connections.connection(), connections.connection(), connections.connection():
        asking = [asyncio.create_task(ask(name)) for name in "abc"]
        await asyncio.sleep(0)
    await ask("later")
    await asyncio.gather(*asking)
    assert served[0] == "a"
    assert served.index("a") < served.index("b") < served.index("c")


async def test_a_caller_that_is_canceled_at_any_turn_of_the_loop_takes_no_place_with_it(
    connections: Connections,
) -> None:
    """G1: with as many places lost as there are, every verb would wait forever."""
    for turns, busy in product(range(25), (0, 3)):
        held = [await connections.borrow() for _ in range(busy)]
        asking = [asyncio.create_task(session(connections)) for _ in range(4)]
        for turn in range(turns):
            if held and turn % 3 == 0:
                connections.give_back(held.pop())
            await asyncio.sleep(0)
        for each in asking[:2]:
            each.cancel()
        for db in held:
            connections.give_back(db)
        await asyncio.gather(*asking, return_exceptions=True)
        assert all(isinstance(each.result(), int) for each in asking[2:])
    assert len(await three_sessions(connections)) == 3


async def test_a_caller_that_is_canceled_just_when_it_is_served_passes_the_connection_on(
    connections: Connections,
) -> None:
    held = [await connections.borrow() for _ in range(3)]
    asking = [asyncio.create_task(session(connections)) for _ in range(2)]
    await asyncio.sleep(0)
    connections.give_back(held.pop())
    asking[0].cancel()
    assert isinstance(await asking[1], int)
    cut = held.pop()
    cut.terminate()
    ending = asyncio.create_task(session(connections))
    await asyncio.sleep(0)
    for db in (*held, cut):
        connections.give_back(db)
    assert isinstance(await ending, int)


async def test_a_connection_that_the_server_has_cut_is_given_to_no_caller(
    connections: Connections, other: asyncpg.Connection
) -> None:
    first = await session(connections)
    is_cut = asyncio.Event()
    async with connections.connection() as db:
        db.add_termination_listener(lambda _: is_cut.set())
    await other.execute("select pg_terminate_backend($1)", first)
    await is_cut.wait()
    assert await session(connections) != first


async def test_callers_who_wait_are_served_though_every_session_is_cut(
    connections: Connections, other: asyncpg.Connection
) -> None:
    async with connections.connection() as a, connections.connection() as b, connections.connection() as c:
        asking = [asyncio.create_task(session(connections)) for _ in range(5)]
        for db in (a, b, c):
            db.terminate()
    assert len(set(await asyncio.gather(*asking))) <= 3


async def test_callers_who_wait_are_told_when_no_connection_can_be_made(postgres: Server) -> None:
    """C-28: each tries by itself, so none waits longer than the server is away."""
    async with proxied(postgres) as proxy:
        connections = Connections(read_address(proxy.address), most=1)
        await connections.open()
        asking = [asyncio.create_task(session(connections)) for _ in range(3)]
        async with connections.connection() as db:
            await asyncio.sleep(0)
            db.terminate()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(each) for each in found] == [StoreUnavailable] * 3
    await connections.close()


async def test_after_a_refused_write_none_of_the_old_sessions_is_used_again(connections: Connections) -> None:
    """Another server may have the name by now; the old one would go on refusing. Those in use end too."""
    old = await three_sessions(connections)
    async with connections.connection() as db:
        assert await db.fetchval("select pg_backend_pid()") in old
        await refuse(connections)
    assert not old & set(await asyncio.gather(*(session(connections) for _ in range(6))))


async def test_a_session_left_in_a_transaction_ends(connections: Connections) -> None:
    async with connections.connection() as db:
        first = await db.fetchval("select pg_backend_pid()")
        await db.execute("begin")
    assert await session(connections) != first


async def test_a_statement_that_is_broken_off_ends_on_the_server_too(
    connections: Connections, other: asyncpg.Connection
) -> None:
    """It would hold its locks: the caller goes on once the server has canceled it."""
    await other.execute("drop table if exists public.held; create table public.held (a int)")
    begun = asyncio.Event()

    async def hold() -> None:
        async with connections.transaction() as db:
            await db.execute("lock table public.held")
            begun.set()
            await db.execute("select pg_sleep(600)")

    holding = asyncio.create_task(hold())
    await begun.wait()
    await until_open(other, 1)
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    await other.execute("set lock_timeout = '20s'; lock table public.held")  # raises if it is still locked
    await other.execute("drop table public.held")


class Stuck:
    """A connection of a driver whose close waits for the server, however long."""

    def is_closed(self) -> bool:
        return False

    async def close(self, **_: float) -> None:
        await asyncio.Event().wait()


async def test_no_driver_lets_an_end_wait_for_a_frozen_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncpg 0.30 and 0.31 wait without end until the server has canceled a statement."""
    monkeypatch.setattr(pools, "_CLOSE_SECONDS", 0.01)

    async def connect() -> Stuck:
        return Stuck()

    pool = pools.Pool(connect, 1, "the store")
    ending = pool.end(await pool.take())
    assert ending is not None
    await ending
    assert isinstance(await pool.take(), Stuck)


async def test_connections_that_are_idle_for_long_are_closed(
    connections: Connections, other: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Firewalls forget silent connections, and tell neither side."""
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.05)
    await reopen(connections)
    await three_sessions(connections)
    await until_open(other, 0)
    assert isinstance(await session(connections), int)


async def test_a_connection_that_is_in_use_is_never_too_idle(
    connections: Connections, other: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.05)
    await reopen(connections)
    async with connections.connection() as db:
        await three_others(connections)
        await until_open(other, 1)
        assert await db.fetchval("select 1") == 1


async def three_others(connections: Connections) -> None:
    """Use the two places that are left, one of them twice."""
    async with connections.connection(), connections.connection():
        pass
    await session(connections)


async def test_a_connection_that_is_old_ends_when_it_is_given_back(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "LIFE_SECONDS", -1.0)
    await reopen(connections)
    assert len({await session(connections) for _ in range(3)}) == 3


async def test_closing_ends_every_session(connections: Connections, other: asyncpg.Connection) -> None:
    await three_sessions(connections)
    assert await other.fetchval(OPEN_ONES) == 3
    await connections.close()
    await until_open(other, 0)


async def test_closing_waits_for_what_is_in_use_and_refuses_what_waits(
    connections: Connections, other: asyncpg.Connection
) -> None:
    held = [await connections.borrow() for _ in range(3)]
    waiting = asyncio.create_task(session(connections))
    await asyncio.sleep(0)
    pool = connections._pool
    assert pool is not None
    closing = asyncio.create_task(pool.close())
    with pytest.raises(StoreUnavailable, match="not open"):
        await waiting
    assert await held[0].fetchval("select 1") == 1
    for db in held:
        pool.give_back(db)
    await closing
    await until_open(other, 0)


async def test_closing_waits_for_what_is_in_use_though_there_was_no_connection_for_a_while(
    connections: Connections, other: asyncpg.Connection
) -> None:
    pool = connections._pool
    assert pool is not None
    pool.expire()
    await until_open(other, 0)
    held = await connections.borrow()
    closing = asyncio.create_task(connections.close())
    await asyncio.sleep(0)
    assert await held.fetchval("select 1") == 1
    connections.give_back(held)
    await closing
    await until_open(other, 0)


async def test_closing_waits_no_longer_than_for_what_is_in_use(
    connections: Connections, other: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch or a task's transaction that ends meanwhile gives back what it has borrowed."""
    monkeypatch.setattr(pools, "_LEAVE_SECONDS", 600.0)
    held = [await connections.borrow() for _ in range(3)]
    closing = asyncio.create_task(connections.close())
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable, match="not open"):
        await connections.borrow()
    for db in held:
        connections.give_back(db)
    await closing
    await until_open(other, 0)


async def test_a_connection_that_comes_back_after_the_store_was_closed_is_cut(
    connections: Connections, other: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_LEAVE_SECONDS", 0.05)
    late = await connections.borrow()
    await connections.close()
    assert late.is_closed()
    await connections.open()
    connections.give_back(late)
    assert isinstance(await session(connections), int)


async def test_a_connection_that_is_made_while_the_pool_closes_is_closed(
    postgres: Server, other: asyncpg.Connection
) -> None:
    may_connect = asyncio.Event()

    async def connect() -> asyncpg.Connection:
        await may_connect.wait()
        return await asyncpg.connect(postgres.address, server_settings={"application_name": NAME})

    pool = pools.Pool(connect, 1, "the store")
    taking = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)
    may_connect.set()
    with pytest.raises(StoreUnavailable, match="not open"):
        await taking
    await closing
    await until_open(other, 0)


async def test_a_close_that_is_broken_off_cuts_every_line(connections: Connections, other: asyncpg.Connection) -> None:
    await three_sessions(connections)
    closing = asyncio.create_task(connections.close())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await until_open(other, 0)
    await connections.open()
    assert isinstance(await session(connections), int)


async def test_a_store_whose_server_was_frozen_at_its_close_can_be_opened_again(postgres: Server) -> None:
    async with proxied(postgres) as proxy:
        connections = Connections(read_address(proxy.address), most=3)
        await connections.open()
        await three_sessions(connections)
        proxy.hold()
        await connections.close()
        proxy.let_pass()
        await connections.open()
        assert isinstance(await session(connections), int)
        await connections.close()


async def test_a_caller_that_is_canceled_while_the_store_closes_is_canceled(connections: Connections) -> None:
    """A cancellation that came out as `StoreUnavailable` would be taken for an outage."""
    begun = asyncio.Event()

    async def work() -> None:
        async with connections.connection() as db:
            begun.set()
            await db.fetchval("select pg_sleep(600)")

    working = asyncio.create_task(work())
    await begun.wait()
    closing = asyncio.create_task(connections.close())
    await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    await closing
