"""A claim that is given back before anything has begun leaves no trace of a start."""

from typing import Any

import pytest

from everytick.deciding.advance import advance
from everytick.domain.facts import Pause, Resume, Trigger
from everytick.domain.occurrence import Occurrence
from everytick.domain.steps import Released, Step, Stopping
from everytick.stores.base import Claim, Commit
from tests.stores.acting import (
    FAILED,
    AnyStore,
    began,
    claim_one,
    job,
    occurrences,
    plan_once,
    put,
    reap,
    remove,
    run_one,
)
from tests.stores.clock import ManualClock


async def give_back(store: AnyStore, claim: Claim) -> Step:
    """Give the claim back, as a node does that has no slot for it."""
    step = advance(claim.header, claim.life, Released(), await store.now())
    assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
    return step


def _facts(made: Occurrence) -> tuple[object, ...]:
    return made.status, made.owner, made.node, made.started_at, made.ready_at, made.line_at


async def _due(store: AnyStore, clock: ManualClock, **policies: Any) -> str:
    stored = await put(store, job(**policies))
    clock.move(hours=1)
    await plan_once(store)
    return stored.job_id


async def test_a_first_claim_that_is_given_back_has_not_started(store: AnyStore, clock: ManualClock) -> None:
    """S0-067, F2: the deadline counts from the first claim that was not given back."""
    await _due(store, clock, execution_timeout="2s")
    [before] = await occurrences(store)
    claim = await claim_one(store)
    clock.move(seconds=1)
    step = await give_back(store, claim)
    [after] = await occurrences(store)
    assert _facts(after) == _facts(before)
    assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
    clock.move(seconds=10)
    await run_one(store, node="node-2")
    [after] = await occurrences(store)
    assert (after.status, after.node, after.started_at) == ("completed", "node-2", clock.time)


async def test_a_parked_retry_is_given_back_as_it_was_parked(store: AnyStore, clock: ManualClock) -> None:
    """F2: awaiting_retry with its ready_at, its start and its node."""
    await _due(store, clock, retry={"max": 3, "interval": "10m", "superseded_by_next": True}, execution_timeout="1h")
    await run_one(store, FAILED, node="node-1")
    [before] = await occurrences(store)
    seen = (await store.look([before.job_id]))[before.job_id].busy
    clock.move(minutes=11)
    claim = await claim_one(store, "node-2")
    clock.move(seconds=1)
    await give_back(store, claim)
    [after] = await occurrences(store)
    assert _facts(after) == _facts(before)
    assert (after.status, after.node) == ("awaiting_retry", "node-1")
    assert (await store.look([after.job_id]))[after.job_id].busy == seen
    again = await claim_one(store, "node-3")
    assert [start.number for start in began(again, clock.time).starts] == [2]


async def test_what_was_lost_is_given_back_pending_with_its_start(store: AnyStore, clock: ManualClock) -> None:
    await _due(store, clock, on_orphan="restart")
    await claim_one(store, "node-1")
    clock.move(minutes=5)
    assert await reap(store) == [Commit.COMMITTED]
    [before] = await occurrences(store)
    claim = await claim_one(store, "node-2")
    await give_back(store, claim)
    [after] = await occurrences(store)
    assert _facts(after) == _facts(before)
    assert (after.status, after.node) == ("pending", "node-1")
    assert after.started_at is not None


@pytest.mark.parametrize("cause", ["schedule", "trigger"])
async def test_a_pause_holds_what_is_given_back_of_the_schedule(
    store: AnyStore, clock: ManualClock, cause: str
) -> None:
    """F1, S4-024: what was claimed and has not begun waits for the end of the pause."""
    stored = await put(store, job())
    if cause == "trigger":
        await store.request(stored.job_id, Trigger("k"))
    else:
        clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.request(stored.job_id, Pause())
    await give_back(store, claim)
    [held] = await occurrences(store)
    assert held.status == ("queued" if cause == "schedule" else "pending")
    await store.request(stored.job_id, Resume())
    await plan_once(store)
    [ready] = await occurrences(store)
    assert (ready.status, ready.started_at) == ("pending", None)
    await claim_one(store)


async def test_a_disable_holds_what_is_given_back(store: AnyStore, clock: ManualClock) -> None:
    await _due(store, clock)
    claim = await claim_one(store)
    await put(store, job(enabled=False))
    await give_back(store, claim)
    [held] = await occurrences(store)
    assert (held.status, held.started_at) == ("queued", None)
    await put(store, job(enabled=True))
    await plan_once(store)
    await claim_one(store)


async def test_what_is_given_back_of_a_retired_job_is_canceled(store: AnyStore, clock: ManualClock) -> None:
    """F1, S0-133."""
    job_id = await _due(store, clock)
    claim = await claim_one(store)
    await remove(store, job_id)
    await plan_once(store)
    await give_back(store, claim)
    [ended_] = await occurrences(store)
    assert (ended_.status, ended_.error, ended_.started_at) == ("canceled", "removed", None)


async def test_a_stop_before_the_first_attempt_gives_back_too(store: AnyStore, clock: ManualClock) -> None:
    """F1: after a clean stop and a long downtime nothing fails unrun."""
    await _due(store, clock, execution_timeout="2s")
    [before] = await occurrences(store)
    claim = await claim_one(store)
    clock.move(seconds=1)
    step = advance(claim.header, claim.life, Stopping(), clock.time)
    assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
    [after] = await occurrences(store)
    assert _facts(after) == _facts(before)
