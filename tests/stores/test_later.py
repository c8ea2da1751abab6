"""A run that was asked for at a time (A9): no plan sees the request before it, and then exactly one run comes of it."""

from datetime import timedelta

import pytest

from everytick.domain.changes import Put, Remove
from everytick.domain.facts import Cancel, Pause, Trigger
from everytick.domain.lookups import LaterRequests
from everytick.domain.payload import payload
from everytick.errors import OccurrenceExists
from everytick.stores.base import NodeScope
from tests.stores.acting import AnyStore, job, occurrences, plan_once, put, run_one, statuses
from tests.stores.clock import ManualClock

MINUTE = timedelta(minutes=1)
SCOPE = NodeScope("node-1")


async def test_a_plan_sees_it_once_its_time_has_come(store: AnyStore, clock: ManualClock) -> None:
    """A9: until then the job wakes for nothing; at its time it is one run, for that time."""
    stored = await put(store, job(when="0 0 1 1 *"))
    at = clock.time + 10 * MINUTE
    id_ = (await store.request(stored.job_id, Trigger("k", payload({"user": 7}), by="ada", at=at))).id
    await plan_once(store)
    assert await occurrences(store) == []
    assert (await store.ahead(SCOPE)).wake_at == at
    clock.move(seconds=599)
    await plan_once(store)
    assert await occurrences(store) == []
    clock.move(seconds=1)
    await plan_once(store)
    [made] = await occurrences(store)
    assert (made.id, made.scheduled_for, made.line_at, made.cause, made.status) == (id_, at, at, "trigger", "pending")
    assert made.overrides.get("payload") == payload({"user": 7})
    assert made.reason == "asked for, by ada"
    assert (await run_one(store)).header.id == id_
    clock.move(seconds=3600)
    await plan_once(store)
    assert await statuses(store) == ["completed"]


async def test_it_can_be_seen_and_canceled_before_its_time(store: AnyStore, clock: ManualClock) -> None:
    """A9: it is shown with the time it was asked for, and a cancel ends it; its key is free again."""
    stored = await put(store, job(when="0 0 1 1 *"))
    at = clock.time + 10 * MINUTE
    id_ = (await store.request(stored.job_id, Trigger("k", call=1, at=at))).id
    seen = (await store.whole(id_)).occurrence
    assert (seen.status, seen.scheduled_for, seen.line_at) == ("pending", at, at)
    later = await store.ask(LaterRequests([stored.job_id], 5))
    assert [(job_id, asked.due_at) for job_id, asked in later] == [(stored.job_id, at)]
    assert (await store.request(id_, Cancel("not needed"))).changed
    assert await store.ask(LaterRequests([stored.job_id], 5)) == []
    await plan_once(store)
    assert (await store.ahead(SCOPE)).wake_at != at
    clock.move(seconds=600)
    await plan_once(store)
    assert await statuses(store) == ["canceled"]
    again = await store.request(stored.job_id, Trigger("k", call=2, at=clock.time + MINUTE))
    assert again.changed
    assert again.id != id_


async def test_the_same_key_is_the_same_run_whatever_the_time(store: AnyStore, clock: ManualClock) -> None:
    """A9: `after` names another time at every call, so that the first one holds; another payload is refused."""
    stored = await put(store, job(when="0 0 1 1 *"))
    at = clock.time + 10 * MINUTE
    first = await store.request(stored.job_id, Trigger("k", payload(1), call=1, at=at))
    again = await store.request(stored.job_id, Trigger("k", payload(1), call=2, at=at + MINUTE))
    assert (again.id, again.changed) == (first.id, False)
    with pytest.raises(OccurrenceExists):
        await store.request(stored.job_id, Trigger("k", payload(2), call=3, at=at))
    assert [asked.due_at for _, asked in await store.ask(LaterRequests([stored.job_id], 5))] == [at]


