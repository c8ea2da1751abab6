"""The store in one SQLite file, as nodes and applications use it.

Every verb is one function on a transaction, run by the writer's thread, or a question to
a reader's; what each means is said by the memory store, verb by verb.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from everytick.domain.decisions import Plan
from everytick.domain.facts import Fact
from everytick.domain.steps import Step
from everytick.errors import StoreUnavailable
from everytick.stores.base import (
    Ahead,
    Batch,
    Claim,
    Commit,
    CommitAnswer,
    Committed,
    NodeScope,
    Offer,
    Receipt,
    StoreAddress,
    new_token,
)
from everytick.stores.each_alone import each_alone
from everytick.stores.host_clock import HostClock
from everytick.stores.open_batches import OpenBatches
from everytick.stores.open_requests import refuse_within
from everytick.stores.queries import tables_of
from everytick.stores.sql.access import SqlAccess
from everytick.stores.sql.access_queries import access_queries
from everytick.stores.sql.cold import ColdVerbs
from everytick.stores.sql.commands import Make
from everytick.stores.sql.verbs import job_records
from everytick.stores.sqlite import history, lending, planning, running
from everytick.stores.sqlite.bell import Bell
from everytick.stores.sqlite.clock import StoreClock
from everytick.stores.sqlite.definition_cache import FileDefinitions
from everytick.stores.sqlite.dialect import SQLITE
from everytick.stores.sqlite.file_lock import Turn
from everytick.stores.sqlite.opening import MIGRATIONS, Driver, StoreFile, Synchronous, connect, library, prepare
from everytick.stores.sqlite.queries import COLD
from everytick.stores.sqlite.rows import moment
from everytick.stores.sqlite.runner import SyncRunner
from everytick.stores.sqlite.thread_calls import in_own_thread
from everytick.stores.sqlite.transaction import Sessions, SqliteClaimTransaction
from everytick.stores.sqlite.writer import FileAccess, Reader, Transaction, WriterThread

T = TypeVar("T")


class SqliteStore(ColdVerbs):
    """Everything in one file, which several processes of one host may share.

    `synchronous="normal"` may lose the last commits when the power fails, never when a
    process does; `"full"` loses nothing, at the price of a wait for the disk per commit.
    `driver="apsw"` opens the file by that package's own, newer SQLite. Then nothing else in
    the process may open it by Python's: two libraries in one process do not see each other's
    locks, and would write over each other.
    """

    _q = COLD
    folds_at_once = 10_000  # which hold the one writer for some 12 ms

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], datetime] | None = None,
        synchronous: Synchronous = "normal",
        driver: Driver = "sqlite3",
    ) -> None:
        self._path, self._driver = Path(path), driver
        self._clock = StoreClock(clock or HostClock())
        self._bell = Bell()
        self._definitions = FileDefinitions()
        write = partial(connect, self._path, synchronous, driver=driver)
        self._access = FileAccess(self._path, write, self._clock, Turn(self._path), StoreFile(self._path))
        self._writer = WriterThread(self._access, self._bell)
        self._sessions = Sessions(self._access, self._committed)
        self._planner: Reader | None = None
        self._people: Reader | None = None
        self._pruned_through = 0
        self._open_batches = OpenBatches[str]()

    @property
    def library(self) -> str:
        """Which SQLite opens the file."""
        return f"{self._driver}, SQLite {library(self._driver)}"

    @property
    def address(self) -> StoreAddress:
        """Where the store is: in one file."""
        return StoreAddress("sqlite", self._path, self._driver)

    @cached_property
    def access(self) -> SqlAccess:
        """The part of the store that is about people."""
        return SqlAccess(self._q, access_queries(SQLITE), self._transact, self._question)

    # ------------------------------------------------------------------------------------------------ the store

    async def open(self) -> None:
        """Make the file if it is not there, migrate it, or refuse it with a reason."""
        name = f"everytick opening {self._path.name}"
        await in_own_thread(partial(prepare, self._path, driver=self._driver), name)
        read = partial(connect, self._path, read_only=True, driver=self._driver)
        self._access.file.remember()
        reading = replace(self._access, connect=read)
        self._planner, self._people = Reader(reading), Reader(reading)
        self._writer.start()
        self._sessions.open()
        await self._transact(partial(job_records.look_again, self._q))

    async def close(self) -> None:
        """Commit the queued calls, move the log into the file and close it. A second call does nothing."""
        readers = [reader for reader in (self._planner, self._people) if reader is not None]
        self._planner = self._people = None
        await in_own_thread(partial(self._stop, readers), f"everytick closing {self._path.name}")

    def _stop(self, readers: Sequence[Reader]) -> None:
        for reader in readers:
            reader.stop()
        self._sessions.close()
        self._writer.stop()
        self._access.turn.close()

    async def now(self) -> datetime:
        """Return the store's time. It follows its host's clock, also when that is set back."""
        return moment(self._clock.now())

    async def check_writable(self) -> None:
        """Return if every table exists and takes writes. This changes nothing."""
        await self._write(_touch_tables)

    async def bell(self, seconds: float) -> bool:
        """Wait up to `seconds` for a hint that something changed. Return whether one came."""
        rung = self._bell.enter(seconds)
        if rung is None:
            return True
        self._writer.nudge()
        try:
            async with asyncio.timeout(seconds):
                return await rung
        except TimeoutError:
            return False
        finally:
            self._bell.leave(rung)

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return when the next job or occurrence of this scope comes, so that a node can sleep until then."""
        ahead, is_limited = await self._ask(
            self._planner, lambda reading: planning.ahead(reading, self._clock.now(), scope)
        )
        return await self._ahead_within_limits(ahead) if is_limited else ahead

    async def _ask(self, reader: Reader | None, question: Callable[[sqlite3.Connection], T]) -> T:
        """Return a reader's result. Unreadable jobs that it met are shown to people."""
        if reader is None:
            raise StoreUnavailable(str(self._path), "the store is not open")
        answer = await reader.read(question)
        await self._show_parked()
        return answer

    async def _write(self, work: Callable[[Transaction], T]) -> T:
        """Return the result of the work once it is committed. Unreadable jobs that it met are shown to people."""
        result = await self._writer.write(work)
        await self._show_parked()
        return result

    async def _transact(self, make: Make[T]) -> T:
        return await self._write(lambda writing: SyncRunner(writing, self._definitions).run(make))

    async def _one_by_one(self, make: Make[T]) -> T:
        return await self._transact(make)

    async def _question(self, make: Make[T]) -> T:
        def answer(reading: sqlite3.Connection) -> T:
            return SyncRunner(Transaction(reading, self._clock.now()), self._definitions).run(make)

        return await self._ask(self._people, answer)

    async def _show_parked(self) -> None:
        if found := self._definitions.unshown():
            told = [{"job_key": unreadable.key[0], "reason": unreadable.reason} for unreadable in found]
            show = partial(job_records.show_unreadable, self._q, told)
            await self._writer.write(lambda writing: SyncRunner(writing, self._definitions).run(show))
            self._definitions.were_shown(found)

    # ----------------------------------------------------------------------------------------------- the planner

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AsyncIterator[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first."""
        held = self._open_batches.of(scope.node)
        asked = replace(scope, unknown=scope.unknown | held) if held else scope
        batch = await self._ask(
            self._planner,
            lambda reading: planning.due(reading, self._definitions, asked, limit, by, self._clock.now()),
        )
        # Another batch may have been opened while this one was read.
        snapshots = [
            snapshot for snapshot in batch.snapshots if snapshot.job_id not in self._open_batches.of(scope.node)
        ]
        with self._open_batches.opened(scope.node, {snapshot.job_id for snapshot in snapshots}):
            yield replace(batch, snapshots=snapshots)

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each whole plan whose job still has the revision of the snapshot."""
        seen = {snapshot.job_id: snapshot for snapshot in batch.snapshots}

        async def write(some: Sequence[Plan]) -> Sequence[CommitAnswer]:
            return await self._write(lambda writing: planning.commit_plans(writing, self._definitions, batch, some))

        async def set_aside(plan: Plan, reason: str) -> CommitAnswer:
            aside = seen[plan.job_id]
            return await self._write(lambda writing: planning.set_aside(writing, self._definitions, aside, reason))

        return Committed(await each_alone(plans, write, "plans", set_aside, self.check_writable))

    # ---------------------------------------------------------------------------------------------- claims and steps

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age."""
        token = new_token()
        plain = partial(self._write, lambda writing: running.claim(writing, self._definitions, scope, limit, token))
        return await self._claim_by(plain, scope, limit)

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step whose claim still has the fence and token of the occurrence."""

        async def write(some: Sequence[tuple[Claim, Step]]) -> Sequence[Commit]:
            return await self._write(lambda writing: running.commit_steps(writing, self._definitions, some))

        return await each_alone(steps, write, "steps")

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[SqliteClaimTransaction]:
        """Begin a transaction for a task of the claim. Leaving it without a commit rolls it back.

        No other process can write meanwhile, so it may be open for ten seconds at most.
        """
        return self._sessions.transaction(claim)

    @asynccontextmanager
    async def apart(self) -> AsyncIterator["SqliteStore"]:
        """Give this store itself: its threads answer every event loop."""
        yield self

    def _committed(self, rang: bool) -> None:
        self._writer.wrote_beside()
        if rang:
            self._bell.ring()

    # -------------------------------------------------------------------------------------------------- the jobs

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job or an occurrence, and make its job due.

        `within` is a sqlite3 connection to the same file, of the thread that asks.
        """
        if within is not None:
            refuse_within(fact)
            checked = lending.checked(within, self._path, self._driver)
            return lending.request(checked, self._path, self._clock.now(), self._definitions, subject, fact)
        return await super().request(subject, fact)

    # ------------------------------------------------------------------------------------------------ the history

    async def prune(self, limit: int = 1000) -> int:
        """Delete up to `limit` ended occurrences that the retention of their job no longer keeps. Return how many."""
        now, after = moment(self._clock.now()), self._pruned_through
        handles, self._pruned_through = await self._ask(
            self._people, lambda reading: history.forgettable(reading, now, limit, after)
        )
        if not handles:
            return 0
        return await self._write(lambda writing: history.forget(SyncRunner(writing, self._definitions), handles))


_TABLES = tables_of(MIGRATIONS)


def _touch_tables(writing: Transaction) -> None:
    for table in _TABLES:
        writing.execute(f"delete from {table} where 0")
