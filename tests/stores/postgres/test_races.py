"""Several nodes at once, on real connections: one of them wins, and the others are told so."""

import asyncio
from typing import Any

import pytest

from everytick.deciding.advance import advance
from everytick.domain.facts import Pause, Trigger
from everytick.domain.outcome import Lost
from everytick.domain.steps import WaitOver
from everytick.errors import DuplicateDefinition, VersionConflict
from everytick.stores.base import Commit, NodeScope
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import FAILED, began, ended, job, occurrences, plan_once, put, rename, unheard
from tests.stores.clock import ManualClock


async def test_ten_claimers_at_the_same_moment_share_without_sharing_one(
    store: PostgresStore, other: PostgresStore, clock: ManualClock
) -> None:
    """S1-031, S0-070: fifty ready, ten claimers on two nodes' connections, nothing given twice.

    A claim locks up to its limit in each lane, and lets go of those beyond its limit. Others pass those over meanwhile,
    and find them when they look next.
    """
    await put(store, job(recovery="execute_all", overlap="allow"))
    clock.move(hours=50)
    await plan_once(store)
    answers = await asyncio.gather(
        *((store, other)[number % 2].claim(NodeScope(f"node-{number}"), 10) for number in range(10))
    )
    answers.append(await store.claim(NodeScope("node-0"), 50))
    handles = [claim.handle for answer in answers for claim in answer]
    assert len(handles) == len(set(handles)) == 50


async def test_ten_claimers_and_one_ready_are_one_success(
    store: PostgresStore, other: PostgresStore, clock: ManualClock
) -> None:
    """S1-035."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    answers = await asyncio.gather(
        *((store, other)[number % 2].claim(NodeScope(f"node-{number}"), 5) for number in range(10))
    )
    assert sorted(len(answer) for answer in answers) == [0] * 9 + [1]


async def test_owner_and_reaper_commit_the_same_occurrences_in_opposite_order_without_deadlock(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """G8, E8: locks are taken by key, whatever the order of the batch; the zombie's steps are stale."""
    await put(store, job(recovery="execute_all", overlap="allow"))
    clock.move(hours=60)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), 100)
    clock.move(seconds=30)
    await other.beat("reaper", [])
    taken = await other.orphans("reaper", 100, await unheard(other))
    late = [(claim, ended(claim, began(claim, clock.time), clock.time)) for claim in claims]
    lost = [(claim, advance(claim.header, claim.life, Lost(), clock.time)) for claim in reversed(taken)]
    zombie, reaper = await asyncio.gather(store.commit_steps(late), other.commit_steps(lost))
    assert (set(zombie), set(reaper)) == ({Commit.STALE}, {Commit.COMMITTED})
    assert await db.fetchval("select count(*) from occurrences where status = 'failed_stale'") == 60
    assert await db.fetchval("select count(*) from attempts where status = 'lost'") == 60


async def test_nodes_that_define_the_same_job_at_once_make_one(
    store: PostgresStore, other: PostgresStore, db: Any
) -> None:
    """C-21: every node of a fleet puts its definitions when it starts."""
    stored = await asyncio.gather(*(put((store, other)[number % 2], job()) for number in range(8)))
    assert sorted(each.changed for each in stored) == [False] * 7 + [True]
    assert {(each.job_id, each.version) for each in stored} == {(job().id, 1)}
    assert await db.fetchval("select count(*) from jobs") == 1


async def test_of_edits_of_the_same_version_exactly_one_wins(store: PostgresStore, other: PostgresStore) -> None:
    """I14."""
    await put(store, job())
    edits = [put((store, other)[number % 2], job(description=str(number)), expected=1) for number in range(6)]
    answers = await asyncio.gather(*edits, return_exceptions=True)
    assert sum(isinstance(answer, VersionConflict) for answer in answers) == 5


async def test_the_same_request_from_many_nodes_is_one_occurrence(
    store: PostgresStore, other: PostgresStore, clock: ManualClock
) -> None:
    """S0-057: five at once, one occurrence."""
    stored = await put(store, job())
    ask = Trigger("k")
    answers = await asyncio.gather(*((store, other)[number % 2].request(stored.job_id, ask) for number in range(5)))
    await plan_once(store)
    assert [each.id for each in await occurrences(store)] == list({each.id for each in answers})
    assert sum(each.changed for each in answers) == 1


