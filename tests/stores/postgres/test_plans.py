"""How the server carries each query out: by an index, whatever its statistics were taken on.

A plan that was right on an empty table, or while everything was pending, is thirty times too
slow an hour later; so no query may read a table from end to end unless that is its purpose.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any, get_type_hints
from uuid import UUID

import asyncpg
import pytest

from everytick.stores.postgres.connections import SESSION
from everytick.stores.postgres.queries import Queries, cold_queries_in, queries_in
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sql.queries import ColdQueries
from tests.servers.launch import Server
from tests.stores.clock import START

COLD = set(get_type_hints(ColdQueries))
LOCKS = {"begin_limited_claim", "stop_claims", "stop_limited_claims"}
"""Statements that lock a table and read nothing."""

ABSENT = {name for name in COLD if getattr(cold_queries_in("everytick"), name) is None}
"""Statements that only SQLite needs."""

NAMES = sorted({*get_type_hints(Queries), *COLD} - LOCKS - ABSENT)

BATCH = 50
JOBS = 10_000
OCCURRENCES = 30_000

FILL = f"""
insert into job (id, name, created_at) select n, n, '2026-01-01' from generate_series(1, {JOBS}) n;
insert into job_state (job_key, id, needs, version, oldest_version, revision, woken, watermark, wake_at, keep_last)
select job_key, id, (array['', 'code:shop'])[1 + job_key % 2], 1, 1, 1, 1, created_at,
       created_at + make_interval(years => job_key % 100), 20 from job;
insert into job_version select job_key, 1, null, 'task', '', true, true, '', '{{}}', '', '2026-01-01' from job;
insert into pause (job_key, since_at, until_at, missed, reason, paused_by)
select job_key, '2026-01-01', '2026-02-01', 'skip', '', '' from job;
insert into adjustment (job_key, instant_at, kind, reason, adjusted_by, is_done)
select job_key, '2026-01-01', 'skip', '', '', false from job;
insert into coming (job_key, instant_at, run_at, id, detail, zone_data)
select job_key, '2026-01-01', '2026-01-01', '00000000-0000-0000-0000-000000000001', '', '' from job;
insert into request (job_key, key, cause, requested_at, reason, requested_by, id)
select job_key, 'k', 1, '2026-01-01', '', '', ('00000000-0000-0000-0000-' || lpad(job_key::text, 12, '0'))::uuid
  from job;
insert into request (job_key, key, cause, requested_at, reason, requested_by, id, due_at)
select job_key, 'later', 1, '2026-01-01', '', '',
       ('00000000-0000-0000-0001-' || lpad(job_key::text, 12, '0'))::uuid, '2030-01-01'
  from job where job_key % 100 = 0;
insert into request_key (job_key, cause, key, nth, call, id) select job_key, cause, key, 1, 1, id from request;
insert into wake (job_key, wake_at, needs)
select job_key, '2026-01-01'::timestamptz + make_interval(mins => job_key), (array['', 'code:shop'])[1 + job_key % 2]
  from job;
insert into job_tally (job_key, run_count) select job_key, 1 from job;
insert into span (job_key, status, why, detail, span_after, span_through, version, count)
select job_key, 15 + (job_key % 100 = 0)::int, 'missed', '', '2026-01-01', '2026-01-02', 1, 1 from job;
insert into promise (job_key, kind, judged_through, check_at)
select job_key, 'start_by', '2026-01-01', '2026-01-01'::timestamptz + make_interval(mins => job_key) from job;
insert into breach (job_key, kind, broken_for, due_at, found_at, last_for, count, reason, ended_at, is_withdrawn,
                    is_begin_owed, is_end_owed)
select job_key, 'start_by', '2025-01-01', '2025-01-01', '2025-01-01', '2025-01-01', 1, '', '2025-01-02', false, false,
       job_key % 1000 = 0 from job;
insert into dependency (job_key, name, needed_id) select job_key, 'other', id from job;
insert into backfill (job_key, id, key, status, fill_after, fill_through, left_after, left_through, again, as_of_now,
                      newest_first, rate, pace, reason, planned_at, planned_by, paced_at)
