"""Statements with named parameters, as both drivers take them."""

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from everytick.domain.occurrence import Cause
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.stores.postgres.dialect import postgres_dialect
from everytick.stores.sql.statements import ColumnKind, Statement, Statements, bind_statements, kind_of
from everytick.stores.sqlite.dialect import SQLITE
from everytick.stores.sqlite.rows import id_bytes

POSTGRES = postgres_dialect("everytick")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ID = "occ_0194f3a0-1111-7222-8333-444455556666"


def test_postgres_gets_numbers_in_the_order_of_first_use() -> None:
    statement = Statement("s", "select :b::int[], :a, :b from {schema}.job j {lock j}", POSTGRES)
    assert statement.sql == 'select $1::int[], $2, $1 from "everytick".job j for no key update of j'
    assert statement.names == ("b", "a")
    assert statement(a=1, b=[2]).arguments == ([2], 1)


def test_sqlite_gets_a_mapping() -> None:
    statement = Statement("s", "select :b, :a from {schema}.job j {lock j} {skip}", SQLITE)
    assert statement.sql == "select :b, :a from main.job j  "
    assert statement(a=1, b=2).arguments == {"b": 2, "a": 1}


@pytest.mark.parametrize("given", [{}, {"a": 1}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}])
def test_a_missing_or_unknown_parameter_is_refused(given: dict[str, int]) -> None:
    statement = Statement("purge", "select :a, :b", SQLITE)
    with pytest.raises(TypeError, match="the statement purge takes a, b"):
        statement(**given)


def test_what_a_value_is_follows_from_its_name() -> None:
    kinds = {
        "ended_at": ColumnKind.INSTANT,
        "scheduled_for": ColumnKind.INSTANT,
        "span_after": ColumnKind.INSTANT,
        "fill_through": ColumnKind.INSTANT,
        "watermark": ColumnKind.INSTANT,
        "keep_success": ColumnKind.DURATION,
        "occurrence_id": ColumnKind.ID,
        "status": ColumnKind.STATUS,
        "run_status": ColumnKind.RUN_STATUS,
        "last_attempt_status": ColumnKind.ATTEMPT_STATUS,
        "cause": ColumnKind.CAUSE,
        "is_done": ColumnKind.FLAG,
        "job_id": ColumnKind.PLAIN,
        "handle": ColumnKind.PLAIN,
    }
    assert {name: kind_of(name) for name in kinds} == kinds


def test_values_come_back_from_sqlite_as_they_went_in() -> None:
    columns = {
        "ended_at": NOON,
        "keep_success": timedelta(days=2),
        "occurrence_id": ID,
        "status": OccurrenceStatus.COMPLETED,
        "run_status": RunStatus.SKIPPED,
        "attempt_status": AttemptStatus.LOST,
        "cause": Cause.BACKFILL,
        "is_done": True,
        "name": "nightly",
        "removed_at": None,
    }
    statement = Statement("all", "select " + ", ".join(f":{name} as {name}" for name in columns), SQLITE)
    query = statement(**columns)
    found = sqlite3.connect(":memory:").execute(query.statement.sql, query.arguments)
    rows = found.fetchall()
    assert statement.read([column[0] for column in found.description], rows) == [columns]
    assert statement.read([column[0] for column in found.description], rows * 2) == [columns] * 2


def test_values_reach_postgres_as_its_driver_takes_them() -> None:
    statement = Statement("all", "select :ended_at, :keep_success, :occurrence_id, :status, :name", POSTGRES)
    query = statement(
        ended_at=NOON,
        keep_success=timedelta(seconds=1),
        occurrence_id=ID,
        status=OccurrenceStatus.FAILED,
        name="a\x00b",
    )
    assert query.arguments == (NOON, 1_000_000, ID[4:], 12, "a\\x00b")


def test_a_list_is_an_array_or_json() -> None:
    text = "select 1 from {schema}.occurrence where handle {in handles}"
    in_postgres, in_sqlite = Statement("s", text, POSTGRES), Statement("s", text, SQLITE)
    assert in_postgres.sql.endswith("handle = any($1)")
    assert in_postgres(handles=(1, 2)).arguments == ([1, 2],)
    assert in_sqlite.sql.endswith("handle in (select value from json_each(:handles))")
    assert in_sqlite(handles=(1, 2)).arguments == {"handles": "[1, 2]"}


