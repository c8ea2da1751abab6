"""apply with many Puts: definitions in one transaction."""

import pytest

from everytick.errors import TooManyEditions
from everytick.stores.base import Stored
from tests.stores.acting import AnyStore, job, plan_once, put, put_all, remove, rename
from tests.stores.clock import ManualClock


async def test_each_is_stored_as_a_put_would_and_answered_in_order(store: AnyStore, clock: ManualClock) -> None:
    """New ones begin, changed ones get a version, equal ones stay."""
    await put_all(store, [job("equal"), job("changed")])
    await plan_once(store)
    before = await store.get([job("equal").id])
    clock.move(minutes=1)

    stored = await put_all(store, [job("new"), job("changed", when="30 * * * *"), job("equal")])

    assert stored == [
        Stored(job("new").id, 1, changed=True),
        Stored(job("changed").id, 2, changed=True),
        Stored(job("equal").id, 1, changed=False),
    ]
    assert await store.get([job("equal").id]) == before
    assert [(each.job.name, each.job.version, each.wake_at) for each in await store.list()] == [
        ("changed", 2, clock.time),
        ("equal", 1, before[job("equal").id].wake_at),
        ("new", 1, clock.time),
    ]


async def test_it_leaves_what_as_many_puts_leave(store: AnyStore, clock: ManualClock) -> None:
    """The records are equal, for every place where a new job may begin."""
    begins = ("next", "if_matching_now", "immediately")
    clock.move(seconds=20)
    await put_all(store, [job(f"together {begin}", on_create=begin) for begin in begins])
    for begin in begins:
        await put(store, job(f"alone {begin}", on_create=begin))
    records = {record.job.name: record for record in await store.list()}
    for begin in begins:
        one, other = records[f"alone {begin}"], records[f"together {begin}"]
        assert (one.watermark, one.wake_at, one.revision) == (other.watermark, other.wake_at, other.revision)
        assert one.job.settings == other.job.settings
    assert len(await plan_once(store)) == 6


async def test_one_that_is_refused_undoes_all_of_them(store: AnyStore, clock: ManualClock) -> None:
    """S2-062, S2-067: what was there is there, and nothing is new."""
    await put(store, job("worn"))
    await put(store, job("well"))
    for number in range(1, 16):
        clock.move(seconds=1)
        await put(store, job("worn", when=f"{number} * * * *"))
    before = await store.list()

    with pytest.raises(TooManyEditions):
        await put_all(store, [job("new"), job("well", description="edited"), job("worn", description="too many")])
    assert await store.list() == before


async def test_what_was_removed_comes_back_and_what_was_renamed_keeps_its_id(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-22, C-25."""
    removed = await put(store, job("removed"))
    renamed = await put(store, job("renamed"))
    await remove(store, removed.job_id)
    await rename(store, renamed.job_id, "other")
    clock.move(minutes=1)

    stored = await put_all(store, [job("removed"), job("renamed")])
    assert stored[0].job_id == removed.job_id
    assert stored[1].job_id != renamed.job_id
    assert [each.job.name for each in await store.list()] == ["other", "removed", "renamed"]


async def test_none_is_nothing(store: AnyStore) -> None:
    assert await put_all(store, []) == []
    assert await store.list() == []