select job_key, 'b' || job_key, 'k', 'running', '2025-01-01', '2025-02-01', '2025-01-01', '2025-02-01', false, false,
       false, 60, 60, '', '2026-01-01', '', '2026-01-01' from job;
insert into filled (backfill_key, place, id)
select backfill_key, 1, ('00000000-0000-0000-0000-' || lpad(backfill_key::text, 12, '0'))::uuid from backfill;
insert into occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at, is_early,
                        created_at, updated_at, needs)
select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 1 + n % {JOBS}, 1, at, 0, 0, 0, false, at,
       at + case when n % 100 = 0 then '9 years' else '0' end::interval, n % 100 = 0, at, at,
       (array['', 'code:shop'])[1 + n % 2]
  from (select n, '2026-01-01'::timestamptz + make_interval(mins => n) as at
          from generate_series(1, {OCCURRENCES}) n) o;
insert into active (job_key, handle) select job_key, handle from occurrence;
insert into unfolded (job_key, handle, scheduled_for) select job_key, handle, scheduled_for from occurrence;
insert into bucket select n % 2 = 0, '2026-01-01'::timestamptz + make_interval(mins => 5 * n), 'crm', 10, 1, 1
  from generate_series(1, {OCCURRENCES}) n;
insert into version_band select job_key, 1, 'crm' from job;
insert into job_day select job_key, '2026-01-01', 10, 1, 1, 1 from job;
insert into job_length (job_key, is_stale) select job_key, job_key % 100 = 0 from job;
insert into failure select handle, job_key, id, scheduled_for, 'f' || handle % 100 from occurrence;
update rollup set last_handle = {OCCURRENCES} * 0.9;
insert into claimable (handle, id, line_at, ready_at, priority, is_early, needs)
select handle, id, line_at, ready_at, priority, is_early, needs from occurrence
"""
END = f"""
update occurrence set status = 10, fence = 2, step_number = 1, ended_at = scheduled_for
 where handle < {OCCURRENCES} * 0.995;
