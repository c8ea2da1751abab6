"""ahead: how long a node may sleep without missing anything."""

from datetime import timedelta

from everytick.domain.facts import Cancel, Pause
from everytick.stores.base import Ahead, NodeScope
from tests.stores.acting import FAILED, AnyStore, began, ended, job, occurrences, plan_once, put, run_one
from tests.stores.clock import ManualClock


async def test_an_empty_store_has_nothing_ahead(store: AnyStore, clock: ManualClock) -> None:
    assert await store.ahead(NodeScope("node-1")) == Ahead(clock.time)


async def test_the_next_instant_of_any_job_is_ahead(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("hourly"))
    await put(store, job("often", "*/20 * * * *"))
    await plan_once(store)
    assert await store.ahead(NodeScope("node-1", seen=1)) == Ahead(
        clock.time, wake_at=clock.time + timedelta(minutes=20)
    )


async def test_what_is_due_already_is_not_ahead(store: AnyStore, clock: ManualClock) -> None:
    """`due` and `claim` answer for it; to sleep until a moment that has passed would be a busy loop."""
    await put(store, job("hourly"))
    await put(store, job("often", "*/20 * * * *"))
    await plan_once(store)
    clock.move(minutes=20)
    assert await store.ahead(NodeScope("node-1", seen=1)) == Ahead(
        clock.time, wake_at=clock.time + timedelta(minutes=40)
    )
    await plan_once(store)
    assert len(await occurrences(store)) == 1
    assert (await store.ahead(NodeScope("node-1"))).ready_at is None, "what may start now is not ahead"


async def test_what_waits_for_its_jitter_is_ahead_for_nodes_of_its_queue(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job(jitter="30m", queue="gpu"))
    clock.move(hours=1)
    await plan_once(store)
    [made] = await occurrences(store)
    assert (await store.ahead(NodeScope("node-1", met=("", "queue:gpu")))).ready_at == made.ready_at
    assert (await store.ahead(NodeScope("node-1"))).ready_at is None
    assert (await store.ahead(NodeScope("node-1", met=()))).ready_at is None


async def test_a_parked_retry_is_ahead_and_one_that_its_owner_keeps_is_not(store: AnyStore, clock: ManualClock) -> None:
    """Running.md, claim and own: the owner of a short wait comes back by itself."""
    await put(store, job("far", retry={"max": 1, "interval": "10m"}))
    await put(store, job("near", retry={"max": 1, "interval": "3s"}))
    clock.move(hours=1)
    await plan_once(store)
    for claim in await store.claim(NodeScope("node-1"), 5):
        await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, FAILED))])
    assert (await store.ahead(NodeScope("node-1"))).ready_at == clock.time + timedelta(minutes=10)
    clock.move(minutes=10)
    assert (await store.ahead(NodeScope("node-1"))).ready_at is None


async def test_what_is_over_or_back_in_line_is_not_ahead(store: AnyStore, clock: ManualClock) -> None:
    """It has a time to start, but time alone will not start it."""
    canceled = await put(store, job("canceled", jitter="30m"))
    paused = await put(store, job("paused", jitter="30m"))
    clock.move(hours=1)
    await plan_once(store)
    for made in await occurrences(store, canceled.job_id):
        await store.request(made.id, Cancel())
    assert (await store.ahead(NodeScope("node-1"))).ready_at is not None
    await store.request(paused.job_id, Pause())
    assert [str(made.status) for made in await occurrences(store, paused.job_id)] == ["queued"]
    assert (await store.ahead(NodeScope("node-1"))).ready_at is None


async def test_a_paused_job_wakes_only_at_the_end_of_its_pause(store: AnyStore, clock: ManualClock) -> None:
    """Planning.md, wake_at: a pause costs nothing."""
    stored = await put(store, job())
    await store.request(stored.job_id, Pause())
    await plan_once(store)
    assert (await store.ahead(NodeScope("node-1"))).wake_at is None
    until = clock.time + timedelta(days=2)
    await store.request(stored.job_id, Pause(until=until))
    await plan_once(store)
    assert (await store.ahead(NodeScope("node-1"))).wake_at == until


async def test_an_ending_leaves_the_next_instant_ahead(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    await plan_once(store)
    assert await store.ahead(NodeScope("node-1", seen=1)) == Ahead(clock.time, wake_at=clock.time + timedelta(hours=1))


async def test_what_was_asked_for_before_a_small_step_back_of_the_clock_is_ahead(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-45: no node corrects half a second, so a node sleeps until then and no longer."""
    stored = await put(store, job("hourly"))
    await plan_once(store)
    await store.request(stored.job_id, Pause())
    asked_at = clock.time
    clock.move(seconds=-0.5)
    assert await store.settle_clock() == []
    assert await store.ahead(NodeScope("node-1", seen=1)) == Ahead(clock.time, wake_at=asked_at)
