"""What the PostgreSQL store costs: occurrences a second, claimed and finished with their full records.

    python3 dev.py bench postgres_store [rounds]

40,000 single-task occurrences of 1,000 jobs, in batches, on a server that writes to disk
before it answers (fsync and synchronous_commit on). The next batch is claimed while the
last one is written, as a node does; what `advance` takes is part of it. Beside it
stands the limit: bare SQL that claims and finishes as many with rows of occurrence, run
and attempt, and knows nothing of schedules, fences or jobs. The ratio is what to look at,
because the machine is shared. Statistics are taken on an empty table, on one where
everything is pending, and as the server keeps them; each ratio is taken several times, and
the median counts.
"""

import asyncio
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from everytick.app.foreground import calm_collector
from everytick.deciding.advance import advance
from everytick.deciding.plan import plan
from everytick.domain.changes import Put
from everytick.domain.job import define_job, define_task
from everytick.domain.outcome import Succeeded
from everytick.domain.steps import AttemptEnded, Claimed, Step
from everytick.domain.values import value
from everytick.schedules.interval import every
from everytick.stores.base import Claim, Commit, CommitAnswer, NodeScope
from everytick.stores.postgres.store import PostgresStore
from tests.servers import keeper
from tests.servers.installations import postgres_installations

JOBS = 1_000
OCCURRENCES = 40_000
BATCHES = (200, 500)
STATISTICS = ("empty", "all pending", "the server's")
LIMIT = 0.7
ROUNDS = 3
MOMENT = timedelta(microseconds=7)
SCHEMA = "bench"


@contextmanager
def durable_server() -> Iterator[str]:
    """Give the address of a fresh server that loses nothing in a power cut; it has stopped afterwards."""
    installation = postgres_installations()[0]
    with keeper.folder() as scratch:
        careful = [
            part.replace("=off", "=on")
            for part in keeper.postgres_command(keeper.programs(installation, scratch), scratch)
        ]
        process, port = keeper.started(careful, scratch)
        try:
            yield keeper.ADDRESSES["postgres"].format(port=port)
        finally:
            keeper.stop(process)


@value
class Rate:
    """How many a second by the wall's clock, and what each cost in microseconds of processor time."""

    a_second: float
    client: float
    server: float

    def __str__(self) -> str:
        return f"{self.a_second:>8,.0f} a second, {self.client:>5.1f} + {self.server:>5.1f} us"


class Meter:
    """The wall's time and the processor time of this process and of the sessions it has on the server."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def start(self) -> None:
        """Count from now on."""
        self._server = await self._sessions()
        self._wall, self._client = time.perf_counter(), time.process_time()

    async def stop(self, done: int) -> Rate:
        """Return the rate of what was done since; the sessions it was done in must still be open."""
        wall, client = time.perf_counter() - self._wall, time.process_time() - self._client
        after = await self._sessions()
        server = sum(spent - self._server.get(pid, 0.0) for pid, spent in after.items())
        return Rate(done / wall, 1e6 * client / done, 1e6 * server / done)

    async def _sessions(self) -> dict[int, float]:
        db = await asyncpg.connect(self._address)
        asked = "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
        pids = [row["pid"] for row in await db.fetch(asked)]
        await db.close()
        return {pid: processor_time(pid) for pid in pids}


def processor_time(pid: int) -> float:
    """Return the seconds a process has worked; none where the system does not tell."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -------------------------------------------------------------------------------------------------------- the limit

