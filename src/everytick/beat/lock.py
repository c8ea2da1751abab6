"""The lock of a schedule in Redis: it spares beats useless work, and nothing rests on it (S3-015, S3-016)."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING

from everytick.beat.redis_client import RedisScript, ScriptCall, Unanswered, answered, called
from everytick.domain.texts import LOCK_FAILED
from everytick.errors import EverytickError

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Self

    from everytick.beat.redis_client import RedisClient

RELEASE = RedisScript("""
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
""")

EXTEND = RedisScript("""
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
""")


class LockUnavailable(EverytickError):
    """Redis did not say whether the lock is free."""

    code = "lock_unavailable"


class ScheduleLock:
    """A lock that is held by its token until it is released or its time is over."""

    __slots__ = ("_client", "key", "token", "ttl")

    def __init__(self, client: RedisClient, key: str, ttl: timedelta, token: str = "") -> None:
        self._client, self.key, self.ttl, self.token = client, key, ttl, token or token_hex(16)

    @classmethod
    async def acquire(cls, client: RedisClient, key: str, ttl: timedelta) -> Self | None:
        """Take the lock and return it, or None while another holds it. Raise LockUnavailable if Redis fails."""
        lock = cls(client, key, ttl)
        try:
            taken = await answered(client.set(key, lock.token, nx=True, px=ttl))
        except Unanswered as error:
            raise LockUnavailable(LOCK_FAILED.format(cause=error)) from error
        return lock if taken else None

    async def release(self) -> bool:
        """Let go of the lock if it is still ours; tell whether it was."""
        [answer] = await called(self._client, [self.release_call()])
        return _is_done(answer)

    async def extend(self, ttl: timedelta | None = None) -> bool:
        """Let the lock live for another `ttl` from now if it is still ours; tell whether it was."""
        call = ScriptCall(EXTEND, [self.key], self.token, milliseconds(ttl or self.ttl))
        [answer] = await called(self._client, [call])
        return _is_done(answer)

    def release_call(self) -> ScriptCall:
        """Return what lets go of the lock, to be sent with other calls."""
        return ScriptCall(RELEASE, [self.key], self.token)


def _is_done(answer: object) -> bool:
    if isinstance(answer, Exception):
        raise answer
    return answer == 1


def milliseconds(ttl: timedelta) -> int:
    """Return a length as Redis takes it."""
    return max(round(ttl.total_seconds() * 1000), 1)
