"""The connection to Redis: made of an address or taken as it is, and scripts that are sent once."""

from __future__ import annotations

import asyncio
from hashlib import sha1
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from everytick.config.settings import without_password
from everytick.errors import InvalidSetting, MissingExtra

try:
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import NoScriptError, RedisError, ResponseError
except ImportError:  # pragma: no cover - told once, with what to install
    raise MissingExtra("a beat on Redis", "redis") from None

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

T = TypeVar("T")
RedisClient: TypeAlias = "Redis"
BeatRedis: TypeAlias = "str | Redis"

Unanswered = (RedisError, OSError, asyncio.TimeoutError)
"""Redis is away, or refuses what it was asked."""

_ANSWER_SECONDS = 5.0
"""How long Redis may take. A tick that waits longer is over, and the next one asks again."""

_SCHEMES = ("redis://", "rediss://", "unix://")


def connected(address: BeatRedis) -> tuple[RedisClient, bool]:
    """Return a client, and whether it is ours to close. Nothing is sent before it is first used.

    A client of ours repeats nothing by itself: the next tick does.
    """
    if isinstance(address, Redis):
        return address, False
    text = str(address)
    if text.startswith("valkey"):
        text = "redis" + text.removeprefix("valkey")
    if not text.startswith(_SCHEMES):
        raise InvalidSetting(
            "redis", without_password(text), "must be an address like redis://localhost:6379/0, or a client"
        )
    options: dict[str, Any] = {
        # With a timeout, redis-py sends by `asyncio.wait_for`, which before Python 3.12 may swallow a cancellation.
        # `answered` has the limit instead.
        "socket_timeout": None,
        "socket_connect_timeout": _ANSWER_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }
    return Redis.from_url(text, **options), True


async def answered(question: Awaitable[T]) -> T:
    """Return what Redis answers. Raise TimeoutError if it takes too long: the connection is closed then."""
    async with asyncio.timeout(_ANSWER_SECONDS):
        return await question


class RedisScript:
    """A Lua text. The server keeps it, and is asked for it by its hash."""

    __slots__ = ("sha", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = sha1(text.encode(), usedforsecurity=False).hexdigest()


class ScriptCall:
    """One call of a script."""

    __slots__ = ("arguments", "keys", "script")

    def __init__(self, script: RedisScript, keys: Sequence[str], *arguments: str | int) -> None:
        self.script, self.keys, self.arguments = script, keys, arguments


async def called(client: RedisClient, calls: Sequence[ScriptCall]) -> list[Any]:
    """Send all calls at once and return what each came to: its answer, or the error that Redis has for it.

    A server that does not know a script yet, or no longer, is told it. Only the calls that it refused are repeated.
    """
    answers = await _sent(client, calls)
    refused = [number for number, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
    if refused:
        for script in {calls[number].script.sha: calls[number].script for number in refused}.values():
            await answered(client.script_load(script.text))
        for number, answer in zip(refused, await _sent(client, [calls[number] for number in refused]), strict=True):
            answers[number] = answer
    return answers


async def _sent(client: RedisClient, calls: Sequence[ScriptCall]) -> list[Any]:
    if len(calls) == 1:  # most ticks are one call, which takes two thirds of the time without a pipeline
        [call] = calls
        try:
            return [await answered(client.evalsha(call.script.sha, len(call.keys), *call.keys, *call.arguments))]
        except ResponseError as error:
            return [error]
    pipe = client.pipeline(transaction=False)
    for call in calls:
        pipe.evalsha(call.script.sha, len(call.keys), *call.keys, *call.arguments)
    return list(await answered(pipe.execute(raise_on_error=False)))


def text_of(answer: Any) -> str:
    """Return what Redis answered as text: a client decodes it or does not."""
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else "" if answer is None else str(answer)
