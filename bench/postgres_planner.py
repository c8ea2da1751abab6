"""What planning on PostgreSQL costs: very many jobs due at one instant, few due among very many, two planners at once.

    python3 dev.py bench postgres_planner [rounds]
    .venv/bin/python bench/postgres_planner.py --million     (among 1,000,000 jobs instead of 100,000; takes minutes)

The server writes to disk before it answers. Beside the 100,000 that fall due at one instant
stands the limit: bare SQL that locks due rows, computes each next instant in Python with the
same schedules, and writes instants and occurrences in two statements a batch; it knows
nothing of definitions, policies or people. Definitions are compiled before the clock
starts, as they are on a node that has run for an hour. Ratios count, and processor time is
told beside the wall's, because the machine is shared.
"""

import asyncio
import json
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.postgres_store import Meter, Rate, durable_server
from everytick import schedule
from everytick.app.foreground import calm_collector
from everytick.deciding.plan import plan
from everytick.domain.changes import Put
from everytick.domain.job import define_job, define_task
from everytick.schedules.cron import Cron
from everytick.stores.base import Commit, NodeScope
from everytick.stores.postgres.store import PostgresStore

SCHEMA = "bench"
AT_ONCE, BATCH = 100_000, 1_000
WITHIN, SHARE = 6.0, 0.5
FEW, ROUNDS, FLAT = 100, 15, 1.5
SHARED, WASTE = 20_000, 0.05
INSTANT = datetime.now(UTC).replace(second=0, microsecond=0)
"""What everything is due for; a grace of half an hour lets it be on time as long as we measure."""
FOREVER = datetime(2126, 1, 1, tzinfo=UTC)

# ------------------------------------------------------------------------------------------------------ many jobs

CLONES = f"""
insert into {SCHEMA}.job (id, name, created_at)
select 'job_' || md5(n::text) || '00000000', 'job-' || n, clock_timestamp() - interval '1 day'
  from generate_series(2, $1) n;
insert into {SCHEMA}.job_version
select j.job_key, 1, null, d.kind, d.schedule, true, d.reports, replace(d.definition, 'job-1"', j.name || '"'), '{{}}',
       '', j.created_at
  from {SCHEMA}.job j, {SCHEMA}.job_version d where j.job_key > 1 and d.job_key = 1;
insert into {SCHEMA}.job_state (job_key, id, needs, version, oldest_version, revision, woken, watermark,
                                  wake_at, keep_last)
select job_key, id, '', 1, 1, 1, 1, clock_timestamp(), '{FOREVER}', 20 from {SCHEMA}.job where job_key > 1
"""


@asynccontextmanager
async def defined(address: str, jobs: int) -> AsyncIterator[PostgresStore]:
    """Give a store with so many jobs, none of them due for the next hundred years; nothing is left of it afterwards."""
    store = PostgresStore(address, schema=SCHEMA, definitions_kept=2 * AT_ONCE)
    await store.open()
    tasks = [define_task("job-1", "main")]
    await store.apply([Put(define_job("job-1", hourly(), policies={"grace": "30m"}, tasks=tasks))])
    db = await asyncpg.connect(address)
    for statement in CLONES.split(";"):
        await db.execute(statement.replace("$1", str(jobs)))
    await db.execute(f"truncate {SCHEMA}.wake")
    await db.execute(f"vacuum analyze {SCHEMA}.job, {SCHEMA}.job_state, {SCHEMA}.job_version")
    try:
        yield store
    finally:
        await store.close()
        await db.execute(f"drop schema {SCHEMA} cascade")
        await db.close()


