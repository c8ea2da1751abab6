"""Processes that write to one store in Redis at the same time: who waits, and what the loser of a race does again."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from everytick.deciding.advance import advance
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import Stopping
from everytick.stores.base import Claim, Commit, Nodes
from everytick.stores.redis.store import RedisStore
from tests.servers.launch import Server
from tests.stores.acting import began, ended, everything, job, plan_once, put_all
from tests.stores.clock import ManualClock
from tests.stores.redis.kit import another, opened_redis


async def test_a_process_that_loses_again_and_again_gets_its_turn(
    redis: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow process loses to fast ones; with the turn, they wait for it, and go on afterwards."""
    # However slow it is: else its turn may pass before it writes.
    monkeypatch.setattr("everytick.stores.redis.log._TURN_MILLISECONDS", 60_000)
    async with opened_redis(redis, clock) as slow, another(slow, clock) as fast:
        commit, tries = slow._log.commit, 0

        async def after_the_other(*given: Any, **named: Any) -> Any:
            nonlocal tries
            tries += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2 if slow._log.has_turn else None):
                    await fast.beat("fast", [])
            return await commit(*given, **named)

        slow._log.commit = after_the_other  # type: ignore[method-assign]
        await slow.beat("slow", [])
        slow._log.commit = commit  # type: ignore[method-assign]
        await fast.beat("fast", [])
        assert tries == 4
        assert {node.id: node.beats for node in await slow.ask(Nodes())} == {"slow": 1, "fast": 4}


async def test_a_turn_that_nobody_takes_passes(redis: Server, clock: ManualClock) -> None:
    """Who asked for it may have died."""
    async with opened_redis(redis, clock) as store:
        await store._connections.client.set(store._connections.address.key("turn"), "a writer that is gone", px=300)
        await store.beat("node-1", [])
        assert [node.beats for node in await store.ask(Nodes())] == [1]


async def test_a_writer_goes_on_when_the_one_with_the_turn_has_written(
    redis: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears the log: a wait by the clock would last for the whole turn, here 90 s."""
    monkeypatch.setattr("everytick.stores.redis.log._TURN_MILLISECONDS", 90_000)
    monkeypatch.setattr("everytick.stores.redis.connections._ANSWER_SECONDS", 100.0)
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await give_turn(store)
        wait, waits = other._log.wait, asyncio.Event()

        async def heard_waiting() -> None:
            waits.set()
            await wait()

        other._log.wait = heard_waiting  # type: ignore[method-assign]
        async with asyncio.timeout(60):
            beating = asyncio.create_task(other.beat("other", []))
            await waits.wait()
            await store.beat("store", [])
            await beating
        assert {node.id: node.beats for node in await store.ask(Nodes())} == {"store": 1, "other": 1}


async def test_a_turn_ends_with_a_verb_that_finds_nothing_to_change(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store:
        await give_turn(store)
        assert await store.claim(await everything(store), 10) == []
        assert await store._connections.client.get(store._connections.address.key("turn")) is None


async def test_ends_are_sent_again_as_they_are_if_others_ended_other_jobs(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        [mine], [theirs] = await claimed_by_each(store, other, clock, jobs=2)
        runs = count_runs(store)
        before_commit(store, lambda: finish(other, theirs, clock))
        assert await finish(store, mine, clock) == [Commit.COMMITTED]
        assert runs == [1]
        assert await other.ahead(await everything(other)) == await store.ahead(await everything(store))


async def test_ends_are_decided_again_if_others_ended_the_same_job(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        [mine], [theirs] = await claimed_by_each(store, other, clock, jobs=1)
        assert mine.occurrence.job_id == theirs.occurrence.job_id
        before_commit(store, lambda: finish(other, theirs, clock))
        assert await finish(store, mine, clock) == [Commit.COMMITTED]
        [record] = await store.list()
        assert record.run_count == 2


async def test_what_is_given_back_is_held_if_others_disabled_its_job_meanwhile(
    redis: Server, clock: ManualClock
) -> None:
    """The step reads the job and changes nothing of it."""
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        [mine], _ = await claimed_by_each(store, other, clock, jobs=2)
        name = mine.job.name
        before_commit(store, lambda: put_all(other, [job(name, overlap="allow", enabled=False)]))
        given_back = advance(mine.header, mine.life, Stopping(), clock.time)
        assert await store.commit_steps([(mine, given_back)]) == [Commit.COMMITTED]
        assert (await store.whole(mine.occurrence.id)).occurrence.status is OccurrenceStatus.QUEUED


async def test_ends_are_stale_if_others_took_the_claims_over_meanwhile(redis: Server, clock: ManualClock) -> None:
    """C-09: the fence is looked at in the commit that writes the end, however often it is sent."""
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        [mine], _ = await claimed_by_each(store, other, clock, jobs=2)
        beats = {node.id: node.beats for node in await other.ask(Nodes()) if node.id == "node-1"}
        before_commit(store, lambda: other.orphans("node-2", 10, beats))
        assert await finish(store, mine, clock) == [Commit.STALE]


async def give_turn(store: RedisStore) -> None:
    """Let it be the turn of this store, as after some commits that it lost."""
    store._log.has_turn = True
    await store._connections.client.set(store._connections.address.key("turn"), store._log._writer, px=9_000)


async def claimed_by_each(
    store: RedisStore, other: RedisStore, clock: ManualClock, *, jobs: int
) -> tuple[list[Claim], list[Claim]]:
    """Claim one occurrence by each of two processes, of as many jobs."""
    await put_all(store, [job(f"job-{number}", overlap="allow") for number in range(jobs)])
    await plan_once(store)
    for _ in range(2):
        clock.move(hours=1)
        await plan_once(store)
    return (
        await store.claim(await everything(store, "node-1"), 1),
        await other.claim(await everything(other, "node-2"), 1),
    )


async def finish(store: RedisStore, claim: Claim, clock: ManualClock) -> Any:
    """Write the end of a claim."""
    return await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])


def before_commit(store: RedisStore, deed: Callable[[], Awaitable[object]]) -> None:
    """Let something happen before the next commit of this store comes to the server."""
    commit = store._log.commit

    async def after_the_deed(*given: Any, **named: Any) -> Any:
        store._log.commit = commit  # type: ignore[method-assign]
        await deed()
        return await commit(*given, **named)

    store._log.commit = after_the_deed  # type: ignore[method-assign]


def count_runs(store: RedisStore) -> list[int]:
    """Return a list whose only item says how often steps are carried out on the copy of this store."""
    replica, runs = store._replica, [0]
    assert replica is not None
    write = replica.verbs.commit_steps

    async def counted(steps: Any) -> Any:
        runs[0] += 1
        return await write(steps)

    replica.verbs.commit_steps = counted  # type: ignore[method-assign]
    return runs
