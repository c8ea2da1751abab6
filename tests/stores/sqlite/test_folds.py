"""fold in a file: it is one transaction, and what is past 10,000 is estimated from it."""

import sqlite3
from pathlib import Path

import pytest

from everytick.domain.questions import Counts
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import NodeScope
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import began, ended, job, plan_once, put
from tests.stores.clock import ManualClock

COUNTED = "select coalesce(sum(count), 0) from bucket where is_day"
ENDED = """
with recursive o (n) as (select 1 union all select n + 1 from o where n < :count)
insert into occurrence (id, job_key, version, scheduled_for, status, cause, late, line_at, ready_at, covers_through,
                        started_at, ended_at, created_at, updated_at, priority, needs)
select randomblob(16), job_key, version, scheduled_for, status, :cause, late, line_at, ready_at, covers_through,
       started_at, ended_at, created_at, updated_at, priority, needs
  from o, (select * from occurrence order by handle limit 1)
"""


async def run_all(store: SqliteStore, clock: ManualClock, hours: int) -> None:
    """Let an hourly job run so often, all at once."""
    await put(store, job("one", recovery="execute_all", overlap="allow"))
    clock.move(hours=hours)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), hours)
    await store.commit_steps([(each, ended(each, began(each, clock.time), clock.time)) for each in claims])
    await plan_once(store)


@pytest.mark.parametrize("table", ["bucket", "job_day", "job_length", "rollup"])
async def test_a_fold_that_breaks_off_has_counted_nothing(
    opened: SqliteStore, path: Path, clock: ManualClock, sql: sqlite3.Connection, table: str
) -> None:
    """Whichever table it has come to; the next node counts all of it, once."""
    await run_all(opened, clock, 5)
    deed = "update" if table == "rollup" else "insert"
    sql.execute(f"create trigger stop before {deed} on {table} begin select raise(abort, 'stopped here'); end")
    with pytest.raises(Exception, match="stopped here"):
        await opened.fold(2)
    assert sql.execute(COUNTED).fetchone() == (0,)
    sql.execute("drop trigger stop")
    other = SqliteStore(path, clock=clock)
    await other.open()
    while await other.fold(2):
        pass
    await other.close()
    assert sql.execute(COUNTED).fetchone() == (5,)
    assert sql.execute("select sum(count) from job_day").fetchone() == (5,)


async def test_more_than_ten_thousand_are_estimated_from_what_was_folded(
    opened: SqliteStore, clock: ManualClock, sql: sqlite3.Connection
) -> None:
    await run_all(opened, clock, 1)
    sql.execute(ENDED, {"count": 9_999, "cause": 0})
    exact = await opened.ask(Counts())
    assert (exact.total, exact.is_estimated) == (10_000, False)
    sql.execute(ENDED, {"count": 2_000, "cause": 0})
    while await opened.fold(5_000):
        pass
    found = await opened.ask(Counts())
    assert (found.counts, found.is_estimated) == (((OccurrenceStatus.COMPLETED, 12_000),), True)


async def test_days_are_those_of_utc_also_before_1970(
    opened: SqliteStore, clock: ManualClock, sql: sqlite3.Connection
) -> None:
    """The first and the last microsecond of a day are of that day, whichever side of 1970 it is on."""
    await run_all(opened, clock, 1)
    while await opened.fold(2):
        pass
    sql.execute("delete from job_day")
    day = 86_400_000_000
    instants = [
        first + off for first in (-719_000 * day, -2 * day, -day, 0, day, 2_900_000 * day) for off in (0, 7, day - 1)
    ]
    for at in instants:
        sql.execute(
            ENDED.replace("scheduled_for, status, :cause", ":at, status, :cause"), {"count": 1, "cause": 0, "at": at}
        )
    while await opened.fold(5):
        pass
    expected = [(first, 3) for first in sorted({at // day * day for at in instants})]
    assert sql.execute("select day_at, count from job_day order by day_at").fetchall() == expected
