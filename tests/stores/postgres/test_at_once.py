"""A plan and a claim at once: what a plan makes and would be the first in line needs no second question."""

from dataclasses import replace
from typing import Any

from everytick.domain.facts import Pause, Trigger
from everytick.domain.job import Job
from everytick.stores.base import Batch, Claim, Commit, CommitAnswer, Committed, NodeScope, Offer
from everytick.stores.postgres.due import OwnBatch
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import began, ended, job, occurrences, plan_once, plans_of, put, statuses
from tests.stores.clock import ManualClock
from tests.stores.postgres.proxy import Cut, Proxy

OFFER = Offer(NodeScope("node-1"), 10)


async def asked_for(store: PostgresStore, *jobs: Job) -> None:
    """Define jobs that are decided up to now, and trigger each."""
    stored = [await put(store, each) for each in jobs or (job(),)]
    await plan_once(store)
    for each in stored:
        await store.request(each.job_id, Trigger("k"))


SCOPE = NodeScope("node-1", ("", "queue:other"))


async def seen(store: PostgresStore) -> Batch:
    async with store.due(SCOPE, 100) as batch:
        return batch


async def commit(store: PostgresStore, offer: Offer = OFFER) -> tuple[list[CommitAnswer], list[Claim]]:
    async with store.due(SCOPE, 100) as batch:
        done = await store.commit_plans(batch, plans_of(batch), offer)
    return list(done.answers), list(done.claims)


async def test_what_a_plan_makes_is_given_at_once_as_a_claim_would_give_it(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    await asked_for(store)
    [answer], [claim] = await commit(store)
    assert answer is Commit.COMMITTED
    [made] = await occurrences(store)
    assert (claim.fence, claim.occurrence, made.status, made.owner) == (1, made, "running", "node-1")
    assert made.started_at == claim.life.claimed_at == clock.time
    [beat] = await db.fetch("select id, beat_at from node")
    assert tuple(beat) == ("node-1", clock.time), "a claim is a sign of life"
    assert await store.claim(NodeScope("node-2"), 10) == []
    assert (await store.beat("node-1", [claim.key])).gone == ()
    assert await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))]) == [Commit.COMMITTED]
    assert await statuses(store) == ["completed"]


async def test_it_stands_in_line_where_something_else_is_ready(store: PostgresStore, clock: ManualClock) -> None:
    """What is more urgent or has waited longer goes first, and only a claim knows the line."""
    await put(store, job("first", "* * * * *"))
    clock.move(minutes=1)
    await plan_once(store)
    await asked_for(store, job("second", priority=5))
    assert await commit(store) == ([Commit.COMMITTED], [])
    assert [each.job.name for each in await store.claim(NodeScope("node-1"), 10)] == ["second", "first"]


async def test_it_stands_in_line_where_the_time_of_an_early_one_has_come(
    store: PostgresStore, clock: ManualClock
) -> None:
    await put(store, job("first", jitter="30m"))
    clock.move(hours=1)
    await plan_once(store)
    await asked_for(store, job("second"))
    clock.move(minutes=30)
    assert await commit(store) == ([Commit.COMMITTED], [])
    assert [each.job.name for each in await store.claim(NodeScope("node-1"), 10)] == ["first", "second"]


async def test_nothing_is_given_of_other_queues_or_of_unknown_jobs(store: PostgresStore) -> None:
    await asked_for(store, job("elsewhere", queue="other"), job("unknown"), job("one"))
    [unknown] = [each.job_id for each in (await seen(store)).snapshots if each.editions[-1].job.name == "unknown"]
    answers, [claim] = await commit(store, replace(OFFER, scope=NodeScope("node-1", unknown=frozenset([unknown]))))
    assert (answers, claim.job.name) == ([Commit.COMMITTED] * 3, "one")
    assert sorted(await statuses(store)) == ["pending", "pending", "running"]


async def test_the_line_decides_where_more_is_made_than_was_offered_for(store: PostgresStore) -> None:
    await asked_for(store, job("low"), job("high", priority=5))
    assert await commit(store, replace(OFFER, limit=1)) == ([Commit.COMMITTED] * 2, [])
    assert [each.job.name for each in await store.claim(NodeScope("node-1"), 1)] == ["high"]


async def test_a_plan_that_is_stale_gives_nothing(store: PostgresStore) -> None:
    await asked_for(store)
    batch = await seen(store)
    await store.request(batch.snapshots[0].job_id, Pause())
    assert await store.commit_plans(batch, plans_of(batch), OFFER) == Committed([Commit.STALE])
    assert await statuses(store) == []


async def test_what_is_not_ready_yet_is_not_given(store: PostgresStore, clock: ManualClock) -> None:
    await put(store, job(jitter="30m"))
    clock.move(hours=1)
    assert await commit(store) == ([Commit.COMMITTED], [])
    assert await statuses(store) == ["pending"]


async def test_the_bell_is_silent_where_no_other_node_has_work(store: PostgresStore, db: Any) -> None:
    """The others know when to look next: that has not changed."""
    await asked_for(store)
    rung = await db.fetchval("select last_value from pulse")
    assert len((await commit(store))[1]) == 1
    assert await db.fetchval("select last_value from pulse") == rung


async def test_the_others_are_rung_where_something_is_left_or_the_next_look_has_moved(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    await asked_for(store, job(overlap="allow"))
    rung = await db.fetchval("select last_value from pulse")
    assert await commit(store, replace(OFFER, limit=0)) == ([Commit.COMMITTED], [])
    assert await db.fetchval("select last_value from pulse") == rung + 1
    await store.claim(NodeScope("node-1"), 10)
    clock.move(hours=1)
    assert len((await commit(store))[1]) == 1
    assert await db.fetchval("select last_value from pulse") == rung + 2


async def test_a_claim_whose_answer_is_lost_comes_with_the_beat(
    through: tuple[Proxy, PostgresStore], clock: ManualClock
) -> None:
    """G9: the plan is known to be written, and the store counts what it made as the node's own."""
    proxy, store = through
    await asked_for(store)
    batch = await seen(store)
    proxy.arm(Cut.AFTER, only="B")
    assert await store.commit_plans(batch, plans_of(batch), OFFER) == Committed([Commit.COMMITTED])
    assert proxy.cuts == 1
    [adopted] = (await store.beat("node-1", [])).adopt
    assert adopted.fence == 1
    assert await statuses(store) == ["running"]


async def is_held(store: PostgresStore) -> bool:
    async with store.due(SCOPE, 100) as batch:
        assert isinstance(batch, OwnBatch)
        return batch.secrets.held is not None


async def test_a_batch_tells_the_time_and_nothing_where_nothing_is_due(
    store: PostgresStore, clock: ManualClock
) -> None:
    assert ((await seen(store)).now, (await seen(store)).snapshots) == (clock.time, [])
    await put(store, job())
    await plan_once(store)
    clock.move(minutes=5)
    assert ((await seen(store)).now, (await seen(store)).snapshots) == (clock.time, [])


async def test_many_are_held_and_a_few_are_only_read(store: PostgresStore, clock: ManualClock) -> None:
    store.jobs_due.unheld = 2
    for number in range(3):
        await put(store, job(f"job-{number}"))
    assert await is_held(store)
    assert await plan_once(store) == [Commit.COMMITTED] * 3
    clock.move(minutes=1)
    assert await is_held(store), "as long as the last ones were many"
    assert not await is_held(store)
