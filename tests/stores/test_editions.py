"""editions: every version of a definition is kept, and can be had by its number or by a moment."""

from datetime import timedelta

import pytest

from everytick.domain.lookups import Editions
from everytick.errors import NotFound
from tests.stores.acting import AnyStore, job, plan_once, put
from tests.stores.clock import ManualClock


async def _edited(store: AnyStore, clock: ManualClock) -> str:
    """Three versions, each made an hour after the other and decided about."""
    for when in ("0 * * * *", "30 * * * *", "45 * * * *"):
        stored = await put(store, job(when=when))
        clock.move(hours=1)
        await plan_once(store)
    return stored.job_id


async def test_a_version_is_found_by_its_number_long_after_it_was_replaced(store: AnyStore, clock: ManualClock) -> None:
    begun = clock.time
    id_ = await _edited(store, clock)
    first, third = await store.ask(Editions(id_, [3, 1]))
    assert (first.job.version, str(first.job.schedule), first.in_force_after) == (1, "cron: 0 * * * *", None)
    assert (third.job.version, third.in_force_after) == (3, begun + timedelta(hours=2))
    assert (third.job.id, third.job.created_at) == (id_, begun)
    assert await store.ask(Editions(id_)) == []
    assert await store.ask(Editions(id_, [0, 4])) == []
    with pytest.raises(NotFound):
        await store.ask(Editions("nobody", [1]))


async def test_a_version_is_found_by_a_moment_at_which_it_was_in_force(store: AnyStore, clock: ManualClock) -> None:
    """An instant at the very moment of an edit belongs to the old one."""
    begun = clock.time
    id_ = await _edited(store, clock)
    for hours, version in ((-9, 1), (0, 1), (1, 1), (1.5, 2), (2, 2), (2.1, 3), (99, 3)):
        found = await store.ask(Editions(id_, at=begun + timedelta(hours=hours)))
        assert [each.job.version for each in found] == [version], hours
    both = await store.ask(Editions(id_, [1], at=clock.time))
    assert [each.job.version for each in both] == [1, 3]
