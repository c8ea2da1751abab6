"""A trigger within the caller's own transaction: asked for when that commits, and never if it does not."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped,unused-ignore]
import pytest

from everytick.app import Everytick
from everytick.domain.facts import Trigger
from everytick.errors import Conflict, NotFound, OccurrenceExists
from everytick.stores.addresses import AnyStore
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import FAILED, everything, plan_once, run_one, statuses
from tests.stores.clock import ManualClock

pytestmark = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)


class Own:
    """The caller's connection, and how it begins, writes and ends a transaction."""

    def __init__(self, connection: Any, execute: Callable[[str], Awaitable[Any]]) -> None:
        self.connection, self.execute = connection, execute


@pytest.fixture
async def own(store: AnyStore) -> AsyncIterator[Own]:
    """A connection of the caller's to where the store is; in memory there is none."""
    if isinstance(store, PostgresStore):
        db = await asyncpg.connect(store.url)
        await db.execute("create temp table orders (id int)")
        yield Own(db, db.execute)
        await db.close()
    elif isinstance(store, SqliteStore):
        plain = sqlite3.connect(str(store.address.file), isolation_level=None)
        plain.execute("create table orders (id integer)")

        async def execute(sql: str) -> object:
            return plain.execute(sql)

        yield Own(plain, execute)
        plain.close()


@pytest.fixture
async def yearly(tick: Everytick, store: AnyStore) -> str:
    tick.job("0 0 1 1 *", name="yearly")(lambda **payload: None)
    await tick.sync()
    await plan_once(store)
    return "yearly"


async def _due(store: AnyStore) -> int:
    """How many jobs a planner would look at now; nothing is written, for a caller of SQLite holds the file."""
    async with store.due(await everything(store), 10) as batch:
        return len(batch.snapshots)


async def test_it_is_asked_for_when_the_callers_transaction_commits(
    tick: Everytick, store: AnyStore, own: Own, yearly: str
) -> None:
    await own.execute("begin")
    await own.execute("insert into orders values (1)")
    handle = await tick.trigger(yearly, payload={"order": 1}, by="ada", within=own.connection)
    assert await _due(store) == 0
    await own.execute("commit")
    assert len(await plan_once(store)) == 1
    found = (await tick.occurrence(handle.id)).occurrence
    assert (found.status, found.overrides.get("payload").read()) == ("pending", {"order": 1})
    assert found.reason is not None
    assert "by ada" in found.reason


async def test_a_run_asked_for_later_belongs_to_the_callers_transaction_too(
    tick: Everytick, store: AnyStore, own: Own, yearly: str, clock: ManualClock
) -> None:
    """A9: at its time if the transaction commits, and never if it is rolled back."""
    for key, end in (("kept", "commit"), ("lost", "rollback")):
        await own.execute("begin")
        await tick.trigger(yearly, {"order": 1}, key=key, after="10m", within=own.connection)
        await own.execute(end)
    [asked, _] = await tick.upcoming(yearly, 2)
    assert asked.at == clock.time + timedelta(minutes=10)
    await plan_once(store)
    assert await statuses(store) == []
    clock.move(minutes=10)
    await plan_once(store)
    assert await statuses(store) == ["pending"]


async def test_nothing_is_asked_for_if_it_is_rolled_back(
    tick: Everytick, store: AnyStore, own: Own, yearly: str
) -> None:
    await own.execute("begin")
    handle = await tick.trigger(yearly, key="once", within=own.connection)
    await own.execute("rollback")
    assert await plan_once(store) == []
    with pytest.raises(NotFound):
        await tick.occurrence(handle.id)
    again = await tick.trigger(yearly, key="once")
    await plan_once(store)
    assert (again.id, await statuses(store)) == (handle.id, ["pending"])


async def test_without_an_open_transaction_it_is_asked_for_at_once(
    tick: Everytick, store: AnyStore, own: Own, yearly: str
) -> None:
    await tick.trigger(yearly, within=own.connection)
    assert len(await plan_once(store)) == 1


async def test_what_is_refused_leaves_the_callers_transaction_as_it_was(
    tick: Everytick, store: AnyStore, own: Own, yearly: str
) -> None:
    await tick.trigger(yearly, key="k", payload={"x": 1})
    await own.execute("begin")
    await own.execute("insert into orders values (1)")
    with pytest.raises(OccurrenceExists):
        await tick.trigger(yearly, key="k", payload={"x": 2}, within=own.connection)
    await own.execute("insert into orders values (2)")
    await tick.trigger(yearly, key="k", payload={"x": 1}, within=own.connection)
    await own.execute("commit")
    await plan_once(store)
    assert await statuses(store) == ["pending"]


async def test_the_bell_rings_when_the_caller_commits(tick: Everytick, store: AnyStore, own: Own, yearly: str) -> None:
    while await store.bell(0.3):
        pass
    await own.execute("begin")
    await tick.trigger(yearly, within=own.connection)
    assert await store.bell(0.3) is False
    await own.execute("commit")
    assert await store.bell(20) is True


async def test_a_job_that_is_only_defined_is_not_stored_by_it(tick: Everytick, store: AnyStore, own: Own) -> None:
    tick.job("0 0 1 1 *", name="new")(lambda: None)
    with pytest.raises(NotFound):
        await tick.trigger("new", within=own.connection)


async def test_a_connection_to_somewhere_else_is_refused(
    tick: Everytick, store: AnyStore, own: Own, yearly: str, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match="not a str"):
        await tick.trigger(yearly, within="postgresql://here")
    if isinstance(store, SqliteStore):
        for elsewhere in (":memory:", str(tmp_path / "other.db")):
            other = sqlite3.connect(elsewhere)
            with pytest.raises(Conflict, match="this store is in"):
                await tick.trigger(yearly, within=other)
            other.close()
    else:
        await own.execute(f'alter schema "{store.schema}" rename to elsewhere_for_now')  # type: ignore[attr-defined]
        try:
            with pytest.raises(Conflict, match="does not lead to the schema"):
                await store.request("job", _asked(), within=own.connection)
            assert await own.connection.fetchval("select 1") == 1
        finally:
            await own.execute(f'alter schema elsewhere_for_now rename to "{store.schema}"')  # type: ignore[attr-defined]


def _asked() -> Any:
    return Trigger("k")


async def test_a_key_is_free_again_after_a_failure_within_a_transaction_too(
    tick: Everytick, store: AnyStore, own: Own, yearly: str
) -> None:
    """S1-001, W7: and a rollback leaves the key as it was."""
    found = []
    for _ in range(2):
        await own.execute("begin")
        found.append((await tick.trigger(yearly, key="k", within=own.connection)).id)
        assert (await tick.trigger(yearly, key="k", within=own.connection)).id == found[-1]
        await own.execute("commit")
        await plan_once(store)
        await run_one(store, FAILED)
    assert found[0] != found[1]
    await own.execute("begin")
    third = await tick.trigger(yearly, key="k", within=own.connection)
    await own.execute("rollback")
    assert (await tick.trigger(yearly, key="k")).id == third.id