async def let_be_due(address: str, jobs: int) -> None:
    """Let the first so many jobs be due for one instant, of which nothing is decided yet."""
    db = await asyncpg.connect(address)
    await db.execute(f"truncate {SCHEMA}.occurrence, {SCHEMA}.active, {SCHEMA}.claimable, {SCHEMA}.wake, {SCHEMA}.span")
    await db.execute(
        f"update {SCHEMA}.job_state set watermark = $1, wake_at = $2 where job_key <= $3",
        INSTANT - timedelta(minutes=1),
        INSTANT,
        jobs,
    )
    await db.execute(f"vacuum analyze {SCHEMA}.job_state")
    await db.close()


async def plan_all(store: PostgresStore, batch: int, jobs: int) -> dict[Commit, int]:
    """Plan until nothing is due or every job had its turn, two batches at once; return what became of the plans."""
    told = dict.fromkeys(Commit, 0)
    now = await store.now()

    async def lane() -> None:
        while told[Commit.COMMITTED] < jobs:
            async with store.due(NodeScope("node-1"), batch, now) as found:
                if not found.snapshots:
                    break
                plans = [plan(snapshot, now) for snapshot in found.snapshots]
                for answer in (await store.commit_plans(found, plans)).answers:
                    assert isinstance(answer, Commit)
                    told[answer] += 1

    await asyncio.gather(lane(), lane())
    return told


# -------------------------------------------------------------------------------------------------------- the limit

BARE = """
drop table if exists tick, made;
create table tick (id bigint primary key, next_at timestamptz not null) with (fillfactor = 80);
create index on tick (next_at);
create table made (id bigint generated always as identity primary key, tick bigint, due timestamptz,
                   state smallint not null default 0, unique (tick, due));
create index on made (due, id) where state = 0
"""
BARE_DUE = """
select id, next_at from tick where next_at <= clock_timestamp() order by next_at limit $1 for update skip locked
"""
BARE_MOVE = "update tick t set next_at = u.at from unnest($1::bigint[], $2::timestamptz[]) u(id, at) where t.id = u.id"
BARE_MAKE = "insert into made (tick, due) select * from unnest($1::bigint[], $2::timestamptz[]) on conflict do nothing"


async def bare(address: str) -> Rate:
    """Return how fast bare SQL materialises as many."""
    when = hourly()
    db = await asyncpg.connect(address)
    await db.execute(BARE)
    await db.execute("insert into tick select n, $2 from generate_series(1, $1::int) n", AT_ONCE, INSTANT)
    await db.execute("vacuum analyze tick")
    meter, done = Meter(address), 0
    await meter.start()
    while True:
        async with db.transaction():
            found = await db.fetch(BARE_DUE, BATCH)
            if not found:
                break
            keys, due = [row[0] for row in found], [row[1] for row in found]
            await db.execute(BARE_MOVE, keys, [when.next_after(each) for each in due])
            await db.execute(BARE_MAKE, keys, due)
        done += len(found)
    rate = await meter.stop(done)
    await db.execute("drop table tick, made")
    await db.close()
    return rate


# ---------------------------------------------------------------------------------------------------- the measures


async def at_one_instant(address: str, rounds: int) -> bool:
    """Print how long it takes to plan very many that fall due together, beside the limit, so many times."""
    walls, shares = [], []
    async with defined(address, AT_ONCE) as store:
        await let_be_due(address, AT_ONCE)
        await plan_all(store, BATCH, AT_ONCE)
        for _ in range(rounds):
            limit = await bare(address)
            await let_be_due(address, AT_ONCE)
            meter = Meter(address)
            await meter.start()
            told = await plan_all(store, BATCH, AT_ONCE)
            assert told[Commit.COMMITTED] == AT_ONCE, f"{told} of {AT_ONCE:,} plans"
            rate = await meter.stop(AT_ONCE)
            walls.append(AT_ONCE / rate.a_second)
            shares.append(rate.a_second / limit.a_second)
            cost = (limit.client + limit.server) / (rate.client + rate.server)
            print(f"{AT_ONCE:,} due at one instant: limit, bare SQL  {limit}")
            print(f"{AT_ONCE:,} due at one instant: store            {rate}: {cost:.2f} by processor time", flush=True)
    took, share = statistics.median(walls), statistics.median(shares)
    print(f"{AT_ONCE:,} due at one instant: {took:.1f} s, {share:.2f} of it; {WITHIN:.0f} s and {SHARE} are the aim")
    return took < WITHIN and share >= SHARE


