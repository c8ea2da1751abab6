"""The statements that read and write PostgreSQL's rows as SQLite holds them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from everytick.stores.moving.tables import TABLES, MovedTable

_COLUMNS = """select r.relname, a.attname, format_type(a.atttypid, null), a.attgenerated <> ''
      from pg_attribute a join pg_class r on r.oid = a.attrelid join pg_namespace n on n.oid = r.relnamespace
     where n.nspname = $1 and r.relkind = 'r' and a.attnum > 0 and not a.attisdropped order by r.relname, a.attnum"""

_MICROS = "(extract(epoch from {0}) * 1000000)::bigint"
_MOMENT = "(timestamptz 'epoch' + {0} * interval '1 microsecond')"

_OUT = {
    "timestamp with time zone": _MICROS,
    "boolean": "{0}::int",
    "uuid": "uuid_send({0})",
    "json": "{0}::text",
}
"""How a column of this type is read. Others are the same in SQLite."""

_IN = {
    "timestamp with time zone": _MOMENT,
    "boolean": "({0} <> 0)",
    "uuid": "encode({0}, 'hex')::uuid",
    "json": "{0}::json",
    "smallint": "{0}::smallint",
    "integer": "{0}::integer",
}
"""How it is written."""

_SENT = {
    "text": "text",
    "json": "text",
    "uuid": "bytea",
    "double precision": "double precision",
}
"""The type in which a value is sent. Others are numbers."""

_ENDS = ("last_end", "last_success", "other_success")
_PARTS = {"scheduled_for": "scheduled_for", "started_at": "started_at", "at": "ended_at", "id": "id"}


class Column(NamedTuple):
    """A column of a table that a statement can write."""

    name: str
    type: str

    def out(self, before: str = "t.") -> str:
        """Return it as SQLite holds it."""
        return _OUT.get(self.type, "{0}").format(f"{before}{self.name}")

    @property
    def sent(self) -> str:
        """The type in which it is sent."""
        return _SENT.get(self.type, "bigint")


TableColumns = Mapping[str, Sequence[Column]]


async def columns_of(db: Any, schema: str) -> TableColumns:
    """Return the columns of each table as SQLite has them, in the same order."""
    found: dict[str, dict[str, Column]] = {}
    for table, name, kind, is_generated in await db.fetch(_COLUMNS, schema):
        if not is_generated:
            found.setdefault(table, {})[name] = Column(name, kind)
    return {table.name: _as_in_sqlite(table.name, found[table.name]) for table in TABLES}


def _as_in_sqlite(table: str, own: Mapping[str, Column]) -> Sequence[Column]:
    from everytick.stores.moving.sqlite_columns import sqlite_columns

    moment, number = "timestamp with time zone", "bigint"
    elsewhere = {"planned_woken": number, "run_count": number, "last_error": "text", "last_failure_at": moment}
    for end in _ENDS:
        elsewhere |= {f"{end}_{part}": "uuid" if part == "id" else moment for part in _PARTS}
    return [own.get(name) or Column(name, elsewhere[name]) for name in sqlite_columns(table)]


def key_out(columns: Sequence[Column], name: str, before: str) -> str:
    """Return a column of the key as SQLite holds it."""
    return next(column for column in columns if column.name == name).out(before)


def key_in(table: MovedTable, columns: TableColumns) -> str:
    """Return the keys that are sent, a list for each column, as rows `k` with the table's own types."""
    known = {column.name: column for column in columns[table.name]}
    sent = ", ".join(f"${place}::{known[name].sent}[]" for place, name in enumerate(table.key, 1))
    read = ", ".join(
        f"{_IN.get(known[name].type, '{0}').format(f's{place}')} as {name}" for place, name in enumerate(table.key, 1)
    )
    names = ", ".join(f"s{place}" for place in range(1, len(table.key) + 1))
    return f"(select {read} from unnest({sent}) sent ({names})) k"


def _same_key(table: MovedTable) -> str:
    return " and ".join(f"t.{name} = k.{name}" for name in table.key)


# -------------------------------------------------------------------------------------------------------------- reading


def _selected(table: MovedTable, columns: TableColumns) -> str:
    if table.name != "job_state":
        return f"select {', '.join(column.out() for column in columns[table.name])} from everytick.{table.name} t"
    own = {
        "woken": "t.woken + coalesce(w.count, 0)",
        "planned_woken": "t.woken",
        "wake_at": _MICROS.format("coalesce(w.wake_at, t.wake_at)"),
        "run_count": "coalesce(e.run_count, 0)",
    }
    ends = ("last_error", "last_failure_at", *(f"{end}_{part}" for end in _ENDS for part in _PARTS))
    read = [
        own.get(column.name) or column.out("e." if column.name in ends else "t.") for column in columns["job_state"]
    ]
    return (
        f"select {', '.join(read)} from everytick.job_state t left join everytick.job_ends e on e.job_key = t.job_key"
        " left join (select job_key, count(*) as count, (array_agg(wake_at order by wake_key desc))[1] as wake_at"
        " from everytick.wake group by 1) w"
        " on w.job_key = t.job_key"
    )


