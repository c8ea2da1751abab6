"""A waiting retry that another verb ends, ends whole: the occurrence, its runs and its report."""

from datetime import datetime

import pytest

from everytick.domain.facts import Cancel
from everytick.domain.outcome import Failed
from everytick.domain.retry import Retry
from everytick.domain.statuses import RunStatus
from everytick.stores.base import Claim, HistoryFilter, NodeScope
from tests.stores.acting import AnyStore, began, claim_one, ended, job, plan_once, put, remove
from tests.stores.clock import ManualClock

CANCELED, SKIPPED = RunStatus.CANCELED, RunStatus.SKIPPED
TASKS = ("first", "second")


async def parked(store: AnyStore, clock: ManualClock, *, superseded: bool = False) -> tuple[str, Claim]:
    """Return a job and its occurrence, the first of whose two tasks waits for a retry."""
    retry = Retry(max=5, interval="30m", superseded_by_next=superseded)
    stored = await put(store, job(tasks=TASKS, mode="sequential", retry=retry))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, Failed("boom")))])
    clock.move(minutes=1)
    return stored.job_id, claim


async def runs(store: AnyStore, occurrence_id: str) -> list[tuple[RunStatus, int, datetime | None]]:
    whole = await store.whole(occurrence_id)
    return [(each.status, each.attempts, each.ended_at) for each in whole.runs]


async def reported(store: AnyStore) -> list[tuple[str, RunStatus]]:
    [snapshot] = await store.reports(NodeScope("node-1"), 10)
    return [(each.name, each.status) for each in snapshot.report().tasks]


@pytest.mark.parametrize("by", ["cancel", "plan", "removal"])
async def test_the_runs_of_an_ended_wait_end_with_it(store: AnyStore, clock: ManualClock, by: str) -> None:
    """F9, S0-084, S0-033: what waited is canceled, what had not begun is skipped; the report says so."""
    job_id, claim = await parked(store, clock, superseded=by == "plan")
    if by == "cancel":
        assert (await store.request(claim.occurrence.id, Cancel("by hand"))).changed
    elif by == "removal":
        await remove(store, job_id)
    else:
        clock.move(minutes=59)
    await plan_once(store)

    ended_as = {"cancel": "canceled", "plan": "superseded", "removal": "canceled"}[by]
    assert str((await store.whole(claim.occurrence.id)).occurrence.status) == ended_as
    assert await runs(store, claim.occurrence.id) == [(CANCELED, 1, clock.time), (SKIPPED, 0, clock.time)]
    assert await reported(store) == [("first", CANCELED), ("second", SKIPPED)]


async def test_the_report_of_what_never_began_says_so(store: AnyStore, clock: ManualClock) -> None:
    """F9, S0-033: every task of a canceled unclaimed occurrence is skipped, none is pending."""
    await put(store, job(tasks=TASKS))
    clock.move(hours=1)
    await plan_once(store)
    [made] = (await store.history(HistoryFilter(limit=1))).occurrences

    await store.request(made.id, Cancel())

    assert await reported(store) == [("first", SKIPPED), ("second", SKIPPED)]