async def test_a_time_in_the_past_is_now(store: AnyStore, clock: ManualClock) -> None:
    """A9: it runs at once, for the moment at which it was asked for."""
    stored = await put(store, job(when="0 0 1 1 *", recovery="mark_as_missed"))
    await store.request(stored.job_id, Trigger("k", at=clock.time - 60 * MINUTE))
    await plan_once(store)
    [made] = await occurrences(store)
    assert (made.status, made.scheduled_for) == ("pending", clock.time)


async def test_a_pause_holds_it_not(store: AnyStore, clock: ManualClock) -> None:
    """A9: a pause holds the schedule, not people; the job wakes for it."""
    stored = await put(store, job(when="every 1m"))
    at = clock.time + 10 * MINUTE
    await store.request(stored.job_id, Trigger("k", at=at))
    await store.request(stored.job_id, Pause())
    await plan_once(store)
    assert (await store.ahead(SCOPE)).wake_at == at
    clock.move(seconds=600)
    await plan_once(store)
    assert await statuses(store) == ["pending"]


async def test_a_disabled_job_runs_it_once_it_is_enabled(store: AnyStore, clock: ManualClock) -> None:
    """A9, S1-024: an open request waits for the job."""
    stored = await put(store, job(when="0 0 1 1 *"))
    await store.request(stored.job_id, Trigger("k", at=clock.time + MINUTE))
    await put(store, job(when="0 0 1 1 *", enabled=False))
    clock.move(seconds=3600)
    await plan_once(store)
    assert await occurrences(store) == []
    await put(store, job(when="0 0 1 1 *"))
    await plan_once(store)
    assert await statuses(store) == ["pending"]


async def test_a_removed_job_refuses_it(store: AnyStore, clock: ManualClock) -> None:
    """A9: at the removal, also if its time is still to come: a caller that waits for its end is told."""
    stored = await put(store, job(when="0 0 1 1 *"))
    id_ = (await store.request(stored.job_id, Trigger("k", at=clock.time + 60 * MINUTE))).id
    await store.apply([Remove("report")])
    await plan_once(store)
    made = (await store.whole(id_)).occurrence
    assert (made.status, made.reason) == ("skipped", "removed")


async def test_a_job_that_comes_back_in_time_keeps_it(store: AnyStore, clock: ManualClock) -> None:
    """A9: a file that was gone for some minutes loses no run that was asked for."""
    stored = await put(store, job(when="0 0 1 1 *"))
    await store.request(stored.job_id, Trigger("k", at=clock.time + MINUTE))
    await store.apply([Remove("report", timedelta(minutes=10))])
    clock.move(seconds=120)
    await plan_once(store)
    assert await occurrences(store) == []
    await store.apply([Put(job(when="0 0 1 1 *"))])
    await plan_once(store)
    assert await statuses(store) == ["pending"]


async def test_many_to_come_cost_nothing_and_come_in_order(store: AnyStore, clock: ManualClock) -> None:
    """A9: of 250 requests a plan sees those that have come, 100 at a time, and the next one's time."""
    stored = await put(store, job(when="0 0 1 1 *", overlap="allow"))
    start = clock.time
    for number in range(250):
        await store.request(stored.job_id, Trigger(f"k{number}", at=start + (1 + number) * MINUTE))
    clock.move(seconds=30 * 60)
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert (len(seen.requests), seen.more_requests, seen.next_request_at) == (30, False, start + 31 * MINUTE)
    clock.move(seconds=170 * 60)
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert (len(seen.requests), seen.more_requests, seen.next_request_at) == (100, True, start + 201 * MINUTE)
    for _ in range(3):
        await plan_once(store)
    made = await occurrences(store)
    assert sorted(each.scheduled_for for each in made) == [start + number * MINUTE for number in range(1, 201)]
    assert len(await store.ask(LaterRequests([stored.job_id], 1000))) == 50
    assert (await store.ahead(SCOPE)).wake_at == start + 201 * MINUTE
