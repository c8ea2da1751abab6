"""Every query is used, can be prepared on a fresh file, and takes the index it was made for."""

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everytick.stores.queries import bind_queries
from everytick.stores.sql.access_queries import AccessQueries, access_queries
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Statement
from everytick.stores.sqlite.dialect import SQLITE
from everytick.stores.sqlite.queries import COLD, Q, Queries
from everytick.stores.sqlite.store import SqliteStore

SOURCES = Path(__file__).resolve().parents[3] / "src/everytick/stores/sqlite"
SHARED = SOURCES.parent / "sql/verbs"
HOT = sorted(Queries.__annotations__)
NAMES = sorted({*HOT, *ColdQueries.__annotations__})


class Two:
    one: str
    two: str


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A connection to a fresh file as another program would have it. All tests share it: they only ask for plans."""
    with closing(_connected(tmp_path_factory)) as connection:
        yield connection


@pytest.fixture(scope="module", params=[False, True])
def analyzed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """As `sql`; the second has statistics that were taken while the tables were empty."""
    with closing(_connected(tmp_path_factory)) as connection:
        if request.param:
            connection.execute("analyze")
        yield connection


def _connected(folders: pytest.TempPathFactory) -> sqlite3.Connection:
    path = folders.mktemp("queries") / "store.db"
    asyncio.run(_create(path))
    connection = sqlite3.connect(path, isolation_level=None)
    # A fold makes this one in the memory of its connection.
    assert COLD.make_ended_day is not None, "SQLite sums days by itself"
    connection.execute(COLD.make_ended_day.sql)
    return connection


async def _create(path: Path) -> None:
    """The file holds the tables of a store."""
    store = SqliteStore(path)
    await store.open()
    await store.close()


def plan_of(sql: sqlite3.Connection, name: str) -> str:
    statement = getattr(COLD if name in ColdQueries.__annotations__ else Q, name)
    if isinstance(statement, Statement):
        found = sql.execute(f"explain query plan {statement.sql}", dict.fromkeys(statement.names)).fetchall()
    else:
        found = sql.execute(f"explain query plan {statement.sql}", (None,) * statement.sql.count("?")).fetchall()
    return "\n".join(row[3] for row in found)


@pytest.mark.parametrize("name", NAMES)
def test_every_query_can_be_prepared_on_a_fresh_file(sql: sqlite3.Connection, name: str) -> None:
    plan_of(sql, name)


def with_statistics(sql: sqlite3.Connection) -> None:
    """Let SQLite plan as for a file that was analyzed while it had a long history and no unfolded occurrences.

    Of a table without statistics it expects a million rows, so that it looks for something to make lookups cheaper.
    """
    sql.execute("analyze")
    sql.execute("delete from sqlite_stat1")
    indexes = sql.execute("select name from sqlite_schema where type = 'index' and tbl_name = 'occurrence'").fetchall()
    for (index,) in indexes:
        columns = len(sql.execute(f"pragma index_info({index})").fetchall())
        sql.execute("insert into sqlite_stat1 values ('occurrence', ?, ?)", (index, "100000" + " 10" * columns))
    sql.execute("analyze sqlite_schema")


def test_no_query_reads_all_occurrences_into_a_filter(sql: sqlite3.Connection) -> None:
    """The first page of a long history waited 70 ms for a Bloom filter over all occurrences."""
    with_statistics(sql)
    plans = {name: plan_of(sql, name) for name in NAMES}
    assert not {name: plan for name, plan in plans.items() if "BLOOM FILTER ON o " in plan}


def test_every_query_is_used() -> None:
    text = "".join(path.read_text() for path in SOURCES.glob("*.py"))
    assert sorted(set(re.findall(r"\bQ\.(\w+)", text))) == HOT


def test_every_shared_statement_is_used() -> None:
    paths = [*SHARED.glob("*.py"), SHARED.parent / "queries.py", *SOURCES.glob("*.py")]
    text = "".join(path.read_text() for path in paths)
    used = set(re.findall(r"\b(?:q|self|COLD)\.(\w+)", text))
    assert used >= {*ColdQueries.__annotations__, *AccessQueries.__annotations__}


# The index that each query finds its rows by; those that only add a row find none.
INDEXES = {
    "INTEGER PRIMARY KEY": """
        add_failures counted_among failed_between failed_of fold_between fold_days_of_these fold_these
        forget_failures_of forgettable_of measured_lengths sum_ended_days touch_lengths touch_lengths_of_days
        measured_lengths_of move_rollup note_unfolded purge_lengths stale_lengths tail_days tail_failures tail_steps
        next_ended unseen
        add_coming move_backfill turn_state
        hold_places move_lanes own_in_lanes pick_ready unlist_claimed
        occurrences_of
        add_coming turn_state
        advance_occurrence bring_told_back decided_through edit_job edit_state end_owned end_pause step_marks
        forget_claims forget_editions forget_narrowing forget_occurrences forget_reschedule claims_of
        hold_given_back last_of_jobs mark_undefined move_watermark newest_version note note_end owe_report owe_reports
        note_last_ends note_last_successes note_stop own_occurrences parked_jobs purge_job
        keep_promise show_unreadable undo_reschedule unpark
        purge_occurrences purge_state record_ends record_success remove_job rename_job reschedule_job resume_pause
        retire_job retired_of revise rewind take_orphans wake wake_job wake_jobs_of""",
    "PRIMARY KEY": """
        bucket_steps forget_cells forget_passed forget_unfolded job_days kept_in_all kept_of_job purge_job_days
        purge_bands sweep
        count_fills dependencies_of deleted_upstreams forget_dependencies newest_past_versions purge_fills recent_fills
        unclaimed_fills upstreams
        forget_reach hold_reaches known_lanes running_in
        runs_of
        attempts_of definition forget_attempts forget_reports forget_runs key_use leave past_versions purge_keys
        coming_of coming_of_keys forget_coming handed_of purge_coming
        owed_reports purge_versions reported version_at
        drop_promises forget_breaches hold_promises purge_breaches purge_promises recheck_promises settle_promise
        tell_breach withdraw_breaches""",
    "INDEX failure_by_time": "kinds_since",
    "INDEX failure_alike": "kind_since",
    "INDEX job_length_stale": "rollup_lags",
    "INDEX promise_due": "promises_due",
    "INDEX breach_owed": "owed_breaches",
    "INDEX request_id": "asked_for existing_between forget_asked_for",
    "INDEX request_key_id": "forget_keys",
    "INDEX job_state_due": "due_jobs next_wake",
    "INDEX job_state_undefined": "take_marks undefined_jobs",
    "INDEX occurrence_active": """
        active add_needs_of_active ask_all_to_stop mark_awaited bring_waiting_back lift_late
        edit_unclaimed held_of_job history_page_active history_page_active_of let_waits_go
        put_all_back_in_line put_back_in_line""",
    "INDEX occurrence_by_time": "counted history_page window_runs",
    "INDEX occurrence_ended (job_key=? AND status=? AND ended_at<?)": "aged jobs_with_aged",
    "INDEX occurrence_deadline": "overdue",
    "INDEX occurrence_held": "forget_nodes held_by held_earlier held_earlier_of nodes orphaned owned",
    "INDEX occurrence_early": "bring_retries_back bring_runs_back release_early next_ready release_early_in_lanes",
    "INDEX occurrence_of_job": """
        counted_of covered_runs last_runs latest_lengths steps_of_jobs window_runs_of
        existing_fills existing_fills_back history_page_of last_kept promised_runs purgeable runs_at trial_counts""",
    "INDEX limit_start_by_time": "forget_starts forget_starts_of started_in",
    "INDEX occurrence_ready": "ready_in_lane ready_in_lanes ready_occurrences waiting_by_needs waiting_in_lanes",
    "INDEX pause_job": "forget_pauses pauses purge_pauses rewind_pauses",
    "INDEX span_missed": "missed_spans",
    "INDEX span_job": "promised_spans purge_spans spans_of spans_of_jobs undo_spans",
    "INDEX sqlite_autoindex_adjustment_1": """
        adjustment_at adjustments forget_adjustments purge_adjustments use_adjustment""",
    "INDEX sqlite_autoindex_job_1": "foretell hold_job keys_of_jobs dependencies_above need_jobs",
    "INDEX sqlite_autoindex_job_2": """
        forgotten_jobs job_in_service jobs_ahead jobs_by_name lock_names named_jobs names_in_service""",
    "INDEX sqlite_autoindex_job_state_1": """
        count_runs hold_undefined jobs_by_id note_failed_attempt note_failure park_plan standing_by_id
        states_of_jobs""",
    "INDEX sqlite_autoindex_occurrence_1": """
        own_runs places_in_line
        ask_owner_to_stop ask_to_stop begin_kept end_unowned existing hold_occurrence keep_runs
        errors_of statuses_of occurrence_payload handle_of recorded_before release""",
    "INDEX sqlite_autoindex_request_1": """
        hide_backfill
        continue_backfill forget_request open_request""",
    "INDEX request_due": "later_requests purge_requests requests",
    "INDEX sqlite_autoindex_backfill_1": "backfill_of_id",
    "INDEX sqlite_autoindex_backfill_2": """
        approve_backfill backfill_of_key count_open_backfills list_backfills open_backfills purge_backfills
        stop_backfill""",
    "INDEX dependency_needed": "tell_dependents",
    "": """
        add_backfill add_dependency add_fill hold_dependencies show_backfill
        add_bands hold_rollup keep_lengths note_gaps some_jobs
        add_ended_days forget_ended_days make_ended_day
        add_job add_name_set add_needs add_pause add_span add_state add_version adjust all_needs beat
        count_moved_request count_needs create_occurrence forget_name_sets hear keep_request know_needs name_sets
        keep_coming breach_records bring_promises_back promise_records write_breach
        add_brake add_limit_change add_starts begin_limited_claim brakes forget_brakes keep_reach limit_changes
        limits_hold reaches stop_claims stop_limited_claims
        record_attempt record_occurrence record_run told_ahead unreadable_jobs use_key wake_jobs_ahead was_ahead
        write_attempt write_run""",
}
BY_QUERY = {name: index for index, names in INDEXES.items() for name in names.split()}

# Tables that hold one row, or one per node, set of names, parked definition, counted table or job that ever failed, the
# list of all jobs for people, rows that come with the statement, the days of one batch, and attempts that failed, by an
# index that holds no others. What was written while a clock was ahead is looked for at a start, and after a step back,
# among all jobs and retries.
SMALL = {
    "history_page_active": "occurrence",
    "add_ended_days": "e",
    "touch_lengths_of_days": "e",
    "sum_ended_days": "e",
    "unseen": "e",
    "hold_rollup": "r",
    "measured_lengths": "l",
    "rollup_lags": "l o r u",
    "some_jobs": "s",
    "stale_lengths": "l",
    "tail_failures": "u",
    "counted_among": "r",
    "all_needs": "needs",
    "dependencies_above": "a",
    "list_backfills": "b",
    "names_in_service": "j",
    "recent_fills": "f",
    "count_needs": "needs reach",
    "ready_occurrences": "reach",
    "limits_hold": "reach",
    "started_in": "n",
    "reaches": "reach brake",
    "hold_reaches": "brake",
    "brakes": "brake",
    "forget_brakes": "brake",
    "limit_changes": "limit_change",
    "waiting_by_needs": "l n",
    "waiting_in_lanes": "occurrence",
    "wake_jobs_ahead": "job_state",
    "told_ahead": "s",
    "name_sets": "name_set",
    "forget_name_sets": "name_set n",
    "nodes": "n o",
    "forget_nodes": "node",
    "unreadable_jobs": "job_state",
    "parked_jobs": "j",
    "continue_backfill": "sqlite_sequence",
    "count_moved_request": "sqlite_sequence",
    "jobs_by_name": "j",
    "jobs_with_aged": "j",
    "owed_reports": "o",
    "end_owned": "e",
    "wake_jobs_of": "e",
    "bring_retries_back": "occurrence",
    "bring_runs_back": "occurrence",
    "bring_waiting_back": "occurrence",
    "was_ahead": "node job_state",
    "jobs_ahead": "j",
    "bring_promises_back": "promise",
    "promise_records": "p",
    "breach_records": "b",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_query_takes_the_index_it_was_made_for(analyzed: sqlite3.Connection, name: str) -> None:
    """S0-055, S1-006; also with statistics that were taken while the tables were empty."""
    plan = plan_of(analyzed, name)
    assert BY_QUERY[name] in plan, plan
    if not BY_QUERY[name]:
        assert "SEARCH occurrence" not in plan, plan
    small = {"json_each", "CONSTANT", "nth", *SMALL.get(name, "").split()}
    made = set(re.findall(r"(?:CO-ROUTINE|MATERIALIZE) (\w+)|SCAN (\w+) VIRTUAL TABLE", plan))
    walked = set(re.findall(r"SCAN (?:main\.)?(\w+)", plan)) - small - {name for pair in made for name in pair}
    assert not walked, f"walks through all of {walked}: {plan}"


@pytest.mark.parametrize(
    "name",
    [
        "due_jobs",
        "ready_occurrences",
        "next_ready",
        "owed_reports",
        "history_page",
        "history_page_of",
        "last_kept",
        "window_runs",
        "covered_runs",
    ],
)
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


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("deeds", "PRIMARY KEY"),
        ("deeds_by", "INDEX deed_by"),
        ("deeds_of", "INDEX deed_job"),
        ("deeds_by_of", "INDEX deed_"),
        ("session_of", "PRIMARY KEY"),
        ("failures_of", "PRIMARY KEY"),
        ("job_of_occurrence", "INDEX sqlite_autoindex_occurrence_1"),
    ],
)
def test_a_question_about_people_takes_its_index_and_sorts_nothing(
    sql: sqlite3.Connection, name: str, index: str
) -> None:
    """S17, S20: deeds are never deleted, so no page of them may read all."""
    statement = getattr(access_queries(SQLITE), name)
    found = sql.execute(f"explain query plan {statement.sql}", dict.fromkeys(statement.names))
    plan = "\n".join(row[3] for row in found)
    assert index in plan
    assert "TEMP B-TREE" not in plan
