"""Failures that are tried again leave facts for the next plan, and never more than a hundred."""

from typing import Any

from everytick.deciding.advance import advance
from everytick.domain.steps import AttemptEnded, WaitOver
from everytick.stores.base import Commit
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import FAILED, began, claim_one, job, plan_once, put
from tests.stores.clock import ManualClock


async def test_the_hundredth_failure_of_a_task_wakes_its_job_so_that_a_plan_folds_them_in(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """S2-025: retries without an end must not fill the table that every question about the job reads."""
    stored = await put(store, job(retry={"max": 200, "interval": "1s"}, execution_timeout="1h"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    step = began(claim, clock.time)
    for number in range(1, 101):
        step = advance(claim.header, step.after, AttemptEnded("main", number, FAILED), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
        failed = clock.time
        clock.move(seconds=1)
        step = advance(claim.header, step.after, WaitOver("main"), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
        due = await db.fetchval("select count(*) from wake where wakes")
        assert due == (number == 100)
    assert await db.fetchval("select count(*) from wake") == 100
    assert await plan_once(store) == [Commit.COMMITTED]
    assert await db.fetchval("select count(*) from wake") == 0
    assert (await store.get([stored.job_id]))[stored.job_id].last_failure_at == failed
