"""due and commit_plans with several planners: who holds what, and what the revision settles."""

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from everytick.deciding.plan import plan
from everytick.domain.facts import Trigger
from everytick.domain.lookups import ParkedJobs
from everytick.domain.occurrence import Cause
from everytick.stores.base import Commit, Nodes, NodeScope
from everytick.stores.postgres import planning
from everytick.stores.postgres.due import UNHELD
from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import began as begun
from tests.stores.acting import claim_one, ended, job, occurrences, plan_once, plans_of, put, rename, run_one, statuses
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import schema

SCOPE = NodeScope("node-1")


async def test_two_planners_share_what_is_due(store: PostgresStore, other: PostgresStore, clock: ManualClock) -> None:
    """S1-002, S1-007: of many no job is seen twice, so no plan is wasted."""
    store.jobs_due.unheld = other.jobs_due.unheld = 1
    for number in range(6):
        await put(store, job(f"job-{number}"))
    async with (
        store.due(SCOPE, 4) as first,
        other.due(SCOPE, 4) as second,
    ):
        assert (len(first.snapshots), len(second.snapshots)) == (4, 2)
        assert not {each.job_id for each in first.snapshots} & {each.job_id for each in second.snapshots}
        for planner, batch in ((store, first), (other, second)):
            assert set((await planner.commit_plans(batch, plans_of(batch))).answers) == {Commit.COMMITTED}
    async with store.due(SCOPE, 10) as batch:
        assert batch.snapshots == []


async def test_what_was_held_is_due_again_when_nothing_was_committed(
    store: PostgresStore, other: PostgresStore, clock: ManualClock
) -> None:
    store.jobs_due.unheld = other.jobs_due.unheld = 0
    await put(store, job())
    async with store.due(SCOPE, 10), other.due(SCOPE, 10) as batch:
        assert batch.snapshots == []
    async with other.due(SCOPE, 10) as batch:
        assert len(batch.snapshots) == 1


async def test_a_planner_that_falls_silent_loses_its_hold_and_its_plan_is_settled_by_the_revision(
    store: PostgresStore, clock: ManualClock
) -> None:
    """A rename waits for the hold; it gets its turn when the server ends the silent session."""
    stored = await put(store, job())
    clock.move(hours=1)
    store.jobs_due.held_for, store.jobs_due.unheld = timedelta(milliseconds=50), 0
    async with store.due(SCOPE, 10) as batch:
        plans = plans_of(batch)
        await rename(store, stored.job_id, "renamed")
        assert (await store.commit_plans(batch, plans)).answers == [Commit.STALE]
    assert await occurrences(store) == []
    assert await plan_once(store) == [Commit.COMMITTED]
    assert await statuses(store) == ["pending"]


