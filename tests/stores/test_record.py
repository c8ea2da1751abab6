"""record: what was fired while the store was away, written down afterwards, and never over what is there."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.domain.config import Level, overrides
from everytick.domain.fired import Fired, FiredRun
from everytick.domain.ids import occurrence_id
from everytick.domain.lookups import Spans
from everytick.domain.outcome import Succeeded
from everytick.domain.payload import payload
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.steps import Step
from everytick.errors import NotFound, StoreGone, StoreUnavailable
from everytick.stores.base import Claim, Commit, CommitAnswer, CommitAway, CommitFailed, NodeScope
from everytick.stores.memory.local import LocalStore
from tests.stores.acting import (
    FAILED,
    AnyStore,
    batch_of,
    began,
    ended,
    job,
    occurrences,
    plan_once,
    put,
    run_one,
    statuses,
    unheard,
)
from tests.stores.clock import ManualClock


async def _fired(store: AnyStore, clock: ManualClock, job_id: str, hours: int = 2) -> Fired:
    """Let the job be fired elsewhere for some hours: the first well, the others not."""
    local = LocalStore(clock, store)
    local.adopt((await store.look([job_id]))[job_id], clock.time)
    for hour in range(hours):
        clock.move(hours=1)
        await plan_once(local)
        await run_one(local, FAILED if hour else Succeeded(payload(7)))
    return _told(local, job_id)


def _told(local: LocalStore, job_id: str) -> Fired:
    """Return what the local store tells of the job."""
    part = local.hand_over("node-1")
    assert part is not None
    assert part.job_id == job_id
    return part.fired


async def test_what_was_fired_elsewhere_is_there_with_its_runs_and_attempts(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-28, S1-001: under the id that follows from its job and second, whichever node fires it."""
    stored = await put(store, job(overlap="allow", payload={"x": 1}))
    await plan_once(store)
    fired = await _fired(store, clock, stored.job_id)
    handles = list(await store.record(stored.job_id, fired))
    assert None not in handles
    assert list(await store.record(stored.job_id, fired)) == handles

    good, bad = await occurrences(store)
    assert [good.status, bad.status] == [OccurrenceStatus.COMPLETED, OccurrenceStatus.FAILED]
    assert good.is_unverified
    assert good.id == occurrence_id(stored.job_id, good.scheduled_for)
    assert good.reason == "unverified, fired by node-1 while the store was away"
    assert (good.scheduled_for, good.started_at) == (clock.time - timedelta(hours=1),) * 2
    assert (good.covers_after, good.covers_through) == (good.scheduled_for - timedelta(hours=1), good.scheduled_for)
    whole = await store.whole(bad.id)
    assert [(run.status, run.attempts, run.error) for run in whole.runs] == [(RunStatus.FAILED, 1, "boom")]
    assert [(each.number, each.status) for _, each in whole.attempts] == [(1, AttemptStatus.FAILED)]
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert record.last_end is not None
    assert record.last_end.scheduled_for == bad.scheduled_for
    assert record.last_success is not None
    assert record.last_success.scheduled_for == good.scheduled_for
    assert record.last_failure_at == bad.ended_at, "S2-025"


