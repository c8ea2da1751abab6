"""Every query as the server understands it: it can be prepared, takes the one clock, and uses its index."""

import re
from importlib.resources import files
from typing import Any

from everytick.domain.facts import Trigger
from everytick.domain.outcome import Failed
from everytick.domain.payload import payload
from everytick.stores.postgres.queries import PACKAGE, Queries, cold_queries_in, in_schema, queries_in
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sql.queries import ColdQueries
from tests.stores.acting import job, occurrences, plan_once, put, run_one
from tests.stores.clock import ManualClock


async def test_every_query_can_be_prepared(store: PostgresStore, db: Any) -> None:
    queries = queries_in(store.schema)
    for name in Queries.__annotations__:
        await db.prepare(getattr(queries, name).sql)


async def test_every_shared_statement_can_be_prepared(store: PostgresStore, db: Any) -> None:
    queries = cold_queries_in(store.schema)
    for statement in (getattr(queries, name) for name in ColdQueries.__annotations__):
        if statement is not None:
            await db.prepare(statement.sql)


def test_the_time_is_never_that_of_the_transaction() -> None:
    """`now()` stands still in a transaction: the one source of time is everytick_now()."""
    read = (files(PACKAGE).joinpath(name).read_text("utf-8") for name in ("queries.sql", "cold.sql"))
    text = "\n".join((*read, files("everytick.stores.sql").joinpath("queries.sql").read_text("utf-8")))
    refused = re.compile(r"(?<!everytick_)\bnow\(\)|current_timestamp|localtimestamp|clock_timestamp", re.IGNORECASE)
    sql = re.sub(r"--.*", "", text)
    assert refused.findall(sql) == []


def test_another_schema_is_named_throughout() -> None:
    assert in_schema("select everytick.everytick_now(), 'everytick.pulse'", "mine") == (
        """select "mine".everytick_now(), '"mine".pulse'"""
    )


async def test_people_find_everything_by_name_in_sql(store: PostgresStore, clock: ManualClock, db: Any) -> None:
    """S0-001, S0-080, S1-003, S1-025: jobs with next and last run, occurrences, runs, attempts, spans, the config."""
    stored = await put(store, job(priority=7))
    clock.move(hours=3, minutes=30)
    await plan_once(store)
    await run_one(store, Failed("boom\x00 \ud800"))
    await store.request(stored.job_id, Trigger("k", payload({"a": "\x00"})))
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
