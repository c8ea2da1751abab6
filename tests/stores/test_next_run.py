"""next_run: every plan and every verb that changes it writes down when a job runs next, in its own transaction."""

from datetime import timedelta

from everytick import schedule
from everytick.domain.changes import Put, Remove, Tell
from everytick.domain.facts import Move, Pause, Reschedule, Resume, Skip
from everytick.domain.upcoming import next_run
from tests.stores.acting import AnyStore, job, plan_once, put, put_all, remove, rename
from tests.stores.clock import ManualClock

HOUR = timedelta(hours=1)


async def _agreed(store: AnyStore, clock: ManualClock, name: str = "report") -> object:
    """What the store says, which must be what follows from the facts."""
    id_ = job(name).id
    kept = (await store.get([id_]))[id_].next_run
    assert kept == next_run((await store.look([id_]))[id_], clock.time)
    return kept


async def test_the_next_run_is_kept_by_every_verb_without_a_node(store: AnyStore, clock: ManualClock) -> None:
    """W1, S1-023, S1-025: no plan is made between the verb and the question."""
    id_ = (await put(store, job())).job_id
    first = clock.time + HOUR
    assert await _agreed(store, clock) == first

    await store.request(id_, Reschedule(first + timedelta(minutes=330)))
    assert await _agreed(store, clock) == first + timedelta(minutes=330)
    await put(store, job(when="30 * * * *"))
    await put(store, job())
    assert await _agreed(store, clock) == first + timedelta(minutes=330)


async def test_a_skipped_and_a_moved_instant_are_seen_at_once(store: AnyStore, clock: ManualClock) -> None:
    """W1: a skip leaves the instant after it, a move leaves its target."""
    id_ = (await put(store, job())).job_id
    first = clock.time + HOUR
    await store.request(id_, Skip(first))
    assert await _agreed(store, clock) == first + HOUR
    await store.request(id_, Move(first, first + timedelta(minutes=40)))
    assert await _agreed(store, clock) == first + timedelta(minutes=40)


async def test_a_pause_a_disabled_and_a_removed_job_are_seen_at_once(store: AnyStore, clock: ManualClock) -> None:
    """W1, S1-024: a pause with an end leaves the first instant after it; without one there is none."""
    id_ = (await put(store, job())).job_id
    first = clock.time + HOUR
    await store.request(id_, Pause(until=clock.time + timedelta(minutes=190)))
    assert await _agreed(store, clock) == first + 3 * HOUR
    await store.request(id_, Pause())
    assert await _agreed(store, clock) is None
    await store.request(id_, Resume())
    assert await _agreed(store, clock) == first
    await put(store, job(enabled=False))
    assert await _agreed(store, clock) is None
    await put(store, job())
    assert await _agreed(store, clock) == first
    await rename(store, id_, "renamed")
    assert (await store.get([id_]))[id_].next_run == first
    await remove(store, id_)
    assert (await store.get([id_]))[id_].next_run is None


async def test_many_changes_together_leave_each_its_next_run(store: AnyStore, clock: ManualClock) -> None:
    """W1: one transaction, one look at all that it changed."""
    await put_all(store, [job("a"), job("b"), job("c"), job("d")])
    first = clock.time + HOUR
    await store.apply([Tell("b", Pause(by="me")), Put(job("a", "30 * * * *")), Put(job("e")), Remove("c")])
    assert await _agreed(store, clock, "a") == first - timedelta(minutes=30)
    assert [await _agreed(store, clock, name) for name in "bcde"] == [None, None, first, first]
    await store.apply([Tell("b", Resume("me"))])
    assert await _agreed(store, clock, "b") == first


async def test_the_next_run_is_not_the_next_look(store: AnyStore, clock: ManualClock) -> None:
    """W1, S1-025: a plain plan of a job that is stopped at half past wakes it then, and it runs at the full hour."""
    id_ = (await put(store, job(stop_schedule=schedule("30 * * * *")))).job_id
    first = clock.time + HOUR
    clock.move(hours=1)
    await plan_once(store)
    record = (await store.get([id_]))[id_]
    assert (record.wake_at, record.next_run) == (first + HOUR / 2, first + HOUR)
    assert await _agreed(store, clock) == first + HOUR


async def test_every_plan_says_when_its_job_runs_next(store: AnyStore, clock: ManualClock) -> None:
    """W1, S1-014: also where it decided nothing, and where the next instant was skipped by hand."""
    id_ = (await put(store, job())).job_id
    first = clock.time + HOUR
    await plan_once(store)
    assert await _agreed(store, clock) == first
    await store.request(id_, Skip(first + HOUR))
    clock.move(hours=1)
    await plan_once(store)
    assert await _agreed(store, clock) == first + 2 * HOUR
    await store.request(id_, Pause(until=first + timedelta(minutes=90)))
    clock.move(minutes=90)
    await plan_once(store)
    assert await _agreed(store, clock) == first + 2 * HOUR
