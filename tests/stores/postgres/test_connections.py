"""Connections to the server: addresses, and errors when it does not answer."""

import asyncio
import socket
import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import product

import asyncpg
import pytest

from everytick.errors import InvalidName, StoreUnavailable
from everytick.stores.base import Nodes, NodeScope
from everytick.stores.moving.postgres_side import PostgresSide
from everytick.stores.postgres import connections
from everytick.stores.postgres import pool as pools
from everytick.stores.postgres.connections import SESSION, Address, read_address
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sql.commands import Ask, Verb
from tests.servers.launch import Server
from tests.stores.acting import claim_one, job, plan_once, put
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import CUT_ALL_SESSIONS
from tests.stores.postgres.proxy import Proxy, proxied


def test_what_is_ours_in_a_url_is_taken_out_of_it() -> None:
    url = "postgresql://ada@db:5433/jobs?sslmode=require&schema=nightly&pooling=transaction"
    assert read_address(url) == Address("postgresql://ada@db:5433/jobs?sslmode=require", "nightly", True)
    assert read_address("postgresql://db/jobs") == Address("postgresql://db/jobs", "everytick", False)
    assert read_address(url, schema="daily", pooling=False).schema == "daily"


@pytest.mark.parametrize("query", ["schema=Nightly", "schema=a;drop", 'schema=a"b', "pooling=statement"])
def test_a_url_that_cannot_be_meant_is_refused(query: str) -> None:
    with pytest.raises(InvalidName):
        read_address(f"postgresql://db/jobs?{query}")


def test_a_password_never_stands_in_a_message() -> None:
    assert str(read_address("postgresql://ada:secret@db:5433/jobs")) == "PostgreSQL at db:5433/jobs"


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    """G1: a port that was bound and closed does not answer."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await PostgresStore(f"postgresql://ada@127.0.0.1:{port}/none").open()


async def test_a_store_that_was_closed_is_unavailable(store: PostgresStore) -> None:
    await store.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.now()


async def test_statements_are_planned_once_by_index_and_those_of_a_task_by_the_server(
    store: PostgresStore, clock: ManualClock
) -> None:
    """To plan one takes longer than to carry it out; on tables that are empty yet, a plan would read them whole."""
    async with store._connections.connection() as db:
        assert {name: await db.fetchval(f"show {name}") for name in SESSION} == SESSION
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    async with store.transaction(await claim_one(store)) as begun:
        own = {name: (await begun.fetch(f"show {name}"))[0][0] for name in SESSION}
        assert own == {**dict.fromkeys(SESSION, "on"), "plan_cache_mode": "auto"}
    async with store._connections.connection() as db:
        assert await db.fetchval("show enable_seqscan") == "off"


async def test_a_value_that_cannot_be_sent_leaves_no_transaction_open(store: PostgresStore) -> None:
    """G2: the driver has sent the statement already; the next verb on this connection begins its own transaction."""

    async def ask_too_much() -> None:
        async with store._connections.connection() as db:
            await db.execute("select $1::integer", 1 << 70)

    with pytest.raises(asyncpg.DataError):
        await ask_too_much()
    assert await store.list() == []


async def test_work_goes_on_after_every_session_was_cut(store: PostgresStore, db: object) -> None:
    """G2: the call at that moment fails, the next one is answered."""
    await put(store, job())
    await db.execute(CUT_ALL_SESSIONS)  # type: ignore[attr-defined]
    for _ in range(10):
        try:
            assert len(await store.list()) == 1
            break
        except StoreUnavailable:
            continue
    assert len(await store.list()) == 1
    assert await store.bell(20), "the listener was cut too: what it missed is a reason to look"
    await put(store, job("another"))
    assert await store.bell(20)


async def test_a_server_that_is_away_is_called_by_us_alone_and_no_traceback_is_logged(
    postgres: Server, store: PostgresStore, clock: ManualClock, db: object, caplog: pytest.LogCaptureFixture
) -> None:
    """C-28: drivers restore a least number of sessions by themselves, and log a traceback for each time they cannot."""
    async with proxied(postgres) as proxy:
        node = PostgresStore(proxy.address, schema=store.schema, clock=clock)
        await node.open()
        await node.now()
    await db.execute(CUT_ALL_SESSIONS)  # type: ignore[attr-defined]
    for _ in range(10):
        with pytest.raises(StoreUnavailable):
            await node.now()
    await node.close()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("asyncpg")] == []


def option(session: asyncpg.Connection, level: int, name: str) -> int:
    found: int = session._transport.get_extra_info("socket").getsockopt(level, getattr(socket, name))
    return found


async def test_a_host_that_died_without_a_word_is_noticed(postgres: Server, store: PostgresStore) -> None:
    """C-28: a verb that waits for its answer, the bell, or a move would wait for ever, also after a failover."""
    listener, side = store._bell._listener, PostgresSide(read_address(postgres.address, store.schema))
    assert listener is not None
    await side.now()
    async with store._connections.connection() as db:
        for session in (db, listener, side._db):
            assert option(session, socket.SOL_SOCKET, "SO_KEEPALIVE")
            if sys.platform == "linux":
                assert option(session, socket.IPPROTO_TCP, "TCP_KEEPIDLE") == 5
                assert option(session, socket.IPPROTO_TCP, "TCP_USER_TIMEOUT") == 15_000
    await side.close()


async def test_an_option_that_the_system_refuses_keeps_no_other_from_being_set(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_PROBES", {"TCP_KEEPIDLE": -1, "TCP_KEEPCNT": 2})
    db = await connections.connected(read_address(postgres.address))
    assert option(db, socket.IPPROTO_TCP, "TCP_KEEPCNT") == 2
    await db.close()


async def test_a_bell_that_was_broken_off_before_it_listened_is_hung_up_anew(
    through: tuple[Proxy, PostgresStore], store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node waits for the bell with a timeout of its own. A session that does not listen would never ring again."""
    proxy, node = through
    listener, connect, is_frozen = node._bell._listener, node._connections.connect, asyncio.Event()

    async def connect_and_freeze() -> asyncpg.Connection:
        made = await connect()
        proxy.hold()
        is_frozen.set()
        return made

    assert listener is not None
    listener.terminate()
    with monkeypatch.context() as frozen:
        frozen.setattr(node._connections, "connect", connect_and_freeze)
        waiting = asyncio.create_task(node.bell(20))
        await is_frozen.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    proxy.let_pass()
    assert await node.bell(20), "what rang meanwhile is not known"
    await node.bell(0)
    await put(store, job())
    assert await node.bell(20)


