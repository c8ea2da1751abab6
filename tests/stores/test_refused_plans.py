"""A plan that the store refuses is set aside by the store itself, and keeps no other from being written."""

from dataclasses import replace
from datetime import timedelta

import pytest

from everytick.domain.decisions import Plan
from everytick.domain.lookups import ParkedJobs
from everytick.stores.base import Commit, CommitFailed, NodeScope, Offer
from tests.stores.acting import AnyStore, batch_of, job, occurrences, plan_once, plans_of, put, statuses
from tests.stores.clock import ManualClock

SCOPE = NodeScope("node-1")
MINUTE = timedelta(minutes=1)


def spoilt(plan: Plan) -> Plan:
    """Return the plan with a watermark that moves back, which every store refuses."""
    return replace(plan, watermark=plan.watermark - timedelta(days=1))


async def test_a_refused_plan_is_postponed_and_the_others_are_written(store: AnyStore, clock: ManualClock) -> None:
    """C-46, D7: tried together, then each alone; the refused one is looked at again in a minute."""
    ids = [(await put(store, job(name))).job_id for name in ("a", "b", "c")]
    await plan_once(store)
    clock.move(hours=1)
    async with store.due(SCOPE, 10) as batch:
        good, bad, other = plans_of(batch)
        done = await store.commit_plans(batch, [good, spoilt(bad), other])
    answers = list(done.answers)
    assert [answers[0], answers[2]] == [Commit.COMMITTED] * 2
    assert isinstance(answers[1], CommitFailed)
    assert "watermark moved back" in answers[1].reason
    assert await statuses(store) == ["pending"] * 2
    records = await store.get(ids)
    [aside] = [each for each in records.values() if each.job.id == bad.job_id]
    assert aside.wake_at == clock.time + MINUTE
    assert aside.watermark == clock.time - timedelta(hours=1), "nothing was decided about it"
    assert aside.parked_reason is not None
    assert aside.parked_reason.startswith("the store refuses its plan, and is asked again every minute: ")
    assert answers[1].reason in aside.parked_reason
    assert await store.ask(ParkedJobs()) == {aside.job.name: aside.parked_reason}
    assert [each.parked_reason for each in await store.list()].count(None) == 2
    assert await plan_once(store) == []
    clock.move(minutes=1)
    assert await plan_once(store) == [Commit.COMMITTED]
    assert len(await occurrences(store, bad.job_id)) == 1
    assert (await store.get([bad.job_id]))[bad.job_id].parked_reason is None, "a plan was written"
    assert await store.ask(ParkedJobs()) == {}


