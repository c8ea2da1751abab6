"""A store that goes along when it is moved: it opens the store it was moved to, and asks that one instead.

A store that has moved refuses every write, so what was refused is asked again of the new store: handles, fences and
tokens are the same there. So a node ends in the new store what it began in the old one.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, cast

from everytick.errors import StoreArriving, StoreBroken, StoreMoved, StoreUnavailable
from everytick.stores.base import Commit, Committed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from everytick.domain.decisions import Plan
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import Batch, Offer

_log = logging.getLogger("everytick.store")


def following(make: Callable[[], AnyStore], make_next: Callable[[], AnyStore]) -> AnyStore:
    """Return the first store, which becomes the next one when it has moved there."""
    return cast("AnyStore", FollowingStore(make, make_next))


class FollowingStore:
    """Has every attribute of the store in use."""

    def __init__(self, make: Callable[[], AnyStore], make_next: Callable[[], AnyStore]) -> None:
        self._make, self._make_next = make, make_next
        self._store = make()
        self._is_moved = False
        self._opening: asyncio.Lock | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name == "access":
            return _FollowingPart(self)
        return self._followed(lambda: getattr(self._store, name)) if iscoroutinefunction(found) else found

    async def open(self) -> None:
        """Open the store, or the one that it was moved to."""
        self._opening = asyncio.Lock()
        try:
            await self._store.open()
        except StoreMoved as moved:
            await self._follow(moved)

    async def request(self, *given: Any, **named: Any) -> Any:
        """Write one fact. One that is part of a caller's transaction is not repeated: that is bound to its database."""
        if named.get("within") is not None:
            return await self._store.request(*given, **named)
        return await self._asked(lambda: self._store.request, given, named)

    @asynccontextmanager
    async def due(self, *given: Any, **named: Any) -> AsyncIterator[Batch]:
        """Give due jobs of the store in use."""
        async with self._store.due(*given, **named) as batch:
            yield batch

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each plan. Those that were read before the move are stale: their jobs are read again."""
        try:
            return await self._store.commit_plans(batch, plans, offer)
        except StoreMoved as moved:
            await self._follow(moved)
            return Committed([Commit.STALE] * len(plans))

    def transaction(self, *given: Any) -> Any:
        """Begin a transaction of the store in use. It is bound to its database and is not repeated in another one."""
        return self._store.transaction(*given)

    @asynccontextmanager
    async def apart(self) -> AsyncIterator[Any]:
        """Give a store of its own for the loop that enters here, which follows too."""
        twin = FollowingStore(self._make, self._make_next)
        await twin.open()
        try:
            yield twin
        finally:
            await twin.close()

    def _followed(self, verb: Callable[[], Any]) -> Any:
        async def ask(*given: Any, **named: Any) -> Any:
            return await self._asked(verb, given, named)

        return ask

    async def _asked(self, verb: Callable[[], Any], given: Any, named: Any) -> Any:
        """Return the answer of the store in use, after a move that of the new one."""
        try:
            return await verb()(*given, **named)
        except StoreMoved as moved:
            await self._follow(moved)
        return await verb()(*given, **named)

    async def _follow(self, moved: StoreMoved) -> None:
        """Use the store that the old one was moved to. While it cannot be opened, the store counts as away."""
        assert self._opening is not None, "only an open store can tell that it has moved"
        async with self._opening:
            if self._is_moved:
                return
            left, found = self._store, self._make_next()
            try:
                await _open_arrived(found, moved)
            except StoreUnavailable:
                await found.close()
                raise
            self._store, self._is_moved = found, True
            _log.warning("%s has moved to %s: this process goes on there", moved.store, moved.where)
            # Not awaited to the end: an answer of the old store may still be under way.
            self._leaving = asyncio.ensure_future(left.close())


class _FollowingPart:
    """The part of the store about people, of the store in use."""

    def __init__(self, store: FollowingStore) -> None:
        self._of = store

    def __getattr__(self, name: str) -> Any:
        return self._of._followed(lambda: getattr(self._of._store.access, name))


async def _open_arrived(store: AnyStore, moved: StoreMoved) -> None:
    """Open the store if it is the one that was moved to, and let it arrive if the mover could not any more."""
    from everytick.stores.moving.move import arrive, moved_here

    if await moved_here(store.address) != moved.move_id:
        advice = f"{moved.store} has moved to {moved.where}: name that one as next_store"
        raise StoreBroken("the store named as next_store", "is another one", advice)
    try:
        await store.open()
    except StoreArriving:
        await arrive(store.address, moved.move_id)
        await store.open()
