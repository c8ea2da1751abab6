"""Backfills in every store: planned, approved, paused and canceled; what they make, and what they know of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.domain import ids
from everytick.domain.backfills import OPEN_LIMIT, BackfillOrder, BackfillRecord, BackfillStatus
from everytick.domain.changes import Remove
from everytick.domain.facts import Pause, PlanBackfill, SteerBackfill
from everytick.domain.lookups import NewestBackfills
from everytick.domain.needs import LATE
from everytick.domain.outcome import Outcome
from everytick.domain.policies import Overlap
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import Conflict, JobDisabled, NotFound
from everytick.stores.base import Claim, NodeScope, Stored
from tests.stores.acting import (
    FAILED,
    AnyStore,
    began,
    claim_one,
    ended,
    everything,
    job,
    occurrences,
    plan_once,
    plans_of,
    put,
    run_one,
    statuses,
)
from tests.stores.clock import ManualClock

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
RUNNING, PAUSED, CANCELED = BackfillStatus.RUNNING, BackfillStatus.PAUSED, BackfillStatus.CANCELED


def order(clock: ManualClock, hours: int = 5, key: str = "fill", **more: Any) -> BackfillOrder:
    """The instants of so many hours before now, as fast as a plan can, side by side."""
    asked: dict[str, Any] = {"rate": 6_000, "count": hours, "by": "ada", "overlap": Overlap.ALLOW, **more}
    return BackfillOrder(key, clock.time - hours * HOUR, clock.time, **asked)


async def begun(store: AnyStore, clock: ManualClock, stored: Stored, hours: int = 5, **more: Any) -> str:
    """Approve a backfill and return its id."""
    asked = PlanBackfill(order(clock, hours, **more), approved=True)
    return (await store.request(stored.job_id, asked)).id


async def hourly(store: AnyStore, **policies: Any) -> Stored:
    stored = await put(store, job(**policies))
    await plan_once(store)
    return stored


async def seen(store: AnyStore, id_: str) -> BackfillRecord:
    [found] = [each for each in await store.ask(NewestBackfills()) if each.id == id_]
    return found


async def test_nothing_runs_before_it_is_approved(store: AnyStore, clock: ManualClock) -> None:
    """A23: planned, shown with its count, approved, done; the same key again is the same backfill."""
    stored = await hourly(store)
    asked = PlanBackfill(order(clock))
    made = await store.request(stored.job_id, asked)
    assert made.id == ids.backfill_id(stored.job_id, "fill")
    assert not (await store.request(stored.job_id, asked)).changed
    await plan_once(store)
    assert await occurrences(store) == []
    planned = await seen(store, made.id)
    assert (planned.status, planned.left, planned.job, planned.order.by) == ("planned", 5, "report", "ada")
    assert (await store.request(stored.job_id, SteerBackfill(made.id, RUNNING, "eve"))).changed
    clock.move(seconds=1)
    await plan_once(store)
    assert [each.scheduled_for.hour for each in await occurrences(store)] == [5, 6, 7, 8, 9]
    going = await seen(store, made.id)
    assert (going.status, going.created, going.waiting, going.left, going.approved_by) == ("running", 5, 5, 0, "eve")
    for claim in await store.claim(await everything(store), 10):
        await finish(store, claim)
    over = await seen(store, made.id)
    assert (over.status, over.done, over.is_over) == ("completed", 5, True)


async def test_what_has_an_occurrence_is_left_alone_unless_it_runs_again(store: AnyStore, clock: ManualClock) -> None:
    """Planning.md, ids: the id is made of job and instant, so an instant that ran is not run again."""
    stored = await hourly(store)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    await begun(store, clock, stored, 3)
    await plan_once(store)
    found = [(each.scheduled_for.hour, str(each.status), str(each.cause)) for each in await occurrences(store)]
    assert found == [(8, "pending", "backfill"), (9, "pending", "backfill"), (10, "completed", "schedule")]
    clock.move(seconds=2)
    again = await begun(store, clock, stored, 3, key="again", again=True)
    await plan_once(store)
    assert (await seen(store, again)).created == 3
    assert len({each.id for each in await occurrences(store)}) == 6


async def test_one_at_a_time_where_the_job_says_so_and_its_end_brings_the_next(
    store: AnyStore, clock: ManualClock
) -> None:
    stored = await hourly(store)
    id_ = await begun(store, clock, stored, 3, overlap=None)
    for done in range(3):
        await plan_once(store)
        assert await statuses(store) == ["completed"] * done + ["pending"]
        await run_one(store)
        clock.move(seconds=1)
    await plan_once(store)
    assert (await seen(store, id_)).status == "completed"


async def test_the_rate_holds_and_the_job_is_looked_at_again_in_time(store: AnyStore, clock: ManualClock) -> None:
    """A23: two a minute, however often it is planned."""
    stored = await hourly(store)
    await begun(store, clock, stored, 5, rate=2)
    made = []
    for _ in range(13):
        await plan_once(store)
        for claim in await store.claim(await everything(store), 10):
            made.append(clock.time)
            await finish(store, claim)
        clock.move(seconds=10)
    assert len(made) == 5
    for start in made:
        assert sum(1 for each in made if start <= each < start + timedelta(minutes=1)) <= 2


async def finish(store: AnyStore, claim: Claim, *outcome: Outcome) -> None:
    """End a claimed occurrence, well unless said otherwise."""
    now = await store.now()
    await store.commit_steps([(claim, ended(claim, began(claim, now), now, *outcome))])


async def test_failures_halve_the_pace_and_good_ends_bring_it_back(store: AnyStore, clock: ManualClock) -> None:
    """A23."""
    stored = await hourly(store)
    id_ = await begun(store, clock, stored, 40, rate=8)
    paces = []
    for minute in range(6):
        for _ in range(12):
            await plan_once(store)
            for claim in await store.claim(await everything(store), 10):
                await finish(store, claim, *([FAILED] if minute < 2 else []))
            clock.move(seconds=5)
        paces.append((await seen(store, id_)).pace)
    assert paces == [8, 4, 2, 4, 8, 8]
    record = await seen(store, id_)
    assert record.failed > 0
    assert record.created == record.done + record.failed


async def test_a_pause_lets_it_make_nothing_and_a_resume_lets_it_go_on(store: AnyStore, clock: ManualClock) -> None:
    """A23: what it has made runs."""
    stored = await hourly(store)
    id_ = await begun(store, clock, stored, 5, rate=60)
    await plan_once(store)
    assert (await store.request(stored.job_id, SteerBackfill(id_, PAUSED, "eve"))).changed
    assert not (await store.request(stored.job_id, SteerBackfill(id_, PAUSED))).changed
    for _ in range(3):
        clock.move(minutes=1)
        await plan_once(store)
    await run_one(store)
    paused = await seen(store, id_)
    assert (paused.status, paused.created, paused.done, paused.left) == ("paused", 1, 1, 4)
    await store.request(stored.job_id, SteerBackfill(id_, RUNNING))
    await plan_once(store)
    assert (await seen(store, id_)).created > 1


async def test_a_cancel_ends_it_and_what_no_node_has_begun(store: AnyStore, clock: ManualClock) -> None:
    """A23: what no plan has made of it is never made; what runs is left to end."""
    stored = await hourly(store)
    id_ = await begun(store, clock, stored, 300, rate=600)
    await plan_once(store)
    [claim, *_] = await store.claim(await everything(store), 1)
    await store.request(stored.job_id, SteerBackfill(id_, CANCELED, "eve"))
    canceled = await seen(store, id_)
    assert (canceled.status, canceled.created, canceled.canceled, canceled.running) == ("canceled", 10, 9, 1)
    [reason] = {each.error for each in await occurrences(store) if each.status is OccurrenceStatus.CANCELED}
    assert reason == "backfill canceled by eve"
    clock.move(minutes=5)
    await plan_once(store)
    assert len(await occurrences(store)) == 10
    await finish(store, claim)
    assert (await seen(store, id_)).is_over
    with pytest.raises(Conflict, match="is over: it cannot be approved or resumed"):
        await store.request(stored.job_id, SteerBackfill(id_, RUNNING))


async def test_a_plan_from_before_a_pause_makes_nothing(store: AnyStore, clock: ManualClock) -> None:
    """A pause and a cancel hold from the moment they are written."""
    stored = await hourly(store)
    id_ = await begun(store, clock, stored)
    async with store.due(await everything(store), 10) as batch:
        await store.request(stored.job_id, SteerBackfill(id_, PAUSED))
        await store.commit_plans(batch, plans_of(batch))
    assert await occurrences(store) == []


async def test_the_second_of_a_job_waits_for_the_first_and_fills_only_the_rest(
    store: AnyStore, clock: ManualClock
) -> None:
    """Overlapping spans: each instant has one occurrence."""
    stored = await hourly(store)
    first = await begun(store, clock, stored, 3, rate=60)
    second = await begun(store, clock, stored, 5, key="second", rate=60)
    assert (await seen(store, second)).behind == first
    for _ in range(8):
        await plan_once(store)
        clock.move(seconds=1)
    assert (await seen(store, first)).created == 3
    assert (await seen(store, second)).created == 2
    assert len(await occurrences(store)) == 5


async def test_newest_first_makes_the_same_in_another_order(store: AnyStore, clock: ManualClock) -> None:
    stored = await hourly(store)
    await begun(store, clock, stored, 5, rate=60, newest_first=True)
    for _ in range(5):
        await plan_once(store)
        clock.move(seconds=1)
    made = sorted(await occurrences(store), key=lambda each: each.created_at or clock.time)
    assert [each.scheduled_for.hour for each in made] == [9, 8, 7, 6, 5]


async def test_many_that_exist_already_cost_no_time(store: AnyStore, clock: ManualClock) -> None:
    """Of 1,150 instants 1,001 ran, a thousand of them late: a plan passes them at once, in both directions."""
    stored = await put(store, job(when="* * * * *", recovery="execute_all", overlap="allow", late_overlap="allow"))
    await plan_once(store)
    clock.move(minutes=1_100)
    for _ in range(12):
        await plan_once(store)
    for key, newest_first in (("up", False), ("down", True)):
        asked = BackfillOrder(
            key, clock.time - timedelta(minutes=1_150), clock.time, rate=6_000, newest_first=newest_first
        )
        id_ = (await store.request(stored.job_id, PlanBackfill(asked, approved=True))).id
        for _ in range(6):
            await plan_once(store)
            clock.move(seconds=2)
        record = await seen(store, id_)
        assert (record.ended_at is not None, record.created) == (True, 0 if newest_first else 149)


async def test_it_runs_while_its_job_is_paused(store: AnyStore, clock: ManualClock) -> None:
    """A23: run it while paused."""
    stored = await hourly(store)
    await store.request(stored.job_id, Pause())
    await begun(store, clock, stored, 3)
    clock.move(seconds=1)
    await plan_once(store)
    assert await statuses(store) == ["pending"] * 3


async def test_it_survives_edits_and_names_the_instants_by_the_definitions_of_their_time(
    store: AnyStore, clock: ManualClock
) -> None:
    stored = await hourly(store)
    id_ = await begun(store, clock, stored, 3, rate=60)
    await plan_once(store)
    clock.move(seconds=1)
    await put(store, job(when="30 * * * *"))
    for _ in range(4):
        await plan_once(store)
        clock.move(seconds=1)
    assert [each.scheduled_for.strftime("%H:%M") for each in await occurrences(store)] == ["07:00", "08:00", "09:00"]
    assert (await seen(store, id_)).left == 0


async def test_a_disabled_or_removed_job_takes_none_and_its_own_ends_with_it(
    store: AnyStore, clock: ManualClock
) -> None:
    """Nothing is left open: a removed job's backfill ends once the job has retired."""
    stored = await hourly(store)
    id_ = await begun(store, clock, stored, 300, rate=60)
    await put(store, job(enabled=False))
    with pytest.raises(JobDisabled):
        await begun(store, clock, stored, key="other")
    await put(store, job())
    await store.apply([Remove("report", timedelta(minutes=10))])
    with pytest.raises(NotFound):
        await begun(store, clock, stored, key="other")
    clock.move(minutes=11)
    await plan_once(store)
    assert (await seen(store, id_)).status == "canceled"
    while not await store.purge(stored.job_id):
        pass
    assert await store.ask(NewestBackfills()) == []