insert into task_run (handle, task, status, attempts, retries, out_of_time)
select handle, 'main', 2, 1, 0, false from occurrence where status = 10;
insert into attempt (handle, task, number, status) select handle, 'main', 1, 2 from occurrence where status = 10;
insert into report select needs, ended_at, handle from occurrence where status = 10 and handle % 3 = 0
"""

WHOLE = {
    "dependencies_above": "asked when a definition that depends on others is stored: how far up is not known before",
    "list_backfills": "people ask for every backfill",
    "names_in_service": "people named a job that is not there: which are there",
    "jobs_by_name": "people ask for every job",
    "parked_jobs": "as jobs_by_name",
    "unreadable_jobs": "as jobs_by_name",
    "aged": "every job is looked at, at leisure",
    "measured_lengths": "people ask for the lengths of all jobs, and each has one row",
    "nodes": "people ask for every node, and there are few",
    "pulse": "it is one number",
    "jobs_ahead": "every job is looked at, at a start and after a clock was set back",
    "wake_jobs_ahead": "as jobs_ahead",
    "was_ahead": "as jobs_ahead",
    "told_ahead": "as jobs_ahead",
    "bring_promises_back": "as jobs_ahead",
    "promise_records": "people ask for every promise, and few jobs have one",
    "breach_records": "people ask for the newest breaches of all jobs",
    "waiting_in_lanes": "people ask how many wait, and the end of a brake counts them once",
    "relabel_wakes": "once a minute, and it finds nothing unless an edit and an ending have met",
}
"""Queries that read a whole table by their nature."""

BY_ACTIVE = (
    "beat",
    "bring_waiting_back",
    "forget_nodes",
    "held_by",
    "held_earlier",
    "history_page_active",
    "nodes",
    "orphaned",
    "overdue",
    "owned",
)
"""What a node holds, and what waits, is found among what is active: an index by owner would be written at every claim.
The table of those is read whole, and each occurrence is found by its key."""

FOR_PEOPLE = ("aged", "history_page", "history_page_of", "purgeable")
"""What people ask now and then; until the server has learned that there is a history, it reads what there is."""

RARE = ("count_fills", "deleted_upstreams", "hold_undefined", "purge_fills", "undefined_jobs", "upstreams")
"""What is asked once a minute, of jobs that a start left out, or when people look at a backfill or delete a job; a
server without statistics walks another index."""

SMALL = ("wake", "node", "needs", "rollup", "name_set", "reach", "brake", "limit_start", "limit_change")
"""Tables that hold what has happened since the last plans, or are as small as the fleet and what it is made of."""

INDEXES = {
    "ahead": ("job_state_due", "claimable_early"),
    "hold_due": ("job_state_due", "wake_due"),
    "few_due": ("job_state_due", "wake_due", "job_state_pkey"),
    "planned_by": ("job_state_pkey",),
    "park_plan": ("job_id_key", "job_state_pkey"),
    "standing_of_due": ("job_state_pkey", "job_tally_pkey"),
    "standing_of_told": ("job_pkey", "job_state_pkey"),
    "job_keys": ("job_id_key",),
    "standing_by_id": ("job_id_key", "job_state_pkey"),
    "definitions": ("job_version_pkey",),
    "active": ("active_pkey", "occurrence_pkey"),
    "requests": ("request_at_once", "request_due"),
    "later_requests": ("job_id_key", "request_due"),
    "open_request": ("request_pkey",),
    "key_use": ("request_key_pkey",),
    "past_versions": ("job_version_pkey",),
    "existing": ("occurrence_id_key",),
    "existing_between": ("occurrence_id_key", "request_id"),
    "asked_for": ("request_id", "job_state_pkey"),
    "forget_asked_for": ("request_id",),
    "hold_plans": ("job_state_pkey",),
    "hold_occurrences": ("occurrence_id_key", "active_pkey", "occurrence_pkey"),
    "ask_all_to_stop": ("active_pkey",),
    "mark_awaited": ("active_pkey", "occurrence_pkey"),
    "release": ("occurrence_id_key", "occurrence_pkey"),
    "ask_to_stop": ("occurrence_id_key", "occurrence_pkey"),
    "end_unowned": ("occurrence_id_key", "job_version_pkey"),
    "move_watermarks": ("job_state_pkey",),
    "settle_few": ("job_state_pkey", "request_pkey", "active_pkey", "claimable_ready", "claimable_early"),
    "foretell": ("job_state_pkey",),
    "ask": ("job_state_pkey", "occurrence_id_key", "request_key_pkey"),
    "claim": ("claimable_ready", "claimable_early", "occurrence_pkey"),
    "release_early": ("claimable_early", "occurrence_pkey"),
    "runs": ("task_run_pkey",),
    "commit_steps": ("occurrence_pkey", "active_pkey"),
    "commit_plain": ("occurrence_pkey", "active_pkey"),
    "step_marks": ("occurrence_pkey",),
    "claims_of": ("occurrence_pkey",),
    "orphaned": ("occurrence_pkey",),
    "take_orphans": ("occurrence_pkey",),
    "held_by": ("occurrence_pkey",),
    "note": ("occurrence_pkey", "attempt_pkey"),
    "hold_jobs_of": ("occurrence_pkey", "job_state_pkey"),
    "retired_of": ("occurrence_pkey", "job_state_pkey"),
    "hold_given_back": ("occurrence_pkey",),
    "owed_reports": ("report_pkey", "occurrence_pkey"),
    "reported": ("occurrence_id_key", "report_pkey"),
    "edit_unclaimed": ("active_pkey", "task_run_pkey"),
    "put_back_in_line": ("active_pkey",),
    "put_all_back_in_line": ("active_pkey",),
    "forget_narrowing": ("job_state_pkey",),
    "let_waits_go": ("active_pkey",),
    "window_runs": ("occurrence_by_time", "job_state_pkey"),
    "window_runs_of": ("job_id_key", "occurrence_of_job"),
    "held_earlier": ("occurrence_pkey",),
    "held_earlier_of": ("job_id_key", "active_pkey", "occurrence_pkey"),
    "last_runs": ("job_id_key", "occurrence_of_job"),
    "waiting_by_needs": ("claimable_ready", "claimable_early", "occurrence_pkey"),
    "counted": ("occurrence_by_time",),
    "counted_of": ("job_id_key", "occurrence_of_job"),
    "latest_lengths": ("job_id_key", "occurrence_of_job"),
    "steps_of_jobs": ("job_id_key", "occurrence_of_job"),
    "covered_runs": ("job_id_key", "occurrence_of_job"),
    "history_page": ("occurrence_by_time",),
    "history_page_of": ("occurrence_of_job",),
    "history_page_active": ("occurrence_pkey",),
    "history_page_active_of": ("job_id_key", "active_pkey", "occurrence_pkey"),
    "attempts_of": ("attempt_pkey",),
    "handed_of": ("attempt_pkey",),
    "runs_of": ("task_run_pkey",),
    "handle_of": ("occurrence_id_key",),
    "occurrences_of": ("occurrence_pkey", "job_state_pkey"),
    "aged": ("occurrence_of_job",),
    "forget_occurrences": ("occurrence_pkey", "task_run_pkey", "attempt_pkey", "request_key_id"),
    "bucket_steps": ("bucket_pkey",),
    "errors_of": ("occurrence_id_key",),
    "statuses_of": ("occurrence_id_key",),
    "missed_spans": ("span_missed", "job_state_pkey"),
    "failed_of": ("occurrence_pkey",),
    "failed_between": ("occurrence_pkey",),
    "fold_between": ("occurrence_pkey", "version_band_pkey"),
    "fold_days_of_these": ("occurrence_pkey",),
    "fold_these": ("occurrence_pkey", "version_band_pkey"),
    "touch_lengths": ("occurrence_pkey",),
    "forget_cells": ("bucket_pkey",),
    "forget_unfolded": ("occurrence_pkey", "unfolded_pkey"),
    "forget_passed": ("unfolded_pkey",),
    "job_days": ("job_id_key", "job_day_pkey"),
    "kind_since": ("failure_alike",),
    "kinds_since": ("failure_by_time",),
    "measured_lengths_of": ("job_id_key", "job_length_pkey"),
    "note_unfolded": ("occurrence_pkey",),
    "stale_lengths": ("job_length_stale", "job_state_pkey"),
    "sweep": ("unfolded_pkey", "occurrence_pkey"),
    "tail_days": ("occurrence_pkey", "unfolded_pkey", "job_id_key"),
    "tail_failures": ("occurrence_pkey", "unfolded_by_time"),
    "tail_steps": ("occurrence_pkey", "unfolded_by_time", "unfolded_pkey", "version_band_pkey"),
    "counted_among": ("occurrence_pkey", "unfolded_pkey"),
    "kept_in_all": ("bucket_pkey",),
    "kept_of_job": ("job_id_key", "job_day_pkey"),
    "next_ended": ("occurrence_pkey",),
    "unseen": ("occurrence_pkey",),
    "undefined_jobs": ("job_state_undefined", "job_pkey"),
    "take_marks": ("job_state_pkey",),
    "hold_undefined": ("job_state_undefined",),
    "mark_undefined": ("job_name_key", "job_state_pkey"),
    "lock_names": ("job_name_key", "job_state_pkey"),
    "named_jobs": ("job_name_key", "job_state_pkey", "job_version_pkey"),
    "forgotten_jobs": ("job_name_key", "job_state_pkey"),
    "keys_of_jobs": ("job_id_key",),
    "jobs_by_id": ("job_id_key", "job_state_pkey"),
    "hold_occurrence": ("occurrence_id_key",),
    "ask_owner_to_stop": ("occurrence_id_key",),
    "hold_job": ("job_id_key", "job_state_pkey"),
    "held_of_job": ("active_pkey",),
    "overdue": ("occurrence_pkey",),
    "purgeable": ("occurrence_of_job", "active_pkey"),
    "purge_occurrences": ("occurrence_pkey",),
    "forget_reports": ("occurrence_pkey", "report_pkey"),
    "forget_attempts": ("attempt_pkey",),
    "forget_runs": ("task_run_pkey",),
    "promises_due": ("promise_due", "job_state_pkey"),
    "promised_runs": ("occurrence_of_job",),
    "promised_spans": ("span_pkey",),
    "owed_breaches": ("breach_owed", "job_state_pkey"),
    "hold_promises": ("job_id_key", "promise_pkey"),
    "settle_promise": ("promise_pkey",),
    "recheck_promises": ("promise_pkey",),
    "drop_promises": ("promise_pkey",),
    "withdraw_breaches": ("breach_pkey",),
    "forget_breaches": ("breach_pkey",),
    "tell_breach": ("breach_pkey",),
}
"""The indexes that a query is there for."""

IN_ORDER = {
    "ahead": "job_state_due",
    "claim": "claimable_ready",
    "promises_due": "promise_due",
    "few_due": "job_state_due",
    "hold_due": "job_state_due",
    "waiting_by_needs": "claimable_ready",
}
"""Queries that take the first few of very many, and the index that has these in their order."""

ids = [UUID(int=0) for _ in range(BATCH)]
keys = list(range(1, BATCH + 1))
times = [START] * BATCH
MET = ["", "code:shop"]
JOB_IDS = [str(key) for key in keys[:5]]
SPAN = {"begin_after": START.replace(year=2025), "end_through": START, "limit": BATCH}
CUSTOM: dict[str, tuple[Any, ...] | dict[str, Any]] = {
    "ahead": {"needs": MET, "seen": 2},
    "hold_due": {
        "until_at": START,
        "limit": BATCH,
        "window": 2 * BATCH,
        "after_wake_at": START.replace(year=2000),
        "after_id": "",
        "left_out": [1],
        "needs": MET,
        "unknown_ids": ["7"],
    },
    "few_due": {"until_at": START, "limit": 20, "left_out": [1], "needs": MET, "unknown_ids": ["7"]},
    "planned_by": {"job_keys": keys, "token": 1},
    "park_plan": {"job_id": "7", "reason": "reason"},
    "standing_of_due": {"job_keys": keys, "until_at": START},
    "standing_of_told": {"job_keys": keys, "until_at": START},
    "job_keys": {"job_ids": [str(key) for key in keys]},
    "definitions": {"job_keys": keys, "versions": [1] * BATCH},
    "active": {"job_keys": keys},
    "requests": {"job_keys": keys, "retires": [None for _ in keys], "until_at": START},
    "hold_plans": {"job_keys": keys, "revisions": keys},
    "fold_wakes": {"job_keys": keys},
    "create_occurrences": {"now": START, "ids": ids, "job_keys": keys},
    "hold_occurrences": {"ids": ids, "stopped_keys": keys, "befores": times, "awaiting_keys": keys},
    "end_unowned": {"ids": ids, "statuses": [10] * BATCH, "errors": [""] * BATCH, "now": START},
    "move_watermarks": {
        "job_keys": keys,
        "wokens": keys,
        "watermarks": times,
        "wakes": times,
        "next_runs": times,
        "token": 1,
    },
    "foretell": (START, "7"),
    "settle_few": {
        "job_keys": keys,
        "revisions": keys,
        "wokens": keys,
        "watermarks": times,
        "wakes": times,
        "next_runs": times,
        "ids": ids,
        "created_keys": keys,
        "answered_keys": keys,
        "request_keys": ["k"] * BATCH,
        "request_causes": [1] * BATCH,
        "awaiting_keys": keys,
        "token": 1,
        "node": "node",
        "met": MET,
        "claim_token": 1,
    },
    "ask": {
        "job_id": "1",
        "job_key": 1,
        "version": 1,
        "made_id": ids[0],
        "key": "k",
        "cause_code": 1,
        "requested_at": START,
        "nth": 1,
        "id": ids[0],
        "call": 1,
    },
    "forget_pauses": {"job_keys": keys, "watermarks": times},
    "forget_adjustments": {"job_keys": keys, "watermarks": times},
    "forget_requests": {"job_keys": keys, "causes": [1] * BATCH, "keys": ["k"] * BATCH},
    "claim": {"node": "node", "needs": MET, "limit": BATCH, "unknown_ids": [], "is_released": False, "token": 1},
    "release_early": {"needs": MET},
    "runs": {"handles": keys},
    "commit_steps": {
        "handles": keys,
        "fences": keys,
        "numbers": keys,
        "moves": [3] * BATCH,
        "statuses": [10] * BATCH,
        "tokens": keys,
    },
    "commit_plain": {
        "handles": keys,
        "fences": keys,
        "numbers": keys,
        "is_ends": [True] * BATCH,
        "tasks": ["main"] * BATCH,
        "starts": times,
        "ends": times,
        "tokens": keys,
    },
    "step_marks": {"handles": keys},
    "claims_of": {"handles": keys},
    "orphaned": (["a", "b"], [1, 0], keys, keys, keys),
    "take_orphans": (["a", "b"], [1, 0], "node", 1, None, START, keys, keys, keys, [True] * BATCH),
    "note": (keys, keys, keys, ["main"] * BATCH, keys, times, *[None] * 6),
    "hold_jobs_of": {"handles": keys},
    "retired_of": {"handles": keys},
    "hold_given_back": {"handles": keys},
    "owed_reports": ("code:shop", keys, [], 100),
    "reported": (ids,),
    "history_page": (START, UUID(int=0), None, None, [], None, 101),
    "window_runs": SPAN,
    "window_runs_of": {**SPAN, "job_ids": JOB_IDS},
    "held_earlier": {"begin_after": START, "limit": BATCH},
    "held_earlier_of": {"begin_after": START, "limit": BATCH, "job_ids": JOB_IDS},
    "last_runs": {"job_ids": JOB_IDS, "count": 30},
    "waiting_by_needs": {"now": START, "limit": BATCH},
    "counted": SPAN,
    "counted_of": {**SPAN, "job_id": "7"},
    "latest_lengths": {"job_ids": JOB_IDS, "most": 100, "latest": 25},
    "covered_runs": {**SPAN, "job_id": "7"},
    "existing": (ids,),
    "past_versions": {"job_keys": keys, "afters": times, "befores": [9] * BATCH, "limit": 17},
    "history_page_of": ("7", START, UUID(int=0), None, None, [10], 0, 101),
}
"""Queries that are asked in batches, with a batch as it comes; the server then plans for exactly these values. Those of
the hot path are named; a parameter that is left out is null."""


@pytest.fixture(scope="module", params=["fresh", "empty", "all pending"])
def filled(request: pytest.FixtureRequest, postgres: Server) -> Iterator[tuple[str, str]]:
    """A schema with a long history, whose statistics were taken just now, or when it was all different."""
    schema = f"plans_{request.param.replace(' ', '_')}"
    asyncio.run(fill(postgres, schema, request.param))
    yield schema, request.param
    asyncio.run(drop(postgres, schema))


async def fill(server: Server, schema: str, statistics: str) -> None:
    store = PostgresStore(server.address, schema=schema)
    await store.open()
    await store.close()
    db = await connected(server, schema)
    for table in await db.fetch("select tablename from pg_tables where schemaname = $1", schema):
        await db.execute(f"alter table {table[0]} set (autovacuum_enabled = false)")
    for moment, deed in (("empty", FILL), ("all pending", END), ("fresh", "select 1")):
        if moment == statistics:
            await db.execute("analyze")
        await db.execute(deed)
    await db.close()


async def drop(server: Server, schema: str) -> None:
    db = await connected(server, schema)
    await db.execute(f"drop schema {schema} cascade")
    await db.close()


async def connected(server: Server, schema: str) -> Any:
    return await asyncpg.connect(server.address, server_settings={"search_path": schema})


@pytest.fixture
async def session(postgres: Server, filled: tuple[str, str]) -> AsyncIterator[Any]:
    made = await connected(postgres, filled[0])
    yield made
    await made.close()


def text_of(schema: str, name: str) -> str:
    """Return the statement as the server gets it."""
    return str(statement_of(schema, name).sql)


def statement_of(schema: str, name: str) -> Any:
    return getattr(cold_queries_in(schema) if name in COLD else queries_in(schema), name)


def judge(name: str, statistics: str, shown: str) -> None:
    """Refuse a plan that reads a table from end to end, or does not use what it is there for."""
    if name in BY_ACTIVE + FOR_PEOPLE + RARE and statistics != "fresh":
        return
    missing = [index for index in INDEXES.get(name, ()) if index not in shown]
    small = (*SMALL, "active") if name in BY_ACTIVE else SMALL
    read = set(re.findall(r"Seq Scan on (\w+)", shown)) - set(small) if name not in WHOLE else set()
    assert not missing, f"{name} does without {missing}:\n{shown}"
    assert not read, f"{name} reads all of {read}:\n{shown}"


async def explained(db: Any, asked: str, *arguments: Any) -> str:
    await db.execute("begin")
    try:
        return "\n".join(row[0] for row in await db.fetch(asked, *arguments))
    finally:
        await db.execute("rollback")


@pytest.mark.parametrize("name", NAMES)
async def test_a_query_planned_once_for_all_values_uses_its_indexes(
    filled: tuple[str, str], session: Any, name: str
) -> None:
    """S0-055, S1-006: also in a session with such settings no table is read from end to end."""
    schema, statistics = filled
    query = text_of(schema, name)
    count = len((await session.prepare(query)).get_parameters())
    await session.execute("set plan_cache_mode = force_generic_plan")
    await session.execute(f"prepare asked as {query}")
    values = f"({', '.join(['null'] * count)})" if count else ""
    judge(name, statistics, await explained(session, f"explain execute asked{values}"))


@pytest.fixture(scope="module")
def unfilled(postgres: Server) -> Iterator[str]:
    """A schema in which nothing has happened yet."""

    async def make() -> None:
        store = PostgresStore(postgres.address, schema="plans_for_nothing")
        await store.open()
        await store.close()

    asyncio.run(make())
    yield "plans_for_nothing"
    asyncio.run(drop(postgres, "plans_for_nothing"))


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(WHOLE) - set(FOR_PEOPLE)))
async def test_what_is_planned_for_good_while_there_is_nothing_uses_its_indexes_too(
    postgres: Server, unfilled: str, name: str
) -> None:
    """What our sessions do: the plan is kept until the server has statistics, and by then there may be a million."""
    db = await asyncpg.connect(postgres.address, server_settings={"search_path": unfilled, **SESSION})
    query = text_of(unfilled, name)
    count = len((await db.prepare(query)).get_parameters())
    await db.execute(f"prepare asked as {query}")
    values = f"({', '.join(['null'] * count)})" if count else ""
    shown = await explained(db, f"explain execute asked{values}")
    await db.close()
    judge(name, "fresh", shown)
    if name in IN_ORDER:
        assert f"Index Scan using {IN_ORDER[name]}" in shown, f"not in order:\n{shown}"


@pytest.mark.parametrize("name", sorted(CUSTOM))
async def test_a_batch_planned_for_its_own_values_uses_its_indexes(
    filled: tuple[str, str], session: Any, name: str
) -> None:
    """What our sessions do, and what a proxy makes of others."""
    schema, statistics = filled
    await session.execute("set plan_cache_mode = force_custom_plan")
    given = CUSTOM[name]
    if isinstance(given, dict):
        names = statement_of(schema, name).names
        assert given.keys() <= set(names)
        given = tuple(given.get(each) for each in names)
    shown = await explained(session, f"explain {text_of(schema, name)}", *given)
    judge(name, statistics, shown)
    assert not re.search(r"Join Filter: \(\w+\.\w+ = \w+\.\w+\)", shown), f"all are compared with all:\n{shown}"
