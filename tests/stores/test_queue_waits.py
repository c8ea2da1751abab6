"""ask: what waits in each queue, and since when, however many wait there."""

from datetime import timedelta
from typing import Any

from everytick.domain.facts import Pause, Trigger
from everytick.domain.questions import MOST_IN_A_LANE, QueueWait, WaitingInQueues
from tests.stores.acting import FAILED, AnyStore, began, claim_one, ended, everything, job, plan_once, put
from tests.stores.clock import START, ManualClock

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CROWD: dict[str, Any] = {"overlap": "allow", "recovery": "execute_all", "grace": "30d"}


async def plan_all(store: AnyStore) -> None:
    while await plan_once(store):
        pass


async def test_of_more_than_are_counted_the_oldest_is_found(store: AnyStore, clock: ManualClock) -> None:
    """The newest thousand have waited for half as long at most. Counted are a thousand late ones, and two on time."""
    for name in ("one", "two"):
        await put(store, job(name, "* * * * *", **CROWD))
    clock.move(minutes=MOST_IN_A_LANE - 50)
    await plan_all(store)
    assert await store.ask(WaitingInQueues()) == (
        QueueWait("default", MOST_IN_A_LANE + 2, START + MINUTE, is_cut=True),
    )


async def test_the_oldest_is_found_behind_higher_priorities(store: AnyStore, clock: ManualClock) -> None:
    low = await put(store, job("low", priority=-3))
    await store.request(low.job_id, Trigger("first"))
    await plan_once(store)
    await put(store, job("high", "* * * * *", priority=7, **CROWD))
    await put(store, job("middle", "* * * * *", priority=0, **CROWD))
    clock.move(minutes=20)
    await plan_all(store)
    [found] = await store.ask(WaitingInQueues())
    assert (found.queue, found.count, found.since) == ("default", 41, START)


async def test_each_queue_is_told_apart_by_name(store: AnyStore, clock: ManualClock) -> None:
    """Late occurrences wait apart from the others, and needs beside the queue make no other queue."""
    await put(store, job("plain"))
    await put(store, job("bills", "*/10 * * * *", queue="bills", overlap="allow", recovery="execute_all", grace="1m"))
    await put(store, job("coded", queue="bills", code="shop"))
    clock.move(minutes=60)
    await plan_all(store)
    assert await store.ask(WaitingInQueues()) == (
        QueueWait("bills", 7, START + 10 * MINUTE),
        QueueWait("default", 1, START + HOUR),
    )
    await store.claim(await everything(store), 100)
    assert await store.ask(WaitingInQueues()) == ()


async def test_what_is_not_ready_or_is_between_attempts_does_not_wait(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job("loop", retry={"max": 3, "interval": "10m"}))
    await store.request(stored.job_id, Trigger("now"))
    await plan_once(store)
    claim = await claim_one(store)
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, FAILED))])
    assert await store.ask(WaitingInQueues()) == ()
    clock.move(minutes=20)
    assert await store.ask(WaitingInQueues()) == (), "its time has come, and it is awaiting its retry"


async def test_what_no_node_has_asked_for_since_its_time_came_waits(store: AnyStore, clock: ManualClock) -> None:
    """No node serves the queue: nothing moves an occurrence to those that are ready, and it has waited all the same."""
    await put(store, job("spread", jitter="30m", overlap="allow"))
    clock.move(hours=1)
    await plan_once(store)
    early = await store.ask(WaitingInQueues())
    assert early == (), "its jitter is not over"
    clock.move(hours=2)
    [found] = await store.ask(WaitingInQueues())
    assert found.count == 1
    assert START + HOUR < found.since < START + 2 * HOUR


async def test_what_a_pause_holds_does_not_wait_in_a_queue(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job("held"))
    clock.move(hours=1)
    await plan_once(store)
    assert len(await store.ask(WaitingInQueues())) == 1
    await store.request(stored.job_id, Pause())
    assert await store.ask(WaitingInQueues()) == ()