async def test_it_knows_what_became_of_its_occurrences_after_they_are_forgotten(
    store: AnyStore, clock: ManualClock
) -> None:
    """Retention deletes occurrences, and not how the backfill went."""
    kept = {"success": "1h", "failure": "1h", "keep_last": 0}
    stored = await put(store, job(retention=kept, reports=False))
    await plan_once(store)
    id_ = await begun(store, clock, stored, 3)
    await plan_once(store)
    clock.move(seconds=1)
    await plan_once(store)
    for claim in await store.claim(await everything(store), 10):
        await finish(store, claim, *([FAILED] if claim.header.scheduled_for.hour == 8 else []))
    clock.move(hours=2)
    assert await store.prune() == 3
    record = await seen(store, id_)
    assert (record.done, record.failed, record.created, record.status) == (2, 1, 3, "completed")


async def test_a_job_has_room_for_some_open_backfills(store: AnyStore, clock: ManualClock) -> None:
    stored = await hourly(store)
    for number in range(OPEN_LIMIT):
        await begun(store, clock, stored, key=f"fill-{number}")
    with pytest.raises(Conflict, match="wait for one of them, or cancel one"):
        await begun(store, clock, stored, key="one too many")
    assert len(await store.ask(NewestBackfills(stored.job_id))) == OPEN_LIMIT


