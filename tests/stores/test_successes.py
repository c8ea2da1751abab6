"""The last two successes of a job, with their ids: a plan tells by them what ran since the previous instant."""

from datetime import timedelta

from everytick.domain.facts import Cancel, Trigger
from everytick.domain.lookups import Spans
from everytick.domain.outcome import Failed
from everytick.domain.snapshots import JobSnapshot
from everytick.stores.base import HistoryFilter, NodeScope
from tests.stores.acting import AnyStore, began, ended, job, plan_once, put, run_one, statuses
from tests.stores.clock import ManualClock


async def seen(store: AnyStore, job_id: str) -> JobSnapshot:
    return (await store.look([job_id]))[job_id]


async def tick(store: AnyStore, clock: ManualClock, minutes: int = 60) -> None:
    """Move to a later instant, plan it, and let what is ready run a moment after it."""
    clock.move(minutes=minutes)
    await plan_once(store)
    clock.move(milliseconds=3)


async def test_a_run_that_starts_a_moment_late_skips_nothing(store: AnyStore, clock: ManualClock) -> None:
    """F3, S4-022: the run of the previous instant starts after it and is no reason to skip the next one."""
    stored = await put(store, job(skip_if_successful=True))
    for _ in range(4):
        await tick(store, clock)
        await run_one(store)

    assert await statuses(store, stored.job_id) == ["completed"] * 4


async def test_a_run_by_hand_since_the_previous_instant_skips_the_next(store: AnyStore, clock: ManualClock) -> None:
    """F3, S4-021, S4-022: a requested run in between counts, whichever of the two ended last."""
    stored = await put(store, job(skip_if_successful=True))
    await tick(store, clock)
    await run_one(store)
    clock.move(minutes=20)
    await store.request(stored.job_id, Trigger("by-hand"))
    await plan_once(store)
    await run_one(store)

    clock.move(minutes=40)
    await plan_once(store)

    assert await statuses(store, stored.job_id) == ["completed", "completed"]
    [span] = await store.ask(Spans(stored.job_id, clock.time - timedelta(hours=2), clock.time))
    assert str(span.why) == "already successful"


async def test_both_successes_are_known_by_their_ids(store: AnyStore, clock: ManualClock) -> None:
    """F3: the last success and the one before it, whatever failed in between."""
    stored = await put(store, job())
    assert (await seen(store, stored.job_id)).other_success is None
    ids = []
    for outcome in (None, Failed("boom"), None, None):
        await tick(store, clock)
        ids.append((await run_one(store, outcome)).occurrence.id)
        before = await seen(store, stored.job_id)
        assert before.last_end is not None
        assert before.last_end.id == ids[-1]

    found = await seen(store, stored.job_id)

    assert found.last_success is not None
    assert found.other_success is not None
    assert [found.last_success.id, found.other_success.id] == [ids[3], ids[2]]
    # Once a plan has taken the ends in, they are as they were.
    await tick(store, clock)
    again = await seen(store, stored.job_id)
    assert (again.last_success, again.other_success) == (found.last_success, found.other_success)
    await run_one(store, Failed("boom"))
    clock.move(minutes=30)
    await plan_once(store)
    last = await seen(store, stored.job_id)
    assert (last.last_success, last.other_success) == (found.last_success, found.other_success)


async def test_two_successes_of_one_batch_are_both_known(store: AnyStore, clock: ManualClock) -> None:
    """F3: ends are written many at a time; the last two of one job are both kept."""
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    clock.move(hours=3)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), 10)
    assert len(claims) == 3
    steps = [(claim, ended(claim, began(claim, clock.time), clock.time)) for claim in claims]

    await store.commit_steps(steps)

    found = await seen(store, stored.job_id)
    assert found.last_success is not None
    assert found.other_success is not None
    kept = {found.last_success.id, found.other_success.id}
    assert len(kept) == 2
    assert kept <= {claim.occurrence.id for claim in claims}
    clock.move(hours=1)
    await plan_once(store)
    after = await seen(store, stored.job_id)
    assert (after.last_success, after.other_success) == (found.last_success, found.other_success)


async def test_two_successes_before_a_failure_of_one_batch_are_both_known(store: AnyStore, clock: ManualClock) -> None:
    """F3: the last two successes are kept also where the last end of the batch is none."""
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    await tick(store, clock)
    await run_one(store)
    clock.move(hours=4)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), 10)
    outcomes = [Failed("early"), None, None, Failed("late")]
    moments = [clock.time + timedelta(seconds=seconds) for seconds in range(4)]
    clock.move(seconds=5)

    await store.commit_steps(
        [
            (claim, ended(claim, began(claim, moment), moment, outcome))
            for claim, moment, outcome in zip(claims, moments, outcomes, strict=True)
        ]
    )

    found = await seen(store, stored.job_id)
    assert found.last_end is not None
    assert found.last_success is not None
    assert found.other_success is not None
    told = [found.last_end.id, found.last_success.id, found.other_success.id]
    assert told == [claims[place].occurrence.id for place in (3, 2, 1)]


async def test_what_ends_without_a_run_is_the_last_end_by_its_id(store: AnyStore, clock: ManualClock) -> None:
    """F3: an end by hand is told with its id, and is no success."""
    stored = await put(store, job())
    await tick(store, clock)
    await run_one(store)
    await tick(store, clock)
    claimed = (await store.history(HistoryFilter(job_id=stored.job_id, limit=1))).occurrences[0]
    await store.request(claimed.id, Cancel())

    found = await seen(store, stored.job_id)

    assert found.last_end is not None
    assert found.last_end.id == claimed.id
    assert found.last_success is not None
    assert found.last_success.id != claimed.id
