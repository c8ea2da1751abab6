"""existing: which ids there are, asked one by one or as a range (A10)."""

from datetime import timedelta

from everytick.domain.facts import Trigger
from everytick.domain.ids import occurrence_id
from everytick.domain.lookups import ExistingIds, IdRange
from tests.stores.acting import AnyStore, job, plan_once, put
from tests.stores.clock import ManualClock


async def test_a_range_holds_what_was_created_and_what_is_asked_for(store: AnyStore, clock: ManualClock) -> None:
    """A10: the beginning of an id is a range of ids; both ends belong to it, and an index answers for it."""
    stored = await put(store, job(recovery="execute_all", overlap="allow"))
    clock.move(hours=3)
    await plan_once(store)
    asked = await store.request(stored.job_id, Trigger("key", at=clock.time + timedelta(hours=1)))
    instants = [clock.time.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours) for hours in range(3)]
    created = [occurrence_id(stored.job_id, instant) for instant in instants]
    ids = sorted({*created, asked.id})

    assert len(ids) == 4
    assert await store.ask(IdRange(ids[0], ids[-1])) == set(ids)
    assert await store.ask(IdRange(ids[1], ids[2])) == set(ids[1:3])
    assert await store.ask(IdRange(ids[0], ids[-1], limit=2)) == set(ids[:2])
    assert await store.ask(IdRange(ids[-1], ids[0])) == set()
    assert await store.ask(ExistingIds(ids)) == set(created)