async def test_an_unknown_backfill_is_not_found(store: AnyStore, clock: ManualClock) -> None:
    stored = await hourly(store)
    with pytest.raises(NotFound):
        await store.request(stored.job_id, SteerBackfill("backfill_none", RUNNING))


async def test_a_repeated_commit_fills_nothing_twice(store: AnyStore, clock: ManualClock) -> None:
    """The answer to a commit was lost: the second one finds its own effect."""
    stored = await hourly(store)
    id_ = await begun(store, clock, stored)
    async with store.due(await everything(store), 10) as batch:
        plans = plans_of(batch)
        await store.commit_plans(batch, plans)
        await store.commit_plans(replace(batch), plans)
    assert (await seen(store, id_)).created == len(await occurrences(store)) == 5


async def test_one_occurrence_of_it_can_be_claimed_and_says_who_asked(store: AnyStore, clock: ManualClock) -> None:
    stored = await hourly(store)
    await begun(store, clock, stored, 1)
    await plan_once(store)
    claim = await claim_one(store)
    told = f"by backfill {ids.backfill_id(stored.job_id, 'fill')[9:17]} of ada, 1 of 1"
    assert (claim.occurrence.reason, claim.occurrence.cause) == (f"asked for, {told}", "backfill")


# --------------------------------------------------------------------------------- the lane for what is late


