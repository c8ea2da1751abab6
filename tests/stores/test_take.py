"""take: an occurrence is handed over by whoever says so, silent owner or not."""

from everytick.deciding.advance import advance
from everytick.domain.outcome import Lost
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import (
    FAILED,
    AnyStore,
    began,
    claim_one,
    ended,
    job,
    occurrences,
    plan_once,
    put,
    statuses,
)
from tests.stores.clock import ManualClock


async def test_what_a_living_node_holds_is_taken_with_a_new_fence(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.beat("node-1", [claim.key])
    [taken] = await store.take("node-2", [stored.job_id], 10)

    assert (taken.handle, taken.fence, taken.occurrence.owner) == (claim.handle, claim.fence + 1, "node-2")
    assert (taken.snapshot, taken.job) == (claim.snapshot, claim.job)
    assert (await store.beat("node-1", [claim.key])).gone == (claim.key,)
    assert await store.commit_steps([(claim, ended(began(claim, clock.time), clock.time))]) == [Commit.STALE]
    lost = advance(taken.snapshot, Lost(), clock.time)
    assert await store.commit_steps([(taken, lost)]) == [Commit.COMMITTED]
    assert await statuses(store) == ["failed_stale"]


async def test_only_of_the_jobs_that_were_named_and_only_of_others(store: AnyStore, clock: ManualClock) -> None:
    one, two = await put(store, job("one")), await put(store, job("two"))
    clock.move(hours=1)
    await plan_once(store)
    held = {claim.occurrence.job_id: claim for claim in await store.claim(NodeScope("node-1"), 5)}

    assert await store.take("node-1", [one.job_id, two.job_id], 10) == [], "nobody takes from itself"
    assert await store.take("node-2", [], 10) == []
    assert await store.take("node-2", ["job_none"], 10) == []
    [taken] = await store.take("node-2", [two.job_id], 10)
    assert taken.handle == held[two.job_id].handle
    assert {each.job_id: (each.owner, each.fence) for each in await occurrences(store)} == {
        one.job_id: ("node-1", 1),
        two.job_id: ("node-2", 2),
    }


async def test_what_nobody_holds_is_left_to_claim(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(overlap="queue", recovery="execute_all"))
    clock.move(hours=2)
    await plan_once(store)
    before = await occurrences(store)
    assert [str(each.status) for each in before] == ["pending", "queued"]
    assert await store.take("node-2", [stored.job_id], 10) == []
    assert await occurrences(store) == before


async def test_the_oldest_first_and_no_more_than_asked_for(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    clock.move(hours=5)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), 10)
    first = await store.take("node-2", [stored.job_id], 2)
    rest = await store.take("node-2", [stored.job_id], 10)
    assert [claim.handle for claim in (*first, *rest)] == sorted(claim.handle for claim in claims)
    assert len(first) == 2


async def test_a_wait_that_its_owner_kept_is_only_released(store: AnyStore, clock: ManualClock) -> None:
    """It lost nothing: no attempt was running."""
    stored = await put(store, job(retry={"max": 1, "interval": "3s"}))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.commit_steps([(claim, ended(began(claim, clock.time), clock.time, FAILED))])
    assert await store.take("node-2", [stored.job_id], 10) == []
    [made] = await occurrences(store)
    assert (made.status, made.owner, made.fence) == ("awaiting_retry", None, claim.fence + 1)
    clock.move(seconds=3)
    assert len(await store.claim(NodeScope("node-3"), 5)) == 1


async def test_of_two_takers_both_get_it_in_turn_and_only_the_last_may_write(
    store: AnyStore, clock: ManualClock
) -> None:
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    await claim_one(store)
    [first] = await store.take("node-2", [stored.job_id], 1)
    [last] = await store.take("node-3", [stored.job_id], 1)
    lost = [(claim, advance(claim.snapshot, Lost(), clock.time)) for claim in (first, last)]
    assert await store.commit_steps(lost) == [Commit.STALE, Commit.COMMITTED]
