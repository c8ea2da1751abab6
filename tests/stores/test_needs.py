"""Needs: a node sees the jobs and occurrences whose needs it meets, and nothing of others (C-41)."""

from datetime import timedelta
from typing import Any

from everytick.domain.changes import Remove
from everytick.domain.config import Level, overrides
from everytick.domain.facts import Amend, Trigger
from everytick.domain.needs import LATE
from everytick.stores.base import NodeScope
from tests.stores.acting import (
    AnyStore,
    deliver,
    everything,
    job,
    occurrences,
    plan_once,
    put,
    put_all,
    remove,
    run_one,
    statuses,
)
from tests.stores.clock import ManualClock

SHOP = NodeScope("shop-1", ("code:shop",))
BANK = NodeScope("bank-1", ("code:bank",))


async def names_due(store: AnyStore, scope: NodeScope, limit: int = 100) -> list[str]:
    async with store.due(scope, limit) as batch:
        return [snapshot.editions[-1].job.name for snapshot in batch.snapshots]


async def test_a_job_is_due_for_nodes_that_meet_its_needs(store: AnyStore, clock: ManualClock) -> None:
    """C-41."""
    await put(store, job("sale", code="shop"))
    await put(store, job("interest", code="bank"))
    await put(store, job("backup"))
    assert await names_due(store, SHOP) == ["sale"]
    assert await names_due(store, BANK) == ["interest"]
    assert await names_due(store, NodeScope("any")) == ["backup"]
    assert sorted(await names_due(store, NodeScope("both", ("", "code:shop")))) == ["backup", "sale"]


async def test_several_needs_are_one_line_by_how_long_jobs_wait(store: AnyStore, clock: ManualClock) -> None:
    """C-41: the longest-waiting job comes first, whatever it needs; so is the limit counted."""
    for number, code in enumerate(("shop", "bank", "", "shop")):
        await put(store, job(f"job-{number}", code=code))
        clock.move(seconds=1)
    scope = NodeScope("all", ("", "code:shop", "code:bank"))
    assert await names_due(store, scope) == ["job-0", "job-1", "job-2", "job-3"]
    assert await names_due(store, scope, 2) == ["job-0", "job-1"]


async def test_what_other_nodes_have_to_do_is_not_ahead(store: AnyStore, clock: ManualClock) -> None:
    """C-41: a node does not wake for a job that it cannot plan, nor for what it cannot claim."""
    await put(store, job("sale", "*/10 * * * *", code="shop"))
    await put(store, job("interest", "*/5 * * * *", code="bank", jitter="2m"))
    await plan_once(store)
    clock.move(minutes=5)
    await plan_once(store, scope=BANK)
    assert (await store.ahead(SHOP)).wake_at == clock.time + timedelta(minutes=5)
    assert (await store.ahead(SHOP)).ready_at is None
    assert (await store.ahead(BANK)).wake_at == clock.time + timedelta(minutes=5)
    assert (await store.ahead(BANK)).ready_at is not None


async def test_a_job_that_no_node_can_run_stays_undecided(store: AnyStore, clock: ManualClock) -> None:
    """C-41, A3: its instants are late when a node is back, and its recovery decides."""
    stored = await put(store, job("sale", code="shop", recovery="execute_all", overlap="allow"))
    await plan_once(store)
    clock.move(hours=3)
    await plan_once(store, scope=BANK)
    assert await occurrences(store) == []
    await plan_once(store, scope=SHOP)
    assert [each.is_recovery_run for each in await occurrences(store, stored.job_id)] == [True, True, False]


async def test_an_occurrence_is_claimed_by_nodes_that_meet_its_needs(store: AnyStore, clock: ManualClock) -> None:
    """C-41, C-21."""
    await put(store, job("sale", code="shop"))
    await put(store, job("loan", code="bank", queue="gpu"))
    clock.move(hours=1)
    await plan_once(store)
    assert await store.claim(BANK, 10) == []
    [claim] = await store.claim(NodeScope("bank-2", ("code:bank\nqueue:gpu",)), 10)
    assert claim.job.name == "loan"
    [claim] = await store.claim(SHOP, 10)
    assert claim.job.name == "sale"


async def test_a_request_for_a_job_of_others_is_not_in_the_way(store: AnyStore, clock: ManualClock) -> None:
    """C-41: what is asked of an application that is down waits for it, and hides no other job."""
    theirs = await put(store, job("interest", code="bank"))
    ours = await put(store, job("sale", code="shop"))
    await plan_once(store)
    for number in range(5):
        await store.request(theirs.job_id, Trigger(f"k{number}"))
    await store.request(ours.job_id, Trigger("k"))
    assert await names_due(store, SHOP, 1) == ["sale"]
    assert len((await store.look([theirs.job_id]))[theirs.job_id].requests) == 5


async def test_an_edit_that_changes_the_needs_hands_the_job_over(store: AnyStore, clock: ManualClock) -> None:
    """C-41: with what was asked for, and with what no node has started."""
    stored = await put(store, job("sale", code="shop"))
    clock.move(hours=1)
    await plan_once(store)
    await store.request(stored.job_id, Trigger("k"))
    await put(store, job("sale", code="bank"))
    assert await names_due(store, SHOP) == []
    assert await names_due(store, BANK) == ["sale"]
    await plan_once(store, scope=BANK)
    assert await store.claim(SHOP, 10) == []
    assert len(await store.claim(BANK, 10)) == 1
    assert (await store.get([stored.job_id]))[stored.job_id].needs == "code:bank"


