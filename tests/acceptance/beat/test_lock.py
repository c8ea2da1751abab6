"""The lock of a schedule in a real Redis."""

import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from everytick.beat import ScheduleLock
from everytick.beat.lock import LockUnavailable
from tests.acceptance.beat.beats import until

KEY, TTL = "bananas:schedule_lock:cleanup", timedelta(seconds=60)


async def test_one_of_many_gets_the_lock(client: Redis) -> None:
    """S3-015, S3-033: set only if absent, with a token of its own and a life of 60 seconds."""
    taken = [
        lock for lock in await asyncio.gather(*(ScheduleLock.acquire(client, KEY, TTL) for _ in range(20))) if lock
    ]

    assert len(taken) == 1
    assert await client.get(KEY) == taken[0].token
    assert 59_000 < await client.pttl(KEY) <= 60_000
    assert len(taken[0].token) == 32


async def test_only_its_holder_releases_it(client: Redis) -> None:
    """S3-016: after its life is over and another has it, the first lets go of nothing."""
    first = await ScheduleLock.acquire(client, KEY, TTL)
    assert first is not None
    await client.delete(KEY)  # as its expiry does
    second = await ScheduleLock.acquire(client, KEY, TTL)
    assert second is not None

    assert not await first.release()
    assert await client.get(KEY) == second.token
    assert await second.release()
    assert await client.get(KEY) is None
    assert not await second.release()


async def test_only_its_holder_extends_it(client: Redis) -> None:
    """S3-016."""
    first = await ScheduleLock.acquire(client, KEY, timedelta(seconds=5))
    assert first is not None
    assert await first.extend(TTL)
    assert 59_000 < await client.pttl(KEY) <= 60_000
    await client.set(KEY, "another", px=1_000)

    assert not await first.extend(TTL)
    assert await client.pttl(KEY) <= 1_000


async def test_a_lock_ends_by_itself(client: Redis) -> None:
    """S3-015, S3-033: its holder may have died."""
    assert await ScheduleLock.acquire(client, KEY, timedelta(milliseconds=1))

    await until(lambda: ScheduleLock.acquire(client, KEY, TTL))


async def test_a_redis_that_refuses_is_told_with_its_cause(client: Redis) -> None:
    """S3-018: the text of the error."""
    await client.config_set("maxmemory", 1)

    with pytest.raises(LockUnavailable, match=r"^failed to acquire lock: .*maxmemory"):
        await ScheduleLock.acquire(client, KEY, TTL)


async def test_scripts_are_sent_again_to_a_server_that_forgot_them(client: Redis) -> None:
    lock = await ScheduleLock.acquire(client, KEY, TTL)
    assert lock is not None
    await client.script_flush()

    assert await lock.extend(TTL)
    await client.script_flush()
    assert await lock.release()
