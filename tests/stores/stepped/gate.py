"""A gate in the tables: one session stops at a chosen write, in the middle of its transaction, until it is let on.

Every statement that writes crosses the gate twice, before it has touched a row and after
it holds its rows. Only sessions that bear the name `HELD` are counted and stopped.
"""

from asyncio import Task
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

HELD = "held"
FREE = "free"
_LOCK = 4242

_GATE = """
create table gate (stops_at int not null);
insert into gate values (0);
create function crosses() returns trigger language plpgsql as $$
declare crossing int := coalesce(nullif(current_setting('everytick_test.crossing', true), '')::int, 0) + 1;
begin
    if current_setting('application_name') = 'held' then
        perform set_config('everytick_test.crossing', crossing::text, true);
        if crossing = (select stops_at from {schema}.gate) then
            perform pg_advisory_xact_lock(4242);
        end if;
    end if;
    return null;
end $$;
"""
# Later tables refer to earlier ones, so they come first.
_TABLES = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1 and c.relkind = 'r' and c.relname not in ('gate', 'clock', 'migration')
 order by c.oid desc
"""
IS_WAITING = "select exists (select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock')"
_STOPPED = "select exists (select from pg_locks where locktype = 'advisory' and objid = $1 and not granted)"


class Gate:
    """The gate of one schema, worked from a session of its own."""

    def __init__(self, db: Any, tables: list[str]) -> None:
        self._db, self._tables = db, tables

    async def empty(self) -> None:
        """Forget everything that was stored; keys go on rising, so that nothing kept in a node is mistaken.

        On tables this small `delete` takes a tenth of the time of `truncate`.
        """
        await self._db.execute("; ".join(f"delete from {table}" for table in self._tables if table != "rollup"))

    @asynccontextmanager
    async def stopping_at(self, crossing: int) -> AsyncIterator[None]:
        """Stop held sessions at this crossing of their transaction for as long as this lasts."""
        await self._db.execute("update gate set stops_at = $1", crossing)
        await self._db.execute("select pg_advisory_lock($1)", _LOCK)
        try:
            yield
        finally:
            await self._db.execute("select pg_advisory_unlock($1)", _LOCK)

    async def is_reached(self, held: Task[Any]) -> bool:
        """Wait until the held one stands at the gate, and say so, or until it has come through without stopping."""
        while not held.done():
            if await self._db.fetchval(_STOPPED, _LOCK):
                return True
        return False

    async def until_done_or_waiting(self, free: Task[Any]) -> None:
        """Wait until the other one is done, or can do no more before the held one does."""
        while not free.done():
            if await self._db.fetchval(IS_WAITING, FREE):
                return


async def build(db: Any, schema: str) -> Gate:
    """Put the gate into every table of the schema."""
    await db.execute(_GATE.format(schema=schema))
    tables = [row[0] for row in await db.fetch(_TABLES, schema)]
    for table in tables:
        for moment in ("before", "after"):
            writes = f"{moment} insert or update or delete on {table}"
            await db.execute(f"create trigger {moment}_gate {writes} execute function crosses()")
    return Gate(db, tables)
