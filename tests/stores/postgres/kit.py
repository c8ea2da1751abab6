"""PostgreSQL stores for tests: each in a schema of its own, on the test's clock, under several kinds of session."""

import asyncio
import atexit
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import count
from threading import Thread
from typing import Any, TypeVar

import asyncpg

from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server

SESSIONS: Mapping[str, Mapping[str, Any]] = {
    "postgres": {},
    "postgres-in-apia": {"settings": {"timezone": "Pacific/Apia", "datestyle": "SQL, DMY"}},
    "postgres-behind-a-proxy": {"pooling": True},
}
"""Plain, with a hostile time zone, and without prepared statements or LISTEN."""

SUITE = ("postgres-in-apia", "postgres-behind-a-proxy")
"""The suite runs in these. What is true in a hostile time zone is true in a plain one, in which all other tests run."""

T = TypeVar("T")

FULL_BYTES = 262_144
"""A table larger than this is truncated, a smaller one is emptied with `delete`, which is quicker there."""

_numbers = count(1)
_empty_schemas: dict[str, list[str]] = {}
"""By server: schemas whose tables are made and empty. To make them takes 60 ms, to empty them 5 ms."""

_KEEPER = "keeper of schemas"
CUT_ALL_SESSIONS = f"""
select pg_terminate_backend(pid) from pg_stat_activity
 where pid <> pg_backend_pid() and backend_type = 'client backend' and application_name <> '{_KEEPER}'
"""
"""Ends the sessions of a test. The connection that empties schemas between tests is none of them."""

_shapes: dict[str, "_Shape"] = {}
_keepers: dict[str, "_Keeper"] = {}


class _Keeper:
    """One connection for what is done between tests, on a loop of its own, since each test has another loop.

    A new connection for each of them took as much of the processor as the work itself.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._db: Any = None
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, name=_KEEPER, daemon=True).start()

    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._done(work), self._loop))

    async def _done(self, work: Callable[[Any], Awaitable[T]]) -> T:
        if self._db is None or self._db.is_closed():
            # It does not wait without end for a test that left a transaction open.
            settings = {"lock_timeout": "20s", "application_name": _KEEPER}
            self._db = await asyncpg.connect(self._address, server_settings=settings)
        return await work(self._db)

    def close(self) -> None:
        """Leave no open socket behind, which would warn at the end of the run."""
        if self._db is not None:
            self._loop.call_soon_threadsafe(self._db.terminate)
        self._loop.call_soon_threadsafe(self._loop.stop)


def _keeper_of(server: Server) -> _Keeper:
    if server.address not in _keepers:
        _keepers[server.address] = _Keeper(server.address)
        atexit.register(_keepers[server.address].close)
    return _keepers[server.address]


class _Shape:
    """What a schema looks like when its tables have just been made."""

    def __init__(self, parts: int, filled: list[str]) -> None:
        self.parts, self.filled = parts, filled


@asynccontextmanager
async def schema(server: Server) -> AsyncIterator[str]:
    """Give the name of a schema that no other test uses; it is gone afterwards."""
    name = f"test_{next(_numbers)}"
    try:
        yield name
    finally:
        await _drop(server, name)


_WRONGLY_LISTED = """
select case when o.status < 10 then 'not active' else 'active' end, coalesce(o.handle, a.handle)
  from {0}.occurrence o full join {0}.active a on a.handle = o.handle
 where (o.handle is not null and o.status < 10) <> (a.handle is not null)
union all
select case when c.handle is null then 'not claimable' else 'claimable' end, coalesce(o.handle, c.handle)
  from (select * from {0}.occurrence
         where (status = 0 or (status = 3 and owner is null)) and is_early is not null) o
  full join {0}.claimable c on c.handle = o.handle
 where o.handle is null or c.handle is null
    or (o.needs, o.priority, o.line_at, o.id, o.ready_at, o.is_early)
       is distinct from (c.needs, c.priority, c.line_at, c.id, c.ready_at, c.is_early)
