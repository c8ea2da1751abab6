"""depends_on in the stores: what a snapshot knows of other jobs, who is woken, and what an edit may say."""

from datetime import timedelta
from typing import Any

import pytest

from everytick.domain.backfills import BackfillOrder
from everytick.domain.changes import Put, Remove, Rename
from everytick.domain.facts import Move, Pause, PlanBackfill, Replay, Resume, Trigger
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.snapshots import Dependence, Upstream, UpstreamRun
from everytick.errors import InvalidPolicies
from everytick.stores.base import Commit
from tests.stores.acting import (
    FAILED,
    AnyStore,
    batch_of,
    began,
    claim_one,
    ended,
    everything,
    job,
    occurrences,
    plan_once,
    plans_of,
    run_one,
    statuses,
)
from tests.stores.clock import ManualClock

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def load(**policies: Any) -> Job:
    return job("load", **{"depends_on": "extract", **policies})


async def stored(store: AnyStore, *jobs: Job) -> list[str]:
    return [each.job_id for each in await store.apply([Put(each) for each in jobs])]


async def settle(store: AnyStore) -> None:
    """Plan until nothing is due."""
    for _ in range(20):
        if not await plan_once(store):
            return
    pytest.fail("the planner does not come to rest")


async def dependence(store: AnyStore, job_id: str) -> Dependence:
    found = (await store.look([job_id]))[job_id].dependence
    assert found is not None
    return found


async def both_at_their_instant(store: AnyStore, clock: ManualClock, **policies: Any) -> tuple[str, str]:
    """Return the ids of two hourly jobs, one of which depends on the other, at an instant that both have planned."""
    extract, dependent = await stored(store, job("extract"), load(**policies))
    await settle(store)
    clock.move(hours=1)
    await settle(store)
    return extract, dependent