async def test_a_store_that_cannot_listen_leaves_no_connection_open(
    postgres: Server, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server has no connection left, each try to open the store would take one more."""
    store = PostgresStore(postgres.address, settings={"application_name": "of-the-deaf"})

    async def refuse() -> None:
        raise StoreUnavailable("the server", "too many connections")

    monkeypatch.setattr(store._bell, "open", refuse)
    with pytest.raises(StoreUnavailable, match="too many"):
        await store.open()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.now()
    while await db.fetchval("select count(*) from pg_stat_activity where application_name = 'of-the-deaf'"):
        pass


async def test_a_store_whose_server_is_frozen_can_be_closed(
    through: tuple[Proxy, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_CLOSE_SECONDS", 0.05)
    proxy, node = through
    proxy.hold()
    await node.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await node.now()


@pytest.mark.parametrize("kind", ["connection", "transaction"])
async def test_a_canceled_wait_for_a_frozen_server_ends_at_once(postgres: Server, kind: str) -> None:
    """C-28: a timeout that itself needs an answer would be none; afterwards connections can be had again."""
    async with proxied(postgres) as proxy:
        store = PostgresStore(proxy.address, connections=1)
        await store.open()
        asked = asyncio.Event()

        async def ask(meanwhile: Callable[[], None]) -> object:
            async with getattr(store._connections, kind)() as db:
                meanwhile()
                asked.set()
                return await db.fetchval("select 1")

        asking = asyncio.ensure_future(ask(proxy.hold))
        await asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        proxy.let_pass()
        assert await ask(lambda: None) == 1
        await store.close()


async def test_a_canceled_question_to_a_frozen_server_ends_at_once(postgres: Server) -> None:
    """C-28: it is asked in a transaction, whose rollback the server would not answer either."""
    async with proxied(postgres) as proxy:
        store = PostgresStore(proxy.address, connections=1)
        await store.open()
        asked = asyncio.Event()

        def ask() -> Verb[object]:
            proxy.hold()
            asked.set()
            return (yield Ask.NOW)

        asking = asyncio.create_task(store._question(ask))
        await asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        proxy.let_pass()
        assert isinstance(await store.ask(Nodes()), list)
        await store.close()


async def test_a_batch_that_is_broken_off_waits_for_no_frozen_server(
    through: tuple[Proxy, PostgresStore], store: PostgresStore, clock: ManualClock
) -> None:
    """C-28: its jobs are locked, until the server hears that the session has ended."""
    proxy, node = through
    await put(store, job())
    clock.move(hours=1)
    node.jobs_due.unheld, node.jobs_due.held_for = 0, timedelta(hours=1)
    begun = asyncio.Event()

    async def hold() -> None:
        async with node.due(NodeScope("node-1"), 10):
            proxy.hold()
            begun.set()
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    await begun.wait()
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    proxy.let_pass()
    is_given = False
    while not is_given:  # once the server has heard
        async with node.due(NodeScope("node-1"), 10) as batch:
            is_given = bool(batch.snapshots)


async def test_a_transaction_commits_or_rolls_back_whole_whatever_ends_it(store: PostgresStore) -> None:
    table = f"{store._connections.address.schema}.noted"

    async def note(word: str, error: BaseException | None) -> None:
        async with store._connections.transaction() as db:
            await db.execute(f"create table if not exists {table} (word text)")
            await db.execute(f"insert into {table} values ($1)", word)
            if error is not None:
                raise error

    await note("kept", None)
    for error in (ValueError("no"), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            await note("lost", error)
    async with store._connections.connection() as db:
        assert [row["word"] for row in await db.fetch(f"select word from {table}")] == ["kept"]


async def test_two_cancels_at_any_turns_of_the_loop_stop_the_wait(store: PostgresStore) -> None:
    """G1: a cancellation that came out as `StoreUnavailable` would be taken for an outage."""
    became = []
    for before, between in product(range(12), range(1, 6)):
        asking = asyncio.create_task(store.ask(Nodes()))
        for turns in (before, between):
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
        [became_of] = await asyncio.gather(asking, return_exceptions=True)
        became.append(became_of)
    assert all(isinstance(each, (asyncio.CancelledError, list)) for each in became), became


async def test_where_nothing_is_promised_a_node_asks_no_more_than_that(store: PostgresStore) -> None:
    """Each node asks every few seconds, also on an idle fleet."""
    await put(store, job())
    asked: list[str] = []
    async with store._connections.connection() as db:
        db.add_query_logger(lambda record: asked.append(record.query))
    await store.promises(NodeScope("node-1"), 100)
    now, due, owed = (query for query in asked if query.startswith("select"))
    assert "everytick_now()" in now
    assert ".promise p" in due
    assert ".breach b" in owed
