"""Every query is used, can be prepared on a fresh file, and takes the index it was made for."""

import re
import sqlite3
from pathlib import Path

import pytest

from everytick.stores.queries import bind_queries
from everytick.stores.sqlite.queries import Q, Queries

SOURCES = Path(__file__).resolve().parents[3] / "src/everytick/stores/sqlite"
NAMES = sorted(Queries.__annotations__)


class Two:
    one: str
    two: str


def plan_of(sql: sqlite3.Connection, name: str) -> str:
    query = getattr(Q, name)
    found = sql.execute(f"explain query plan {query}", (None,) * query.count("?")).fetchall()
    return "\n".join(row[3] for row in found)


@pytest.mark.parametrize("name", NAMES)
def test_every_query_can_be_prepared_on_a_fresh_file(sql: sqlite3.Connection, name: str) -> None:
    plan_of(sql, name)


def test_every_query_is_used() -> None:
    text = "".join(path.read_text() for path in SOURCES.glob("*.py"))
    assert sorted(set(re.findall(r"\bQ\.(\w+)", text))) == NAMES


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("due_jobs", "job_due"),
        ("active_of_jobs", "occurrence_active"),
        ("ready_occurrences", "occurrence_ready"),
        ("held_by", "occurrence_held"),
        ("held_by_silent", "occurrence_held"),
        ("owed_reports", "occurrence_report"),
        ("history_of_job", "occurrence_of_job"),
        ("history", "occurrence_by_time"),
        ("give_new_version", "occurrence_active"),
        ("put_back_in_line", "occurrence_active"),
        ("spans", "span_job"),
        ("pauses_of_jobs", "pause_job"),
        ("release_occurrence", "sqlite_autoindex_occurrence_1"),
    ],
)
@pytest.mark.parametrize("analyzed", [False, True])
def test_a_query_takes_the_index_it_was_made_for(
    sql: sqlite3.Connection, name: str, index: str, analyzed: bool
) -> None:
    """S0-055, S1-006; also with statistics that were taken while the tables were empty."""
    if analyzed:
        sql.execute("analyze")
    plan = plan_of(sql, name)
    assert f"INDEX {index}" in plan, plan


@pytest.mark.parametrize("name", ["due_jobs", "ready_occurrences", "owed_reports", "history", "history_of_job"])
def test_what_comes_in_order_is_not_sorted(sql: sqlite3.Connection, name: str) -> None:
    """A sort would read everything that is ready for the sake of the first few."""
    assert "TEMP B-TREE FOR ORDER BY" not in plan_of(sql, name)


def test_a_missing_or_unused_query_is_an_error_at_import() -> None:
    text = "-- one --\n-- Guarantees something.\nselect 1;\n-- three --\n-- Guarantees more.\nselect 3;\n"
    with pytest.raises(ImportError, match=r"missing queries \['two'\], unused queries \['three'\]"):
        bind_queries(Two, text, "some.sql")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-- one --\nselect 1;", "the query one does not say what it guarantees"),
        ("-- one --\n-- A.\nselect 1;\n-- one --\n-- B.\nselect 2;", "the query one stands there twice"),
    ],
)
def test_a_query_says_what_it_guarantees_and_stands_there_once(text: str, reason: str) -> None:
    with pytest.raises(ImportError, match=reason):
        bind_queries(Two, text, "some.sql")


def test_queries_are_bound_by_their_names() -> None:
    bound = bind_queries(Two, "-- one --\n-- A.\nselect 1;\n-- two --\n-- B.\nselect 2\n-- of all\nfrom x;", "some.sql")
    assert (bound.one, bound.two) == ("select 1", "select 2\nfrom x")