BARE_TABLES = """
drop table if exists occ, run, att;
create table occ (id uuid primary key, job uuid, scheduled_for timestamptz, status text, priority int default 0,
                  node text, fence int default 0, started_at timestamptz, ended_at timestamptz, config jsonb);
create index on occ (priority desc, scheduled_for) where status = 'pending';
create index on occ (job) where status in ('pending', 'queued', 'running', 'awaiting_retry');
create table run (id uuid primary key, occ uuid, task text, status text, retries int default 0,
                  started_at timestamptz, ended_at timestamptz, error text);
create index on run (occ);
create table att (id uuid primary key, run uuid, n int, status text, started_at timestamptz, ended_at timestamptz,
                  error text);
create index on att (run);
"""
BARE_FILL = """
insert into occ (id, job, scheduled_for, status, config)
select gen_random_uuid(), gen_random_uuid(), clock_timestamp(), 'pending', '{}' from generate_series(1, $1)
"""
BARE_CLAIM = """
update occ set status = 'running', node = $2, fence = fence + 1, started_at = clock_timestamp()
 where id = any(array(select id from occ where status = 'pending' order by priority desc, scheduled_for
                       limit $1 for update skip locked))
returning id, job, scheduled_for, fence, config
"""
BARE_START = """
insert into run (id, occ, task, status, started_at)
select r, o, 't', 'running', clock_timestamp() from unnest($1::uuid[], $2::uuid[]) x(r, o)
"""
BARE_FINISH = """
with e as (select * from unnest($1::uuid[], $2::int[], $3::uuid[], $4::uuid[]) e(occ, fence, run, att)),
 o as (update occ set status = 'completed', ended_at = clock_timestamp() from e
        where occ.id = e.occ and occ.fence = e.fence and occ.status = 'running' returning occ.id),
 r as (update run set status = 'success', ended_at = clock_timestamp() from e, o
        where run.id = e.run and e.occ = o.id returning run.id, run.started_at)
insert into att (id, run, n, status, started_at, ended_at)
select e.att, e.run, 1, 'success', r.started_at, clock_timestamp() from e join r on r.id = e.run
"""


async def bare(address: str, batch: int) -> Rate:
    """Return how fast bare SQL claims and finishes."""
    claims, writer = await asyncpg.connect(address), await asyncpg.connect(address)
    await claims.execute(BARE_TABLES)
    await claims.execute(BARE_FILL, OCCURRENCES)
    await claims.execute("analyze")
    meter, writing, done = Meter(address), None, 0
    await meter.start()
    while True:
        async with claims.transaction():
            found = await claims.fetch(BARE_CLAIM, batch, "node")
            occs = [row["id"] for row in found]
            runs = [uuid.uuid5(each, "t") for each in occs]
            await claims.execute(BARE_START, runs, occs)
        if writing is not None:
            await writing
        if not found:
            break
        attempts = [uuid.uuid5(each, "1") for each in runs]
        fences = [row["fence"] for row in found]
        writing = asyncio.create_task(writer.execute(BARE_FINISH, occs, fences, runs, attempts))
        done += len(found)
    rate = await meter.stop(done)
    await claims.execute("drop table occ, run, att")
    await claims.close()
    await writer.close()
    return rate


# -------------------------------------------------------------------------------------------------------- the store

PENDING = f"""
with made as (
    insert into {SCHEMA}.occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at,
                                     ready_at, covers_through, created_at, updated_at, needs, reason)
    select gen_random_uuid(), 1 + n % $2, 1, at, 0, 0, 0, false, at, at, at, at, at, '', 'on time'
      from (select n, clock_timestamp() - make_interval(secs => $1 - n) as at from generate_series(1, $1) n) o
    returning *
), actives as (
    insert into {SCHEMA}.active (job_key, handle) select job_key, handle from made
)
insert into {SCHEMA}.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
select handle, id, line_at, ready_at, priority, is_early, needs from made
"""
TABLES = ("occurrence", "active", "claimable", "task_run", "attempt", "wake")


