"""Everything is answerable by SQL, in words; what is final stays so; what cannot be read is parked."""

import json
import re
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from everytick.domain.codes import ATTEMPT_CODE
from everytick.domain.config import Level, overrides
from everytick.domain.facts import Amend, Pause, Resume, Trigger, adjusted
from everytick.domain.lookups import ParkedJobs
from everytick.domain.payload import payload
from everytick.domain.statuses import AttemptStatus
from everytick.stores.base import Commit, NodeScope
from everytick.stores.sqlite.definition_cache import FileDefinitions
from everytick.stores.sqlite.queries import Q, Queries
from everytick.stores.sqlite.store import SqliteStore
from everytick.stores.sqlite.writer import Transaction
from tests.stores.acting import FAILED, job, occurrences, plan_once, put, run_one
from tests.stores.clock import ManualClock


async def test_people_read_views_in_words(opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock) -> None:
    """S0-001, S1-003, S1-025, S0-080."""
    stored = await put(opened, job(payload={"x": 1}))
    clock.move(hours=3)
    await plan_once(opened)
    claim = await run_one(opened, FAILED)
    await opened.request(stored.job_id, Trigger("k", payload({"x": 2})))
    await plan_once(opened)

    def one(query: str) -> tuple[object, ...]:
        found: tuple[object, ...] = sql.execute(query).fetchone()
        return found

    assert one(
        "select name, kind, schedule, enabled, version, next_run, last_run, last_enqueued, parked_reason from jobs"
    ) == (
        "report",
        "task",
        "cron: 0 * * * *",
        1,
        1,
        "2026-11-16T13:00:00.000000Z",
        "2026-11-16T12:00:00.000000Z",
        "2026-11-16T12:00:00.000000Z",
        None,
    )
    assert one("select id, job, status, error from occurrences where cause = 'schedule'") == (
        claim.occurrence.id,
        "report",
        "failed",
        "boom",
    )
    assert one("select job, task, status, attempts, error from task_runs") == ("report", "main", "failed", 1, "boom")
    assert one("select occurrence_id, task, number, status from attempts") == (claim.occurrence.id, "main", 1, "failed")
    assert one("select job, status, why, count from skipped_spans") == ("report", "skipped", "not last", 2)
    assert one("select id, holds from nodes") == ("node-1", 0)
    configs = [json.loads(text) for (text,) in sql.execute("select config from effective_config order by config")]
    assert sorted(each["payload"]["x"] for each in configs) == [1, 2]
    assert {each["overlap"] for each in configs} == {"skip"}


def text_of(name: str) -> str:
    """Return the text of a statement, also of one that is sent rows."""
    query: str = getattr(getattr(Q, name), "sql", getattr(Q, name))
    return query


SETS_STATUS = re.compile(r"update\s+(occurrence|attempt)\b.*\bset\b.*\bstatus = ", re.DOTALL)
SETTERS = [name for name in sorted(Queries.__annotations__) if SETS_STATUS.search(text_of(name).split(" where ")[0])]


def test_the_statements_that_set_a_status_are_found() -> None:
    assert len(SETTERS) >= 3


@pytest.mark.parametrize("name", SETTERS)
def test_no_statement_moves_what_is_final(name: str) -> None:
    """E5, E13: whatever sets a status looks at the one before, so an end stays the end."""
    assert re.search(r"where.*\bstatus (<|=) \d", text_of(name), re.DOTALL)


async def test_an_attempt_that_has_ended_is_never_overwritten(
    opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock
) -> None:
    """E5: running may become failed, and failed nothing else."""
    await put(opened, job())
    clock.move(hours=1)
    await plan_once(opened)
    [handle] = sql.execute("select handle from occurrence").fetchone()

    def write(transaction: Transaction) -> None:
        for status in (AttemptStatus.RUNNING, AttemptStatus.FAILED, AttemptStatus.SUCCESS, AttemptStatus.RUNNING):
            code = ATTEMPT_CODE[status]
            Q.write_attempt.write(transaction.execute, [handle, "main", 1, code, 0, None, str(status)])

    await opened._write(write)
    found = sql.execute("select status, error from attempt").fetchall()
    assert found == [(ATTEMPT_CODE[AttemptStatus.FAILED], "failed")]


