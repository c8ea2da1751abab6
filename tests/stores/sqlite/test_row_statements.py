"""Statements in bulk: however many rows there are, each is written once and as it was given."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from everytick.domain.outcome import Failed, Outcome, Succeeded
from everytick.domain.payload import payload
from everytick.stores.base import Commit, NodeScope
from everytick.stores.sqlite.row_statements import Bulk, RowStatement, in_order
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import began, ended, job, plan_once, put
from tests.stores.clock import ManualClock


@pytest.fixture
def table() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("create table given (number integer primary key, text, mark)")
        yield connection


@pytest.mark.parametrize("count", [0, 1, 3, 4, 21, 64, 257, 600])
def test_as_many_rows_are_written_as_there_are(table: sqlite3.Connection, count: int) -> None:
    add = Bulk("add", "insert into given select e.number, e.text, :mark from {rows} e", ("number", "text"))
    columns = in_order([(number, f"text {number}") for number in reversed(range(count))])
    assert add.write(table.execute, columns, "mark") == count
    assert table.execute("select number, text, mark from given order by number").fetchall() == [
        (number, f"text {number}", "mark") for number in range(count)
    ]


def test_only_rows_that_changed_are_counted(table: sqlite3.Connection) -> None:
    table.execute("insert into given values (1, 'one', null), (2, 'two', null)")
    edit = Bulk("edit", "update given set text = e.text from {rows} e where number = e.number", ("number", "text"))
    assert edit.write(table.execute, [1, "1st", 2, "2nd", 3, "3rd"]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "insert into given values (:number, :text)",
        "insert into given select e.number, f.text from {rows} e, {rows} f",
        "insert into given select e.number, e.txet from {rows} e",
        "insert into given select e.number, e.text from {rows} e where :mark",
    ],
)
def test_a_text_in_bulk_has_one_table_of_rows_and_only_their_columns(text: str) -> None:
    """What stands behind the rows would get a place that moves with their number."""
    with pytest.raises(ImportError, match="the statement add has one table"):
        Bulk("add", text, ("number", "text"))


def test_a_statement_takes_the_columns_of_its_rows_in_their_order(table: sqlite3.Connection) -> None:
    add = RowStatement("add", "insert into given values (:number, ':' || :text, :number)", ("number", "text", "number"))
    table.executemany(add.sql, [(1, "one", 1), (2, "two", 2)])
    assert table.execute("select * from given").fetchall() == [(1, ":one", 1), (2, ":two", 2)]


@pytest.mark.parametrize("columns", [("text", "number"), ("number",), ("number", "text", "mark"), ("number", "txet")])
def test_rows_with_other_columns_or_in_another_order_are_refused(columns: tuple[str, ...]) -> None:
    with pytest.raises(ImportError, match="the statement add takes"):
        RowStatement("add", "insert into given values (:number, :text, null)", columns)


def outcome(number: int) -> Outcome:
    """Return one of three in turn: a plain success, one with a result, a failure."""
    return (Succeeded(), Succeeded(payload(number)), Failed(f"no {number}"))[number % 3]


async def test_steps_of_all_kinds_in_one_batch_are_each_recorded(opened: SqliteStore, clock: ManualClock) -> None:
    """S0-014: what is gathered into long statements is the same as what is written row by row."""
    names = {(await put(opened, job(f"job-{number:03}"))).job_id: number for number in range(100)}
    clock.move(hours=1)
    await plan_once(opened, 200)
    claims = await opened.claim(NodeScope("node-1"), 200)
    steps = []
    for claim in claims:
        number = names[claim.occurrence.job_id]
        over = clock.time + timedelta(seconds=number)
        steps.append((claim, ended(claim, began(claim, clock.time), over, outcome(number))))
    assert await opened.commit_steps(steps) == [Commit.COMMITTED] * 100

    records = await opened.get(list(names))
    for claim, step in steps:
        number, end = names[claim.occurrence.job_id], step.after.ended_at
        whole, record = await opened.whole(claim.occurrence.id), records[claim.occurrence.job_id]
        [run], [(_, attempt)] = whole.runs, whole.attempts
        good = number % 3 != 2
        assert (whole.occurrence.status, whole.occurrence.ended_at) == ("completed" if good else "failed", end)
        assert (whole.occurrence.owner, whole.occurrence.fence) == (None, claim.fence + 1)
        assert (run.status, run.attempts, run.ended_at) == ("success" if good else "failed", 1, end)
        assert (attempt.number, attempt.status) == (1, "success" if good else "failed")
        assert (attempt.started_at, attempt.ended_at, attempt.error) == (clock.time, end, run.error)
        assert record.last_end is not None
        assert record.last_end.ended_at == end
        assert (record.last_success == record.last_end) == good


async def test_one_stale_step_in_a_long_batch_is_the_only_one_that_is_refused(
    opened: SqliteStore, clock: ManualClock
) -> None:
    """Running.md, fences: a batch is written whole but for what its owner has lost."""
    for number in range(30):
        await put(opened, job(f"job-{number:03}"))
    clock.move(hours=1)
    await plan_once(opened, 200)
    claims = await opened.claim(NodeScope("node-1"), 200)
    steps = [(claim, ended(claim, began(claim, clock.time), clock.time, Succeeded())) for claim in claims]
    lost = claims[17]
    await opened.orphans("node-2", 1, {}, [lost.key])
    answers = await opened.commit_steps(steps)
    assert [number for number, answer in enumerate(answers) if answer is Commit.STALE] == [17]
    assert (await opened.whole(lost.occurrence.id)).attempts == ()
    assert [len((await opened.whole(claim.occurrence.id)).attempts) for claim in claims].count(1) == 29


async def test_what_has_ended_says_when_and_nothing_else_does(opened: SqliteStore, sql: sqlite3.Connection) -> None:
    """The index of what is active goes by ended_at, the statements by the status: they must never disagree."""
    await put(opened, job())
    insert = """insert into occurrence (id, job_key, version, scheduled_for, status, cause, late, ended_at, created_at,
                                        updated_at, priority, needs) values (x'00', 1, 1, 0, ?, 0, 0, ?, 0, 0, 0, '')"""
    for status, ended_at in ((10, None), (1, 5)):
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            sql.execute(insert, (status, ended_at))


async def test_what_is_claimed_together_stands_together_in_the_file(opened: SqliteStore, clock: ManualClock) -> None:
    """Their order in line is that of their ids, which say nothing of their jobs: a batch would touch every page."""
    for number in range(40):
        await put(opened, job(f"job-{number:03}"))
    clock.move(hours=1)
    await plan_once(opened, 200)
    handles = [claim.handle for _ in range(4) for claim in await opened.claim(NodeScope("node-1"), 10)]
    assert handles == sorted(handles)
