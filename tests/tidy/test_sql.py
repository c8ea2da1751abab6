"""SQL texts: codes have names, and the tables of both stores know the same ones."""

import ast
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from everytick.domain.codes import ATTEMPT_CODE, CAUSE_CODE, IN_SQL, RUN_CODE, STATUS_CODE
from everytick.stores.postgres import claims as postgres_claims
from everytick.stores.postgres.queries import Queries as PostgresQueries
from everytick.stores.sqlite import claims as sqlite_claims
from everytick.stores.sqlite.queries import Queries as SqliteQueries
from tests.tidy.tree import ROOT, walked

STORES = ROOT / "src/everytick/stores"
MIGRATIONS = sorted(STORES.glob("*/migrations/*.sql"))
TEXTS = sorted(path for path in STORES.glob("*/**/*.sql") if path not in MIGRATIONS)

_BARE = re.compile(r"(?:status|cause)\s*(?:=|<>|<=?|>=?|(?:not )?in \(|between)\s*\d", re.IGNORECASE)
_MARKER = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")


def test_codes_stand_by_name_in_sql() -> None:
    """A number beside status or cause says nothing to a reader, and outlives a change of the table unseen."""
    assert len(TEXTS) >= 3
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if _BARE.search(line) and not line.startswith("--")
    ]
    assert found == []


def test_every_code_that_a_text_names_is_known() -> None:
    named = {name for path in TEXTS for name in _MARKER.findall(path.read_text("utf-8"))}
    assert named <= set(IN_SQL)


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("occurrence_status", STATUS_CODE),
        ("run_status", RUN_CODE),
        ("attempt_status", ATTEMPT_CODE),
        ("cause", CAUSE_CODE),
    ],
)
@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: path.parts[-3])
def test_the_numbers_in_the_tables_are_those_of_the_code(path: Path, table: str, codes: Mapping[StrEnum, int]) -> None:
    """S0-055: a status or cause is a small number in the tables, and each number has one meaning for ever."""
    text = path.read_text("utf-8")
    [rows] = re.findall(rf"insert into (?:everytick\.)?{table} values\s([^;]*);", text)
    assert {name: int(code) for code, name in re.findall(r"\((\d+), '(\w+)'\)", rows)} == {
        str(member): code for member, code in codes.items()
    }


@pytest.mark.parametrize(
    ("path", "selected"),
    [
        ("sqlite/claims.py", (sqlite_claims.CLAIM_COLUMNS, (*sqlite_claims.READY_COLUMNS, "is_plain"))),
        ("postgres/claims.py", (postgres_claims.CLAIM_COLUMNS,)),
    ],
)
def test_a_claim_takes_its_columns_in_the_order_in_which_they_are_selected(
    path: str, selected: tuple[tuple[str, ...], ...]
) -> None:
    """Rows of claims are taken apart by place: each variable has the name of the column that stands there."""
    taken = [
        [element.id.removesuffix("_") for element in node.targets[0].elts if isinstance(element, ast.Name)]
        for node in walked(f"src/everytick/stores/{path}")
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and ast.unparse(node.value) == "row"
    ]
    for names in taken:
        assert any(
            len(names) == len(columns)
            and all(name in ("", column) for name, column in zip(names, columns, strict=True))
            for columns in selected
        ), names
    assert len(taken) >= len(selected)


ONE_STATEMENT = "PostgreSQL's ahead, claim, commit_steps or move_watermarks does it in the same statement"
WAITS = "a server has many writers, who wait for each other's rows; a file has one"
SERVER = "a server tells its time, rings its bell and says which it is; a file's process does"
ASKS = "a request on a server is one statement under the lock of its key; on a file facts.py writes it"

