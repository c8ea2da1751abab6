"""What an owner proves: handle, fence and token. A store restored from an older copy hands out the first two again."""

from dataclasses import replace

import pytest

from everytick.domain.facts import Cancel
from everytick.domain.notes import Note, Progress
from everytick.domain.steps import Step
from everytick.errors import TransactionsUnsupported
from everytick.stores.base import Claim, Commit, Nodes, NodeScope
from tests.stores.acting import AnyStore, began, claim_one, ended, job, occurrences, plan_once, put, reap, run_one
from tests.stores.clock import ManualClock


async def _claimed(store: AnyStore, clock: ManualClock) -> tuple[Claim, Step]:
    await put(store, job(overlap="allow"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    return claim, ended(claim, began(claim, clock.time), clock.time)


def _of_the_lost_copy(claim: Claim) -> Claim:
    """The claim of an owner whose row is gone: the restored copy gave its handle and fence to another occurrence."""
    return replace(claim, key=claim.key._replace(token=claim.key.token ^ 1))


async def test_each_claim_draws_a_token_of_its_own(store: AnyStore, clock: ManualClock) -> None:
    """F-12: a take-over draws one too."""
    first, _ = await _claimed(store, clock)
    clock.move(hours=1)
    await plan_once(store)
    second = await claim_one(store, "node-2")
    clock.move(minutes=5)
    taken = await store.orphans("reaper", 10, {each.id: each.beats for each in await store.ask(Nodes())})
    assert len({claim.key.token for claim in (first, second)}) == 2
    assert not {claim.key.token for claim in taken} & {first.key.token, second.key.token}


async def test_a_step_by_handle_and_fence_of_another_occurrence_is_stale(store: AnyStore, clock: ManualClock) -> None:
    """F-12: after a fail-over to an older copy nothing is written into what is not the owner's."""
    claim, end = await _claimed(store, clock)
    [before] = await occurrences(store)
    assert await store.commit_steps([(_of_the_lost_copy(claim), end)]) == [Commit.STALE]
    assert await occurrences(store) == [before]
    assert (await store.whole(before.id)).attempts == ()
    assert await store.commit_steps([(claim, end)]) == [Commit.COMMITTED]


async def test_one_of_another_token_among_many_ends_is_stale(store: AnyStore, clock: ManualClock) -> None:
    """F-12: a batch of ends that all went well is written in one statement, which looks at each token too."""
    await put(store, job(overlap="allow", recovery="execute_all"))
    clock.move(hours=9)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), 100)
    assert len(claims) == 9
    owners = [_of_the_lost_copy(claim) if place == 4 else claim for place, claim in enumerate(claims)]
    ends = [ended(claim, began(claim, clock.time), clock.time) for claim in claims]
    told = await store.commit_steps(list(zip(owners, ends, strict=True)))
    assert told == [Commit.STALE if place == 4 else Commit.COMMITTED for place in range(9)]
    kept = {each.id for each in await occurrences(store) if each.status == "running"}
    assert kept == {claims[4].occurrence.id}


async def test_the_repeat_of_an_end_must_name_its_token(store: AnyStore, clock: ManualClock) -> None:
    claim, end = await _claimed(store, clock)
    assert await store.commit_steps([(claim, end)]) == [Commit.COMMITTED]
    assert await store.commit_steps([(claim, end)]) == [Commit.COMMITTED]
    assert await store.commit_steps([(_of_the_lost_copy(claim), end)]) == [Commit.STALE]


async def test_a_beat_that_names_another_token_is_told_that_it_is_gone(store: AnyStore, clock: ManualClock) -> None:
    claim, _ = await _claimed(store, clock)
    other = _of_the_lost_copy(claim)
    await store.request(claim.occurrence.id, Cancel("by hand"))
    orders = await store.beat("node-1", [other.key])
    assert orders.gone == (other.key,)
    assert [each.key for each in orders.adopt] == [claim.key]
    assert orders.cancel == ()
    assert (await store.beat("node-1", [claim.key])).cancel == ((claim.key, "by hand"),)


async def test_a_note_of_another_token_is_dropped(store: AnyStore, clock: ManualClock) -> None:
    claim, _ = await _claimed(store, clock)
    note = Note("main", 1, clock.time, Progress(1.0))
    await store.note([(_of_the_lost_copy(claim), note)])
    assert (await store.whole(claim.occurrence.id)).attempts == ()
    await store.note([(claim, note)])
    assert len((await store.whole(claim.occurrence.id)).attempts) == 1


async def test_a_transaction_of_another_token_writes_nothing(store: AnyStore, clock: ManualClock) -> None:
    claim, end = await _claimed(store, clock)
    try:
        async with store.transaction(_of_the_lost_copy(claim)) as transaction:
            assert await transaction.commit(end) is Commit.STALE
    except TransactionsUnsupported:
        pass
    [made] = await occurrences(store)
    assert made.status == "running"


# ---------------------------------------------------------------------------------------------------- the node's name


@pytest.mark.parametrize("outcome", ["ended", "lost"])
async def test_the_record_keeps_the_node_that_ran_it(store: AnyStore, clock: ManualClock, outcome: str) -> None:
    """S0-073, S0-004, S1-043, F16: `owner` says who holds it now, `node` who had it."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    if outcome == "ended":
        await run_one(store)
    else:
        await claim_one(store)
        clock.move(minutes=5)
        await reap(store)
    [made] = await occurrences(store)
    assert (made.owner, made.node) == (None, "node-1")
    assert [attempt.node for _, attempt in (await store.whole(made.id)).attempts] == ["node-1"]


async def test_each_attempt_keeps_its_node_and_the_occurrence_the_last(store: AnyStore, clock: ManualClock) -> None:
    """F16: what was lost with one node and run by another names both."""
    await put(store, job(on_orphan="restart"))
    clock.move(hours=1)
    await plan_once(store)
    [first] = await store.claim(NodeScope("node-1"), 1)
    await store.note([(first, Note("main", 1, clock.time, Progress(0.5)))])
    clock.move(minutes=5)
    await reap(store)
    await run_one(store, node="node-2")
    [made] = await occurrences(store)
    assert (made.status, made.owner, made.node) == ("completed", None, "node-2")
    assert [attempt.node for _, attempt in (await store.whole(made.id)).attempts] == ["node-1", "node-2"]
