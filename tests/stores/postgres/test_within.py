"""Requests on callers' connections: they block no other request, use no other connection, and ignore its codecs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import asyncpg
import pytest

from everytick.domain.facts import Pause, Replay, Resume, Trigger
from everytick.domain.payload import payload
from everytick.errors import Conflict, OccurrenceExists
from everytick.stores.base import Receipt
from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import job, occurrences, plan_once, put, statuses
from tests.stores.clock import ManualClock
from tests.stores.postgres.proxy import proxied


def ask(key: str, what: object = None) -> Trigger:
    return Trigger(key, None if what is None else payload(what))


@pytest.fixture(params=["known", "new"])
async def job_id(request: pytest.FixtureRequest, store: PostgresStore) -> str:
    """A job that was asked for before, by one statement, or that was not."""
    stored = await put(store, job(overlap="allow"))
    await plan_once(store)
    if request.param == "known":
        await store.request(stored.job_id, ask("first"))
        await plan_once(store)
    return stored.job_id


@pytest.fixture
async def own(store: PostgresStore) -> AsyncIterator[Any]:
    made = await asyncpg.connect(store.url)
    yield made
    await made.close()


async def until_it_waits(db: Any) -> None:
    waits = "select exists (select from pg_locks where locktype = 'advisory' and not granted)"
    async with asyncio.timeout(60):
        while not await db.fetchval(waits):
            pass


async def test_a_key_in_a_callers_open_transaction_does_not_block_the_job(
    store: PostgresStore, other: PostgresStore, db: Any, own: Any, job_id: str
) -> None:
    """S0-057: a web request that is sent again waits alone; other keys, plans and pauses of the job go on."""
    begun = own.transaction()
    await begun.start()
    id_ = (await store.request(job_id, ask("k", 1), within=own)).id
    again = asyncio.create_task(store.request(job_id, ask("k", 1)))
    await until_it_waits(db)
    async with asyncio.timeout(60):
        await other.request(job_id, ask("another"))
        await plan_once(other)
        await other.request(job_id, Pause())
        await other.request(job_id, Resume())
    assert not again.done()
    await begun.commit()
    assert await again == Receipt(id_, False)
    await plan_once(store)
    assert [each.id for each in await occurrences(store)].count(id_) == 1


async def test_a_key_of_a_transaction_that_rolled_back_goes_to_the_waiting_caller(
    store: PostgresStore, db: Any, own: Any, job_id: str
) -> None:
    begun = own.transaction()
    await begun.start()
    await store.request(job_id, ask("k", 1), within=own)
    again = asyncio.create_task(store.request(job_id, ask("k", 2)))
    await until_it_waits(db)
    await begun.rollback()
    id_ = (await again).id
    await plan_once(store)
    [made] = [each for each in await occurrences(store) if each.id == id_]
    assert made.overrides.get("payload") == payload(2)


async def test_a_key_whose_transaction_stays_open_is_refused_in_words(
    store: PostgresStore, own: Any, job_id: str
) -> None:
    store.requests.key_within = "10ms"
    async with own.transaction():
        await store.request(job_id, ask("k", 1), within=own)
        with pytest.raises(Conflict, match="key 'k' is being asked for in a transaction that is still open: commit it"):
            await store.request(job_id, ask("k", 1))
    with pytest.raises(OccurrenceExists):
        await store.request(job_id, ask("k", 2))


@asynccontextmanager
async def another_database(store: PostgresStore, server: Server, how: str) -> AsyncIterator[Any]:
    """Give a connection to a database beside the store's, which has tables of the same names."""
    plain = await asyncpg.connect(server.address)
    name = f"beside_{store.schema}"
    await plain.execute(f"create database {name}")
    address = server.address.rpartition("/")[0] + f"/{name}"
    made = PostgresStore(address, schema=store.schema)
    await made.open()
    await put(made, job(overlap="allow"))
    await made.close()
    db = await asyncpg.connect(address)
    try:
        if how == "a copy":
            number = await plain.fetchval(f"select id from {store.schema}.store")
            await db.execute(f"update {store.schema}.store set id = $1", number)
        yield db
    finally:
        await db.close()
        await plain.execute(f"drop database {name} with (force)")
        await plain.close()


@pytest.mark.parametrize("how", ["a store", "a copy"])
async def test_a_connection_to_another_database_with_a_store_of_its_own_is_refused(
    store: PostgresStore, postgres: Server, job_id: str, how: str
) -> None:
    """As staging is beside production: the occurrence would be requested there, without an error."""
    async with another_database(store, postgres, how) as db:
        with pytest.raises(Conflict, match=f"of another database, beside_{store.schema}, which has a store of its own"):
            await store.request(job_id, ask("k"), within=db)
        assert await db.fetchval(f"select count(*) from {store.schema}.request") == 0


@pytest.mark.parametrize("known", [True, False])
async def test_what_a_caller_makes_of_times_does_not_matter(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, own: Any, job_id: str, known: bool
) -> None:
    """A connection may read and write times in its own way, also those of a definition that is not known yet."""
    text = {"encoder": str, "decoder": str, "schema": "pg_catalog", "format": "text"}
    await own.set_type_codec("timestamptz", **text)
    asking = store if known else other
    original = Replay("k", "occ_1", clock.time, reason="again")
    async with own.transaction():
        id_ = (await asking.request(job_id, original, within=own)).id
    [kept] = (await asking.look([job_id]))[job_id].requests
    assert (kept.requested_at, kept.scheduled_for, kept.reason) == (clock.time, clock.time, "again")
    assert isinstance((await asking.get([job_id]))[job_id].job.created_at, datetime)
    await plan_once(asking)
    assert id_ in [each.id for each in await occurrences(store)]
    assert "pending" in await statuses(store)


@pytest.mark.timeout(60)
async def test_a_canceled_request_on_a_callers_connection_waits_for_no_frozen_server(
    postgres: Server, store: PostgresStore, db: Any, own: Any, job_id: str
) -> None:
    """C-28: what is open there must not commit by half, so the connection ends if the server does not roll back."""
    async with proxied(postgres) as proxy, own.transaction():
        await store.request(job_id, ask("k"), within=own)
        caller = await asyncpg.connect(proxy.address)
        asking = asyncio.create_task(store.request(job_id, ask("k"), within=caller))
        await until_it_waits(db)
        proxy.hold()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert caller.is_closed()