async def test_a_removed_job_ends_on_any_node_and_is_claimed_by_none(store: AnyStore, clock: ManualClock) -> None:
    """C-41: ends are any node's business; before that, only a node that can run it claims what is left."""
    stored = await put(store, job("sale", code="shop"))
    clock.move(hours=1)
    await plan_once(store)
    await remove(store, stored.job_id, retire_after=timedelta(minutes=10))
    other = NodeScope("bank-1", ("", "code:bank", "retired"))
    assert await store.claim(other, 10) == []
    await plan_once(store, scope=other)
    assert await statuses(store) == ["pending"]
    clock.move(minutes=10)
    await plan_once(store, scope=other)
    assert await statuses(store) == ["canceled"]
    assert (await store.ahead(other)).wake_at is None


async def test_a_job_that_comes_back_has_its_needs_again(store: AnyStore, clock: ManualClock) -> None:
    """C-41, C-22."""
    stored = await put(store, job("sale", code="shop"))
    await plan_once(store)
    await store.apply([Remove("sale", timedelta(minutes=10))])
    await put(store, job("sale", code="shop"))
    assert await names_due(store, NodeScope("bank-1", ("", "retired"))) == []
    assert await names_due(store, SHOP) == ["sale"]
    assert (await store.get([stored.job_id]))[stored.job_id].needs == "code:shop"


async def test_a_job_that_a_node_does_not_know_is_not_due_for_it(store: AnyStore, clock: ManualClock) -> None:
    """C-41, C-21: of its own application too, whether its time or a request makes it due."""
    stored = await put(store, job("sale", code="shop"))
    await put(store, job("stock", code="shop"))
    old = NodeScope("shop-1", ("code:shop",), frozenset([stored.job_id]))
    assert await names_due(store, old) == ["stock"]
    await plan_once(store)
    await store.request(stored.job_id, Trigger("k"))
    assert await names_due(store, old) == []
    assert await names_due(store, SHOP) == ["sale"]


async def test_reports_are_given_to_nodes_that_meet_the_needs(store: AnyStore, clock: ManualClock) -> None:
    """C-41: a node is not told what only another application's hooks can hear."""
    await put(store, job("sale", code="shop"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await run_one(store, scope=SHOP)
    assert await store.reports(BANK, 10) == []
    assert [each.id for each in await store.reports(SHOP, 10)] == [claim.occurrence.id]
    assert await deliver(store, SHOP) == [claim.occurrence.id]
    assert await store.reports(SHOP, 10) == []


async def test_a_node_hears_of_needs_that_are_new(store: AnyStore, clock: ManualClock) -> None:
    """C-41: all texts where their number is not the one it knows, and none where it is."""
    assert (await store.ahead(NodeScope("node-1"))).needs == ()
    await put(store, job("sale", code="shop"))
    await put(store, job("stock", code="shop"))
    assert (await store.ahead(NodeScope("node-1"))).needs == ("code:shop",)
    assert (await store.ahead(NodeScope("node-1", seen=1))).needs == ()
    await put_all(store, [job("loan", code="bank", queue="gpu"), job("backup")])
    assert (await store.ahead(NodeScope("node-1", seen=1))).needs == ("", "code:bank\nqueue:gpu", "code:shop")


async def test_an_occurrence_in_a_queue_of_its_own_has_needs_of_its_own(store: AnyStore, clock: ManualClock) -> None:
    """C-41, S0-080."""
    stored = await put(store, job("sale", code="shop"))
    at = clock.time + timedelta(hours=1)
    slow = overrides(Level.OCCURRENCE, {"queue": "slow"})
    await store.request(stored.job_id, Amend(at, slow, by="ada"))
    clock.move(hours=1)
    await plan_once(store)
    assert "code:shop\nqueue:slow" in (await everything(store)).met
    assert await store.claim(SHOP, 10) == []
    assert len(await store.claim(NodeScope("shop-2", ("code:shop\nqueue:slow",)), 10)) == 1


async def test_a_late_occurrence_in_a_queue_of_its_own_has_the_needs_of_the_late_lane_alone(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-41, A23: no node learns a text of needs that no occurrence has."""
    stored = await put(store, job("sale", recovery="execute_all"))
    await plan_once(store)
    slow = overrides(Level.OCCURRENCE, {"queue": "slow"})
    await store.request(stored.job_id, Amend(clock.time + timedelta(hours=1), slow, by="ada"))
    clock.move(hours=1, minutes=40)
    await plan_once(store)
    assert (await store.ahead(NodeScope("node-1"))).needs == ("", "lane:late\nqueue:slow")


async def test_what_leaves_the_lane_of_the_late_and_ends_at_once_is_reported_without_the_lane(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-41, A23: one plan lets it out, because an instant on time waits behind it, and gives it up."""
    await put(store, job("needed", "0 0 1 1 *"))
    needs = {"job": "needed", "within": "10m", "deadline": "20m"}
    rules: dict[str, Any] = {"recovery": "execute_all", "overlap": "queue", "depends_on": needs}
    await put(store, job("waits", reports=True, **rules))
    await plan_once(store)
    clock.move(hours=1, minutes=40)
    await plan_once(store)
    await plan_once(store)
    assert LATE in (await store.ahead(NodeScope("node-1"))).needs
    clock.move(minutes=20)
    await plan_once(store)
    assert await statuses(store) == ["skipped", "queued"]
    assert len(await store.reports(NodeScope("node-1", ("",)), 10)) == 1
    assert await store.reports(NodeScope("node-1", (LATE,)), 10) == []