async def test_what_is_recorded_is_not_planned_again(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    await plan_once(store)
    fired = await _fired(store, clock, stored.job_id, 3)
    await store.record(stored.job_id, fired)
    clock.move(hours=1)
    await plan_once(store)
    assert await statuses(store) == ["completed", "failed", "failed", "pending"]
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert record.watermark == clock.time


async def test_what_another_node_has_begun_stays_and_is_told_as_a_duplicate(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-029."""
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    await plan_once(store)
    fired = await _fired(store, clock, stored.job_id, 1)
    await plan_once(store)
    await store.claim(NodeScope("node-2"), 1)
    clock.move(hours=1)
    await plan_once(store)
    assert list(await store.record(stored.job_id, fired)) == [None]
    assert await statuses(store) == ["running", "pending"]
    assert not any(each.is_unverified for each in await occurrences(store))
    assert (await store.get([stored.job_id]))[stored.job_id].watermark == clock.time


async def test_a_fired_run_replaces_an_occurrence_that_was_planned_and_not_begun(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-28: it has run, and does not run again."""
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    await plan_once(store)
    fired = await _fired(store, clock, stored.job_id, 2)
    await plan_once(store)
    assert await statuses(store) == ["pending", "pending"]
    handles = list(await store.record(stored.job_id, fired))
    assert None not in handles
    assert list(await store.record(stored.job_id, fired)) == handles
    assert await statuses(store) == ["completed", "failed"]
    assert all(each.is_unverified for each in await occurrences(store))
    assert await store.claim(NodeScope("node-2"), 10) == []
    [good, _] = await occurrences(store)
    assert [each.number for _, each in (await store.whole(good.id)).attempts] == [1]


async def test_a_run_that_goes_on_is_its_nodes_as_if_it_had_claimed_it(store: AnyStore, clock: ManualClock) -> None:
    """C-28: its steps hold under its fence, its silence makes it an orphan, and a lost answer changes nothing."""
    stored = await put(store, job(overlap="allow", recovery="execute_all", on_orphan="restart"))
    await plan_once(store)
    local = LocalStore(clock, store)
    local.adopt((await store.look([stored.job_id]))[stored.job_id], clock.time)
    clock.move(hours=2)
    await plan_once(local)
    [claim] = await local.claim(NodeScope("node-1"), 1)
    fired = _told(local, stored.job_id)
    [running, pending] = handles = list(await store.record(stored.job_id, fired))
    assert list(await store.record(stored.job_id, fired)) == handles
    assert await statuses(store) == ["running", "pending"]
    assert running is not None
    assert pending is not None
    key = claim.key._replace(handle=running)
    orders = await store.beat("node-1", [key])
    assert (orders.gone, orders.adopt) == ((), ())
    local.settle(handles)
    assert local.keys == {claim.key: key}

    clock.move(minutes=5)
    [orphan] = await store.orphans("reaper", 10, await unheard(store))
    assert (orphan.handle, orphan.fence) == (running, claim.fence + 1)
    step = ended(claim, began(claim, clock.time), clock.time)
    assert await local.commit_steps([(claim, step)]) == [Commit.STALE]
    assert (await store.beat("node-1", [key])).gone == (key,)


class Home:
    """The store to which a local store hands over, with a way that can fail."""

    def __init__(self, store: AnyStore) -> None:
        self._store = store
        self.error: StoreUnavailable | None = None

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        if self.error is not None:
            raise self.error
        return await self._store.commit_steps(steps)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_steps_of_what_was_handed_over_wait_for_its_home_and_no_others_do(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-28: the local store answers for each step: written, to be tried again, or refused for good."""
    ids = [(await put(store, job(name, overlap="allow"))).job_id for name in ("there", "here")]
    await plan_once(store)
    home = Home(store)
    local = LocalStore(clock, home)
    for snapshot in (await store.look(ids)).values():
        local.adopt(snapshot, clock.time)
    clock.move(hours=1)
    await plan_once(local)
    claims = {claim.job.id: claim for claim in await local.claim(NodeScope("node-1"), 2)}
    part = local.hand_over("node-1")
    assert part is not None
    there, here = claims[part.job_id], claims[next(id_ for id_ in ids if id_ != part.job_id)]
    steps = [(claim, ended(claim, began(claim, clock.time), clock.time)) for claim in (there, here)]

    in_doubt, written = await local.commit_steps(steps)
    assert (type(in_doubt), written) == (CommitAway, Commit.COMMITTED)
    local.settle(await store.record(part.job_id, part.fired))
    home.error = StoreUnavailable("the store", "away")
    [answer] = await local.commit_steps(steps[:1])
    assert answer == CommitAway(str(home.error))
    home.error = StoreGone("the store", "deleted")
    [answer] = await local.commit_steps(steps[:1])
    assert answer == CommitFailed(str(home.error))
    home.error = None
    assert await local.commit_steps(steps[:1]) == [Commit.COMMITTED]
    assert await statuses(store) == ["completed"]


async def test_a_plan_from_before_the_record_is_stale(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    await plan_once(store)
    fired = await _fired(store, clock, stored.job_id, 1)
    from everytick.deciding.plan import plan

    old = (await store.look([stored.job_id]))[stored.job_id]
    await store.record(stored.job_id, fired)
    [answer] = (await store.commit_plans(batch_of(clock.time, old), [plan(old, clock.time)])).answers
    assert answer is Commit.STALE


async def test_what_was_skipped_elsewhere_is_told_too_unless_it_was_decided_here(
    store: AnyStore, clock: ManualClock
) -> None:
    stored = await put(store, job(overlap="allow", recovery="mark_as_missed"))
    await plan_once(store)
    local = LocalStore(clock, store)
    local.adopt((await store.look([stored.job_id]))[stored.job_id], clock.time)
    begun = clock.time
    clock.move(hours=3)
    await plan_once(local)
    await run_one(local)
    fired = _told(local, stored.job_id)
    assert len(fired.spans) == 1
    await store.record(stored.job_id, fired)
    [span] = await store.ask(Spans(stored.job_id, begun, clock.time))
    assert (span.status, span.count) == (OccurrenceStatus.MISSED, 2)
    await store.record(stored.job_id, Fired(fired.after, fired.through, (), fired.spans))
    assert len(await store.ask(Spans(stored.job_id, begun, clock.time))) == 1
    with pytest.raises(NotFound):
        await store.record("nobody", fired)
    assert isinstance(fired.runs[0], FiredRun)


async def test_an_instant_unplanned_before_the_outage_is_not_lost(store: AnyStore, clock: ManualClock) -> None:
    """It was due when the store was last heard of: it seemed to be planned there, and was not."""
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    await plan_once(store)
    seen = (await store.look([stored.job_id]))[stored.job_id]
    clock.move(hours=1, minutes=5)
    local = LocalStore(clock, store)
    local.adopt(seen, clock.time)
    clock.move(hours=1)
    await plan_once(local)
    await run_one(local)
    fired = _told(local, stored.job_id)
    assert None not in await store.record(stored.job_id, fired)
    await plan_once(store)
    assert await statuses(store) == ["pending", "completed"]


async def test_what_is_recorded_in_a_queue_of_its_own_is_known_to_nodes(store: AnyStore, clock: ManualClock) -> None:
    """C-41: a node learns of a text of needs by `ahead`, also of one that only a recorded run has."""
    stored = await put(store, job(overlap="allow"))
    fired = await _fired(store, clock, stored.job_id)
    elsewhere = overrides(Level.OCCURRENCE, {"queue": "gpu"})
    runs = tuple(replace(run, creation=replace(run.creation, overrides=elsewhere)) for run in fired.runs)
    await store.record(stored.job_id, replace(fired, runs=runs))
    assert "queue:gpu" in (await store.ahead(NodeScope("node-1"))).needs