async def test_a_definition_that_could_not_be_read_is_read_again_ten_seconds_later(
    opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock, path: Path
) -> None:
    """C-46: as on PostgreSQL; a kind of schedule may be made known after the start."""
    await put(opened, job("odd"))
    await opened.close()
    [stored] = sql.execute("select definition from job_version").fetchone()
    sql.execute("update job_version set definition = '{'")
    seconds = [0.0]
    fresh = SqliteStore(path, clock=clock)
    fresh._definitions = FileDefinitions(lambda: seconds[0])
    await fresh.open()
    clock.move(hours=1)

    assert await plan_once(fresh) == []
    sql.execute("update job_version set definition = ?", [stored])
    seconds[0] = 9.9
    assert await plan_once(fresh) == []
    seconds[0] = 10.1
    assert await plan_once(fresh) == [Commit.COMMITTED]
    await fresh.close()


async def test_a_definition_that_cannot_be_read_is_parked_and_harms_no_other(
    opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock, path: Path
) -> None:
    """It is shown and kept; the other jobs are planned and claimed as if it were not there."""
    for name in ("bad", "good"):
        await put(opened, job(name))
    clock.move(hours=1)
    await plan_once(opened)
    await opened.close()
    sql.execute("update job_version set definition = '{' where job_key = (select job_key from job where name = 'bad')")
    await opened.open()
    fresh = SqliteStore(path, clock=clock)
    await fresh.open()
    clock.move(hours=1)

    assert [claim.occurrence.job_id for claim in await fresh.claim(NodeScope("node-1"), 1)] == [job("good").id]
    assert len(await plan_once(fresh)) == 1
    assert [record.job.name for record in await fresh.list()] == ["good"]
    [shown] = sql.execute("select parked_reason from jobs where name = 'bad'").fetchone()
    assert shown.startswith("version 1 cannot be read: JSONDecodeError")
    assert await fresh.ask(ParkedJobs()) == {"bad": shown}
    assert sql.execute("select definition from job_version where definition = '{'").fetchall() == [("{",)]

    assert (await put(fresh, job("bad", "30 * * * *"))).version == 2
    assert await plan_once(fresh) == [Commit.COMMITTED]
    assert [record.job.name for record in await fresh.list()] == ["bad", "good"]
    assert [claim.occurrence.version for claim in await fresh.claim(NodeScope("node-1"), 5)] == [2]
    await fresh.close()


async def test_an_amended_occurrence_keeps_its_own_policies(opened: SqliteStore, clock: ManualClock) -> None:
    stored = await put(opened, job())
    await plan_once(opened)
    set_ = overrides(Level.OCCURRENCE, {"priority": 7, "payload": {"x": 3}, "task_timeout": "9s"})
    amend = Amend(clock.time.replace(hour=10), set_)
    await opened.request(stored.job_id, amend)
    async with opened.due(NodeScope("node-1"), 1) as batch:
        [snapshot] = batch.snapshots
        assert snapshot.adjustments == (adjusted(None, amend, clock.time, snapshot.watermark),)
    clock.move(hours=1)
    await plan_once(opened)
    [made] = await occurrences(opened)
    assert made.overrides == set_


async def test_a_job_that_was_resumed_is_not_paused_though_the_hosts_clock_in_sql_is_behind(
    path: Path, sql: sqlite3.Connection
) -> None:
    """W2: SQL has the host's clock in whole milliseconds; the store's may be ahead of it, here by an hour."""
    store = SqliteStore(path, clock=lambda: datetime.now(UTC) + timedelta(hours=1))
    await store.open()
    id_ = (await put(store, job("report", "0 0 1 1 *"))).job_id
    await store.request(id_, Pause())
    assert sql.execute("select paused from jobs").fetchone() == (1,)
    await store.request(id_, Resume())
    assert sql.execute("select paused, paused_since from jobs").fetchone() == (0, None)
    sql.execute("update jobs set paused = 1")
    assert sql.execute("select paused from jobs").fetchone() == (1,)
    sql.execute("update jobs set paused = 0")
    assert sql.execute("select paused from jobs").fetchone() == (0,)
    await store.close()