async def test_late_ones_have_needs_of_their_own_until_an_instant_on_time_waits_behind_them(
    store: AnyStore, clock: ManualClock
) -> None:
    """A23: a node claims them apart from the others; an edit leaves them there, and a plan lets them out."""
    rules: dict[str, Any] = {"recovery": "execute_all", "overlap": "queue"}
    await put(store, job(**rules))
    await plan_once(store)
    clock.time = clock.time.replace(hour=12, minute=40)
    await plan_once(store)
    assert await statuses(store) == ["pending", "queued", "queued"]
    live, late = NodeScope("node-1", ("",)), NodeScope("node-1", (LATE,))
    assert LATE in (await store.ahead(NodeScope("node-1"))).needs
    assert await store.claim(live, 10) == []
    await put(store, job(priority=1, **rules))
    assert await store.claim(live, 10) == []
    [first] = await store.claim(late, 10)
    await finish(store, first)
    await plan_once(store)
    clock.time = clock.time.replace(hour=13, minute=0, second=1)
    await plan_once(store)
    assert await statuses(store) == ["completed", "pending", "queued", "queued"]
    assert await store.claim(late, 10) == []
    [second] = await store.claim(live, 10)
    await finish(store, second)
    await plan_once(store)
    assert len(await store.claim(live, 10)) == 1
