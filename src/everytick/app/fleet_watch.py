"""The other end of the dead man's switch: takes the pings of a fleet, and raises an alarm when they stop."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from everytick.domain.fleet_pings import ping_from
from everytick.domain.values import value
from everytick.errors import InvalidSetting, shown

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Awaitable, Callable, Sequence

    from everytick.domain.fleet_pings import FleetPing, PromiseAtRisk

_LARGEST_PING_BYTES = 256 * 1024
"""A ping tells of a thousand promises in less."""

_READ_SECONDS = 10.0
"""How long a ping may take to come."""

_MOST_HEADERS = 100
"""A client that sends more lines before its ping is refused."""

_LEAST_SECRET_CHARACTERS = 16
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@value(frozen=True)
class WatchPlace:
    """Where pings are taken: the path is the secret that a sender must know."""

    host: str
    port: int
    path: str

    @staticmethod
    def at(url: str) -> WatchPlace:
        """Return the place that an address names, such as `http://127.0.0.1:9485/a-long-secret`."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.port is None:
            reason = "must be an http address with a port to listen on; a proxy in front of it may add TLS"
            raise InvalidSetting("URL", shown(f"{parts.scheme}://{parts.hostname}"), reason)
        if parts.hostname not in _LOOPBACK and len(parts.path) <= _LEAST_SECRET_CHARACTERS:
            secret = f"a path of {_LEAST_SECRET_CHARACTERS} characters or more as its secret"
            reason = f"can be reached from other hosts: give {secret}"
            raise InvalidSetting("URL", parts.hostname, reason)
        return WatchPlace(parts.hostname, parts.port, parts.path or "/")


@value(frozen=True)
class FleetAlarm:
    """The fleet fell silent, or is back. `broken` are promises due by now, `coming` those that are due next."""

    is_silent: bool
    at: datetime
    last: FleetPing | None
    broken: tuple[PromiseAtRisk, ...] = ()
    coming: tuple[PromiseAtRisk, ...] = ()

    @property
    def text(self) -> str:
        """The alarm in a sentence."""
        heard = (
            "it was never heard" if self.last is None else f"last heard at {self.last.sent_at:%Y-%m-%d %H:%M:%S} UTC"
        )
        if not self.is_silent:
            return "the fleet is heard again"
        risky = ", ".join(f"{promise.job} ({promise.promise})" for promise in self.broken[:10])
        return f"the fleet is silent, {heard}" + (f"; promises broken by now: {risky}" if risky else "")

    def as_event(self) -> dict[str, Any]:
        """Return it as a CloudEvent."""
        kind = "silent" if self.is_silent else "heard"
        told = {True: self.broken, False: self.coming}
        return {
            "specversion": "1.0",
            "id": f"fleet-{kind}-{self.at.isoformat()}",
            "source": "everytick/watch",
            "type": f"io.everytick.fleet.{kind}.v1",
            "time": self.at.isoformat(),
            "datacontenttype": "application/json",
            "data": {
                "text": self.text,
                "last_ping": None if self.last is None else self.last.as_data(),
                "broken": [_data(promise) for promise in told[True]],
                "coming": [_data(promise) for promise in told[False]],
            },
        }


def _data(risk: PromiseAtRisk) -> dict[str, str]:
    return {"job": risk.job, "promise": risk.promise, "due_at": risk.due_at.isoformat()}


def alarm_of(last: FleetPing | None, now: datetime, *, is_silent: bool) -> FleetAlarm:
    """Return the alarm of this moment."""
    risky: Sequence[PromiseAtRisk] = () if last is None else last.at_risk
    broken = tuple(promise for promise in risky if promise.is_broken or promise.due_at <= now)
    return FleetAlarm(is_silent, now, last, broken, tuple(promise for promise in risky if promise not in broken))


class FleetWatch:
    """Listens for pings. `alarm` is called when the fleet falls silent and when it is back, `heard` with the first."""

    def __init__(
        self,
        place: WatchPlace,
        silence: timedelta,
        alarm: Callable[[FleetAlarm], Awaitable[None]],
        heard: Callable[[FleetPing], None] = lambda ping: None,
    ) -> None:
        self._place, self._silence, self._alarm, self._tell_heard = place, silence.total_seconds(), alarm, heard
        self._last: FleetPing | None = None
        self._heard_at = monotonic()
        self._heard = asyncio.Event()
        self._is_silent = False
        self.port = place.port

    async def run(self, *, once: bool = False, started: Callable[[int], None] = lambda port: None) -> None:
        """Watch for ever; with `once`, until the fleet falls silent. `started` is called with the port."""
        server = await asyncio.start_server(self._take, self._place.host, self._place.port)
        self.port = server.sockets[0].getsockname()[1]
        self._heard_at = monotonic()
        started(self.port)
        async with server:
            while True:
                await self._wait()
                if monotonic() - self._heard_at >= self._silence and not self._is_silent:
                    self._is_silent = True
                    await self._alarm(alarm_of(self._last, datetime.now(UTC), is_silent=True))
                    if once:
                        return
                elif self._is_silent and monotonic() - self._heard_at < self._silence:
                    self._is_silent = False
                    await self._alarm(alarm_of(self._last, datetime.now(UTC), is_silent=False))

    async def _wait(self) -> None:
        """Return when a ping came, or when the fleet may be silent."""
        left = None if self._is_silent else max(self._heard_at + self._silence - monotonic(), 0.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._heard.wait()
        self._heard.clear()

    async def _take(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Read one request and answer it: 204, or 404 if its path is not the secret, or 400."""
        status = "400 Bad Request"
        try:
            async with asyncio.timeout(_READ_SECONDS):
                status = await self._answer(reader)
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            with suppress(OSError), closing(writer):
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()

    async def _answer(self, reader: StreamReader) -> str:
        method, path, *_ = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ")
        length = 0
        for _ in range(_MOST_HEADERS):
            line = (await reader.readuntil(b"\r\n")).decode("latin-1").strip()
            if not line:
                break
            name, _, text = line.partition(":")
            length = int(text) if name.lower() == "content-length" else length
        if not compare_digest(path.encode(), self._place.path.encode()):
            return "404 Not Found"
        if method != "POST" or not 0 < length <= _LARGEST_PING_BYTES:
            return "400 Bad Request"
        is_first, self._last = self._last is None, ping_from(json.loads(await reader.readexactly(length)))
        self._heard_at = monotonic()
        if is_first:
            self._tell_heard(self._last)
        self._heard.set()
        return "204 No Content"