"""


@asynccontextmanager
async def opened(
    server: Server, clock: Callable[[], datetime], kind: str = "postgres", *, fresh: bool = False
) -> AsyncIterator[PostgresStore]:
    """Give an open and empty store in a schema that no other test uses at the same time.

    A `fresh` one was never used before. A test that changes more than rows needs it.
    """
    spare = _empty_schemas.setdefault(server.address, [])
    name = spare.pop() if spare and not fresh else f"test_{next(_numbers)}"
    made = PostgresStore(server.address, schema=name, clock=clock, **SESSIONS[kind])
    try:
        await made.open()
        if server.address not in _shapes:
            _shapes[server.address] = await _shape(server, name)
        yield made
        assert await _wrongly_listed(server, name) == []
    finally:
        await made.close()
        if fresh or not await _emptied(server, name):
            await _drop(server, name)
        else:
            spare.append(name)


async def _wrongly_listed(server: Server, name: str) -> list[tuple[str, int]]:
    """Return the occurrences that `active` or `claimable` lacks, or has although they are not."""
    keeper = _keeper_of(server)
    if await keeper.run(lambda db: db.fetchval("select to_regclass($1)", f"{name}.claimable")) is None:
        return []
    return [tuple(row) for row in await keeper.run(lambda db: db.fetch(_WRONGLY_LISTED.format(name)))]


async def _drop(server: Server, name: str) -> None:
    await _keeper_of(server).run(lambda db: db.execute(f"drop schema if exists {name} cascade"))


async def _emptied(server: Server, name: str) -> bool:
    """Empty the tables; return False if the schema no longer has the shape that migrations give it."""
    shape, keeper = _shapes.get(server.address), _keeper_of(server)
    if shape is None or await keeper.run(lambda db: db.fetchval(_PARTS, name)) != shape.parts:
        return False
    filled = ", ".join(f"'{table}'" for table in shape.filled)
    await keeper.run(lambda db: db.execute(_EMPTY.format(schema=name, full=FULL_BYTES, filled=filled)))
    return True


async def _shape(server: Server, name: str) -> _Shape:
    keeper = _keeper_of(server)
    tables = [row["relname"] for row in await keeper.run(lambda db: db.fetch(_TABLES, name))]
    filled = [table for table in tables if await keeper.run(_is_filled(f"{name}.{table}"))]
    parts = await keeper.run(lambda db: db.fetchval(_PARTS, name))
    return _Shape(parts, [table for table in filled if table != "clock"])


def _is_filled(table: str) -> Callable[[Any], Awaitable[bool]]:
    return lambda db: db.fetchval(f"select exists (select from {table})")


_TABLES = "select relname from pg_class where relnamespace = $1::text::regnamespace and relkind = 'r'"

_PARTS = """
select (select count(*) from pg_class where relnamespace = space)
     + (select count(*) from pg_attribute a join pg_class c on c.oid = a.attrelid where relnamespace = space)
     + (select count(*) from pg_constraint where connamespace = space)
     + (select count(*) from pg_trigger t join pg_class c on c.oid = t.tgrelid where relnamespace = space)
     + (select count(*) from pg_proc where pronamespace = space)
  from (select to_regnamespace($1) as space) one
"""

# Later tables refer to earlier ones, so they are emptied first. No deed can be deleted.
# The sequences begin anew, as ids count in some tests, and so do the rollups, which follow one of them.
_EMPTY = """
do $$ declare t record; begin
    for t in select oid::regclass as name, pg_relation_size(oid) as bytes from pg_class
        where relnamespace = '{schema}'::regnamespace and relkind = 'r' and relname not in ({filled}) order by oid desc
    loop
        if t.bytes > {full} or (t.bytes > 0 and t.name::text like '%deed') then
            execute format('truncate %s cascade', t.name);
        elsif t.bytes > 0 then execute format('delete from %s', t.name);
        end if;
    end loop;
    perform setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
        from pg_sequences where schemaname = '{schema}';
    update {schema}.rollup set last_handle = 0, swept_key = 0, swept_handle = 0 where last_handle > 0;
end $$
"""
