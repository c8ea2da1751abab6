"""commit_steps: the owner's writes carry its fence, and a lost reply is not a lost race."""

from everytick.deciding.advance import advance
from everytick.domain.outcome import Succeeded
from everytick.domain.payload import payload
from everytick.domain.steps import WaitOver
from everytick.stores.base import Commit, NodeScope
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


async def test_an_occurrence_ends_with_its_runs_and_attempts(store: AnyStore, clock: ManualClock) -> None:
    """S0-014, S0-089."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    begun = clock.time
    clock.move(seconds=5)
    step = ended(claim, began(claim, begun), clock.time, Succeeded(payload(42)))
    assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]

    whole = await store.whole(claim.occurrence.id)
    assert (whole.occurrence.status, whole.occurrence.owner, whole.occurrence.ended_at) == (
        "completed",
        None,
        clock.time,
    )
    [run] = whole.runs
    [(task, attempt)] = whole.attempts
    assert (run.status, run.attempts, run.retry_count) == ("success", 1, 0)
    assert (task, attempt.number, attempt.status, attempt.started_at) == ("main", 1, "success", begun)
    assert attempt.run_id == run.id


async def test_a_retry_far_away_is_parked_without_an_owner(store: AnyStore, clock: ManualClock) -> None:
    """Running.md, claim and own: no slot is held, and any node may go on when the time has come."""
    await put(store, job(retry={"max": 1, "interval": "10m"}))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, FAILED))])
    [made] = await occurrences(store)
    assert (made.status, made.owner) == ("awaiting_retry", None)
    assert await store.claim(NodeScope("node-2"), 5) == []

    clock.move(minutes=10)
    again = await claim_one(store, "node-2")
    assert again.fence > claim.fence
    await store.commit_steps([(again, ended(again, began(again, clock.time), clock.time))])
    whole = await store.whole(made.id)
    assert whole.occurrence.status == "completed"
    assert [attempt.number for _, attempt in whole.attempts] == [1, 2]
    assert [str(attempt.status) for _, attempt in whole.attempts] == ["failed", "success"]


async def test_a_repeated_commit_of_the_same_step_is_no_lost_race(store: AnyStore, clock: ManualClock) -> None:
    """G9: the reply of a commit was lost; the retry finds its own effect and changes nothing."""
    await put(store, job(tasks=("one", "two")))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    middle = ended(claim, began(claim, clock.time), clock.time)
    last = ended(claim, middle, clock.time)
    for step in (middle, middle, last, last):
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
    whole = await store.whole(claim.occurrence.id)
    assert [attempt.number for _, attempt in whole.attempts] == [1, 1]
    assert whole.occurrence.status == "completed"


async def test_a_zombie_can_finish_but_not_record(store: AnyStore, clock: ManualClock) -> None:
    """S0-069, I4, E8: its node fell silent, another took over; what the old owner writes changes nothing."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    step = ended(claim, began(claim, clock.time), clock.time)
    clock.move(seconds=30)
    await store.beat("reaper", [])
    assert await reap(store) == [Commit.COMMITTED]
    before = await store.whole(claim.occurrence.id)

    assert before.occurrence.status == "failed_stale"
    assert await store.commit_steps([(claim, step)]) == [Commit.STALE]
    assert await store.whole(claim.occurrence.id) == before


async def test_the_next_owner_sees_what_the_last_one_wrote(store: AnyStore, clock: ManualClock) -> None:
    """Resume: finished tasks are not run again."""
    await put(store, job(tasks=("one", "two"), on_orphan="resume"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
    clock.move(seconds=30)
    await store.beat("reaper", [])
    await reap(store)
    assert await statuses(store) == ["pending"]

    again = await claim_one(store, "node-2")
    step = began(again, clock.time)
    assert [(start.task, start.number) for start in step.starts] == [("two", 2)]
    await store.commit_steps([(again, ended(again, step, clock.time))])
    whole = await store.whole(claim.occurrence.id)
    assert whole.occurrence.status == "completed"
    assert [(task, attempt.number, str(attempt.status)) for task, attempt in whole.attempts] == [
        ("one", 1, "success"),
        ("two", 1, "lost"),
        ("two", 2, "success"),
    ]


async def test_an_older_step_that_comes_again_does_not_turn_back_the_clock(store: AnyStore, clock: ManualClock) -> None:
    """G9: the reply to a step was lost, the next one was committed, and then the old one is repeated."""
    await put(store, job(retry={"max": 1, "interval": "2s"}))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    waiting = ended(claim, began(claim, clock.time), clock.time, FAILED)
    clock.move(seconds=2)
    running = advance(claim.header, waiting.after, WaitOver("main"), clock.time)
    for step in (waiting, running, waiting):
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
    assert await statuses(store) == ["running"]