def hourly() -> Cron:
    """Return the schedule of every job, which names that instant."""
    when = schedule(f"{INSTANT.minute} * * * *")
    assert isinstance(when, Cron)
    return when


async def few_among(address: str, jobs: int) -> tuple[float, float]:
    """Return the milliseconds of a round in which a few of so many jobs are due, and its processor time."""
    walls, costs = [], []
    async with defined(address, jobs) as store:
        for _ in range(ROUNDS + 2):
            await let_be_due(address, FEW)
            meter = Meter(address)
            await meter.start()
            now = await store.now()
            async with store.due(NodeScope("node-1"), BATCH) as found:
                assert len(found.snapshots) == FEW
                await store.commit_plans(found, [plan(snapshot, now) for snapshot in found.snapshots])
            rate = await meter.stop(FEW)
            walls.append(1e3 * FEW / rate.a_second)
            costs.append(FEW * (rate.client + rate.server) / 1e3)
    return statistics.median(walls[2:]), statistics.mean(costs[2:])


async def flat(address: str, most: int) -> bool:
    """Print what a round costs among few and among very many jobs."""
    small, large = await few_among(address, 1_000), await few_among(address, most)
    for jobs, (wall, cost) in ((1_000, small), (most, large)):
        print(f"a round, {FEW} due of {jobs:>9,}: {wall:>6.1f} ms, {cost:>6.1f} ms of processor time")
    ratios = large[0] / small[0], large[1] / small[1]
    print(f"a round, {FEW} due: {ratios[0]:.2f} times as long, {ratios[1]:.2f} by processor time; {FLAT} is the aim")
    return min(ratios) <= FLAT


async def shared(address: str) -> bool:
    """Print how many plans two processes waste that plan the same due jobs."""
    async with defined(address, SHARED):
        await let_be_due(address, SHARED)
        planners = [await another_planner(address) for _ in range(2)]
        told = [json.loads((await planner.communicate())[0]) for planner in planners]
    committed, stale = (sum(each[word] for each in told) for word in ("committed", "stale"))
    wasted = stale / (committed + stale)
    parts = " and ".join(f"{each['committed']:,}" for each in told)
    print(f"two planners, {SHARED:,} due: {parts} planned, {wasted:.1%} of the plans wasted; {WASTE:.0%} is the limit")
    return bool(committed >= SHARED and wasted < WASTE)


async def another_planner(address: str) -> asyncio.subprocess.Process:
    """Start a process that plans what is due."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "--plan", address), stdout=asyncio.subprocess.PIPE
    )


async def plan_as_another(address: str) -> None:
    """Plan what is due, as a process of its own, and say what came of it."""
    store = PostgresStore(address, schema=SCHEMA, definitions_kept=2 * AT_ONCE)
    await store.open()
    told = await plan_all(store, 500, SHARED)
    await store.close()
    print(json.dumps({str(answer.value): count for answer, count in told.items()}))


async def measure(address: str, rounds: int, most: int) -> bool:
    """Print every figure; return whether all are good enough."""
    enough = [await at_one_instant(address, rounds), await flat(address, most), await shared(address)]
    return all(enough)


def main(arguments: list[str]) -> int:
    """Measure on a server of our own, as often as was said."""
    calm_collector()
    if arguments[:1] == ["--plan"]:
        asyncio.run(plan_as_another(arguments[1]))
        return 0
    most = 1_000_000 if "--million" in arguments else 100_000
    rounds = [int(each) for each in arguments if each.isdigit()]
    with durable_server() as address:
        return int(not asyncio.run(measure(address, rounds[0] if rounds else 1, most)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
