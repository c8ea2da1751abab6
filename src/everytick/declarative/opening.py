"""The store of a scheduler: opened from its address and closed, or an open store that stays open."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import cast

from everytick.stores.addresses import AnyStore, store_of


async def opened(given: object, clock: Callable[[], datetime] | None) -> tuple[AnyStore, Callable[[], Awaitable[None]]]:
    """Return the open store and a function that closes it if this opened it."""
    if not isinstance(given, str) and hasattr(given, "commit_plans"):
        return cast("AnyStore", given), nothing_to_close
    store = store_of(cast("str", given), clock=clock)
    await store.open()
    return store, store.close


@asynccontextmanager
async def reading(given: object) -> AsyncIterator[AnyStore]:
    """Give the open store for the block."""
    store, close = await opened(given, None)
    try:
        yield store
    finally:
        await close()


async def nothing_to_close() -> None:
    """Do nothing: the store was open before."""