@asynccontextmanager
async def defined(address: str) -> AsyncIterator[PostgresStore]:
    """Give a store whose jobs are defined and planned; nothing is left of it afterwards."""
    store = PostgresStore(address, schema=SCHEMA)
    await store.open()
    for number in range(JOBS):
        name = f"job-{number}"
        await store.apply([Put(define_job(name, every("1h"), policies={}, tasks=[define_task(name, "main")]))])
    await plan_all(store)
    yield store
    await store.close()
    db = await asyncpg.connect(address)
    await db.execute(f"drop schema {SCHEMA} cascade")
    await db.close()


async def fill(address: str, statistics: str) -> None:
    """Let everything be pending; unless the server keeps the statistics, they stay as they are taken here."""
    db = await asyncpg.connect(address)
    await db.execute(f"truncate {', '.join(f'{SCHEMA}.{table}' for table in TABLES)}")
    kept = "true" if statistics == "the server's" else "false"
    for table in TABLES:
        await db.execute(f"alter table {SCHEMA}.{table} set (autovacuum_enabled = {kept})")
    if statistics == "empty":
        await db.execute("analyze")
    await db.execute(PENDING, OCCURRENCES, JOBS)
    if statistics != "empty":
        await db.execute("analyze")
    await db.close()


async def plan_all(store: PostgresStore) -> None:
    """Let every job have its first look, so that nothing but the occurrences is left to do."""
    while True:
        now = await store.now()
        async with store.due(NodeScope("node-1"), 500) as batch:
            if not batch.snapshots:
                return
            await store.commit_plans(batch, [plan(snapshot, now) for snapshot in batch.snapshots])


def finished(claims: Sequence[Claim], now: datetime) -> list[tuple[Claim, Step]]:
    """Return the steps that end these claims: each ran its only task well, and ended at a moment of its own."""
    steps = []
    for claim in claims:
        begun = advance(claim.header, claim.life, Claimed(), now)
        start = begun.starts[0]
        now += MOMENT
        steps.append(
            (claim, advance(claim.header, begun.after, AttemptEnded(start.task, start.number, Succeeded()), now))
        )
    return steps


async def drain(store: PostgresStore, batch: int) -> Rate:
    """Return how fast the store claims and finishes, each with its whole record."""
    now, done, meter = await store.now(), 0, Meter(store.url)
    await meter.start()
    writing: asyncio.Task[Sequence[CommitAnswer]] | None = None
    while True:
        claims = await store.claim(NodeScope("node"), batch)
        steps = finished(claims, now)
        if writing is not None:
            assert set(await writing) == {Commit.COMMITTED}
        if not claims:
            break
        writing = asyncio.create_task(store.commit_steps(steps))
        done += len(claims)
    rate = await meter.stop(done)
    assert done == OCCURRENCES, f"{done} of {OCCURRENCES} were claimed"
    return rate


async def measure(address: str, rounds: int) -> bool:
    """Print every figure; return whether the medians of all ratios are good enough."""
    ratios: dict[tuple[int, str], list[float]] = {}
    async with defined(address) as store:
        for batch in BATCHES * rounds:
            limit = await bare(address, batch)
            print(f"batch {batch}: limit, bare SQL                 {limit}", flush=True)
            for statistics in STATISTICS:
                await fill(address, statistics)
                rate = await drain(store, batch)
                cost = (limit.client + limit.server) / (rate.client + rate.server)
                ratios.setdefault((batch, statistics), []).append(rate.a_second / limit.a_second)
                told = f"{rate.a_second / limit.a_second:.2f} of it, {cost:.2f} by processor time"
                print(f"batch {batch}: store, statistics {statistics:<12} {rate}: {told}", flush=True)
    for (batch, statistics), found in ratios.items():
        print(f"batch {batch}, statistics {statistics}: {median(found):.2f} of bare SQL; {LIMIT} is the aim")
    return all(median(found) >= LIMIT for found in ratios.values())


def main() -> int:
    """Measure on a server of our own, as often as was said."""
    calm_collector()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with durable_server() as address:
        return int(not asyncio.run(measure(address, rounds)))


if __name__ == "__main__":
    sys.exit(main())
