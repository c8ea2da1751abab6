"""purge: a removed job leaves nothing behind, and nothing that runs is taken from under its node."""

from datetime import timedelta

import pytest

from everytick.domain.facts import Pause, Skip, Trigger
from everytick.domain.lookups import Spans
from everytick.errors import Conflict, NotFound
from everytick.stores.base import NodeScope
from tests.stores.acting import FAILED, AnyStore, claim_one, deliver, job, occurrences, plan_once, put, remove, run_one
from tests.stores.clock import ManualClock


async def _lived(store: AnyStore, clock: ManualClock, name: str = "report") -> str:
    """A job with everything a job can have: a past, spans, a pause, requests, moves, two versions."""
    stored = await put(store, job(name, recovery="mark_as_missed", overlap="allow"))
    for outcome in (None, FAILED):
        clock.move(hours=1)
        await plan_once(store)
        await run_one(store, outcome)
    clock.move(hours=5)
    await plan_once(store)
    await put(store, job(name, when="30 * * * *", overlap="allow", recovery="mark_as_missed"))
    coming = clock.time.replace(minute=30) + timedelta(hours=20)
    await store.request(stored.job_id, Skip(coming))
    await store.request(stored.job_id, Pause(until=clock.time + timedelta(days=1)))
    await store.request(stored.job_id, Trigger("k"))
    return stored.job_id


async def test_a_purged_job_leaves_nothing_and_its_name_begins_anew(store: AnyStore, clock: ManualClock) -> None:
    """S0-133: with its tasks, occurrences, runs and attempts."""
    id_ = await _lived(store, clock)
    other = await put(store, job("other", when="0 0 1 1 *"))
    await remove(store, id_)
    past = [each.id for each in await occurrences(store, id_)]
    assert len(past) >= 2
    assert await store.purge(id_) is True

    assert list(await store.get([id_])) == []
    assert await occurrences(store, id_) == []
    for gone in past:
        with pytest.raises(NotFound):
            await store.whole(gone)
    with pytest.raises(NotFound):
        await store.ask(Spans(id_, clock.time - timedelta(days=9), clock.time))
    assert await deliver(store) == []
    with pytest.raises(NotFound):
        await store.purge(id_)
    assert list(await store.get([other.job_id])) == [other.job_id]

    again = await put(store, job())
    assert (again.job_id, again.version) == (id_, 1)
    record = (await store.get([id_]))[id_]
    assert (record.watermark, record.pause, record.last_end) == (clock.time, None, None)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)


async def test_it_goes_in_batches(store: AnyStore, clock: ManualClock) -> None:
    """S0-055: each takes whole occurrences with their runs and attempts, and the job goes with the last."""
    stored = await put(store, job(overlap="allow"))
    for _ in range(3):
        clock.move(hours=1)
        await plan_once(store)
        await run_one(store)
    await remove(store, stored.job_id)
    assert await store.purge(stored.job_id, 2) is False
    [left] = await occurrences(store)
    whole = await store.whole(left.id)
    assert [str(run.status) for run in whole.runs] == ["success"]
    assert [attempt.number for _, attempt in whole.attempts] == [1]
    assert list(await store.get([stored.job_id])) == [stored.job_id]
    assert await store.purge(stored.job_id, 2) is True
    assert await occurrences(store) == []


async def test_unclaimed_occurrences_are_deleted_with_their_job(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    await remove(store, stored.job_id)
    assert await store.purge(stored.job_id) is True
    assert await store.claim(NodeScope("node-1"), 10) == []


async def test_what_a_node_holds_is_not_taken_away(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await remove(store, stored.job_id)
    with pytest.raises(Conflict, match="1 of its occurrences still run"):
        await store.purge(stored.job_id)
    assert (await store.beat("node-1", [claim.key])).gone == ()


async def test_a_job_in_service_is_not_purged(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    with pytest.raises(Conflict, match="is in service"):
        await store.purge(stored.job_id)
    assert list(await store.get([stored.job_id])) == [stored.job_id]
