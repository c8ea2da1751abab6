"""everytick's side of an end-to-end run: a node that is already up, and a backlog that appears all at once.

The jobs are defined through the application; their occurrences are put there by one
statement, as if a planner had just committed all of them. The watch runs from the first
body until everything is written.
"""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import asyncpg

from bench._beside import Figures, Watch
from bench._node import hourly, opened, running
from everytick.domain.changes import Put
from everytick.stores.addresses import AnyStore

JOBS = 1_000
Then: TypeAlias = Callable[[AnyStore], Awaitable[None]]

POSTGRES_FILL = """
with made as (
    insert into everytick.occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at,
                                      ready_at, covers_through, created_at, updated_at, needs, reason)
    select gen_random_uuid(), 1 + n % $2, 1, at, 0, 0, 0, false, at, at, at, now(), now(), '', 'on time'
      from (select n, clock_timestamp() - make_interval(secs => $1 - n) as at from generate_series(1, $1) n) o
    returning *
), actives as (
    insert into everytick.active (job_key, handle) select job_key, handle from made
)
insert into everytick.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
select handle, id, line_at, ready_at, priority, is_early, needs from made
"""
SQLITE_FILL = """
with recursive o (n, at) as (
  select 1, :now - 1000000 * :count union all select n + 1, at + 1000000 from o where n < :count
)
insert into occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at,
                        covers_through, created_at, updated_at, needs, reason)
select randomblob(16), 1 + n % :jobs, 1, at, 0, 0, 0, 0, at, at, at, :now, :now, '', 'on time' from o
"""
COUNTS = """
select (select count(*) from {schema}occurrence where status = 10), (select count(*) from {schema}task_run),
       (select count(*) from {schema}attempt)
"""
UNPLANNED = "select count(*) from {schema}job_state where wake_at <= {now}"


class Bodies:
    """Counts bodies: the first starts the watch, the last says that all have run."""

    def __init__(self, expected: int, watch: Watch) -> None:
        self.count, self._expected, self._watch = 0, expected, watch
        self.all_ran = asyncio.Event()

    async def body(self) -> None:
        """What every task does."""
        if self.count == 0:
            self._watch.__enter__()
        self.count += 1
        if self.count == self._expected:
            self.all_ran.set()


class PostgresTables:
    """The tables behind the store, for filling and counting."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def clear(self) -> None:
        await self._ask("drop schema if exists everytick cascade; drop schema public cascade; create schema public")

    async def fill(self, count: int) -> None:
        await self._ask(POSTGRES_FILL, count, JOBS)

    async def counts(self) -> tuple[int, ...]:
        return tuple((await self._ask(COUNTS.format(schema="everytick.")))[0])

    async def unplanned(self) -> int:
        return int((await self._ask(UNPLANNED.format(schema="everytick.", now="clock_timestamp()")))[0][0])

    async def _ask(self, sql: str, *given: object) -> list[Any]:
        db = await asyncpg.connect(self._address)
        try:
            return (
                list(await db.fetch(sql, *given))
                if given or sql.lstrip().startswith("select")
                else [await db.execute(sql)]
            )
        finally:
            await db.close()


class SqliteTables:
    """The tables behind the store, for filling and counting."""

    def __init__(self, address: str) -> None:
        self._file = address.removeprefix("sqlite:///").partition("?")[0]

    async def clear(self) -> None:
        """A file of its own is empty to begin with."""

    async def fill(self, count: int) -> None:
        self._ask(SQLITE_FILL, {"now": time.time_ns() // 1000, "count": count, "jobs": JOBS})

    async def counts(self) -> tuple[int, ...]:
        return tuple(self._ask(COUNTS.format(schema=""))[0])

    async def unplanned(self) -> int:
        return int(self._ask(UNPLANNED.format(schema="", now=time.time_ns() // 1000))[0][0])

    def _ask(self, sql: str, given: dict[str, int] | None = None) -> list[Any]:
        db = sqlite3.connect(self._file, timeout=30)
        try:
            with db:
                return db.execute(sql, given or {}).fetchall()
        finally:
            db.close()


async def until_planned(tables: PostgresTables | SqliteTables) -> None:
    """Return when no job is due any more."""
    for _ in range(600):
        if not await tables.unplanned():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the jobs were not planned within a minute")


async def drained(
    address: str, slots: int, backlog: int, tasks: int, server: int | None = None, then: Then | None = None
) -> Figures:
    """Run the backlog with a node of so many slots; every occurrence has so many tasks, one after another.

    `then` is done with the open store after the watch has stopped.
    """
    tables = SqliteTables(address) if address.startswith("sqlite") else PostgresTables(address)
    await tables.clear()
    watch = Watch(server)
    bodies = Bodies(backlog * tasks, watch)
    async with opened(address) as store:
        await asyncio.gather(*(store.apply([Put(hourly(number, tasks=tasks))]) for number in range(JOBS)))
        async with running(store, bodies.body, slots=slots, tasks=tasks):
            await until_planned(tables)
            await tables.fill(backlog)
            await bodies.all_ran.wait()
        watch.__exit__()
        if then is not None:
            await then(store)
    expected = (backlog, backlog * tasks, backlog * tasks)
    found = await tables.counts()
    assert found == expected, f"completed occurrences, runs and attempts are {found}, not {expected}"
    return watch.figures(backlog)
