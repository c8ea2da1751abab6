"""beat and orphans: who lives, who is silent, and who takes over."""

from datetime import timedelta

from everytick.domain.facts import Cancel
from everytick.stores.base import Commit, Nodes, NodeScope
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
    reap,
    statuses,
)
from tests.stores.clock import ManualClock


async def test_a_beat_names_what_to_stop_what_is_gone_and_what_to_adopt(store: AnyStore, clock: ManualClock) -> None:
    """E2: a claim whose reply was lost is adopted, or it would stay RUNNING beside a healthy beat."""
    await put(store, job(overlap="allow"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    orders = await store.beat("node-1", [])
    assert [each.key for each in orders.adopt] == [claim.key]

    await store.request(claim.occurrence.id, Cancel("by hand"))
    orders = await store.beat("node-1", [claim.key])
    assert orders.cancel == ((claim.key, "by hand"),)
    assert orders.adopt == ()

    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
    assert (await store.beat("node-1", [claim.key])).gone == (claim.key,)


async def test_of_many_reapers_one_takes_over(store: AnyStore, clock: ManualClock) -> None:
    """C11, I16."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.beat("node-1", [claim.key])
    [seen] = await store.ask(Nodes())
    [taken] = await store.orphans("reaper-1", 10, {"node-1": seen.beats})
    assert (taken.handle, taken.fence) == (claim.handle, claim.fence + 1)
    assert await store.orphans("reaper-2", 10, {"node-1": seen.beats}) == []


async def test_a_node_that_beats_keeps_its_own_however_long_it_takes(store: AnyStore, clock: ManualClock) -> None:
    """S0-069, S0-072, E3: age is not liveness; a node that has beaten since keeps its claims."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    for _ in range(10):
        [seen] = await store.ask(Nodes())
        clock.move(hours=1)
        await store.beat("node-1", [claim.key])
        assert await store.orphans("reaper", 10, {"node-1": seen.beats}) == []
    assert await statuses(store) == ["running"]


async def test_a_wait_that_a_silent_node_kept_is_only_released(store: AnyStore, clock: ManualClock) -> None:
    """It lost nothing: no attempt was running."""
    await put(store, job(retry={"max": 1, "interval": "3s"}))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, FAILED))])
    [made] = await occurrences(store)
    assert (made.status, made.owner) == ("awaiting_retry", "node-1")

    clock.move(seconds=30)
    await store.beat("reaper", [])
    assert await reap(store) == []
    [made] = await occurrences(store)
    assert (made.status, made.owner) == ("awaiting_retry", None)
    assert len(await store.claim(NodeScope("node-2"), 5)) == 1


async def test_after_too_many_losses_it_ends(store: AnyStore, clock: ManualClock) -> None:
    """I4 of the catalogue: a task that kills its node is not run without end (`max_lost`)."""
    await put(store, job(on_orphan="restart", max_lost=2))
    clock.move(hours=1)
    await plan_once(store)
    for number in range(3):
        await claim_one(store, f"node-{number}")
        clock.move(seconds=30)
        await store.beat("reaper", [])
        assert await reap(store) == [Commit.COMMITTED]
    assert await statuses(store) == ["failed_stale"]


async def test_nodes_are_known_by_their_beats(store: AnyStore, clock: ManualClock) -> None:
    await store.beat("node-2", [])
    clock.move(seconds=1)
    await store.beat("node-1", [])
    assert [(each.id, each.beat_at, each.holds) for each in await store.ask(Nodes())] == [
        ("node-1", clock.time, 0),
        ("node-2", clock.time - timedelta(seconds=1), 0),
    ]
