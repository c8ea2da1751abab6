"""Every query as the server understands it: it can be prepared, takes the one clock, and uses its index."""

import re
from importlib.resources import files
from typing import Any, get_type_hints

import pytest

from everytick.domain.occurrence import Cause
from everytick.domain.outcome import Failed
from everytick.domain.payload import payload
from everytick.domain.snapshots import Request
from everytick.stores.postgres.queries import PACKAGE, Queries, in_schema, queries_in
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import job, occurrences, plan_once, run_one
from tests.stores.clock import START, ManualClock


async def test_every_query_can_be_prepared(store: PostgresStore, db: Any) -> None:
    queries = queries_in(store.schema)
    for name in get_type_hints(Queries):
        await db.prepare(getattr(queries, name))


def test_the_time_is_never_that_of_the_transaction() -> None:
    """`now()` stands still in a transaction: the one source of time is everytick_now()."""
    text = files(PACKAGE).joinpath("queries.sql").read_text("utf-8")
    refused = re.compile(r"(?<!everytick_)\bnow\(\)|current_timestamp|localtimestamp|clock_timestamp", re.IGNORECASE)
    sql = re.sub(r"--.*", "", text)
    assert refused.findall(sql) == []


def test_another_schema_is_named_throughout() -> None:
    assert in_schema("select everytick.everytick_now(), 'everytick.pulse'", "mine") == (
        """select "mine".everytick_now(), '"mine".pulse'"""
    )


FILL = """
insert into occurrence (id, job, version, scheduled_for, status, cause, priority, late, line_at, created_at,
                        updated_at, queue)
select gen_random_uuid(), 1 + n % 50, 1, at, case when n % 50 = 0 then 0 else 4 end, 0, 0, false, at, at, at, 'default'
  from (select n, '2026-01-01'::timestamptz + make_interval(mins => n) as at from generate_series(1, 20000) n) o
"""

PLANS = {
    "claim": (("node", ["default"], 100, [], False), "occurrence_ready"),
    "hold_due": ((START, 100), "job_state_due"),
    "active": (([1, 2, 3],), "occurrence_active"),
    "reports": ((100, []), "report_pkey"),
    "step_marks": (([1, 2, 3],), "occurrence_pkey"),
}


@pytest.mark.parametrize("statistics", ["empty", "full"])
@pytest.mark.parametrize("name", sorted(PLANS))
async def test_a_query_finds_its_rows_by_its_index(store: PostgresStore, db: Any, name: str, statistics: str) -> None:
    """S0-055, S1-006; statistics taken while the tables were empty must not change that."""
    await db.execute("alter table occurrence set (autovacuum_enabled = false)")
    await db.execute("alter table job_state set (autovacuum_enabled = false)")
    if statistics == "empty":
        await db.execute("analyze occurrence, job_state, job")
    await db.execute(FILL)
    made = "insert into job (id, name, created_at) select n, n, '2026-01-01' from generate_series(1, 5000) n"
    await db.execute(made)
    await db.execute(
        """insert into job_state (job, version, first_version, revision, woken, watermark, wake_at, keep_last)
           select seq, 1, 1, 1, 1, created_at, created_at + make_interval(years => seq % 100), 20 from job"""
    )
    if statistics == "full":
        await db.execute("analyze occurrence, job_state, job")
    arguments, index = PLANS[name]
    query = getattr(queries_in(store.schema), name)
    await db.execute("begin")
    shown = "\n".join(row[0] for row in await db.fetch(f"explain {query}", *arguments))
    await db.execute("rollback")
    assert index in shown, shown


async def test_people_find_everything_by_name_in_sql(store: PostgresStore, clock: ManualClock, db: Any) -> None:
    """S0-001, S0-080, S1-003, S1-025: jobs with next and last run, occurrences, runs, attempts, spans, the config."""
    stored = await store.put(job(priority=7))
    clock.move(hours=3, minutes=30)
    await plan_once(store)
    await run_one(store, Failed("boom\x00 \ud800"))
    await store.request(stored.job_id, Request("k", Cause.TRIGGER, clock.time, payload({"a": "\x00"})))
    await plan_once(store)

    found = await db.fetchrow("select * from jobs")
    assert (found["name"], found["kind"], found["schedule"]) == ("report", "task", "cron: 0 * * * *")
    assert found["enabled"]
    assert (found["next_run"], found["last_run"]) == (clock.time.replace(hour=13, minute=0), clock.time)
    assert found["last_enqueued"] == clock.time
    assert [tuple(row) for row in await db.fetch("select status, cause, priority from occurrences order by id")] == [
        (str(each.status), str(each.cause), 7) for each in sorted(await occurrences(store), key=lambda each: each.id)
    ]
    assert await db.fetchrow("select task, status, error from task_runs") == ("main", "failed", "boom\\x00 \\ud800")
    assert await db.fetchrow("select number, status from attempts") == (1, "failed")
    assert await db.fetchrow("select why, count from skipped_spans") == ("not last", 2)
    config = "select effective -> 'priority' ->> 'value' as value, effective -> 'priority' ->> 'origin' as origin"
    assert await db.fetchrow(f"{config} from effective_config limit 1") == ("7", "job")