async def test_a_refused_plan_leaves_nothing_of_those_that_were_tried_with_it(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-46: all are tried together, or else each alone, in order: the needed job has no other job to tell yet."""
    await put(store, job("needed"))
    waits = (await put(store, job("waits", depends_on="needed"))).job_id
    await put(store, job("spoilt"))
    await plan_once(store)
    clock.move(hours=1)
    async with store.due(SCOPE, 10) as batch:
        plans = {each.editions[-1].job.name: plan for each, plan in zip(batch.snapshots, plans_of(batch), strict=True)}
        before = plans["waits"].woken
        await store.commit_plans(batch, [plans["needed"], plans["waits"], spoilt(plans["spoilt"])])
    assert (await store.look([waits]))[waits].woken == before


async def test_many_refused_plans_are_about_the_plans_and_not_about_the_store(
    store: AnyStore, clock: ManualClock
) -> None:
    for number in range(5):
        await put(store, job(f"job-{number}"))
    clock.move(hours=1)
    async with store.due(SCOPE, 10) as batch:
        done = await store.commit_plans(batch, [spoilt(each) for each in plans_of(batch)])
    assert [type(answer) for answer in done.answers] == [CommitFailed] * 5
    assert await plan_once(store) == []


async def test_a_refused_plan_of_a_job_that_has_changed_since_is_stale(store: AnyStore, clock: ManualClock) -> None:
    """Nothing is written without its revision: the job may have been mended by the edit."""
    stored = await put(store, job())
    clock.move(hours=1)
    async with store.due(SCOPE, 10) as batch:
        [bad] = plans_of(batch)
        await put(store, job(priority=5))
        done = await store.commit_plans(batch, [spoilt(bad)])
    assert list(done.answers) == [Commit.STALE]
    assert (await store.get([stored.job_id]))[stored.job_id].wake_at == clock.time


@pytest.mark.parametrize("refused", [False, True], ids=["written", "refused"])
async def test_a_commit_that_is_repeated_writes_nothing_and_answers_as_before(
    store: AnyStore, clock: ManualClock, refused: bool
) -> None:
    """G9: the reply was lost; by the batch's token the store knows what it has written already."""
    for name in ("a", "b"):
        await put(store, job(name))
    await plan_once(store)
    clock.move(hours=1)
    async with store.due(SCOPE, 10) as batch:
        first, second = plans_of(batch)
        plans = [first, spoilt(second) if refused else second]
        answers = list((await store.commit_plans(batch, plans)).answers)
    clock.move(seconds=10)
    before = await occurrences(store), await store.list()
    again = list((await store.commit_plans(batch, plans)).answers)
    assert again[0] == answers[0] == Commit.COMMITTED
    # What was set aside has another revision since: it is not set aside twice.
    assert again[1] == (Commit.STALE if refused else Commit.COMMITTED)
    assert (await occurrences(store), await store.list()) == before


async def test_another_batch_of_the_same_jobs_is_stale_after_a_commit(store: AnyStore, clock: ManualClock) -> None:
    """S0-063: the token names a batch, and not a job."""
    await put(store, job())
    clock.move(hours=1)
    async with store.due(SCOPE, 10) as batch:
        plans = plans_of(batch)
        assert list((await store.commit_plans(batch, plans)).answers) == [Commit.COMMITTED]
    assert list((await store.commit_plans(batch_of(clock.time, *batch.snapshots), plans)).answers) == [Commit.STALE]


async def test_no_two_open_batches_share_a_job(store: AnyStore, clock: ManualClock) -> None:
    """A batch that is left without a commit, or by an exception, gives its jobs back at once."""
    for name in ("a", "b", "c"):
        await put(store, job(name))

    async def fail() -> None:
        async with store.due(SCOPE, 2) as first, store.due(SCOPE, 10) as second:
            ids = [{each.job_id for each in batch.snapshots} for batch in (first, second)]
            assert [len(each) for each in ids] == [2, 1]
            assert not ids[0] & ids[1]
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        await fail()
    async with store.due(SCOPE, 10) as batch:
        assert len(batch.snapshots) == 3


async def test_a_batch_that_was_read_ahead_is_written_only_once_its_time_has_come(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-20: nothing is decided in the store before its instant has come."""
    await put(store, job())
    await plan_once(store)
    instant = clock.time + timedelta(hours=1)
    async with store.due(SCOPE, 10, instant) as batch:
        assert (batch.now, batch.is_ahead, len(batch.snapshots)) == (instant, True, 1)
    plans = plans_of(batch)
    assert list((await store.commit_plans(batch, plans)).answers) == [Commit.STALE]
    assert await statuses(store) == []
    clock.move(hours=1)
    assert list((await store.commit_plans(batch, plans)).answers) == [Commit.COMMITTED]
    assert await statuses(store) == ["pending"]


async def test_a_store_claims_along_at_most_what_a_claim_would_give(store: AnyStore, clock: ManualClock) -> None:
    """Whether anything comes along is the store's own business; what does is first in line, and owned."""
    for name in ("a", "b", "c"):
        await put(store, job(name))
    await plan_once(store)
    clock.move(hours=1)
    async with store.due(SCOPE, 10) as batch:
        done = await store.commit_plans(batch, plans_of(batch), Offer(SCOPE, 2))
    assert len(done.claims) <= 2
    rest = await store.claim(SCOPE, 10)
    assert sorted(each.job.name for each in (*done.claims, *rest)) == ["a", "b", "c"]
    assert (await store.beat("node-1", [each.key for each in (*done.claims, *rest)])).gone == ()
