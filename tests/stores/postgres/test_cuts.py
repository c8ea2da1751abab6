"""A line that is cut, a process that is killed, around a commit: all of it is there or nothing, and who asks knows."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain.changes import Put
from everytick.domain.policies import update_policy
from everytick.errors import StoreUnavailable
from everytick.stores.base import Commit, CommitAnswer, NodeScope
from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import batch_of, job, occurrences, plan_once, put, remove, statuses
from tests.stores.clock import ManualClock
from tests.stores.postgres.proxy import Cut, Proxy, proxied

JOBS = 5


async def define(store: PostgresStore, clock: ManualClock) -> None:
    """Make jobs that are due."""
    for number in range(JOBS):
        await put(store, replace(job(f"job-{number}"), reports=True))
    await plan_once(store)
    clock.move(hours=1)
    await store.now()  # writes the time into the tables, for other readers


async def revisions(db: Any) -> set[int]:
    return {row["revision"] for row in await db.fetch("select revision from job_state")}


@pytest.mark.parametrize("how", ["few", "held", "free"])
@pytest.mark.parametrize("cut", Cut)
@pytest.mark.parametrize("times", [1, 2])
async def test_a_plan_whose_commit_is_cut_off_is_written_once_and_answered_so(
    through: tuple[Proxy, PostgresStore], clock: ManualClock, db: Any, cut: Cut, times: int, how: str
) -> None:
    """G9: whether the request or its answer was lost, and whether that happens twice."""
    proxy, store = through
    await define(store, clock)
    store.jobs_due.unheld = 20 if how == "few" else 0
    answers: list[CommitAnswer] = []
    async with store.due(NodeScope("node-1"), 10) as batch:
        plans = [plan(snapshot, clock.time) for snapshot in batch.snapshots]
        if how == "held":
            proxy.arm(cut, times, only="Q")
            answers += (await store.commit_plans(batch, plans)).answers
    if how != "held":
        proxy.arm(cut, times, only="B" if how == "few" else "Q")
        with suppress(StoreUnavailable):
            asked = batch if how == "few" else batch_of(batch.now, *batch.snapshots)
            answers += (await store.commit_plans(asked, plans)).answers
    proxy.arm(cut, 0)  # a question ends with a commit too, and is not to be cut
    if not answers:
        assert (cut, times) == (Cut.BEFORE, 2), "two chances, and both were lost"
        assert await revisions(db) == {2}
    else:
        assert answers == [Commit.COMMITTED] * JOBS
        assert await revisions(db) == {3}
        assert await statuses(store) == ["pending"] * JOBS
    assert proxy.cuts >= 1


async def test_a_plan_that_was_stale_before_the_line_was_cut_is_stale(
    through: tuple[Proxy, PostgresStore], clock: ManualClock
) -> None:
    proxy, store = through
    await define(store, clock)
    async with store.due(NodeScope("node-1"), 10) as batch:
        plans = [plan(snapshot, clock.time) for snapshot in batch.snapshots]
        await remove(store, batch.snapshots[0].job_id)
        proxy.arm(Cut.AFTER)
        done = await store.commit_plans(batch, plans)
    assert proxy.cuts == 1
    assert done.answers == [Commit.STALE, *[Commit.COMMITTED] * (JOBS - 1)]


async def killed(proxy: Proxy, schema: str, deed: str, cut: Cut) -> None:
    """Let a victim do its deed and kill it, with no chance to clean up, when it sends its commit."""
    victim = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stores.postgres.victim", proxy.address, schema, deed)
    )
    proxy.arm(cut, meanwhile=lambda: os.kill(victim.pid, signal.SIGKILL))
    assert await victim.wait() == -signal.SIGKILL


@pytest.mark.parametrize("cut", Cut)
async def test_a_planner_that_is_killed_at_its_commit_leaves_all_or_nothing(
    postgres: Server, store: PostgresStore, clock: ManualClock, db: Any, cut: Cut
) -> None:
    """V1, G9: afterwards another node finds every instant once."""
    await define(store, clock)
    async with proxied(postgres) as proxy:
        await killed(proxy, store.schema, "plan", cut)
    made = await db.fetchval("select count(*) from occurrence")
    assert (made, await revisions(db)) == ((JOBS, {3}) if cut is Cut.AFTER else (0, {2}))
    while await revisions(db) != {3}:
        await plan_once(store)
    assert await statuses(store) == ["pending"] * JOBS


@pytest.mark.parametrize("cut", Cut)
async def test_a_task_that_is_killed_at_its_commit_leaves_all_or_nothing(
    postgres: Server, store: PostgresStore, clock: ManualClock, db: Any, cut: Cut
) -> None:
    """Its own row, the run, the attempt and the end of the occurrence: together, or none of them."""
    await define(store, clock)
    await plan_once(store)
    await db.execute("create table booking (seat int)")
    async with proxied(postgres) as proxy:
        await killed(proxy, store.schema, "run", cut)
    written = [
        await db.fetchval(f"select count(*) from {table}")
        for table in ("booking", "task_run", "attempt", "report", "occurrence where status = 10", "job_tally")
    ]
    assert written == ([1] * 6 if cut is Cut.AFTER else [0] * 6)


@pytest.mark.parametrize("cut", Cut)
async def test_an_editor_that_is_killed_at_its_commit_leaves_all_or_nothing(
    postgres: Server, store: PostgresStore, clock: ManualClock, db: Any, cut: Cut
) -> None:
    """S0-124: both versions of a window and the occurrences that take the first, or none; and again is once."""
    await define(store, clock)
    await plan_once(store)
    async with proxied(postgres) as proxy:
        await killed(proxy, store.schema, "edit", cut)
    [id_] = [record.job.id for record in await store.list() if record.job.name == "job-0"]
    newest = await db.fetchval("select max(version) from job_version")
    [made] = await occurrences(store, id_)
    assert (newest, made.version) == ((3, 2) if cut is Cut.AFTER else (1, 1))
    for _ in range(2):
        [stored] = await store.apply([Put(job("job-0", "30 * * * *"), None, update_policy("windowed 3"))])
        assert stored.version == 2
    assert await db.fetchval("select max(version) from job_version") == 3
