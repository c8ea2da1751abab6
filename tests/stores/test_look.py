"""look: the snapshot that a plan would get, without holding the job."""

from everytick.domain.facts import Pause, Trigger
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import AnyStore, batch_of, job, plan_once, plans_of, put, run_one
from tests.stores.clock import ManualClock


async def test_what_is_seen_is_what_a_planner_is_given(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(recovery="execute_all", overlap="queue"))
    clock.move(hours=3)
    await plan_once(store)
    await run_one(store)
    await store.request(stored.job_id, Trigger("key"))
    await store.request(stored.job_id, Pause())
    seen = await store.look([stored.job_id])
    async with store.due(NodeScope("node-1"), 10) as batch:
        assert seen == {snapshot.job_id: snapshot for snapshot in batch.snapshots}
    assert (seen[stored.job_id].busy_count, seen[stored.job_id].waiting_count) == (0, 2)


async def test_jobs_that_are_not_due_are_seen_too(store: AnyStore, clock: ManualClock) -> None:
    one, two = await put(store, job("one")), await put(store, job("two"))
    await store.request(two.job_id, Pause())
    await plan_once(store)
    async with store.due(NodeScope("node-1"), 10) as batch:
        assert list(batch.snapshots) == []
    seen = await store.look([one.job_id, "job_none", two.job_id])
    assert set(seen) == {one.job_id, two.job_id}
    assert seen[one.job_id].watermark == clock.time
    assert await store.look([]) == {}


async def test_a_look_holds_nothing(store: AnyStore, clock: ManualClock) -> None:
    """A snapshot of `look` may be planned and committed as any other, until another plan was first."""
    stored = await put(store, job())
    clock.move(hours=1)
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert await plan_once(store) == [Commit.COMMITTED]
    old = batch_of(clock.time, seen)
    assert (await store.commit_plans(old, plans_of(old))).answers == [Commit.STALE]
    again = (await store.look([stored.job_id]))[stored.job_id]
    new = batch_of(clock.time, again)
    assert (await store.commit_plans(new, plans_of(new))).answers == [Commit.COMMITTED]
