"""What the ends of a job left stands in its tally: neither an end nor a failure leaves a fact for a plan to fold."""

from typing import Any

from everytick.deciding.advance import advance
from everytick.domain.steps import AttemptEnded, WaitOver
from everytick.stores.base import Commit
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import FAILED, began, claim_one, ended, everything, job, plan_once, put
from tests.stores.clock import ManualClock


async def test_failures_that_are_tried_again_leave_no_fact_and_are_known(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """S2-025: retries without an end must not fill the table that every question about the job reads."""
    stored = await put(store, job(retry={"max": 200, "interval": "1s"}, execution_timeout="1h"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    step = began(claim, clock.time)
    for number in range(1, 4):
        step = advance(claim.header, step.after, AttemptEnded("main", number, FAILED), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
        failed = clock.time
        assert (await store.get([stored.job_id]))[stored.job_id].last_failure_at == failed
        clock.move(seconds=1)
        step = advance(claim.header, step.after, WaitOver("main"), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
    assert await db.fetchval("select count(*) from wake") == 0


async def test_ends_that_no_plan_awaits_leave_no_fact_and_are_counted(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """Two of one job in one batch: the later one is the last success, the earlier one the other."""
    stored = await put(store, job(when="*/10 * * * *", overlap="allow", recovery="execute_all"))
    clock.move(minutes=20)
    await plan_once(store)
    claims = await store.claim(await everything(store), 10)
    assert len(claims) == 2
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time)) for claim in claims])
    assert await db.fetchval("select count(*) from wake") == 0
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert seen.last_success == seen.last_end
    assert [each.id for each in (seen.last_success, seen.other_success) if each] == [
        claim.header.id for claim in reversed(claims)
    ]
    assert (await store.get([stored.job_id]))[stored.job_id].run_count == 2
