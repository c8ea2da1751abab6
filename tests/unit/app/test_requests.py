"""What is asked for, from the call to the plan: seen, canceled, and asked for again by its key."""

import asyncio

import pytest

from everytick.app import Everytick
from everytick.errors import OccurrenceExists
from everytick.stores.addresses import AnyStore
from tests.stores.acting import FAILED, plan_once, run_one, statuses
from tests.stores.clock import ManualClock


@pytest.fixture
async def hourly(tick: Everytick) -> str:
    tick.job("0 * * * *", name="hourly")(lambda: None)
    await tick.sync()
    return "hourly"


async def test_what_no_node_has_planned_is_seen_and_canceled(tick: Everytick, store: AnyStore, hourly: str) -> None:
    """Attack 8: no node is up; the handle of a canceled request comes to its end."""
    handle = await tick.trigger(hourly, reason="by mistake", by="ada")
    waiting = asyncio.create_task(handle.wait(timeout="60s"))
    seen = (await tick.occurrence(handle.id)).occurrence
    assert (seen.status, seen.reason) == ("pending", "asked for, not planned yet, by ada, by mistake")
    assert await tick.cancel(handle.id, reason="never mind", by="bob")
    ended = await waiting
    assert (ended.status, ended.error) == ("canceled", "canceled by bob: never mind")
    await plan_once(store)
    assert await statuses(store) == ["canceled"]
    assert not await tick.cancel(handle.id)


async def test_a_replay_that_no_node_has_planned_is_canceled(tick: Everytick, store: AnyStore, hourly: str) -> None:
    first = await tick.trigger(hourly)
    await plan_once(store)
    await run_one(store)
    handle = await tick.replay(first.id, reason="again")
    assert (await tick.occurrence(handle.id)).occurrence.replay_of == first.id
    assert await tick.cancel(handle.id)
    assert (await handle.wait(timeout="60s")).status == "canceled"


async def test_a_key_can_be_used_again_after_a_failure(tick: Everytick, store: AnyStore, hourly: str) -> None:
    """S1-001, W7."""
    first = await tick.trigger(hourly, key="f1", payload=1)
    with pytest.raises(OccurrenceExists):
        await tick.trigger(hourly, key="f1", payload=2)
    await plan_once(store)
    await run_one(store, FAILED)
    second = await tick.trigger(hourly, key="f1", payload=2)
    assert second.id != first.id
    await plan_once(store)
    await run_one(store)
    assert (await tick.trigger(hourly, key="f1", payload=2)).id == second.id
    with pytest.raises(OccurrenceExists):
        await tick.trigger(hourly, key="f1", payload=1)
    assert sorted(await statuses(store)) == ["completed", "failed"]


async def test_a_request_canceled_while_its_job_waits_lets_the_others_run(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    first, second = await tick.trigger(hourly), await tick.trigger(hourly)
    await tick.cancel(first.id)
    clock.move(seconds=1)
    await plan_once(store)
    assert (await run_one(store)).occurrence.id == second.id
