"""A meeting: before a chosen statement of one store, another store does something, as far as it can at that moment.

Statements are counted as the database gets them. What has to wait for a lock of the first store goes on as soon as
that one lets go of it.
"""

import asyncio
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sqlite.opening import connect
from everytick.stores.sqlite.store import SqliteStore
from tests.servers.launch import Server
from tests.stores.acting import AnyStore
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import schema
from tests.stores.stepped.gate import FREE, HELD, IS_WAITING

Deed = Callable[[], Awaitable[None]]
WITHIN = 30.0
"""Seconds after which a deed hangs."""


class Meeting(ABC):
    """Counts the statements of the store `held`, and lets deeds begin before some of them on the store `free`."""

    def __init__(self, held: AnyStore, free: AnyStore) -> None:
        self.held, self.free = held, free
        self.count = 0
        self._deeds: dict[int, Deed] = {}
        self._begun: list[asyncio.Future[None]] = []
        self._loop = asyncio.get_running_loop()

    def before(self, statement: int, deed: Deed) -> None:
        """Let the deed begin before this statement, counted from now on."""
        self._deeds[self.count + statement] = deed

    @property
    def is_open(self) -> bool:
        """Whether a deed has begun that can do no more before the held store does."""
        self._begun = [each for each in self._begun if not each.done() or each.exception() is not None]
        for each in self._begun:
            if each.done():
                each.result()
        return bool(self._begun)

    async def over(self) -> None:
        """Return once all deeds are done, also those whose statement never came."""
        await self.rest()
        for statement in sorted(self._deeds):
            await self._deeds.pop(statement)()

    async def rest(self) -> None:
        """Return once all deeds are done that have begun; the held store is in the middle of nothing."""
        async with asyncio.timeout(WITHIN):
            await asyncio.gather(*self._begun)

    def _crossed(self) -> Deed | None:
        self.count += 1
        return self._deeds.pop(self.count, None)

    @abstractmethod
    async def between(self) -> None:
        """Count a moment between two verbs, before the first statement of the next one."""

    @abstractmethod
    async def still(self) -> None:
        """Return once no deed that has begun can do more by itself."""


class FileMeeting(Meeting):
    """On SQLite. A deed is done before the next statement of a reader; it waits while the held store writes."""

    def __init__(self, held: AnyStore, free: AnyStore) -> None:
        super().__init__(held, free)
        self._reads: dict[sqlite3.Connection, bool] = {}

    def trace(self, connection: sqlite3.Connection, statement: str) -> None:
        """Hear of a statement that is about to be carried out, in the thread that does so."""
        if threading.current_thread() is threading.main_thread() or statement.startswith("pragma"):
            return
        if statement.startswith("begin"):
            # A reader begins without a lock on the file, a writer with one.
            self._reads[connection] = statement == "begin"
        deed = self._crossed()
        if deed is None:
            return
        done = asyncio.run_coroutine_threadsafe(_carried_out(deed), self._loop)
        self._begun.append(asyncio.wrap_future(done, loop=self._loop))
        if self._reads.get(connection, False):
            done.result(WITHIN)

    async def between(self) -> None:
        deed = self._crossed()
        if deed is not None:
            await deed()

    async def still(self) -> None:
        """Wait for all of it: between two verbs the held store has no lock on the file."""
        await self.rest()


class ServerMeeting(Meeting):
    """On PostgreSQL. A deed goes on until it is done or waits for a lock."""

    watching: Any = None

    async def between(self) -> None:
        """Hear of a statement that is about to be sent, or of a moment between two verbs."""
        deed = self._crossed()
        if deed is not None:
            self._begun.append(asyncio.ensure_future(_carried_out(deed)))
            await self.still()

    async def still(self) -> None:
        async with asyncio.timeout(WITHIN):
            while self.is_open:
                if await self.watching.fetchval(IS_WAITING, FREE):
                    return


async def _carried_out(deed: Deed) -> None:
    await deed()


@asynccontextmanager
async def meeting_on_file(folder: Path, clock: ManualClock, patch: pytest.MonkeyPatch) -> AsyncIterator[FileMeeting]:
    """Give a meeting of two stores on one new file."""
    traces: list[Callable[[sqlite3.Connection, str], None]] = []

    def traced(*given: Any, **named: Any) -> sqlite3.Connection:
        made = connect(*given, **named)
        made.set_trace_callback(lambda statement: [trace(made, statement) for trace in traces])
        return made

    free = SqliteStore(folder / "store.db", clock=clock)
    with patch.context() as within:
        within.setattr("everytick.stores.sqlite.store.connect", traced)
        held = SqliteStore(folder / "store.db", clock=clock)
    await held.open()
    await free.open()
    meeting = FileMeeting(held, free)
    traces.append(meeting.trace)
    try:
        yield meeting
    finally:
        await held.close()
        await free.close()


@asynccontextmanager
async def meeting_on_server(
    server: Server, clock: ManualClock, patch: pytest.MonkeyPatch
) -> AsyncIterator[ServerMeeting]:
    """Give a meeting of two stores in one new schema."""
    async with schema(server) as name:
        held, free = [
            PostgresStore(server.address, schema=name, clock=clock, settings={"application_name": session})
            for session in (HELD, FREE)
        ]
        meeting = ServerMeeting(held, free)
        for verb in ("execute", "executemany", "fetch", "fetchrow", "fetchval"):
            patch.setattr(asyncpg.Connection, verb, _telling(getattr(asyncpg.Connection, verb), meeting))
        await held.open()
        await free.open()
        meeting.watching = await asyncpg.connect(server.address)
        try:
            yield meeting
        finally:
            await meeting.watching.close()
            await held.close()
            await free.close()


def _telling(verb: Callable[..., Awaitable[Any]], meeting: ServerMeeting) -> Callable[..., Awaitable[Any]]:
    async def told(connection: Any, *given: Any, **named: Any) -> Any:
        if connection.get_settings().application_name == HELD:
            await meeting.between()
        return await verb(connection, *given, **named)

    return told