async def test_what_was_claimed_before_the_pause_goes_on(store: PostgresStore, clock: ManualClock, db: Any) -> None:
    """I13: a pause that comes after the claim leaves the occurrence running."""
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    assert len(await store.claim(NodeScope("node-1"), 1)) == 1
    await store.request(stored.job_id, Pause())
    assert await db.fetchval("select status from occurrences") == "running"


async def test_no_claim_commits_after_the_pause(store: PostgresStore, clock: ManualClock, db: Any) -> None:
    """I13: the pause waits for the row that another connection holds, and the claim passes over that row."""
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    async with db.transaction():
        await db.execute("select from occurrence for update")
        pausing = asyncio.create_task(store.request(stored.job_id, Pause()))
        assert await store.claim(NodeScope("node-1"), 1) == [], "what somebody holds is passed over"
    await pausing
    assert await store.claim(NodeScope("node-1"), 1) == []
    assert await db.fetchval("select status from occurrences") == "queued"


async def test_a_flush_may_hold_two_steps_of_one_occurrence(store: PostgresStore, clock: ManualClock) -> None:
    """One statement cannot write one row twice; the second step follows in a statement of its own."""
    await put(store, job(retry={"max": 1, "interval": "1s"}))
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 1)
    waits = ended(claim, began(claim, clock.time), clock.time, FAILED)
    again = advance(claim.header, waits.after, WaitOver("main"), clock.move(seconds=1))
    last = ended(claim, again, clock.time)
    steps = [(claim, step) for step in (waits, again, last)]
    assert await store.commit_steps(steps) == [Commit.COMMITTED] * 3
    whole = await store.whole(claim.occurrence.id)
    assert [str(attempt.status) for _, attempt in whole.attempts] == ["failed", "success"]
    assert whole.occurrence.status == "completed"


async def test_a_take_over_alone_fences_the_old_owner_out(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """E8: the reaper has decided nothing yet, no step has a number, and still the zombie's step is stale."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 1)
    clock.move(seconds=30)
    await other.beat("reaper", [])
    [taken] = await other.orphans("reaper", 10, await unheard(other))
    assert taken.fence == claim.fence + 1
    late = ended(claim, began(claim, clock.time), clock.time)
    assert await store.commit_steps([(claim, late)]) == [Commit.STALE]
    assert await db.fetchrow("select status, owner from occurrences") == ("running", "reaper")
    assert await db.fetchval("select count(*) from attempts") == 0


async def test_a_name_that_is_being_taken_is_taken(store: PostgresStore, db: Any) -> None:
    """C-22: the other rename has not committed yet when ours looks, so ours waits, and then is refused."""
    stored = await put(store, job("one"))
    await put(store, job("two"))
    async with db.transaction():
        await db.execute("update job set name = 'three' where name = 'two'")
        renaming = asyncio.create_task(rename(store, stored.job_id, "three"))
        waits = False
        while not waits:
            waits = await db.fetchval("select exists (select from pg_locks where not granted)")
    with pytest.raises(DuplicateDefinition, match="there is a job named 'three' already"):
        await renaming
    assert sorted(row["name"] for row in await db.fetch("select name from jobs")) == ["one", "three"]


async def test_a_retry_that_is_parked_at_the_moment_of_a_disable_is_not_claimed(
    store: PostgresStore, other: PostgresStore, clock: ManualClock, db: Any
) -> None:
    """F8, S0-132: the step began before the disable and is written after it, and has seen an enabled job."""
    retry = {"max": None, "interval": "1h"}
    await put(store, job(retry=retry))
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 1)
    failed = ended(claim, began(claim, clock.time), clock.time, FAILED)
    async with db.transaction():
        await db.execute("select from occurrence for update")
        writing = asyncio.create_task(store.commit_steps([(claim, failed)]))
        async with asyncio.timeout(60):
            while not await db.fetchval("select exists (select from pg_locks where not granted)"):
                pass
        await put(other, job(retry=retry, enabled=False))
    assert await writing == [Commit.COMMITTED]

    clock.move(hours=2)
    assert await store.claim(NodeScope("node-1"), 10) == []
    await put(other, job(retry=retry))
    assert [each.occurrence.id for each in await store.claim(NodeScope("node-1"), 10)] == [claim.occurrence.id]
