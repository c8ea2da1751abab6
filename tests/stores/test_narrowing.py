"""An edit that changes `recovery` is remembered until a plan has ended what waits in line without a reason since."""

from everytick.domain.policies import bounded_window
from everytick.domain.snapshots import JobSnapshot
from everytick.stores.base import HistoryFilter
from tests.stores.acting import AnyStore, job, plan_once, put, run_one, statuses
from tests.stores.clock import ManualClock


async def seen(store: AnyStore, job_id: str) -> JobSnapshot:
    return (await store.look([job_id]))[job_id]


async def test_closing_the_window_cancels_what_waits(store: AnyStore, clock: ManualClock) -> None:
    """F13, S4-031, edge case 5: of five late ones one is pending and goes on, four wait and are canceled."""
    stored = await put(store, job(recovery=bounded_window(max_duration="6h")))
    clock.move(hours=5, minutes=30)
    await plan_once(store)
    assert await statuses(store) == ["pending", *["queued"] * 4]

    await put(store, job(recovery="mark_as_missed"))
    assert (await seen(store, stored.job_id)).narrowed_at == clock.time
    await plan_once(store)

    assert await statuses(store) == ["pending", *["canceled"] * 4]
    found = (await store.history(HistoryFilter(job_id=stored.job_id, limit=10))).occurrences
    assert {each.error for each in found if each.status == "canceled"} == {"recovery changed"}
    assert (await seen(store, stored.job_id)).narrowed_at is None
    await run_one(store)


async def test_other_edits_end_nothing(store: AnyStore, clock: ManualClock) -> None:
    """F13: only an edit of recovery narrows, and a wider one ends nothing."""
    stored = await put(store, job(recovery=bounded_window(max_duration="6h")))
    clock.move(hours=3, minutes=30)
    await plan_once(store)
    await put(store, job(recovery=bounded_window(max_duration="6h"), priority=3))
    assert (await seen(store, stored.job_id)).narrowed_at is None
    await put(store, job(recovery="execute_all"))
    assert (await seen(store, stored.job_id)).narrowed_at == clock.time

    await plan_once(store)

    assert await statuses(store) == ["pending", "queued", "queued"]
    assert (await seen(store, stored.job_id)).narrowed_at is None


async def test_a_long_line_is_narrowed_to_the_last(store: AnyStore, clock: ManualClock) -> None:
    """F13: more than one plan may end are ended by several, and no occurrence is released in between."""
    await put(store, job(when="* * * * *", recovery="execute_all"))
    clock.move(minutes=250, seconds=70)
    for _ in range(5):
        await plan_once(store)
    assert (await statuses(store)).count("queued") > 200

    await put(store, job(when="* * * * *", recovery="execute_last"))
    for _ in range(6):
        await plan_once(store)

    left = [status for status in await statuses(store) if status != "canceled"]
    assert left.count("queued") <= 2


async def test_a_window_that_was_closed_ahead_counts_from_now(store: AnyStore, clock: ManualClock) -> None:
    """C-45: a window that reaches back from a year ahead would end all that waits."""
    stored = await put(store, job(recovery="execute_all"))
    clock.move(hours=3, minutes=30)
    await plan_once(store)
    clock.move(days=365)
    await put(store, job(recovery=bounded_window(max_duration="6h")))
    clock.move(days=-365)
    await store.settle_clock()
    assert (await seen(store, stored.job_id)).narrowed_at == clock.time

    await plan_once(store)

    assert await statuses(store) == ["pending", "queued", "queued"]
