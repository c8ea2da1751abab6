"""Plain steps: a task that succeeds at its first try is written by a leaner statement, and as by the other one."""

import asyncio
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from everytick.deciding.advance import advance
from everytick.domain.notes import Note, Progress
from everytick.domain.outcome import Failed, Succeeded
from everytick.domain.payload import payload
from everytick.domain.steps import AttemptEnded
from everytick.stores.base import Claim, Commit, NodeScope
from everytick.stores.postgres.connections import SESSION
from everytick.stores.postgres.queries import queries_in
from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import began, ended, job, plan_once, put
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import opened

TABLES = ("occurrence", "task_run", "attempt", "wake", "report", "job_tally", "active")


async def lived(store: PostgresStore, clock: ManualClock, flaky: bool) -> None:
    """Let occurrences of all kinds live their lives together, a step of each at a time."""
    await put(store, job("alone"))
    await put(store, job("quiet", reports=False, overlap="allow"))
    await put(store, job("in-order", tasks=("one", "two", "three"), overlap="queue"))
    await put(
        store,
        job("in-line", "*/20 * * * *", overlap="queue", recovery="execute_all", retry={"max": 2, "interval": "5m"}),
    )
    clock.move(hours=1)
    await plan_once(store)
    steps = {claim.handle: (claim, began(claim, clock.time)) for claim in await store.claim(NodeScope("node-1"), 20)}
    await store.note([(claim, Note("main", 1, clock.time, Progress(1, 2))) for claim, _ in list(steps.values())[:2]])
    while steps:
        clock.move(seconds=1)
        for handle, (claim, step) in list(steps.items()):
            first = step.starts[0]
            is_bad = flaky and claim.job.name == "in-line" and first.number == 1
            outcome = Failed("boom") if is_bad else Succeeded(payload({"of": first.task}))
            steps[handle] = (
                claim,
                advance(claim.header, step.after, AttemptEnded(first.task, first.number, outcome), clock.time),
            )
        assert set(await store.commit_steps(list(steps.values()))) == {Commit.COMMITTED}
        steps = {handle: pair for handle, pair in steps.items() if pair[1].starts}


async def written(server: Server, store: PostgresStore) -> dict[str, list[tuple[Any, ...]]]:
    db = await asyncpg.connect(server.address, server_settings={"search_path": store.schema})
    try:
        # A token is drawn at random, and only one of the two statements cares whether rows exist.
        await db.execute("update occurrence set claim_token = 0, has_rows = false")
        return {
            table: [tuple(row) for row in await db.fetch(f"select * from {table} order by 1, 2")] for table in TABLES
        }
    finally:
        await db.close()


@pytest.mark.parametrize("flaky", [False, True])
async def test_both_statements_leave_the_same_behind(postgres: Server, flaky: bool) -> None:
    """Behind a proxy the leaner one is not used; nor where one of the steps is not plain."""
    found = []
    for kind in ("postgres", "postgres-behind-a-proxy"):
        clock = ManualClock()
        async with opened(postgres, clock, kind) as store:
            await lived(store, clock, flaky)
            found.append(await written(postgres, store))
    assert found[0] == found[1]
    assert all(found[0].values())


async def one(store: PostgresStore, clock: ManualClock) -> Claim:
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 1)
    return claim


async def test_a_plain_step_without_the_fence_is_stale_and_one_that_is_repeated_is_known(
    store: PostgresStore, clock: ManualClock
) -> None:
    claim = await one(store, clock)
    step = ended(claim, began(claim, clock.time), clock.time)
    for other in (claim.key._replace(fence=claim.fence - 1), claim.key._replace(token=claim.key.token ^ 1)):
        assert await store.commit_steps([(replace(claim, key=other), step)]) == [Commit.STALE]
    for _ in range(2):
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]


async def test_an_end_that_waits_for_a_plan_which_begins_to_await_it_wakes_the_job(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """The row says so under its lock, whatever it said when the statement began."""
    claim = await one(store, clock)
    async with db.transaction():
        await db.execute("update occurrence set awaited = true")
        ending = asyncio.create_task(store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))]))
        async with asyncio.timeout(60):
            while not await db.fetchval("select exists (select from pg_locks where not granted)"):
                pass
    assert await ending == [Commit.COMMITTED]
    assert await db.fetchval("select count(*) from wake") == 1


@pytest.mark.parametrize("filled", [False, True])
async def test_our_sessions_lock_what_they_commit_in_the_order_of_its_keys(
    postgres: Server, store: PostgresStore, clock: ManualClock, filled: bool
) -> None:
    """Whether they loop over the steps or over what the index gives, both come by rising key."""
    if filled:
        await one(store, clock)
    db = await asyncpg.connect(postgres.address, server_settings=SESSION)
    await db.execute("analyze")
    commit = queries_in(store.schema).commit_plain
    await db.execute(f"prepare asked as {commit.sql}")
    shown = [row[0] for row in await db.fetch(f"explain (costs off) execute asked({', '.join(['null'] * 10)})")]
    await db.close()
    at = next(number for number, line in enumerate(shown) if "Update on occurrence" in line)
    scans = [line.split("->")[-1].strip() for line in shown[at : at + 9] if " on occurrence o" in line]
    assert scans == ["Update on occurrence o", "Index Scan using occurrence_pkey on occurrence o"]
    place = commit.names.index("handles") + 1
    assert f"Index Cond: (handle = ANY (${place}))" in [line.strip() for line in shown]