async def test_an_instant_waits_in_line_and_is_released_by_the_success_for_the_same_instant(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042."""
    _, dependent = await both_at_their_instant(store, clock)
    [waits] = await occurrences(store, dependent)
    assert (str(waits.status), waits.reason) == (
        "queued",
        f"on time, waits for extract until {(waits.scheduled_for + HOUR).isoformat()}",
    )
    assert (await store.get([dependent]))[dependent].wake_at == waits.scheduled_for + HOUR

    clock.move(minutes=5)
    await run_one(store)
    await settle(store)

    assert await statuses(store, dependent) == ["pending"]
    await run_one(store)
    await settle(store)
    assert await statuses(store, dependent) == ["completed"]


async def test_a_snapshot_says_what_is_known_of_the_other_job_and_of_those_in_line(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042: one that was never asked about knows nothing, and the one that is needed knows that it is."""
    extract, dependent = await both_at_their_instant(store, clock)
    [waits] = await occurrences(store, dependent)
    instant = waits.scheduled_for
    snapshots = await store.look([extract, dependent])
    known = snapshots[dependent].dependence
    assert known is not None
    assert [(each.id, each.instant) for each in known.in_line] == [(waits.id, instant)]
    assert [each.created_at for each in known.in_line] == [waits.created_at]
    [upstream] = known.upstreams
    [run] = upstream.runs
    assert (upstream.name, upstream.job_id, upstream.called, upstream.state) == ("extract", extract, "extract", "")
    assert upstream.watermark == snapshots[extract].watermark
    assert (run.instant, run.succeeded_at, run.is_active, str(run.status)) == (instant, None, True, "pending")
    assert (snapshots[extract].is_needed, snapshots[dependent].is_needed) == (True, False)
    assert snapshots[extract].dependence is None


async def test_a_failure_wakes_it_and_a_replay_for_the_same_instant_releases_it(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042: what people repeat counts, and so does a run that ended with errors elsewhere in the line."""
    extract, dependent = await both_at_their_instant(store, clock)
    failed = await run_one(store, FAILED)
    await settle(store)
    assert await statuses(store, dependent) == ["queued"]
    [upstream] = (await dependence(store, dependent)).upstreams
    [run] = upstream.runs
    assert (run.succeeded_at, run.is_active, str(run.status)) == (None, False, "failed")

    record = failed.occurrence
    again = Replay("again", record.id, record.scheduled_for, record.covers_after, record.covers_through)
    await store.request(extract, again)
    await settle(store)
    await run_one(store)
    await settle(store)

    assert await statuses(store, dependent) == ["pending"]


async def test_with_skip_a_failure_for_the_same_instant_ends_the_wait(store: AnyStore, clock: ManualClock) -> None:
    """S1-042."""
    _, dependent = await both_at_their_instant(store, clock, depends_on={"job": "extract", "otherwise": "skip"})
    assert await statuses(store, dependent) == ["queued"]

    await run_one(store, FAILED)
    await settle(store)

    [given_up] = await occurrences(store, dependent)
    instant = given_up.scheduled_for.isoformat()
    assert (str(given_up.status), given_up.error) == (
        "skipped",
        f"dependency on extract: its run for {instant} is failed",
    )


async def test_the_deadline_ends_the_wait_and_the_next_instant_takes_its_place(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042: by default an instant waits until the next one."""
    _, dependent = await both_at_their_instant(store, clock)
    clock.move(hours=1)
    await settle(store)

    assert await statuses(store, dependent) == ["skipped", "queued"]


async def test_a_success_within_the_time_counts_whatever_asked_for_it(store: AnyStore, clock: ManualClock) -> None:
    """S1-042: a trigger, in this case; a success that is older does not."""
    extract, dependent = await stored(
        store, job("extract", "0 0 1 1 *"), load(depends_on={"job": "extract", "within": "30m"})
    )
    await store.request(extract, Trigger("k"))
    await settle(store)
    await run_one(store)
    clock.move(minutes=20)
    await settle(store)
    clock.move(minutes=40)
    await settle(store)
    assert await statuses(store, dependent) == ["queued"]

    await store.request(extract, Trigger("another"))
    await settle(store)
    await run_one(store)
    await settle(store)
    assert await statuses(store, dependent) == ["pending"]


async def test_what_people_ask_for_does_not_wait_unless_the_dependency_says_so(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042."""
    within = {"job": "extract", "within": "30m"}
    _, free, bound = await stored(
        store,
        job("extract", "0 0 1 1 *"),
        load(depends_on=within),
        job("bound", depends_on={**within, "requests": True}),
    )
    await settle(store)
    await store.request(free, Trigger("k"))
    await store.request(bound, Trigger("k"))
    await settle(store)

    assert (await statuses(store, free), await statuses(store, bound)) == (["pending"], ["queued"])


async def test_a_success_between_the_snapshot_and_the_commit_is_not_slept_through(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042: the plan that saw no success is written after it, and the job is due again."""
    extract, dependent = await stored(store, job("extract"), load())
    await settle(store)
    clock.move(hours=1)
    await plan_once(store)
    # Both have created their occurrences. The plan that judges the dependent one is still to be written.
    seen = (await store.look([dependent]))[dependent]
    late = batch_of(await store.now(), seen)
    decided = plans_of(late)
    await run_one(store)
    await settle_only(store, extract)
    assert list((await store.commit_plans(late, decided)).answers) == [Commit.COMMITTED]
    await settle(store)

    assert await statuses(store, dependent) == ["pending"]


async def settle_only(store: AnyStore, job_id: str) -> None:
    """Plan one job until it is not due."""
    for _ in range(10):
        async with store.due(await everything(store), 100) as batch:
            mine = [each for each in batch.snapshots if each.job_id == job_id]
            if not mine:
                return
            await store.commit_plans(batch, [plan for plan in plans_of(batch) if plan.job_id == job_id])


async def test_a_success_of_a_run_that_began_before_anybody_depended_on_it_is_heard_of(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042: its end was not awaited when it was claimed."""
    [extract] = await stored(store, job("extract"))
    await settle(store)
    clock.move(hours=1)
    await settle(store)
    claim = await claim_one(store)
    [dependent] = await stored(store, load(on_create={"backfill_from": claim.occurrence.scheduled_for.isoformat()}))
    await settle(store)
    assert await statuses(store, dependent) == ["queued"]
    snapshot = (await store.look([extract]))[extract]
    assert snapshot.awaited is True

    now = await store.now()
    await store.commit_steps([(claim, ended(claim, began(claim, now), now))])
    await settle(store)
    assert await statuses(store, dependent) == ["pending"]


async def test_an_edit_that_adds_a_dependency_puts_back_in_line_what_no_node_has_claimed(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042: nothing starts that does not have what it depends on."""
    _, dependent = await stored(store, job("extract"), job("load"))
    await settle(store)
    clock.move(hours=1)
    await settle(store)
    await stored(store, load())
    await settle(store)

    assert await statuses(store, dependent) == ["queued"]


async def test_a_moved_run_stands_for_its_own_instant_on_both_sides(store: AnyStore, clock: ManualClock) -> None:
    """S1-042, C-42: each is found by the instant it was named for."""
    extract, dependent = await stored(store, job("extract"), load(depends_on={"job": "extract", "deadline": "5h"}))
    await settle(store)
    instant = (await store.get([extract]))[extract].next_run
    assert instant is not None
    await store.request(extract, Move(instant, instant + 20 * MINUTE))
    await store.request(dependent, Move(instant, instant + 10 * MINUTE))
    clock.move(hours=1)
    await settle(store)
    clock.move(minutes=15)
    await settle(store)
    assert await statuses(store, dependent) == ["queued"]
    clock.move(minutes=10)
    await settle(store)
    claim = await run_one(store)
    assert claim.occurrence.id == occurrence_id(extract, instant)
    await settle(store)

    assert await statuses(store, dependent) == ["pending"]


async def test_a_backfilled_instant_of_the_other_job_counts(store: AnyStore, clock: ManualClock) -> None:
    """S1-042: it was paused at that time, and people have it run afterwards."""
    extract, dependent = await stored(store, job("extract"), load(depends_on={"job": "extract", "deadline": "5h"}))
    await settle(store)
    await store.request(extract, Pause())
    clock.move(hours=1)
    await settle(store)
    [upstream] = (await dependence(store, dependent)).upstreams
    assert upstream.state == "paused"
    await store.request(extract, Resume())
    await settle(store)
    now = await store.now()
    await store.request(extract, PlanBackfill(BackfillOrder("b", now - HOUR, now), approved=True))
    await settle(store)
    await run_one(store)
    await settle(store)

    assert await statuses(store, dependent) == ["pending"]


# ----------------------------------------------------------------------------------------------------- definitions


async def test_a_job_that_does_not_exist_is_refused_with_the_name_that_was_meant(store: AnyStore) -> None:
    """S1-042: nothing of the same transaction is stored."""
    await stored(store, job("extract"))
    with pytest.raises(InvalidPolicies, match=r"job 'load': depends_on 'extrct': .*did you mean 'extract'"):
        await store.apply([Put(job("other")), Put(load(depends_on="extrct"))])
    assert [each.job.name for each in await store.list()] == ["extract"]

    await store.apply([Remove("extract")])
    with pytest.raises(InvalidPolicies, match="there is no such job in service"):
        await store.apply([Put(load())])


async def test_the_order_of_changes_does_not_matter(store: AnyStore) -> None:
    """S1-042."""
    _, extract = await stored(store, load(), job("extract"))
    assert (await store.look([extract]))[extract].is_needed


async def test_a_circle_is_refused_with_all_its_jobs(store: AnyStore) -> None:
    """S1-042: alone, through others that are stored, and within one transaction."""
    with pytest.raises(InvalidPolicies, match="depends_on goes in a circle: 'load' → 'load'"):
        await store.apply([Put(load(depends_on="load"))])
    await stored(store, job("a"), job("b", depends_on="a"), job("c", depends_on="b"))
    with pytest.raises(InvalidPolicies, match="job 'a': depends_on goes in a circle: 'a' → 'c' → 'b' → 'a'"):
        await store.apply([Put(job("a", depends_on="c"))])
    with pytest.raises(InvalidPolicies, match="circle: 'x' → 'y' → 'x'"):
        await store.apply([Put(job("y", depends_on="x")), Put(job("x", depends_on=["a", "y"]))])

    await store.apply([Put(job("b")), Put(job("a", depends_on="c")), Put(job("c"))])
    assert [each.job.version for each in await store.list()] == [2, 2, 2]


async def test_jobs_without_a_common_instant_need_a_length_of_time(store: AnyStore) -> None:
    """S1-042: for the same instant it would never run."""
    await stored(store, job("extract", "0 2 * * *"))
    with pytest.raises(InvalidPolicies, match=r"no instant in common .* instead: .*\"within\": \"1h\""):
        await store.apply([Put(load(when="0 3 * * *"))])

    await stored(store, load(when="0 3 * * *", depends_on={"job": "extract", "within": "2h"}))
    await stored(store, load(when="0 2 1 * *"))


async def test_a_renamed_job_is_followed_by_its_id(store: AnyStore, clock: ManualClock) -> None:
    """S1-042: also by a later version that still has the old name, until another job has it."""
    extract, dependent = await stored(store, job("extract"), load())
    await store.apply([Rename("extract", "fetch")])
    await stored(store, load(priority=3))
    [upstream] = (await dependence(store, dependent)).upstreams
    assert (upstream.name, upstream.called, upstream.job_id) == ("extract", "fetch", extract)

    [other] = await stored(store, job("extract"))
    await stored(store, load(priority=4))
    [upstream] = (await dependence(store, dependent)).upstreams
    assert (upstream.called, upstream.job_id) == ("extract", other)


async def test_a_removed_job_and_a_deleted_one_are_known_as_such(store: AnyStore, clock: ManualClock) -> None:
    """S1-042: what depends on it is told so, waits, and ends at its deadline."""
    extract, dependent = await both_at_their_instant(store, clock)
    await store.apply([Remove("extract")])
    assert [each.state for each in (await dependence(store, dependent)).upstreams] == ["removed"]
    await settle(store)
    while not await store.purge(extract):
        pass
    known = (await dependence(store, dependent)).upstreams
    assert known == (Upstream("extract", extract, state="deleted", runs=known[0].runs),)

    clock.move(hours=1)
    await settle(store)
    assert await statuses(store, dependent) == ["skipped", "queued"]
    await store.apply([Remove("load")])
    await settle(store)
    while not await store.purge(dependent):
        pass
    assert await store.look([dependent]) == {}


async def test_of_a_run_that_retention_has_deleted_the_job_still_knows_its_success(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-042."""
    little = {"success": "0s", "failure": "0s", "keep_last": 0}
    extract, dependent = await stored(store, job("extract", retention=little, reports=False), load())
    await settle(store)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    clock.move(seconds=1)
    await store.prune()
    assert await statuses(store, extract) == []
    await settle(store)

    assert await statuses(store, dependent) == ["pending"]
    [upstream] = (await dependence(store, dependent)).upstreams
    assert upstream.runs == tuple(UpstreamRun(each.instant) for each in upstream.runs)


async def test_a_job_on_which_none_depends_any_more_awaits_no_ends_after_its_next_edit(
    store: AnyStore, clock: ManualClock
) -> None:
    extract, _ = await stored(store, job("extract"), load())
    await stored(store, job("load"))
    assert (await store.look([extract]))[extract].is_needed
    await stored(store, job("extract", priority=1))
    assert not (await store.look([extract]))[extract].is_needed
