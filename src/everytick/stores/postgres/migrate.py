"""Brings the tables to the version this code knows, or refuses them with a reason."""

from collections.abc import Sequence

from everytick.errors import SchemaMismatch
from everytick.stores.moving.marks import TABLE as MOVE_MARKS
from everytick.stores.moving.marks import MoveMark, MoveMarks, not_in_use
from everytick.stores.postgres.connections import Connection, Connections
from everytick.stores.postgres.queries import in_schema, migrations
from everytick.stores.queries import Migration

_TABLE = """
create schema if not exists "{schema}";
create table if not exists everytick.migration (
    number     integer primary key,
    name       text not null,
    checksum   text not null,
    applied_at timestamptz not null
);
"""


async def migrate(connections: Connections, known: Sequence[Migration] | None = None) -> None:
    """Migrate the schema. Of several nodes that start together one does it.

    All of it is one transaction: a node that dies in it leaves nothing behind. Afterwards `connections.identity` says
    which tables these are.
    """
    wanted = migrations() if known is None else known
    with connections.answering():
        db = await connections.connect()
        try:
            if len(await _applied(connections, db, wanted)) < len(wanted):
                async with db.transaction():
                    await _apply_missing(connections, db, wanted)
            if (
                unusable := not_in_use(f"{connections.address}", await marks_in(db, connections.address.schema))
            ) is not None:
                raise unusable
            if known is None:
                connections.identity = await db.fetchval(*connections.sql.identity())
        finally:
            await db.close()


async def applied(connections: Connections) -> int:
    """Return the number of the newest migration that was applied, or 0. Nothing is created or changed."""
    schema = connections.address.schema
    with connections.answering():
        db = await connections.connect()
        try:
            if not await db.fetchval("select to_regclass($1) is not null", f'"{schema}".migration'):
                return 0
            question = "select coalesce(max(number), 0) from everytick.migration"
            found: int = await db.fetchval(in_schema(question, schema))
            return found
        finally:
            await db.close()


async def marks_in(db: Connection, schema: str) -> MoveMarks:
    """Return the marks of a move by role; none if the store neither moves nor has been moved."""
    if not await db.fetchval("select to_regclass($1) is not null", f'"{schema}".{MOVE_MARKS}'):
        return {}
    found = await db.fetch(in_schema(f"select role, move_id, state, other from everytick.{MOVE_MARKS}", schema))
    return {row["role"]: MoveMark(row["move_id"], row["state"], row["other"]) for row in found}


async def _apply_missing(connections: Connections, db: Connection, wanted: Sequence[Migration]) -> None:
    schema = connections.address.schema
    await db.execute("select pg_advisory_xact_lock(hashtextextended($1, 0))", f"everytick {schema}")
    await db.execute(in_schema(_TABLE.format(schema=schema), schema))
    for migration in wanted[len(await _applied(connections, db, wanted)) :]:
        await db.execute(in_schema(migration.text, schema))
        note = "insert into everytick.migration values ($1, $2, $3, clock_timestamp())"
        await db.execute(in_schema(note, schema), migration.number, migration.name, migration.checksum)


async def _applied(connections: Connections, db: Connection, wanted: Sequence[Migration]) -> list[int]:
    """Return the numbers of the applied migrations. Raise if one is unknown or has another text."""
    schema = connections.address.schema
    if not await db.fetchval("select to_regclass($1) is not null", f'"{schema}".migration'):
        return []
    rows = await db.fetch(in_schema("select number, name, checksum from everytick.migration order by number", schema))
    for row in rows:
        _refuse_unknown(connections, row["number"], row["name"], row["checksum"], wanted)
    return [row["number"] for row in rows]


def _refuse_unknown(
    connections: Connections, number: int, name: str, checksum: str, wanted: Sequence[Migration]
) -> None:
    where = f"{connections.address}, schema {connections.address.schema}"
    if number > len(wanted):
        reason = f"its tables are at migration {number} ({name}) and this everytick knows {len(wanted)}: upgrade it"
        raise SchemaMismatch(where, reason)
    if wanted[number - 1].checksum != checksum:
        reason = f"migration {number} ({name}) was applied with another text than this everytick has: "
        raise SchemaMismatch(where, reason + "install the everytick that made these tables, or a later one")
