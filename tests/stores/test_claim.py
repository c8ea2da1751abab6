"""claim: one owner at a time, by priority, then age."""

from datetime import timedelta

from everytick.domain.facts import Trigger
from everytick.domain.payload import payload
from everytick.stores.base import NodeScope
from tests.stores.acting import FAILED, AnyStore, began, ended, job, occurrences, plan_once, put, run_one, statuses
from tests.stores.clock import ManualClock


async def test_ten_claimers_and_one_ready_occurrence_are_one_success_and_nine_empty_answers(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-031, S0-070."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    answers = [await store.claim(NodeScope(f"node-{number}"), 5) for number in range(10)]
    assert [len(answer) for answer in answers] == [1] + [0] * 9


async def test_a_claim_is_the_durable_start(store: AnyStore, clock: ManualClock) -> None:
    """S0-071, S0-073."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 5)
    [made] = await occurrences(store)

    assert (made.status, made.owner, made.fence, made.started_at) == ("running", "node-1", 1, clock.time)
    assert (claim.fence, claim.occurrence) == (1, made)
    assert claim.life.is_owned


async def test_a_claim_tells_what_the_record_says_whatever_kind_of_start_it_is(
    store: AnyStore, clock: ManualClock
) -> None:
    """On time, late, asked for with a payload, compressed, delayed by jitter, and a second try after a wait."""
    jobs = {
        "plain": job("plain"),
        "late": job("late", recovery="execute_all"),
        "asked": job("asked", "0 0 1 1 *"),
        "compressed": job("compressed", "*/10 * * * *", recovery="compressed"),
        "jittered": job("jittered", jitter="10m"),
        "retried": job("retried", retry={"max": 1, "interval": "10m"}),
    }
    ids = {name: (await put(store, each)).job_id for name, each in jobs.items()}
    clock.move(hours=1)
    await plan_once(store)
    await store.request(ids["asked"], Trigger("k", payload({"x": 1})))
    await plan_once(store)
    others = frozenset(id_ for name, id_ in ids.items() if name != "retried")
    for claim in await store.claim(NodeScope("node-1", unknown=others), 20):
        await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, FAILED))])
    clock.move(hours=3)
    await plan_once(store)
    await plan_once(store)

    claims = await store.claim(NodeScope("node-2"), 100)

    held = {each.id: each for each in await occurrences(store) if each.owner == "node-2"}
    assert {claim.occurrence.id: claim.occurrence for claim in claims} == held
    assert {claim.occurrence.job_id for claim in claims} == set(ids.values())
    for claim in claims:
        made, header, life = claim.occurrence, claim.header, claim.life
        assert (header.id, header.job_id, claim.job.id, claim.fence) == (made.id, made.job_id, made.job_id, made.fence)
        assert (header.scheduled_for, life.status, life.ready_at) == (made.scheduled_for, made.status, made.ready_at)
        assert (life.started_at, life.claimed_at, life.is_owned) == (made.started_at, clock.time, True)
        assert header.is_recovery_run == made.is_recovery_run


async def test_higher_priority_first_then_the_oldest(store: AnyStore, clock: ManualClock) -> None:
    """S0-104."""
    for name, when, priority in (("old", "10 * * * *", 0), ("young", "20 * * * *", 0), ("urgent", "30 * * * *", 9)):
        await put(store, job(name, when, priority=priority))
    clock.move(minutes=30)
    await plan_once(store)
    names = {made.id: made.name for made in (record.job for record in await store.list())}
    claims = await store.claim(NodeScope("node-1"), 2)
    assert [names[claim.occurrence.job_id] for claim in claims] == ["urgent", "old"]


async def test_only_its_queues_and_only_jobs_it_knows(store: AnyStore, clock: ManualClock) -> None:
    """C-21: a job whose target a node cannot import is left for another node."""
    heavy = await put(store, job("heavy", queue="gpu"))
    plain = await put(store, job("plain"))
    clock.move(hours=1)
    await plan_once(store)

    assert await store.claim(NodeScope("node-1", unknown=frozenset([plain.job_id])), 5) == []
    [claim] = await store.claim(NodeScope("node-1", met=("queue:gpu",)), 5)
    assert claim.occurrence.job_id == heavy.job_id


async def test_jitter_delays_the_start_and_nothing_else(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job(jitter="30m"))
    clock.move(hours=1)
    await plan_once(store)
    [made] = await occurrences(store)
    assert made.scheduled_for == clock.time
    assert made.ready_at is not None
    assert clock.time < made.ready_at < clock.time + timedelta(minutes=30)
    assert await store.claim(NodeScope("node-1"), 5) == []
    clock.time = made.ready_at
    assert len(await store.claim(NodeScope("node-1"), 5)) == 1


async def test_what_waits_in_line_is_not_claimed(store: AnyStore, clock: ManualClock) -> None:
    """S0-062: one at a time, in order; an ending lets the next one in."""
    stored = await put(store, job(overlap="queue"))
    clock.move(hours=1)
    await plan_once(store)
    for key in ("a", "b"):
        clock.move(seconds=1)
        await store.request(stored.job_id, Trigger(key))
    await plan_once(store)
    assert await statuses(store) == ["pending", "queued", "queued"]

    line = [each.id for each in sorted(await occurrences(store), key=lambda each: str(each.line_at))]

    ran = []
    for _ in range(3):
        ran.append((await run_one(store)).occurrence.id)
        assert await store.claim(NodeScope("node-1"), 10) == [], "the next waits until a plan lets it in"
        await plan_once(store)
    assert await statuses(store) == ["completed"] * 3
    assert ran == line


async def test_a_retry_that_the_next_instant_supersedes_waits_for_the_plan_of_a_due_job(
    store: AnyStore, clock: ManualClock
) -> None:
    """S2-019, S2-023, S2-065: both are due at once, and the turn comes before the retry."""
    await put(store, job(retry={"max": None, "interval": "1h", "superseded_by_next": True}))
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store, FAILED)
    clock.move(hours=1)
    assert await store.claim(NodeScope("node-1"), 5) == []
    await plan_once(store)
    assert (await statuses(store))[0] == "superseded"


async def test_a_retry_that_the_next_instant_supersedes_is_claimed_when_nothing_is_due(
    store: AnyStore, clock: ManualClock
) -> None:
    await put(store, job(retry={"max": None, "interval": "20m", "superseded_by_next": True}))
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store, FAILED)
    await plan_once(store)
    clock.move(minutes=21)
    [claim] = await store.claim(NodeScope("node-1"), 5)
    assert claim.header.found == "awaiting_retry"
