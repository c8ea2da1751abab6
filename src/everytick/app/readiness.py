"""Whether this process is ready: its store answers, the tables are those it knows, the clocks agree, it has started."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from everytick.errors import EverytickError, shown

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.stores.addresses import AnyStore

_ANSWER_SECONDS = 2.0
"""How long the store may take to answer."""

_MOST_SKEW = timedelta(seconds=5)
"""How far this host's clock may be from the store's. The store's clock decides; tasks and people read this one."""

_TABLES_SECONDS = 60.0
"""How long an answer about the tables holds: it takes a connection of its own."""


class Readiness:
    """Answers the checks for one application. A check returns why it failed, or None."""

    def __init__(self, tick: Everytick) -> None:
        self._tick = tick
        self._tables_at = float("-inf")

    async def loop(self) -> str | None:
        """The loop of the node turns. The service may run on another one, and answer while that stands still."""
        loop = self._tick.node_loop()
        if self._tick.node is None or loop is None or loop is asyncio.get_running_loop():
            return None
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))
        except TimeoutError:
            return f"the node's loop has stood still for {_ANSWER_SECONDS:g} s"
        return None

    async def store(self) -> str | None:
        """The store answers questions, and the node's own have not failed."""
        node = self._tick.node
        if node is not None and not node.health.is_ready:
            why = node.health.reason or f"nothing was heard of it for {node.health.unheard_for:.0f} s"
            return f"the store answers with errors or not at all: {shown(why, 300)}"
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await (await self._tick._opened()).now()
        except TimeoutError:
            return f"the store has not answered within {_ANSWER_SECONDS:g} s"
        except EverytickError as error:
            return shown(str(error), 300)
        return None

    async def tables(self) -> str | None:
        """The tables are those of this version: a newer one may have changed them since the start."""
        if time.monotonic() - self._tables_at < _TABLES_SECONDS:
            return None
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                why = await _other_tables(await self._tick._opened())
        except (EverytickError, TimeoutError):
            return None  # the check of the store tells
        if why is None:
            self._tables_at = time.monotonic()
        return why

    async def clock(self) -> str | None:
        """This host's clock is near the store's."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                ahead = datetime.now(UTC) - await (await self._tick._opened()).now()
        except (EverytickError, TimeoutError):
            return None  # the check of the store tells
        if abs(ahead) <= _MOST_SKEW:
            return None
        return f"this host's clock differs from the store's by {ahead.total_seconds():+.1f} s: set it"

    async def started(self) -> str | None:
        """The node has started, where one is to run here."""
        return "the node is starting" if self._tick._starting is not None else None

    async def staying(self) -> str | None:
        """The node is not about to stop."""
        return "the node is stopping" if self._tick._stopping is not None else None


async def _other_tables(store: AnyStore) -> str | None:
    from everytick.stores.addresses import migration_of
    from everytick.stores.queries import load_migrations

    if store.address.is_in_memory:
        return None
    if store.address.kind == "redis":
        from everytick.stores.redis.log import FORMAT

        written = await migration_of(store.address)
        return None if written == FORMAT else f"its rows have format {written}, and this version works with {FORMAT}"
    newest = load_migrations(f"everytick.stores.{store.address.kind}")[-1].number
    found = await migration_of(store.address)
    return None if found == newest else f"the tables are at migration {found}, and this version works with {newest}"