ALONE = {
    "postgres": {
        **dict.fromkeys(("now", "ring", "pulse", "identity", "stand_within"), SERVER),
        **dict.fromkeys(("hold_due", "hold_plans", "hold_occurrences", "hold_jobs_of", "wait_for_mark"), WAITS),
        **dict.fromkeys(("ask", "ask_within", "hold_key", "wait_for_key"), ASKS),
        **dict.fromkeys(("relabel_wakes", "fold_wakes"), "facts stand in a table of their own, where ends lock no job"),
        "ahead": "one round trip for what SQLite asks in four statements",
        "few_due": "one round trip for a small batch, which locks nothing",
        "settle_few": "one round trip for the whole plan of a small batch",
        "planned_by": "the answer of a commit may be lost on the way to a server",
        "standing_of_due": "hold_due locks, and this reads, so that a row is read as it is under the lock",
        "standing_of_told": "hold_due locks, and this reads, facts included",
        "job_keys": "a plan names a job by its id, and SQLite finds the key where it reads the job",
        "park_job": "SQLite shows unreadable jobs by the shared show_unreadable, with others in one transaction",
        "close_runs": "SQLite writes runs by write_run",
        "runs": "read by place for each claim; SQLite reads them by the shared runs_of",
        "claim": "one round trip; SQLite claims in three statements within its one writer",
        "give_back": "a claim on a server is committed before its definition is known to be unreadable",
        "commit_steps": "one round trip; SQLite writes each table by a statement of its own",
        "commit_plain": "the same for plain successes, in less time",
    },
    "sqlite": {
        **dict.fromkeys(("next_wake", "next_ready", "count_needs", "all_needs"), ONE_STATEMENT),
        **dict.fromkeys(("ready_occurrences", "limits_hold", "own_occurrences", "beat"), ONE_STATEMENT),
        **dict.fromkeys(
            ("advance_occurrence", "end_owned", "write_run", "write_attempt", "owe_reports"), ONE_STATEMENT
        ),
        **dict.fromkeys(("note_end", "note_last_ends", "note_last_successes", "count_runs"), ONE_STATEMENT),
        **dict.fromkeys(("note_failure", "note_failed_attempt", "wake_jobs_of", "forget_claims"), ONE_STATEMENT),
        **dict.fromkeys(("forget_reschedule", "forget_editions", "begin_kept"), ONE_STATEMENT),
        **dict.fromkeys(
            ("jobs_with_aged", "last_kept", "last_of_jobs"), "aged asks job by job: no plan joins them well"
        ),
        **dict.fromkeys(("forgettable_of", "forget_keys"), "forget_occurrences of PostgreSQL does it too"),
        "due_jobs": "a file needs no lock on due jobs: only one process writes, and the revision settles it",
        "states_of_jobs": "read under the one writer; hold_plans of PostgreSQL locks the jobs",
    },
}
"""Statements on the hot path that one store has alone, each with its reason."""


def as_one(name: str) -> str:
    """Return the name without plurals: PostgreSQL takes many rows as arrays where SQLite takes one after the other."""
    return "_".join(word.removesuffix("s") for word in name.split("_"))


def test_both_stores_call_the_same_statement_by_the_same_name() -> None:
    """A reader who knows one store finds his way in the other. What one has alone is here, with the reason."""
    names = {"postgres": set(PostgresQueries.__annotations__), "sqlite": set(SqliteQueries.__annotations__)}
    shared = {as_one(name) for name in names["postgres"]} & {as_one(name) for name in names["sqlite"]}

    assert {store: {name for name in found if as_one(name) not in shared} for store, found in names.items()} == {
        store: set(reasons) for store, reasons in ALONE.items()
    }
    assert len(shared) >= 30


_NOBODY = re.compile(r"\b(?:(?:any|every|no|some)(?:body|one)|whoever|whom)\b", re.IGNORECASE)


def test_texts_in_sql_name_the_thing() -> None:
    """An operator who reads a lock's statement at night looks for the node, the transaction or the caller."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*TEXTS, *MIGRATIONS)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if _NOBODY.search(line)
    ]
    assert found == []


def test_statements_name_their_parameters() -> None:
    """A reader cannot count to the eleventh `?`, and a column that is added moves the others unseen."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"\?(?! ')|\$\d|\bcolumn\d", line) and not line.startswith("--")
    ]
    assert found == []


def test_rows_are_not_read_by_number() -> None:
    """A place is the index of a name in the columns that fill the select; else a row is read by name."""
    numbered = re.compile(r"\brow\[-?\d")
    verbs = [path for path in STORES.glob("*/**/*.py") if path.parent.name in ("sql", "verbs", "sqlite", "postgres")]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in verbs
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if numbered.search(line) and "pragma" not in line
    ]
    assert found == []
