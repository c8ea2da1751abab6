"""A store with a long history: jobs that are defined through the application, and occurrences set there by statements.

Each job has runs in steps of its own, up to now; two of a hundred failed, one was canceled, some run and some wait.
Every ended one has its run and its attempt. Afterwards the rollups have come up to them, as on a store whose nodes
have been running all the time.
"""

import sqlite3
import time

import asyncpg

from bench._node import opened
from everytick.domain.changes import Put
from everytick.domain.job import Job, define_job, define_task
from everytick.schedules.interval import every

STEPS = ("5m", "15m", "1h", "2h")
BANDS = 20
AT_ONCE = 500

SQLITE = (
    """
with recursive o (n) as (select 0 union all select n + 1 from o where n + 1 < :count)
insert into occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at,
                        covers_through, created_at, updated_at, needs, reason, started_at, ended_at, error, node, owner,
                        fence, step_number)
select randomblob(16), job_key, 1, at, status, iif(n % 97 = 0, 1, 0), 0, 0, at, at, at, at, at, '', 'on time',
       iif(status in (0, 13), null, at + 100000), iif(status < 10, null, at + 1000000 + n % 59 * 1000000),
       iif(status = 12, 'Traceback (most recent call last):' || char(10) || '  File "jobs.py", line 1, in work'
           || char(10) || 'ValueError: feed ' || char(97 + n % 17) || ' has no row ' || n, null),
       iif(status = 0, null, 'node-' || n % 3), iif(status = 2, 'node-' || n % 3, null), iif(status = 0, 0, 2), 1
  from (select n, 1 + n % :jobs as job_key, :now - n / :jobs * s.step - (n % :jobs) * 7919 % s.step as at,
               case when n / :jobs = 0 and n % :jobs < 40 then 2 when n / :jobs = 0 and n % :jobs < 240 then 0
                    when n % 50 = 0 then 12 when n % 101 = 0 then 13 else 10 end as status
          from o join (select 0 as kind, 300000000 as step union all select 1, 900000000 union all select 2, 3600000000
                       union all select 3, 7200000000) s on s.kind = n % :jobs % 4)
 order by at
""",
    """
insert into task_run (handle, task, status, attempts, retries, started_at, ended_at, out_of_time, error)
select handle, 'main', iif(status = 12, 3, 2), 1, 0, started_at, ended_at, 0, error
  from occurrence where status in (10, 12)
""",
    """
insert into attempt (handle, task, number, status, started_at, ended_at, error, node)
select handle, 'main', 1, iif(status = 12, 3, 2), started_at, ended_at, error, node
  from occurrence where status in (10, 12)
""",
    "analyze",
)

POSTGRES = (
    """
insert into everytick.occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at,
                                  covers_through, created_at, updated_at, needs, reason, started_at, ended_at, error,
                                  node, owner, fence, step_number)
select gen_random_uuid(), job_key, 1, at, status, case when n % 97 = 0 then 1 else 0 end, 0, false, at, at, at, at, at,
       '', 'on time', case when status not in (0, 13) then at + interval '100 ms' end,
       case when status >= 10 then at + make_interval(secs => 1 + n % 59) end,
       case when status = 12
            then E'Traceback (most recent call last):\n  File "jobs.py", line 1, in work\nValueError: feed '
                 || chr(97 + n % 17) || ' has no row ' || n end,
       case when status > 0 then 'node-' || n % 3 end, case when status = 2 then 'node-' || n % 3 end,
       case when status = 0 then 0 else 2 end, 1
  from (select n, 1 + n % {jobs} as job_key,
               now() - n / {jobs} * s.step
                     - (n % {jobs}) * 7919 % extract(epoch from s.step)::int * interval '1 second' as at,
               case when n / {jobs} = 0 and n % {jobs} < 40 then 2 when n / {jobs} = 0 and n % {jobs} < 240 then 0
                    when n % 50 = 0 then 12 when n % 101 = 0 then 13 else 10 end as status
          from generate_series(0, {count} - 1) n
          join (values (0, interval '5 min'), (1, '15 min'), (2, '1 h'), (3, '2 h')) s(kind, step)
            on s.kind = n % {jobs} % 4) o
 order by at
""",
    "insert into everytick.active (job_key, handle) select job_key, handle from everytick.occurrence where status < 10",
    """
insert into everytick.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
select handle, id, line_at, ready_at, priority, is_early, needs from everytick.occurrence where status = 0
""",
    """
insert into everytick.task_run (handle, task, status, attempts, retries, started_at, ended_at, out_of_time, error)
select handle, 'main', case when status = 12 then 3 else 2 end, 1, 0, started_at, ended_at, false, error
  from everytick.occurrence where status in (10, 12)
""",
    """
insert into everytick.attempt (handle, task, number, status, started_at, ended_at, error, node)
select handle, 'main', 1, case when status = 12 then 3 else 2 end, started_at, ended_at, error, node
  from everytick.occurrence where status in (10, 12)
""",
    "vacuum (analyze) everytick.occurrence",
    "analyze",
)


async def fill(store_url: str, jobs: int = 10_000, occurrences: int = 1_000_000) -> None:
    """Fill the store at this address, which holds nothing yet, and let its rollups come up to the last end."""
    async with opened(store_url) as store:
        for first in range(0, jobs, AT_ONCE):
            await store.apply([Put(_job(number)) for number in range(first, min(first + AT_ONCE, jobs))])
    if store_url.startswith("sqlite"):
        _fill_sqlite(store_url.removeprefix("sqlite:///").partition("?")[0], jobs, occurrences)
    else:
        await _fill_postgres(store_url, jobs, occurrences)
    await catch_up(store_url)


async def catch_up(store_url: str) -> float:
    """Fold until there is nothing left to fold, and return the processor time that this process took for it."""
    began = time.process_time()
    async with opened(store_url) as store:
        await store.settle_clock()
        while await store.fold(1_000) >= 500:
            pass
        ids = [record.job.id for record in await store.list()]
        for _ in range(len(ids) // 100 + 1):
            await store.fold(1_000)
    return time.process_time() - began


def _job(number: int) -> Job:
    name = f"job-{number}"
    policies = {"tags": [f"band-{number % BANDS}"], "overlap": "allow"}
    return define_job(name, every(STEPS[number % len(STEPS)]), policies=policies, tasks=[define_task(name, "main")])


def _fill_sqlite(file: str, jobs: int, occurrences: int) -> None:
    db = sqlite3.connect(file, isolation_level=None)
    given = {"now": time.time_ns() // 1_000, "count": occurrences, "jobs": jobs}
    db.execute("pragma synchronous = off")
    for statement in SQLITE:
        db.execute(statement, given if ":count" in statement else {})
    db.execute("pragma wal_checkpoint(truncate)")
    db.close()


async def _fill_postgres(address: str, jobs: int, occurrences: int) -> None:
    db = await asyncpg.connect(address)
    for statement in POSTGRES:
        await db.execute(statement.replace("{jobs}", str(jobs)).replace("{count}", str(occurrences)), timeout=600)
    await db.close()