async def test_an_end_does_not_wait_for_a_session_that_locks_its_job(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """It writes the job's tally instead: with a lock on the job's row this test would never end."""
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    async with db.transaction():
        await db.execute("select from job join job_state using (job_key) for update")
        step = ended(claim, begun(claim, clock.time), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
        assert await db.fetchval("select run_count from job_tally") == 1
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert record.last_success is not None
    clock.move(hours=1)
    await plan_once(store)
    assert await db.fetchval("select count(*) from wake") == 0
    assert (await store.get([stored.job_id]))[stored.job_id].last_success == record.last_success


@pytest.mark.parametrize("unheld", [20, 0], ids=["glanced", "held"])
async def test_a_job_that_one_node_cannot_read_is_planned_by_those_that_can(
    store: PostgresStore, clock: ManualClock, db: Any, unheld: int
) -> None:
    """C-21: a newer everytick, or a user-defined schedule, must not stop because an older node reads it."""
    stored = await put(store, job("bad", overlap="allow"))
    await plan_once(store)
    # Who has read it before goes on with what was read.
    await db.execute(
        "update job_version d set definition = '{' from job j where j.job_key = d.job_key and name = 'bad'"
    )
    unable = PostgresStore(store.url, schema=store.schema, clock=clock)
    unable.jobs_due.unheld = unheld
    await unable.open()
    for hour in range(1, 3):
        clock.move(hours=1)
        await store.request(stored.job_id, Trigger(f"k{hour}"))
        assert await plan_once(unable) == []
        assert await plan_once(unable) == []
        assert await plan_once(store) == [Commit.COMMITTED]
    assert {each.cause for each in await occurrences(store, stored.job_id)} == {Cause.SCHEDULE, Cause.TRIGGER}
    await unable.close()


async def test_an_unreadable_definition_is_parked_and_shown_and_blocks_no_other_job(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """It is never deleted; the next good definition brings the job back."""
    bad = await put(store, job("bad"))
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    await put(store, job("good"))
    await db.execute(
        "update job_version d set definition = '{' from job j where j.job_key = d.job_key and name = 'bad'"
    )
    clock.move(hours=1)
    fresh = PostgresStore(store.url, schema=store.schema, clock=clock)
    await fresh.open()
    assert await plan_once(fresh) == [Commit.COMMITTED]
    assert [each.job.name for each in await fresh.list()] == ["good"]
    shown = await db.fetchval("select parked_reason from jobs where name = 'bad'")
    assert shown.startswith("version 1 cannot be read: JSONDecodeError")
    assert await fresh.ask(ParkedJobs()) == {"bad": shown}
    assert await plan_once(fresh) == []

    assert (await put(fresh, job("bad", "30 * * * *"))).version == 2
    assert await db.fetchval("select parked_reason from jobs where name = 'bad'") is None
    assert (await fresh.get([bad.job_id]))[bad.job_id].last_success is not None, "an end was not answered yet"
    clock.move(minutes=30)
    await plan_once(fresh)
    assert await db.fetchval("select parked_reason from jobs where name = 'bad'") is None
    assert len(await occurrences(fresh, bad.job_id)) >= 2
    await fresh.close()


async def test_what_was_claimed_under_a_definition_that_cannot_be_read_goes_back_in_line(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    await db.execute("update job_version set definition = '{'")
    fresh = PostgresStore(store.url, schema=store.schema, clock=clock)
    await fresh.open()
    assert await fresh.claim(SCOPE, 5) == []
    assert await db.fetchrow("select status, owner from occurrences") == ("queued", None)
    await fresh.close()


async def test_a_reaper_leaves_what_it_cannot_read_to_another_one(
    store: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """E8: to own what it cannot decide about would keep it from every reaper that can."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(SCOPE, 5)
    [node] = await store.ask(Nodes())
    await db.execute("update job_version set definition = '{'")
    fresh = PostgresStore(store.url, schema=store.schema, clock=clock)
    await fresh.open()
    assert await fresh.orphans("reaper", 5, {node.id: node.beats}, [claim.key]) == []
    await fresh.close()
    assert await db.fetchval("select owner from occurrences") == node.id
    [taken] = await store.orphans("reaper", 5, {node.id: node.beats})
    assert (taken.handle, taken.fence) == (claim.handle, claim.fence + 1)


async def test_definitions_are_compiled_once_and_bounded(store: PostgresStore, clock: ManualClock) -> None:
    few = PostgresStore(store.url, schema=store.schema, clock=clock, definitions_kept=3)
    await few.open()
    for number in range(5):
        await put(few, job(f"job-{number}"))
    assert len(await few.list()) == 5
    assert 0 < few.definitions_compiled <= 3
    await few.close()


async def test_a_few_are_not_held_and_planned_once_all_the_same(
    store: PostgresStore, other: PostgresStore, clock: ManualClock
) -> None:
    """S1-007: where two planners look at the same moment, the revision settles it."""
    stored = await put(store, job())
    clock.move(hours=1)
    async with (
        store.due(SCOPE, 10) as first,
        other.due(SCOPE, 10) as second,
    ):
        assert first.snapshots == second.snapshots
        await rename(store, stored.job_id, "renamed")  # with a hold it would wait for its end
        assert (await store.commit_plans(first, plans_of(first))).answers == [Commit.STALE]
    async with (
        store.due(SCOPE, 10) as first,
        other.due(SCOPE, 10) as second,
    ):
        assert (await store.commit_plans(first, plans_of(first))).answers == [Commit.COMMITTED]
        assert (await other.commit_plans(second, plans_of(second))).answers == [Commit.STALE]
    assert await statuses(store) == ["pending"]


async def test_as_soon_as_there_are_more_than_a_few_they_are_held(
    store: PostgresStore, other: PostgresStore, clock: ManualClock
) -> None:
    store.jobs_due.unheld = other.jobs_due.unheld = 2
    for number in range(3):
        await put(store, job(f"job-{number}"))
    async with (
        store.due(SCOPE, 2) as first,
        other.due(SCOPE, 10) as second,
    ):
        assert (len(first.snapshots), len(second.snapshots)) == (2, 1)
    async with store.due(SCOPE, 1) as only:
        assert only.snapshots[0] == first.snapshots[0], "the one that waits longest"


async def test_a_round_goes_on_where_its_last_batch_ended_and_comes_back_for_what_is_left(
    store: PostgresStore, clock: ManualClock
) -> None:
    """What a batch has planned is not walked past again; one that was given up is not forgotten."""
    store.jobs_due.unheld = 0
    for number in range(5):
        await put(store, job(f"job-{number}"))
    await plan_once(store)
    clock.move(hours=1)
    seen = []
    for _ in range(4):
        async with store.due(SCOPE, 2, clock.time) as batch:
            seen.append([each.job_id for each in batch.snapshots])
    assert [len(each) for each in seen] == [2, 2, 1, 2]
    assert len({id_ for each in seen[:3] for id_ in each}) == 5
    assert seen[3] == seen[0]
    clock.move(minutes=1)
    async with store.due(SCOPE, 2) as batch:
        assert [each.job_id for each in batch.snapshots] == seen[0], "a new round begins at the beginning"


async def test_many_plans_do_not_hide_an_ending_that_came_in_between_either(
    store: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Architecture 1, `woken`: what one statement does for a few, several do for many."""
    monkeypatch.setattr(planning, "_FEW_PLANS", 0)
    store.jobs_due.unheld = 0
    stored = await put(store, job(overlap="queue"))
    for _ in range(2):
        clock.move(hours=1)
        await plan_once(store)
        await plan_once(store)
    clock.move(hours=1)
    async with store.due(SCOPE, 1) as batch:
        made = plans_of(batch)
        await run_one(store)
        assert (await store.commit_plans(batch, made)).answers == [Commit.COMMITTED]
    # Nothing was known of a fact when it was held: it is still there, and makes the job due.
    assert (await store.get([stored.job_id]))[stored.job_id].wake_at == clock.time
    await store.request(stored.job_id, Trigger("k"))
    await plan_once(store)
    claim = await claim_one(store)
    await store.request(stored.job_id, Trigger("l"))
    async with store.due(SCOPE, 1) as batch:
        made = [plan(each, clock.time) for each in batch.snapshots]
        assert made[0].wake_at != clock.time
        step = ended(claim, begun(claim, clock.time), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
        assert (await store.commit_plans(batch, made)).answers == [Commit.COMMITTED]
    assert (await store.get([stored.job_id]))[stored.job_id].wake_at == clock.time


@pytest.mark.parametrize("unheld", [0, UNHELD], ids=["held", "a few"])
async def test_one_that_ends_while_a_snapshot_is_read_is_either_busy_or_over(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, unheld: int
) -> None:
    """Where a job stands and who is active are two statements; an end between them is told by a third."""
    store.jobs_due.unheld = unheld
    await put(store, job(overlap="queue"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    clock.move(hours=1)
    read = store._shared.compiled.read

    async def read_meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        await other.commit_steps([(claim, ended(claim, begun(claim, clock.time), clock.time))])
        return await read(*given)

    monkeypatch.setattr(store._shared.compiled, "read", read_meanwhile)
    async with store.due(SCOPE, 1) as batch:
        [seen] = batch.snapshots
        assert seen.busy_count == 0
        assert seen.last_end is not None
        assert seen.last_end.ended_at == clock.time


async def test_the_databases_clock_decides_what_is_due(postgres: Server) -> None:
    """S1-008, C-05: an instant that has come by the server's clock is due, whatever the host's clock says."""
    async with schema(postgres) as name:
        store = PostgresStore(postgres.address, schema=name)
        await store.open()
        db = await asyncpg.connect(postgres.address, server_settings={"search_path": name})
        try:
            half_an_hour_ahead = datetime.now(UTC) + timedelta(minutes=30)
            await put(store, job(when=f"{half_an_hour_ahead.minute} * * * *"))
            await plan_once(store)
            [record] = await store.list()
            assert record.next_run is not None
            assert await occurrences(store) == []
            ahead = "select clock_timestamp() + interval '1 hour'"
            await db.execute(
                f"create or replace function everytick_now() returns timestamptz language sql volatile as $$ {ahead} $$"
            )
            assert await store.now() >= record.next_run > datetime.now(UTC)
            await plan_once(store)
            made = await occurrences(store)
            assert [each.scheduled_for for each in made] == [record.next_run]
            assert made[0].created_at is not None
            assert made[0].created_at > datetime.now(UTC) + timedelta(minutes=30)
        finally:
            await db.close()
            await store.close()