def test_a_list_converts_each_value_by_its_name() -> None:
    text = "select 1 where ended_at {in ended_at} and name {in name}"
    given = {"ended_at": [NOON, None], "name": ["a\x00b"]}
    assert Statement("s", text, POSTGRES)(**given).arguments == ([NOON, None], ["a\\x00b"])
    assert Statement("s", text, SQLITE)(**given).arguments["ended_at"] == "[1772366400000000, null]"


def test_rows_are_arrays_or_one_json() -> None:
    text = "select keys.handle, :a from {rows keys: handle bigint, ended_at timestamptz} where :a"
    rows = [{"handle": 1, "ended_at": NOON}, {"handle": 2, "ended_at": None}]
    in_postgres, in_sqlite = Statement("s", text, POSTGRES), Statement("s", text, SQLITE)
    assert in_postgres.sql == (
        "select keys.handle, $1 from unnest($2::bigint[], $3::timestamptz[]) keys(handle, ended_at) where $1"
    )
    assert in_postgres.names == in_sqlite.names == ("a", "keys")
    assert in_postgres(a=True, keys=rows).arguments == (True, [1, 2], [NOON, None])
    assert in_sqlite(a=True, keys=rows).arguments == {"a": True, "keys": "[[1, 1772366400000000], [2, null]]"}
    with pytest.raises(TypeError, match="missing"):
        in_sqlite(a=True, key=rows)


def test_rows_can_be_read_in_sqlite() -> None:
    statement = Statement("s", "select keys.b, keys.a from {rows keys: a int, b text}", SQLITE)
    query = statement(keys=[{"a": 2**62, "b": "x"}, {"a": None, "b": "y"}])
    assert sqlite3.connect(":memory:").execute(query.statement.sql, query.arguments).fetchall() == [
        ("x", 2**62),
        ("y", None),
    ]


def test_ids_are_an_array_or_their_bytes() -> None:
    """A text that no occurrence can have for an id finds nothing."""
    other = "occ_0194f3a0-9999-7222-8333-444455556666"
    text = "select id as occurrence_id from it where id {in_ids occurrence_ids} order by id"
    assert Statement("s", text, POSTGRES)(occurrence_ids=[ID, "nonsense"]).arguments == ([ID[4:]],)
    statement = Statement("s", text, SQLITE)
    db = sqlite3.connect(":memory:")
    db.execute("create table it (id blob)")
    db.executemany("insert into it values (:id)", [{"id": id_bytes(each)} for each in (ID, other)])

    def found(*ids: str) -> list[str]:
        rows = db.execute(statement.sql, statement(occurrence_ids=ids).arguments).fetchall()
        return [row["occurrence_id"] for row in statement.read(["occurrence_id"], rows)]

    assert (found(), found("nonsense"), found(other), found(ID, other)) == ([], [], [other], [ID, other])


def test_a_text_that_no_occurrence_can_have_for_an_id_finds_nothing() -> None:
    for dialect in (POSTGRES, SQLITE):
        [argument] = Statement("s", "select :occurrence_id", dialect)(occurrence_id="nonsense").statement.names
        assert argument == "occurrence_id"
    assert Statement("s", "select :occurrence_id", POSTGRES)(occurrence_id="nonsense").arguments == (None,)


def test_codes_are_named_in_the_text() -> None:
    text = "select {pending}, {first_ended}, {run.success}, {attempt.failed}, {cause.trigger}"
    assert Statement("s", text, SQLITE).sql == "select 0, 10, 2, 3, 1"
    with pytest.raises(ImportError, match="unknown marker"):
        Statement("s", "select {pendign}", SQLITE)


def test_statements_are_bound_by_name() -> None:
    class Queries(Statements):
        one: Statement

    bound = bind_statements(Queries, "-- one --\n-- Returns one.\nselect :a;\n", "here", SQLITE)
    assert bound.one(a=1).arguments == {"a": 1}
    assert bound.one is bound.one
    with pytest.raises(AttributeError, match="no statement two"):
        bound.two  # noqa: B018
    with pytest.raises(ImportError, match="missing queries"):
        bind_statements(Queries, "-- two --\n-- Returns two.\nselect :a;\n", "here", SQLITE)


def test_a_store_may_leave_out_a_statement_that_is_declared_so() -> None:
    class Queries(Statements):
        one: Statement
        two: Statement | None

    text = "-- one --\n-- Returns one.\nselect 1;\n"
    assert bind_statements(Queries, text, "here", POSTGRES).two is None
    both = bind_statements(Queries, f"{text}-- two --\n-- Returns two.\nselect 2;\n", "here", SQLITE)
    assert both.two is not None
    assert both.two.sql == "select 2"
