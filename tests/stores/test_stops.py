"""What asks an occurrence to stop says who it is, and a stop schedule asks once."""

from everytick import schedule
from everytick.deciding.plan import plan
from everytick.domain.facts import Cancel, Pause, Resume, Rewind
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import AnyStore, claim_one, job, plan_once, put
from tests.stores.clock import ManualClock


async def test_each_that_is_asked_to_stop_hears_what_asks_it(store: AnyStore, clock: ManualClock) -> None:
    """S4-044, C-11: a stop schedule, a restart schedule and cancel_running, all decided in one batch."""
    at_eleven = schedule("0 11 * * *")
    await put(store, job("overlaps", overlap="cancel_running"))
    await put(store, job("restarts", "0 10 * * *", restart_schedule=at_eleven))
    await put(store, job("stops", "0 10 * * *", stop_schedule=at_eleven))
    await put(store, job("stops-and-overlaps", stop_schedule=at_eleven, overlap="cancel_running"))
    clock.move(hours=1)
    while await plan_once(store):
        pass
    claims = await store.claim(NodeScope("node-1"), 10)
    names = {claim.key: claim.job.name for claim in claims}
    clock.move(hours=1)
    assert await plan_once(store) == [Commit.COMMITTED] * 4

    asked = {names[key]: why for key, why in (await store.beat("node-1", list(names))).cancel}
    assert asked == {
        "overlaps": "asked by overlap cancel_running",
        "restarts": "asked by the restart schedule",
        "stops": "asked by the stop schedule",
        "stops-and-overlaps": "asked by the stop schedule",
    }


async def test_a_plan_leaves_the_reason_of_a_person_who_asked_before_it(store: AnyStore, clock: ManualClock) -> None:
    """C-11: the first request gives the reason; a person who asks later replaces it."""
    await put(store, job("overlaps", overlap="cancel_running"))
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 10)
    await store.request(claim.occurrence.id, Cancel("ada said so"))
    clock.move(hours=1)
    assert await plan_once(store) == [Commit.COMMITTED]
    assert (await store.beat("node-1", [claim.key])).cancel == ((claim.key, "ada said so"),)

    await store.request(claim.occurrence.id, Cancel("bob said so"))
    assert (await store.beat("node-1", [claim.key])).cancel == ((claim.key, "bob said so"),)


async def test_a_stop_of_a_disabled_job_is_remembered(store: AnyStore, clock: ManualClock) -> None:
    """S4-044: the instants of a disabled job stay undecided, and a second plan asks no one to stop again."""
    stored = await put(store, job(grace="20m"))
    clock.move(hours=1)
    await plan_once(store)
    await claim_one(store)
    await put(store, job(grace="20m", enabled=False, stop_schedule=schedule("30 * * * *")))
    await plan_once(store)
    clock.move(minutes=30)
    stop = clock.time
    before = (await store.look([stored.job_id]))[stored.job_id]
    assert len(plan(before, stop).cancels) == 1
    assert before.stopped_at is None

    await plan_once(store)

    after = (await store.look([stored.job_id]))[stored.job_id]
    assert (after.stopped_at, after.watermark < stop) == (stop, True)
    clock.move(minutes=1)
    assert plan(after, clock.time).cancels == ()


async def _stopped_ahead(store: AnyStore, clock: ManualClock) -> str:
    """Return the id of a paused job whose clock was ahead at a stop of its busy occurrence."""
    stored = await put(store, job(grace="20m", stop_schedule=schedule("30 * * * *")))
    clock.move(hours=1)
    await plan_once(store)
    await claim_one(store)
    await store.request(stored.job_id, Pause())
    await plan_once(store)
    clock.move(days=365, minutes=30)
    await plan_once(store)
    [seen] = (await store.look([stored.job_id])).values()
    assert seen.stopped_at == clock.time
    return stored.job_id


async def _is_stopped(store: AnyStore, clock: ManualClock, job_id: str) -> bool:
    """Whether the job obeys the stop of half past, half an hour after the clock was set right."""
    clock.move(minutes=30)
    return plan((await store.look([job_id]))[job_id], clock.time).cancels != ()


async def test_a_stop_that_was_obeyed_ahead_leaves_the_next_ones_to_be_obeyed(
    store: AnyStore, clock: ManualClock
) -> None:
    """S4-044, C-45: no later than a year from now, as the clock once said."""
    job_id = await _stopped_ahead(store, clock)
    clock.move(days=-365, minutes=-30)
    await store.settle_clock()

    [seen] = (await store.look([job_id])).values()
    assert seen.stopped_at == clock.time
    assert await _is_stopped(store, clock, job_id)


async def test_a_job_that_is_set_right_obeys_its_next_stop(store: AnyStore, clock: ManualClock) -> None:
    """S4-044, C-45: its watermark lies ahead too, as that of a job whose pause ended while the clock was ahead."""
    job_id = await _stopped_ahead(store, clock)
    await store.request(job_id, Resume())
    await plan_once(store)
    clock.move(days=-365, minutes=-30)
    await store.settle_clock()
    assert (await store.request(job_id, Rewind())).changed

    assert await _is_stopped(store, clock, job_id)
