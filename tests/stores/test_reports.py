"""reports and reported: every end is reported at least once, whatever ended it."""

from everytick.domain.facts import Cancel
from everytick.stores.base import NodeScope
from tests.stores.acting import AnyStore, deliver, job, occurrences, plan_once, put, run_one
from tests.stores.clock import ManualClock


async def test_an_end_owes_a_report_until_it_is_delivered(store: AnyStore, clock: ManualClock) -> None:
    """S0-025: OnComplete always runs at the end of an occurrence."""
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    assert await store.reports(NodeScope("node-1"), 10) == []
    claim = await run_one(store)

    assert await store.reports(NodeScope("node-1", unknown=frozenset([stored.job_id])), 10) == []
    [owed] = await store.reports(NodeScope("node-1"), 10)
    assert (owed.id, owed.status) == (claim.occurrence.id, "completed")
    assert [task.name for task in owed.report().tasks] == ["main"]
    assert await deliver(store) == [claim.occurrence.id]
    assert await store.reports(NodeScope("node-1"), 10) == []


async def test_what_a_plan_or_a_person_ended_owes_one_too(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    [made] = await occurrences(store)
    await store.request(made.id, Cancel())
    assert await deliver(store) == [made.id]


async def test_no_report_is_due_without_a_hook(store: AnyStore, clock: ManualClock) -> None:
    """Neither an ordinary end nor one without an owner marks a row that would never be cleared."""
    await put(store, job(reports=False))
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    clock.move(hours=1)
    await plan_once(store)
    [ready] = [each for each in await occurrences(store) if each.status == "pending"]
    await store.request(ready.id, Cancel())
    assert await store.reports(NodeScope("node-1"), 10) == []
