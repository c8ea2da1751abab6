"""The store of a scheduler: opened here from its address, or given open and left so."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import cast

from everytick.stores.addresses import AnyStore, store_of


async def opened(given: object, clock: Callable[[], datetime] | None) -> tuple[AnyStore, Callable[[], Awaitable[None]]]:
    """Return the store, open, and what gives back what this took."""
    if not isinstance(given, str) and hasattr(given, "commit_plans"):
        return cast("AnyStore", given), nothing_to_close
    store = store_of(cast("str", given), clock=clock)
    await store.open()
    return store, store.close


@asynccontextmanager
async def reading(given: object) -> AsyncIterator[AnyStore]:
    """Give the store for a few questions."""
    store, close = await opened(given, None)
    try:
        yield store
    finally:
        await close()


async def nothing_to_close() -> None:
    """Leave a store open that was given open."""