def all_rows(table: MovedTable, columns: TableColumns) -> str:
    """Return the statement that reads a table."""
    return _selected(table, columns)


def rows_by_key(table: MovedTable, columns: TableColumns) -> str:
    """Return the statement that reads the rows with given keys."""
    return f"{_selected(table, columns)} join {key_in(table, columns)} on {_same_key(table)}"


# -------------------------------------------------------------------------------------------------------------- writing


def deletes(table: MovedTable, columns: TableColumns) -> Sequence[str]:
    """Return the statements that delete the rows with given keys, and what follows from them."""
    keys = key_in(table, columns)
    own = f"delete from everytick.{table.name} t using {keys} where {_same_key(table)}"
    if table.name == "job_state":
        beside = [
            f"delete from everytick.{name} t using {keys} where {_same_key(table)}" for name in ("job_tally", "wake")
        ]
        return [*beside, own]
    if table.name == "occurrence":
        active = (
            f"delete from everytick.active a using everytick.occurrence t, {keys}"
            f" where {_same_key(table)} and a.job_key = t.job_key and a.handle = t.handle"
        )
        return [active, own]
    return [own]


def inserts(table: MovedTable, columns: TableColumns) -> Sequence[str]:
    """Return the statements that insert rows which are sent a list for each column."""
    sent = columns[table.name]
    names = ", ".join(column.name for column in sent)
    rows = f"unnest({', '.join(f'${place}::{column.sent}[]' for place, column in enumerate(sent, 1))}) r ({names})"
    if table.name == "job_state":
        return [_insert_job_states(sent, rows), _insert_tallies(rows), _insert_wakes(rows)]
    given = {column.name: _IN.get(column.type, "{0}").format(f"r.{column.name}") for column in sent}
    if table.name == "occurrence":
        given["line_at"] = _MOMENT.format("coalesce(r.line_at, r.scheduled_for)")
        given["has_rows"] = "true"
        active = "insert into everytick.active (job_key, handle) select r.job_key, r.handle"
        return [_insert("occurrence", given, rows), f"{active} from {rows} where r.status < 10"]
    return [_insert(table.name, given, rows)]


def _insert(table: str, given: Mapping[str, str], rows: str) -> str:
    into = f"insert into everytick.{table} ({', '.join(given)}) overriding system value"
    return f"{into} select {', '.join(given.values())} from {rows}"


def _insert_job_states(sent: Sequence[Column], rows: str) -> str:
    from everytick.stores.moving.tables import ONLY_SQLITE_COLUMNS

    kept = [column for column in sent if column.name not in ONLY_SQLITE_COLUMNS["job_state"]]
    given = {column.name: _IN.get(column.type, "{0}").format(f"r.{column.name}") for column in kept}
    given["woken"] = f"case when {_WOKEN} then r.planned_woken else r.woken end"
    return _insert("job_state", given, rows)


_WOKEN = "r.wake_at is not null and r.woken > r.planned_woken and r.plan_token is not null"
"""Of a job that was never planned PostgreSQL has no fact of its creation: it is due by its own row."""


def _insert_wakes(rows: str) -> str:
    """What has woken a job since its last plan: a fact each, which the next plan counts."""
    given = {"job_key": "r.job_key::integer", "wake_at": _MOMENT.format("r.wake_at"), "needs": "r.needs"}
    return f"{_insert('wake', given, rows)} cross join generate_series(1, r.woken - r.planned_woken) where {_WOKEN}"


def _insert_tallies(rows: str) -> str:
    """What the ends of a job left: a row, once it has had one."""
    given = {"job_key": "r.job_key::integer", "run_count": "r.run_count", "last_error": "r.last_error"}
    given["last_failure_at"] = _MOMENT.format("r.last_failure_at")
    for end in _ENDS:
        moments = (_MOMENT.format(f"r.{end}_{part}") for part in ("scheduled_for", "started_at", "at"))
        made = f"row({', '.join(moments)}, encode(r.{end}_id, 'hex')::uuid)::everytick.ended"
        given[end] = f"case when r.{end}_at is not null then {made} end"
    had = " or ".join(
        ["r.run_count > 0", "r.last_failure_at is not null", *(f"r.{end}_at is not null" for end in _ENDS)]
    )
    return f"{_insert('job_tally', given, rows)} where {had}"


def derives() -> Sequence[str]:
    """Return the statements that list what a node may claim, from the occurrences that are active."""
    names = "handle, id, line_at, ready_at, priority, is_early, needs"
    claimable = "o.status < 10 and (o.status = 0 or (o.status = 3 and o.owner is null)) and o.is_early is not null"
    listed = (
        f"insert into everytick.claimable ({names}) select o.{names.replace(', ', ', o.')} from everytick.active a"
        f" join everytick.occurrence o on o.handle = a.handle where {claimable}"
    )
    return ["delete from everytick.claimable", listed]
