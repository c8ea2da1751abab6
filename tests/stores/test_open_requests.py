"""A request that no plan has answered yet: it can be seen, and canceled, by the id of what it asks for."""

from dataclasses import replace
from datetime import timedelta

import pytest

from everytick.deciding.plan import plan
from everytick.domain.facts import Cancel, Fill, Replay, Trigger
from everytick.domain.occurrence import Cause
from everytick.domain.payload import payload
from everytick.errors import NotFound
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import AnyStore, job, occurrences, plan_once, put, run_one, statuses
from tests.stores.clock import ManualClock

HOUR = timedelta(hours=1)


async def test_what_is_asked_for_can_be_seen_before_a_plan(store: AnyStore, clock: ManualClock) -> None:
    """It is pending and says that it is asked for; nothing of it exists in history yet."""
    stored = await put(store, job())
    asked = Trigger("k", payload({"x": 1}), reason="a customer called", by="ada")
    id_ = (await store.request(stored.job_id, asked)).id
    seen = await store.whole(id_)
    made = seen.occurrence
    assert (made.id, made.job_id, made.cause, made.status) == (id_, stored.job_id, "trigger", "pending")
    assert (made.scheduled_for, made.line_at, made.version) == (clock.time, clock.time, 1)
    assert made.reason == "asked for, not planned yet, by ada, a customer called"
    assert made.overrides.get("payload") == payload({"x": 1})
    assert (made.created_at, seen.runs, seen.attempts) == (None, (), ())
    assert await occurrences(store) == []


@pytest.mark.parametrize("cause", [Cause.TRIGGER, Cause.REPLAY])
async def test_canceling_what_is_asked_for_ends_it(store: AnyStore, clock: ManualClock, cause: Cause) -> None:
    """It never runs, and a waiting caller sees that it is canceled, and why."""
    stored = await put(store, job(reports=True))
    then = clock.time - HOUR
    asked = Replay("k", "occ_1", then, by="ada") if cause is Cause.REPLAY else Trigger("k", by="ada")
    id_ = (await store.request(stored.job_id, asked)).id
    clock.move(seconds=1)
    assert (await store.request(id_, Cancel("not needed"))).changed
    made = (await store.whole(id_)).occurrence
    assert (made.status, made.cause, made.error, made.ended_at) == ("canceled", cause, "not needed", clock.time)
    assert made.scheduled_for == (then if cause is Cause.REPLAY else clock.time - timedelta(seconds=1))
    assert made.started_at is None
    assert not (await store.request(id_, Cancel())).changed
    await plan_once(store)
    assert await statuses(store) == ["canceled"]
    assert await store.claim(NodeScope("node-1"), 5) == []
    assert [each.id for each in await store.reports(NodeScope("node-1"), 10)] == [id_]
    assert (await store.look([stored.job_id]))[stored.job_id].requests == ()


async def test_a_plan_from_before_the_cancel_does_not_bring_it_back(store: AnyStore, clock: ManualClock) -> None:
    """The plan saw the request, the cancel came first; the others it answers run."""
    stored = await put(store, job())
    await plan_once(store)
    first = (await store.request(stored.job_id, Trigger("a"))).id
    second = (await store.request(stored.job_id, Trigger("b"))).id
    async with store.due(NodeScope("node-1"), 10) as batch:
        plans = [plan(snapshot, clock.time) for snapshot in batch.snapshots]
    front = plans[0].creations[0].id
    assert (await store.request(front, Cancel("not needed"))).changed
    assert (await store.commit_plans(batch, plans)).answers == [Commit.COMMITTED]
    await plan_once(store)
    found = {each.id: str(each.status) for each in await occurrences(store)}
    assert found == {front: "canceled", ({first, second} - {front}).pop(): "pending"}


async def test_canceling_after_the_plan_ends_the_occurrence(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    id_ = (await store.request(stored.job_id, Trigger("k"))).id
    await plan_once(store)
    assert (await store.whole(id_)).occurrence.reason == "asked for"
    assert (await store.request(id_, Cancel())).changed
    assert await statuses(store) == ["canceled"]


async def test_filling_one_instant_is_known_by_the_id_of_that_instant(store: AnyStore, clock: ManualClock) -> None:
    """Until a plan it is only requested; canceled, the instant has its occurrence."""
    stored = await put(store, job())
    instant = clock.time.replace(minute=0) - HOUR
    one = Fill("one", instant)
    id_ = (await store.request(stored.job_id, one)).id
    assert (await store.whole(id_)).occurrence.scheduled_for == instant
    assert (await store.request(id_, Cancel("not needed"))).changed
    again = (await store.request(stored.job_id, replace(one, key="two"))).id
    assert again == id_
    await plan_once(store)
    assert [(each.id, str(each.status)) for each in await occurrences(store)] == [(id_, "canceled")]


async def test_a_trigger_and_a_replay_of_one_key_are_two_requests(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(overlap="allow"))
    await plan_once(store)
    trigger = (await store.request(stored.job_id, Trigger("k"))).id
    replay = (await store.request(stored.job_id, Replay("k", "occ_none", clock.time))).id
    await plan_once(store)
    assert {each.id for each in await occurrences(store)} == {trigger, replay}
    with pytest.raises(NotFound):
        await store.request("occ_00000000-0000-5000-8000-000000000000", Cancel())


async def test_a_request_canceled_before_its_plan_blocks_no_other(store: AnyStore, clock: ManualClock) -> None:
    """The next in line follows at once."""
    stored = await put(store, job())
    await plan_once(store)
    first = (await store.request(stored.job_id, Trigger("a"))).id
    await store.request(first, Cancel())
    clock.move(seconds=1)
    second = (await store.request(stored.job_id, Trigger("b"))).id
    await plan_once(store)
    assert (await run_one(store)).occurrence.id == second
