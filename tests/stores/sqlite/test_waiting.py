"""Early occurrences: they are found when their time has come, and block no other before."""

import sqlite3
from datetime import timedelta

from everytick.domain.facts import Move
from everytick.stores.base import NodeScope
from everytick.stores.sqlite.store import SqliteStore
from everytick.stores.sqlite.writer import Transaction
from tests.stores.acting import claim_one, job, plan_once, put
from tests.stores.clock import ManualClock

PARKED = 3_000


async def _ready_beside_parked(opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock) -> None:
    """One occurrence is ready; before it in line stand thousands whose retry is an hour away."""
    await put(opened, job())
    clock.move(hours=1)
    await plan_once(opened)
    [(ready_at, columns)] = sql.execute(
        "select ready_at, (select group_concat(name) from pragma_table_info('occurrence')"
        " where name not in ('handle', 'id', 'status', 'line_at', 'ready_at', 'is_early')) from occurrence"
    ).fetchall()
    sql.execute(
        f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {PARKED})"
        f" insert into occurrence (id, status, line_at, ready_at, is_early, {columns})"
        f" select randomblob(16), 3, line_at - 1, ready_at + 3600000000, 1, {columns} from occurrence, n"
    )
    sql.execute("analyze")
    assert ready_at is not None


async def _steps_of_a_claim(opened: SqliteStore) -> int:
    """Return how many hundreds of SQLite's own steps a claim of everything takes."""
    counted = [0]

    def watch(transaction: Transaction) -> None:
        def count() -> int:
            counted[0] += 1
            return 0

        transaction.connection.set_progress_handler(count, 100)

    await opened._write(watch)
    await opened.claim(NodeScope("node-1"), 10)
    await opened._write(lambda transaction: transaction.connection.set_progress_handler(None, 0))
    return counted[0]


async def test_a_claim_does_not_walk_past_what_is_parked(
    opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock
) -> None:
    """Thousands of retries that are an hour away cost a claim nothing."""
    await _ready_beside_parked(opened, sql, clock)
    assert await _steps_of_a_claim(opened) < 20


async def test_what_was_parked_is_claimed_in_its_place_once_its_time_has_come(
    opened: SqliteStore, sql: sqlite3.Connection, clock: ManualClock
) -> None:
    await _ready_beside_parked(opened, sql, clock)
    assert (await claim_one(opened)).handle == 1
    assert (await opened.ahead(NodeScope("node-1"))).ready_at == clock.time + timedelta(hours=1)
    clock.move(minutes=59)
    assert await opened.claim(NodeScope("node-1"), 1) == []
    clock.move(minutes=1)
    assert len(await opened.claim(NodeScope("node-1"), 10_000)) == PARKED


async def test_a_move_to_its_own_time_is_forgotten_with_the_others(opened: SqliteStore, clock: ManualClock) -> None:
    """It vacates nothing, so nothing is left to wait for once its instant is decided."""
    stored = await put(opened, job())
    await plan_once(opened)
    for hours in (1, 2):
        at = clock.time + timedelta(hours=hours)
        to = at if hours == 1 else at + timedelta(hours=9)
        await opened.request(stored.job_id, Move(at, to))
    clock.move(hours=3)
    await plan_once(opened)
    [seen] = (await opened.look([stored.job_id])).values()
    assert [each.to for each in seen.adjustments] == [to]
