"""request: people act on a job by facts."""

import pytest

from everytick.domain.config import Level, overrides
from everytick.domain.facts import Amend, Cancel, Pause, Resume, Trigger
from everytick.domain.lookups import Spans
from everytick.domain.payload import payload
from everytick.domain.snapshots import Missed
from everytick.errors import JobDisabled, NotFound, OccurrenceExists
from everytick.stores.base import NodeScope
from tests.stores.acting import AnyStore, claim_one, job, occurrences, plan_once, put, run_one, statuses
from tests.stores.clock import ManualClock


async def test_a_trigger_runs_at_once_and_does_not_move_the_schedule(store: AnyStore, clock: ManualClock) -> None:
    """S1-022."""
    stored = await put(store, job())
    await plan_once(store)
    clock.move(minutes=10)
    before = (await store.get([stored.job_id]))[stored.job_id].wake_at
    id_ = (await store.request(stored.job_id, Trigger("k", payload({"x": 1})))).id
    await plan_once(store)
    [made] = await occurrences(store)

    assert (made.id, made.cause, made.status) == (id_, "trigger", "pending")
    assert made.overrides.get("payload") == payload({"x": 1})
    assert (await store.get([stored.job_id]))[stored.job_id].wake_at == before


@pytest.mark.parametrize("known", [False, True])
async def test_a_request_takes_the_time_of_the_store_and_is_never_from_the_future(
    store: AnyStore, clock: ManualClock, known: bool
) -> None:
    """C-05: a caller need not know the time to ask for a run now."""
    stored = await put(store, job(overlap="allow"))
    if known:
        await store.request(stored.job_id, Trigger("before"))
        await plan_once(store)
    clock.move(minutes=10)
    id_ = (await store.request(stored.job_id, Trigger("k"))).id
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert [each.requested_at for each in seen.requests if each.key == "k"] == [clock.time]
    await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store) if each.id == id_] == [clock.time]


async def test_the_same_key_is_the_same_occurrence(store: AnyStore, clock: ManualClock) -> None:
    """S0-057: with another payload it is refused, before and after it was planned."""
    stored = await put(store, job())
    ask = Trigger("k", payload(1))
    id_ = (await store.request(stored.job_id, ask)).id
    for _ in range(2):
        assert (await store.request(stored.job_id, ask)).id == id_
        with pytest.raises(OccurrenceExists, match=f"occurrence already exists: {id_}"):
            await store.request(stored.job_id, Trigger("k", payload(2)))
        await plan_once(store)
    assert len(await occurrences(store)) == 1


async def test_a_disabled_job_takes_no_requests_and_creates_nothing(store: AnyStore, clock: ManualClock) -> None:
    """S0-132, S1-024."""
    stored = await put(store, job(enabled=False))
    clock.move(hours=3)
    await plan_once(store)
    with pytest.raises(JobDisabled):
        await store.request(stored.job_id, Trigger("k"))
    assert await occurrences(store) == []


async def test_what_is_not_there_is_not_found(store: AnyStore, clock: ManualClock) -> None:
    with pytest.raises(NotFound):
        await store.request("job_none", Trigger("k"))
    with pytest.raises(NotFound):
        await store.request("occ_none", Cancel())
    with pytest.raises(NotFound):
        await store.whole("occ_none")


async def test_a_pause_across_three_ticks_is_three_skipped_entries(store: AnyStore, clock: ManualClock) -> None:
    """S1-036, S0-043, S0-044, F6: resuming fires only what is still to come."""
    stored = await put(store, job())
    await plan_once(store)
    await store.request(stored.job_id, Pause(reason="maintenance", by="ada"))
    begun = clock.time
    for _ in range(3):
        clock.move(hours=1)
        await plan_once(store)
    clock.move(minutes=10)
    assert (await store.request(stored.job_id, Resume())).changed
    await plan_once(store)
    [span] = await store.ask(Spans(stored.job_id, begun, clock.time))

    assert (span.status, span.why, span.detail, span.count) == ("skipped", "paused", "by ada (maintenance)", 3)
    assert await occurrences(store) == []
    assert not (await store.request(stored.job_id, Resume())).changed
    clock.move(minutes=50)
    await plan_once(store)
    assert await statuses(store) == ["pending"]


