"""prune on SQLite: only what is old enough is looked at, however long the history and however many the jobs."""

import sqlite3

import pytest

from everytick.stores.base import NodeScope
from everytick.stores.sqlite import history
from everytick.stores.sqlite.rows import moment
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import FAILED, began, ended, job, occurrences, plan_once, put
from tests.stores.clock import ManualClock

KEEP = {"success": "1h", "failure": "30d", "keep_last": 2}
HOURS = 5


async def _run_for_hours(opened: SqliteStore, clock: ManualClock, *, well: bool = True) -> None:
    """Let everything that is defined run every hour, well or not."""
    for _ in range(HOURS):
        clock.move(hours=1)
        await plan_once(opened)
        claims = await opened.claim(NodeScope("node-1"), 100)
        outcome = None if well else FAILED
        await opened.commit_steps(
            [(claim, ended(claim, began(claim, clock.time), clock.time, outcome)) for claim in claims]
        )


async def _define(opened: SqliteStore, *names: str) -> None:
    for name in names:
        await put(opened, job(name, reports=False, retention=KEEP))
    await plan_once(opened)


async def test_a_call_looks_through_some_jobs_and_the_next_goes_on_behind_them(
    opened: SqliteStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "JOBS_AT_ONCE", 2)
    await _define(opened, "a", "b", "c")
    await _run_for_hours(opened, clock)
    clock.move(hours=2)
    assert [await opened.prune() for _ in range(4)] == [6, 3, 0, 0]
    assert len(await occurrences(opened)) == 6
    await _run_for_hours(opened, clock)
    clock.move(hours=2)
    assert [await opened.prune(4) for _ in range(6)] == [4, 4, 2, 4, 1, 0]
    assert len(await occurrences(opened)) == 6


async def test_what_ended_well_and_what_did_not_have_their_own_ages(opened: SqliteStore, clock: ManualClock) -> None:
    await _define(opened, "a")
    await _run_for_hours(opened, clock, well=False)
    await _run_for_hours(opened, clock)
    clock.move(hours=2)
    assert await opened.prune() == HOURS - 2
    assert [str(each.status) for each in await occurrences(opened)] == ["failed"] * HOURS + ["completed"] * 2
    clock.move(days=30)
    assert await opened.prune() == HOURS
    assert await opened.prune() == 0


async def test_what_is_young_or_kept_is_not_walked_through(
    opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock
) -> None:
    """Thousands of occurrences that are too young cost a call as much as none."""
    await _define(opened, "a")
    await _run_for_hours(opened, clock)
    columns = "job_key, version, status, cause, late, created_at, updated_at, priority, needs"
    sql.execute(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)"
        f" insert into occurrence (id, scheduled_for, ended_at, {columns})"
        f" select randomblob(16), scheduled_for + i, ended_at, {columns}"
        " from (select * from occurrence order by handle desc limit 1), n"
    )
    clock.move(minutes=50)
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    sql.set_progress_handler(count, 100)
    found, _ = history.forgettable(sql, moment(opened._clock.now()), 1000, 0)
    assert len(found) == HOURS - 1
    assert steps[0] < 20
