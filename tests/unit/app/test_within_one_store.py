"""A trigger within the caller's own transaction: what holds on one store only."""

import sqlite3

import asyncpg  # type: ignore[import-untyped,unused-ignore]
import pytest

from everytick.app import Everytick
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import plan_once, statuses


@pytest.fixture
async def yearly(tick: Everytick) -> str:
    tick.job("0 0 1 1 *", name="yearly")(lambda: None)
    await tick.sync()
    return "yearly"


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
async def test_a_caller_who_has_not_committed_locks_no_one_out_of_the_job(
    tick: Everytick, store: PostgresStore, yearly: str
) -> None:
    """On PostgreSQL: SQLite has one writer, so there others wait for the caller's commit."""
    await plan_once(store)
    own = await asyncpg.connect(store.url)
    await own.execute("begin")
    await tick.trigger(yearly, within=own)
    await tick.pause(yearly, reason="meanwhile")
    await tick.resume(yearly)
    await tick.trigger(yearly)
    assert len(await plan_once(store)) == 1
    await own.execute("commit")
    assert len(await plan_once(store)) == 1
    assert sorted(await statuses(store)) == ["pending", "queued"]
    await own.close()


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_connection_as_python_makes_it_leaves_the_commit_to_its_owner(
    tick: Everytick, store: SqliteStore, yearly: str
) -> None:
    """On SQLite: by default any write begins a transaction, and the owner may have a row factory."""
    await plan_once(store)
    legacy = sqlite3.connect(str(store.address.file))
    legacy.row_factory = lambda _, row: {"row": row}
    await tick.trigger(yearly, within=legacy)
    assert legacy.in_transaction
    assert legacy.execute("select 1").fetchone() == {"row": (1,)}
    legacy.rollback()
    assert await plan_once(store) == []
    await tick.trigger(yearly, within=legacy)
    legacy.commit()
    assert len(await plan_once(store)) == 1
    legacy.close()
