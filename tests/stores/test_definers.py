"""define, undefined and retire: what a start leaves out is marked, and removed only while the mark stands (C-42)."""

from dataclasses import replace
from datetime import timedelta

from everytick.domain.definers import NameSet, UndefinedJob, hash_of
from everytick.domain.lookups import UndefinedJobs
from everytick.stores.base import REMEMBERED
from tests.stores.acting import AnyStore, job, occurrences, plan_once, put, remove
from tests.stores.clock import ManualClock
from tests.stores.test_nodes import FACTS

TEN_MINUTES = timedelta(minutes=10)


async def test_a_job_that_a_start_leaves_out_is_marked_and_stays_in_service(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-42: a job left out is marked `undefined_since`, and goes on as before."""
    ids = [(await put(store, job(name))).job_id for name in ("a", "b", "c")]
    await store.define(["a"], left_out=["b", "c", "none"])
    undefined = await store.ask(UndefinedJobs())
    assert undefined.now == clock.time
    assert undefined.jobs == (UndefinedJob(ids[1], "b", clock.time), UndefinedJob(ids[2], "c", clock.time))
    assert undefined.sets == (NameSet(hash_of(["a"]), frozenset({"a"}), clock.time),)
    assert [each.job.name for each in await store.list()] == ["a", "b", "c"]
    clock.move(hours=1)
    await plan_once(store)
    assert len(await occurrences(store, ids[1])) == 1


async def test_a_mark_keeps_its_time_until_a_start_defines_the_job(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("a"))
    since = clock.time
    await store.define(["b"], left_out=["a"])
    clock.move(minutes=1)
    await store.define(["b"], left_out=["a"])
    assert [each.since for each in (await store.ask(UndefinedJobs())).jobs] == [since]
    await store.define(["a"])
    assert (await store.ask(UndefinedJobs())).jobs == ()
    assert (await store.ask(UndefinedJobs())).sets == ()


async def test_the_same_names_are_stored_once_with_the_time_of_the_last_start(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-42: a start stores its set of job names once."""
    await put(store, job("a"))
    await store.define(["b", "c"], left_out=["a"])
    clock.move(hours=1)
    await store.define(["c", "b"], left_out=["a"])
    await store.define([])
    told = {each.hash: (each.names, each.stored_at) for each in (await store.ask(UndefinedJobs())).sets}
    assert told == {hash_of("bc"): (frozenset("bc"), clock.time), hash_of(""): (frozenset(), clock.time)}


async def test_retire_removes_only_what_still_has_the_mark_that_was_seen(store: AnyStore, clock: ManualClock) -> None:
    """C-42: retire_at = now + 10 min, on the condition that no start has defined the job meanwhile."""
    a, b = [(await put(store, job(name))).job_id for name in ("a", "b")]
    await store.define([], left_out=["a", "b"])
    marks = {each.job_id: each.since for each in (await store.ask(UndefinedJobs())).jobs}
    clock.move(minutes=1)
    await store.define(["b"])
    await store.define([], left_out=["b"])
    assert await store.retire({**marks, "job_none": clock.time}, after=REMEMBERED, by="node-1") == {a}
    gone = {each.job.id: each for each in await store.list(removed=True)}[a]
    assert (gone.removed_at, gone.retire_at, gone.removed_by) == (clock.time, clock.time + TEN_MINUTES, "node-1")
    assert gone.next_run is None
    assert [each.job_id for each in (await store.ask(UndefinedJobs())).jobs] == [b]
    assert await store.retire(marks, after=REMEMBERED) == frozenset()


async def test_a_job_that_retires_comes_back_without_a_mark_and_with_its_watermark(
    store: AnyStore, clock: ManualClock
) -> None:
    id_ = (await put(store, job("a"))).job_id
    before = (await store.get([id_]))[id_].watermark
    await store.define([], left_out=["a"])
    marks = {each.job_id: each.since for each in (await store.ask(UndefinedJobs())).jobs}
    await store.retire(marks, after=REMEMBERED)
    clock.move(minutes=5)
    await put(store, job("a"))
    record = (await store.get([id_]))[id_]
    assert (record.removed_at, record.retire_at, record.watermark) == (None, None, before)
    assert (await store.ask(UndefinedJobs())).jobs == ()


async def test_an_edit_and_a_removal_take_the_mark_away(store: AnyStore, clock: ManualClock) -> None:
    """A job that was detached, or removed by hand, must not be removed again for an old mark."""
    edited, removed = [(await put(store, job(name))).job_id for name in ("edited", "removed")]
    await store.define([], left_out=["edited", "removed"])
    marks = {each.job_id: each.since for each in (await store.ask(UndefinedJobs())).jobs}
    assert set(marks) == {edited, removed}
    await put(store, job("edited", when="30 * * * *"))
    await remove(store, removed)
    assert (await store.ask(UndefinedJobs())).jobs == ()
    assert await store.retire(marks, after=REMEMBERED) == frozenset()
    await put(store, job("removed"))
    assert (await store.ask(UndefinedJobs())).jobs == ()


async def test_a_set_is_forgotten_a_day_after_the_last_node_that_names_it(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("a"))
    await store.define(["b"])
    await store.define(["c"])
    await store.beat("node-1", [], replace(FACTS, defines=(hash_of("b"),)))
    clock.move(hours=25)
    await store.beat("node-1", [], replace(FACTS, defines=(hash_of("b"),), pid=1))
    await store.define([], left_out=["a"])
    assert {each.hash for each in (await store.ask(UndefinedJobs())).sets} == {hash_of("b"), hash_of("")}
