"""Connections to the server, the scripts, and what failures mean. Nothing here knows a row."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from everytick.domain.values import value
from everytick.errors import InvalidSetting, MissingExtra, StoreBroken, StoreUnavailable

try:
    from redis import asyncio as driver
    from redis import exceptions
except ImportError:  # pragma: no cover - told once, with what to install
    raise MissingExtra("the Redis store", "redis") from None

T = TypeVar("T")

SCHEMES = ("redis", "rediss", "valkey", "valkeys")
_USUAL_PREFIX = "everytick"
_OPTIONS = {"ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile"}
_ANSWER_SECONDS = 10.0
"""How long the server may take for one answer."""

_AWAY = (
    OSError,
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.BusyLoadingError,
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
)


_PASSING = ("OOM", "MISCONF", "NOREPLICAS", "READONLY", "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN")
"""What a server says that cannot write for a while. Redis 6 wraps it in an error of its own if a script was refused."""


@value
class RedisAddress:
    """The address of the store: the server's URL, and the name under which all keys stand."""

    url: str
    prefix: str = _USUAL_PREFIX

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        place = f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}"
        return f"Redis at {place}{parts.path}, keys {self.key('*')}"

    def key(self, path: str) -> str:
        """Return a key. The braces are a hash tag: in a cluster all keys of the store lie in one slot."""
        return f"{{{self.prefix}}}/{path}"


def read_address(url: str) -> RedisAddress:
    """Return the address. `?prefix=…` is removed from the URL; Valkey speaks the protocol of Redis."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    prefix = given.pop("prefix", _USUAL_PREFIX)
    if not prefix or not all(letter.isalnum() or letter in "_-.:" for letter in prefix):
        raise InvalidSetting("store", f"?prefix={prefix}", "must be letters, digits and any of _ - . : and not empty")
    if unknown := sorted(given.keys() - _OPTIONS):
        reason = f"is no option of this store; there are prefix, {', '.join(sorted(_OPTIONS))}"
        raise InvalidSetting("store", f"?{unknown[0]}={given[unknown[0]]}", reason)
    if (database := parts.path.removeprefix("/")) and not database.isdecimal():
        raise InvalidSetting("store", database, "must be the number of a database: redis://host:6379/0")
    try:
        _ = parts.port
    except ValueError:
        place = parts.netloc.rpartition("@")[2]
        raise InvalidSetting("store", place, "must end with the number of a port: redis://host:6379/0") from None
    scheme = {"valkey": "redis", "valkeys": "rediss"}.get(parts.scheme, parts.scheme)
    return RedisAddress(urlunsplit(parts._replace(scheme=scheme, query=urlencode(given))), prefix)


@cache
def script(name: str) -> str:
    """Return the text of a script beside this module."""
    return Path(__file__).with_name(f"{name}.lua").read_text()


class RedisConnections:
    """The connections of one store."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._client: Any = None

    @property
    def client(self) -> Any:
        """The driver's client; redis-py types its answers as anything."""
        if self._client is None:
            self._client = driver.Redis.from_url(
                self.address.url,
                decode_responses=True,
                # No limit of the driver's: it waits in a way that may swallow a cancellation before Python 3.12.
                socket_timeout=None,
                socket_connect_timeout=_ANSWER_SECONDS,
                socket_keepalive=True,
                health_check_interval=30,
                retry=None,
                client_name="everytick",
            )
        return self._client

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(*_AWAY):
                await client.aclose()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn the driver's exceptions into the store's: away, or answering with errors."""
        try:
            yield
        except (exceptions.AuthenticationError, exceptions.NoPermissionError) as error:
            # The driver counts a wrong password as a connection that failed.
            raise StoreBroken(
                str(self.address), _said(error), "give the address a user and password that may"
            ) from error
        except _AWAY as error:
            raise StoreUnavailable(str(self.address), _said(error)) from error
        except exceptions.ResponseError as error:
            if refusal := _refusal_in(error):
                raise StoreUnavailable(str(self.address), f"it takes no writes now: {refusal}") from error
            needs = "everytick needs Redis 6.2 or later, or Valkey" if "unknown command" in str(error) else None
            raise StoreBroken(str(self.address), _said(error), needs) from error
        except exceptions.RedisError as error:
            raise StoreUnavailable(str(self.address), f"it gave no sense: {error}") from error

    async def asked(self, question: Awaitable[T]) -> T:
        """Return the server's answer. One that takes too long counts as none."""
        with self.failures():
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await question

    async def call(self, name: str, keys: Sequence[str], arguments: Sequence[str]) -> Any:
        """Carry out a script, by its hash; the server is told its text when it does not know it."""
        return await self.asked(self._called(script(name), keys, arguments))

    async def _called(self, text: str, keys: Sequence[str], arguments: Sequence[str]) -> Any:
        try:
            return await self.client.evalsha(_hash(text), len(keys), *keys, *arguments)
        except exceptions.NoScriptError:
            return await self.client.eval(text, len(keys), *keys, *arguments)

    @asynccontextmanager
    async def subscribed(self, channel: str) -> AsyncIterator[Any]:
        """Give a connection that hears a channel."""
        with self.failures():
            heard = self.client.pubsub(ignore_subscribe_messages=True)
            try:
                await heard.subscribe(channel)
                yield heard
            finally:
                with suppress(*_AWAY, asyncio.CancelledError):
                    await heard.aclose()


def _refusal_in(error: Exception) -> str:
    """Return why the server takes no writes, without the place in a script that older servers put before it."""
    # The driver removes this word where it begins the answer, as it does from Redis 7 and Valkey on.
    text = f"OOM {error}" if isinstance(error, exceptions.OutOfMemoryError) else str(error)
    places = [text.find(word) for word in _PASSING if word in text]
    return text[min(places) :].rstrip(".") if places else ""


def _said(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__


@cache
def _hash(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()
