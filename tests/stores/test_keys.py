"""Keys of requests: taken while what was asked for by them may still succeed or has, and free again after a failure."""

import asyncio

import pytest

from everytick.domain import ids
from everytick.domain.facts import Cancel, Replay, Trigger
from everytick.domain.occurrence import Cause
from everytick.domain.payload import payload
from everytick.errors import OccurrenceExists
from everytick.stores.base import NodeScope
from tests.stores.acting import FAILED, AnyStore, job, occurrences, plan_once, put, remove, run_one
from tests.stores.clock import ManualClock

CALLS = iter(range(1, 1_000_000))


def ask(clock: ManualClock, body: object = None, *, key: str = "k", cause: Cause = Cause.TRIGGER) -> Trigger | Replay:
    """A call that names a key; every one has a number of its own."""
    given = None if body is None else payload(body)
    if cause is Cause.REPLAY:
        return Replay(key, "occ_1", clock.time, payload=given, call=next(CALLS))
    return Trigger(key, given, call=next(CALLS))


@pytest.mark.parametrize("cause", [Cause.TRIGGER, Cause.REPLAY])
async def test_a_key_is_free_again_after_a_failure(store: AnyStore, clock: ManualClock, cause: Cause) -> None:
    """S1-001, W7: the next one by this key is another occurrence, whatever its payload."""
    stored = await put(store, job())
    await plan_once(store)
    named = ids.trigger_id if cause is Cause.TRIGGER else ids.replay_id
    for nth in (1, 2, 3):
        id_ = (await store.request(stored.job_id, ask(clock, nth, cause=cause))).id
        assert id_ == named(stored.job_id, "k", nth)
        assert (await store.request(stored.job_id, ask(clock, nth, cause=cause))).id == id_
        await plan_once(store)
        assert (await store.request(stored.job_id, ask(clock, nth, cause=cause))).id == id_
        await run_one(store, FAILED)
        clock.move(seconds=1)
    assert [str(each.status) for each in await occurrences(store)] == ["failed"] * 3


async def test_a_key_that_succeeded_is_taken(store: AnyStore, clock: ManualClock) -> None:
    """S0-057, S1-001: also where an earlier one by it failed."""
    stored = await put(store, job())
    await plan_once(store)
    for outcome in (FAILED, None):
        id_ = (await store.request(stored.job_id, ask(clock, 1))).id
        await plan_once(store)
        await run_one(store, outcome)
    assert id_ == ids.trigger_id(stored.job_id, "k", 2)
    assert (await store.request(stored.job_id, ask(clock, 1))).id == id_
    with pytest.raises(OccurrenceExists, match=id_):
        await store.request(stored.job_id, ask(clock, 2))


async def test_another_payload_is_refused_while_the_key_is_taken(store: AnyStore, clock: ManualClock) -> None:
    """S0-057: while it is asked for, planned and running."""
    stored = await put(store, job())
    await plan_once(store)
    id_ = (await store.request(stored.job_id, ask(clock, 1))).id
    for deed in (lambda: plan_once(store), lambda: store.claim(NodeScope("node-1"), 1), None):
        with pytest.raises(OccurrenceExists, match=f"occurrence already exists: {id_}"):
            await store.request(stored.job_id, ask(clock, 2))
        if deed is not None:
            await deed()


async def test_a_repeat_of_the_same_call_finds_its_own_occurrence(store: AnyStore, clock: ManualClock) -> None:
    """S1-001: a reply that was lost costs no second run, though the first has failed meanwhile."""
    stored = await put(store, job())
    await plan_once(store)
    first = ask(clock)
    id_ = (await store.request(stored.job_id, first)).id
    await plan_once(store)
    await run_one(store, FAILED)
    assert (await store.request(stored.job_id, first)).id == id_
    second = ask(clock)
    other = (await store.request(stored.job_id, second)).id
    assert other != id_
    await plan_once(store)
    await run_one(store, FAILED)
    assert (await store.request(stored.job_id, second)).id == other
    assert len(await occurrences(store)) == 2


async def test_a_key_that_was_drawn_by_the_call_names_one_occurrence(store: AnyStore, clock: ManualClock) -> None:
    """Without a call number the key is the call's own: a repeat finds what it asked for, failed or not."""
    stored = await put(store, job())
    asked = Trigger("random")
    id_ = (await store.request(stored.job_id, asked)).id
    await plan_once(store)
    await run_one(store, FAILED)
    assert (await store.request(stored.job_id, asked)).id == id_


async def test_what_was_canceled_before_a_plan_frees_its_key(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    first = ask(clock)
    id_ = (await store.request(stored.job_id, first)).id
    await store.request(id_, Cancel())
    assert (await store.request(stored.job_id, first)).id == id_
    assert (await store.request(stored.job_id, ask(clock))).id == ids.trigger_id(stored.job_id, "k", 2)


async def test_a_key_is_forgotten_with_its_occurrence(store: AnyStore, clock: ManualClock) -> None:
    """What retention has forgotten holds no key; an older failure by it that is still there does not either."""
    keep = {"success": "1m", "failure": "90d", "keep_last": 0}
    stored = await put(store, job(retention=keep, reports=False))
    await plan_once(store)
    for outcome in (FAILED, None):
        await store.request(stored.job_id, ask(clock, 1))
        await plan_once(store)
        await run_one(store, outcome)
    clock.move(minutes=2)
    assert await store.prune() == 1
    assert [str(each.status) for each in await occurrences(store)] == ["failed"]
    id_ = (await store.request(stored.job_id, ask(clock, 2))).id
    assert id_ == ids.trigger_id(stored.job_id, "k", 2)
    await plan_once(store)
    assert {str(each.status) for each in await occurrences(store)} == {"failed", "pending"}


async def test_a_purged_job_leaves_no_keys(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    await store.request(stored.job_id, ask(clock))
    await remove(store, stored.job_id)
    await plan_once(store)
    assert await store.purge(stored.job_id)
    await put(store, job())
    assert (await store.request(stored.job_id, ask(clock))).id == ids.trigger_id(stored.job_id, "k")


async def test_many_calls_by_a_free_key_at_once_are_one_occurrence(store: AnyStore, clock: ManualClock) -> None:
    """S1-001: it is decided under the lock of the key."""
    stored = await put(store, job())
    await plan_once(store)
    for nth in (1, 2, 3):
        asked = await asyncio.gather(*(store.request(stored.job_id, ask(clock)) for _ in range(5)))
        assert {each.id for each in asked} == {ids.trigger_id(stored.job_id, "k", nth)}
        await plan_once(store)
        await run_one(store, FAILED)
    assert len(await occurrences(store)) == 3


async def test_keys_of_other_jobs_and_causes_are_other_keys(store: AnyStore, clock: ManualClock) -> None:
    one, two = await put(store, job("one")), await put(store, job("two"))
    asked = [
        (await store.request(one.job_id, ask(clock, 1))).id,
        (await store.request(two.job_id, ask(clock, 2))).id,
        (await store.request(one.job_id, ask(clock, 3, cause=Cause.REPLAY))).id,
        (await store.request(one.job_id, ask(clock, 4, key="create"))).id,
    ]
    assert len(set(asked)) == 4