async def test_a_pause_that_catches_up_follows_the_recovery(store: AnyStore, clock: ManualClock) -> None:
    """C-18, F5."""
    stored = await put(store, job(recovery="execute_all"))
    await store.request(stored.job_id, Pause(missed=Missed.CATCH_UP))
    clock.move(hours=3, minutes=10)
    await plan_once(store)
    assert await occurrences(store) == []
    await store.request(stored.job_id, Resume())
    await plan_once(store)
    assert await statuses(store) == ["pending", "queued", "queued"]


async def test_a_pause_ends_by_itself(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    await plan_once(store)
    until = clock.time.replace(hour=10, minute=30)
    await store.request(stored.job_id, Pause(until=until))
    await plan_once(store)
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert (record.wake_at, record.pause and record.pause.until) == (until, until)
    clock.move(hours=2)
    await plan_once(store)
    assert [f"{each.scheduled_for:%H}" for each in await occurrences(store)] == ["11"]
    assert (await store.get([stored.job_id]))[stored.job_id].pause is None


async def test_a_pause_queues_unclaimed_instants_and_leaves_requests(store: AnyStore, clock: ManualClock) -> None:
    """I13, S4-024: no claim commits after the pause; what people ask for is not held."""
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    assert await statuses(store) == ["pending"]
    await store.request(stored.job_id, Pause())
    assert await statuses(store) == ["queued"]
    assert await store.claim(NodeScope("node-1"), 5) == []

    clock.move(minutes=1)
    await store.request(stored.job_id, Trigger("k"))
    await plan_once(store)
    assert await statuses(store) == ["queued", "pending"]
    await run_one(store)
    await store.request(stored.job_id, Resume())
    await plan_once(store)
    assert await statuses(store) == ["pending", "completed"]


async def test_canceling_ends_what_waits_and_asks_what_runs(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job(overlap="queue"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    clock.move(hours=1)
    await plan_once(store)
    waiting = (await occurrences(store))[1]

    assert (await store.request(waiting.id, Cancel("not needed"))).changed
    assert (await store.request(claim.occurrence.id, Cancel("stop"))).changed
    assert await statuses(store) == ["running", "canceled"]
    assert (await store.whole(waiting.id)).occurrence.error == "not needed"
    assert not (await store.request(waiting.id, Cancel())).changed
    assert (await store.beat("node-1", [claim.key])).cancel == ((claim.key, "stop"),)


async def test_the_bell_rings_for_changes_that_a_node_may_wait_for(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    assert await store.bell(20)
    assert not await store.bell(0)
    await store.request(stored.job_id, Trigger("k"))
    assert await store.bell(20)


async def test_a_payload_that_is_the_jobs_own_says_nothing_new(store: AnyStore, clock: ManualClock) -> None:
    """The same key with the job's own payload is the same request, before and after it was planned."""
    stored = await put(store, job(payload={"x": 1}))
    ask = Trigger("k", payload({"x": 1}))
    id_ = (await store.request(stored.job_id, ask)).id
    await plan_once(store)
    assert (await store.request(stored.job_id, ask)).id == id_
    assert (await store.request(stored.job_id, Trigger("k"))).id == id_


async def test_one_occurrence_can_be_amended(store: AnyStore, clock: ManualClock) -> None:
    """S0-080: it runs with overrides of its own, which are kept with it; the next one is as usual."""
    stored = await put(store, job())
    await plan_once(store)
    instant = clock.time.replace(hour=10)
    own = overrides(Level.OCCURRENCE, {"priority": 7, "payload": {"x": 2}})
    await store.request(stored.job_id, Amend(instant, own, by="ada"))
    for _ in range(2):
        clock.move(hours=1)
        await plan_once(store)
        await run_one(store)
    amended, usual = await occurrences(store)
    assert amended.overrides == own
    assert usual.overrides.items == ()
