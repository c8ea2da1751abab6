"""What asks an occurrence to stop says who it is."""

from everytick import schedule
from everytick.domain.facts import Cancel
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import AnyStore, job, plan_once, put
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
