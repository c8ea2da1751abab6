"""What has ended long ago stays in Redis: a copy holds the newest, and reads the rest when a verb asks for it."""

from datetime import timedelta
from typing import Any

import pytest

from everytick.domain.facts import Replay
from everytick.domain.lookups import ExistingIds, IdRange
from everytick.domain.questions import Alike, Buckets, Counts, Days, LastRuns, Lengths, TimeWindow
from everytick.stores.base import Commit, HistoryFilter
from everytick.stores.memory import MemoryStore
from everytick.stores.memory.local import LocalStore
from everytick.stores.redis.reading_ended import AT_FIRST
from everytick.stores.redis.store import RedisStore
from tests.servers.launch import Server
from tests.stores.acting import (
    FAILED,
    AnyStore,
    began,
    claim_one,
    deliver,
    ended,
    everything,
    job,
    occurrences,
    plan_once,
    put,
    remove,
    run_one,
    statuses,
)
from tests.stores.clock import START, ManualClock
from tests.stores.redis.kit import another, opened_redis

RUNS = 60


async def lived(store: AnyStore, clock: ManualClock, **policies: Any) -> str:
    """Let an hourly job run sixty times; every seventh run fails."""
    job_id = (await put(store, job(**policies))).job_id
    await plan_once(store)
    for number in range(RUNS):
        clock.move(hours=1)
        await plan_once(store)
        await run_one(store, FAILED if number % 7 == 0 else None)
        await deliver(store)
    return job_id


def held(store: RedisStore) -> int:
    """Return how many occurrences the copy holds."""
    assert store._replica is not None
    return len(store._replica._tables.occurrences)


async def test_a_copy_holds_few_and_answers_as_if_it_held_all(redis: Server) -> None:
    """The answers are those of memory, whatever was asked before; afterwards the copy holds few again."""
    clock, other = ManualClock(), ManualClock()
    specified = MemoryStore(other)
    await lived(specified, other)
    async with opened_redis(redis, clock, held_at_most=0) as store:
        job_id = await lived(store, clock)
        assert held(store) < 10
        for question in (
            LastRuns((job_id,), 30),
            Counts(job_id),
            Counts(job_id, START + timedelta(hours=10), START + timedelta(hours=20)),
            Lengths((job_id,)),
            Days(job_id, START.year),
            Buckets(START, clock.time, timedelta(hours=1)),
            TimeWindow(START + timedelta(hours=5), START + timedelta(hours=40)),
            Alike(START),
        ):
            assert await store.ask(question) == await specified.ask(question), question
            assert held(store) < 10
        pages, cursor = [], None
        while True:
            page = await store.history(HistoryFilter(limit=7, cursor=cursor))
            pages += [each.id for each in page.occurrences]
            if (cursor := page.cursor) is None:
                break
        assert pages == [each.id for each in (await specified.history(HistoryFilter(limit=1000))).occurrences]
        assert len(pages) == RUNS
        assert await store.whole(pages[-1]) == await specified.whole(pages[-1])
        assert await store.ask(ExistingIds([pages[-1], "occ_none"])) == {pages[-1]}
        assert await store.ask(IdRange(pages[-1][:8], pages[-1])) == await specified.ask(
            IdRange(pages[-1][:8], pages[-1])
        )
        assert held(store) < 10


async def test_a_new_copy_reads_the_newest_only(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store:
        await lived(store, clock)
        async with another(store, clock) as other:
            assert held(other) == AT_FIRST
            assert await occurrences(other) == await occurrences(store)


async def test_retention_and_purge_reach_what_is_not_held(redis: Server, clock: ManualClock) -> None:
    """S0-133: what is forgotten is gone from the server, with every set that named it."""
    async with opened_redis(redis, clock, held_at_most=0) as store:
        job_id = await lived(store, clock, retention={"success": "12h", "failure": "12h", "keep_last": 3})
        clock.move(hours=13)
        assert await store.prune(1000) == RUNS - 3
        assert len(await occurrences(store)) == 3
        client, key = store._connections.client, store._connections.address.key
        assert await client.zcard(key("ids")) == await client.zcard(key(f"job/{job_id}/occurrences")) == 3
        await remove(store, job_id)
        while not await store.purge(job_id, 2):
            pass
        left = [name async for name in client.scan_iter(match=f"*{store._connections.address.prefix}*/job/*")]
        assert left == []
        assert await client.zcard(key("ids")) == await client.zcard(key("failed")) == 0


async def test_a_replay_takes_over_the_results_of_what_is_not_held(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock, held_at_most=0) as store:
        job_id = await lived(store, clock)
        first = (await occurrences(store))[1]
        receipt = await store.request(job_id, Replay("again", first.id, first.scheduled_for, keeps=("main",)))
        await plan_once(store)
        [claim] = await store.claim(await everything(store), 10)
        assert claim.occurrence.id == receipt.id
        assert claim.life.runs[0].is_kept


async def test_an_end_that_is_written_again_is_recognised_when_it_is_not_held(
    redis: Server, clock: ManualClock
) -> None:
    async with opened_redis(redis, clock, held_at_most=0) as store:
        await put(store, job())
        await plan_once(store)
        clock.move(hours=1)
        await plan_once(store)
        claim = await claim_one(store)
        step = ended(claim, began(claim, clock.time), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
        await deliver(store)
        for _ in range(5):
            clock.move(hours=1)
            await plan_once(store)
            await run_one(store)
            await deliver(store)
        assert held(store) < 5
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]


@pytest.mark.parametrize("held_at_most", [0, 20_000])
async def test_occurrences_of_one_instant_are_not_lost_between_two_reads(
    redis: Server, clock: ManualClock, held_at_most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many may stand at one instant, such as replays: a read that ends among them goes on with the others."""
    monkeypatch.setattr("everytick.stores.redis.reading_ended.OLDER", 3)
    async with opened_redis(redis, clock, held_at_most) as store:
        job_id = await lived(store, clock)
        first = (await occurrences(store))[0]
        for number in range(8):
            await store.request(job_id, Replay(f"again-{number}", first.id, first.scheduled_for))
        for _ in range(8):
            await plan_once(store)
            await run_one(store)
            await deliver(store)
        async with another(store, clock, held_at_most) as other:
            assert len({each.id for each in await occurrences(other)}) == RUNS + 8


async def test_what_was_fired_elsewhere_takes_the_place_of_a_plan_in_a_copy_that_holds_few(
    redis: Server, clock: ManualClock
) -> None:
    """C-28: the verb deletes the occurrence and makes it anew; it asks the server for neither."""
    async with opened_redis(redis, clock, held_at_most=0) as store:
        job_id = await lived(store, clock)
        local = LocalStore(clock, store)
        local.adopt((await store.look([job_id]))[job_id], clock.time)
        clock.move(hours=1)
        await plan_once(local)
        await run_one(local)
        await plan_once(store)
        part = local.hand_over("node-1")
        assert part is not None
        assert None not in await store.record(job_id, part.fired)
        assert (await statuses(store))[-1] == "completed"
        assert await store.claim(await everything(store), 10) == []
