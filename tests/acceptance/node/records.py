"""What the store holds, read by the test itself once the processes have spoken."""

import asyncio
import sqlite3
from typing import Any

import asyncpg

from everytick.stores.addresses import store_of
from everytick.stores.base import HistoryFilter, Whole


def all_records(address: str) -> list[Whole]:
    """Return every occurrence with its runs and attempts, oldest first."""
    return asyncio.run(_all_records(address))


async def _all_records(address: str) -> list[Whole]:
    store = store_of(address)
    await store.open()
    try:
        found, cursor = [], None
        while True:
            page = await store.history(HistoryFilter(limit=100, cursor=cursor))
            found += [await store.whole(each.id) for each in page.occurrences]
            if (cursor := page.cursor) is None:
                return found[::-1]
    finally:
        await store.close()


def query(address: str, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of one statement, asked of the database behind the store; it has been committed."""
    if address.startswith("sqlite"):
        with sqlite3.connect(address.removeprefix("sqlite:///")) as db:
            rows = db.execute(sql).fetchall()
        db.close()
        return rows
    return asyncio.run(_query(address, sql))


async def _query(address: str, sql: str) -> list[tuple[Any, ...]]:
    db = await asyncpg.connect(address)
    try:
        return [tuple(row) for row in await db.fetch(sql)]
    finally:
        await db.close()
