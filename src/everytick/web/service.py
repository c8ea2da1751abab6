"""The service in this process: uvicorn in our own event loop, with our signals and our end.

A server that handles signals itself waits for open event streams, which never end. Here a stop tells the streams
to end first, so the process leaves at once.
"""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar
from urllib.parse import urlunsplit
from weakref import WeakKeyDictionary

import uvicorn
from starlette.types import Receive, Scope, Send

from everytick.app import Everytick
from everytick.app.serving import Listening
from everytick.web.asgi import asgi
from everytick.web.rendering import compile_templates

T = TypeVar("T")

_CLOSE_SECONDS = 1
"""How long a stop waits for answers that are under way."""

_IDLE_SECONDS, _SWEEP_SECONDS = 30.0, 5.0
"""How long a connection may stay without a whole request, and how often that is looked at."""

_BACKLOG = 2_048
"""How many connections wait to be taken."""

_MOST_CONNECTIONS = 1_000
"""Beyond so many open connections a request is answered with 503 at once."""


class Servable(Protocol):
    """What a server serves: the service of one application, or those of several stores."""

    def end(self) -> None:
        """Tell every open event stream to end."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        ...


class _Server(uvicorn.Server):
    """A server that leaves signals to the application."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


class WebServer:
    """The service of one application, from `start` to `close`."""

    def __init__(self, tick: Everytick, listening: Listening, service: Servable | None = None) -> None:
        self.service: Servable = asgi(tick, listening.access) if service is None else service
        self._listening = listening
        self._server: _Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.url = ""

    async def start(self) -> str:
        """Listen, and return the address of the first page. Raise OSError if the port is taken."""
        bound = _bound(self._listening)
        host, port = bound.getsockname()[:2]
        place = f"{f'[{host}]' if ':' in host else host}:{port}"
        self.url = urlunsplit(("http", place, f"{self._listening.prefix}/", "", ""))
        self._server = _Server(_config(self.service, self._listening))
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self._tasks = [
            asyncio.create_task(self._server.serve([bound])),
            asyncio.create_task(_close_idle(self._server)),
            asyncio.create_task(compile_templates()),
        ]
        return self.url

    async def close(self) -> None:
        """Tell open streams to end, answer what is under way, and listen no more. A second call does nothing."""
        server, self._server = self._server, None
        if server is None:
            return
        self.service.end()
        server.should_exit = True
        serving, *others = self._tasks
        for task in others:
            task.cancel()
        await asyncio.gather(serving, *others, return_exceptions=True)


class WebThread:
    """The service in a thread and on a loop of its own, with a store of its own where there can be one.

    A page about thousands of jobs takes some hundred milliseconds to make, and no tick waits for it.
    """

    def __init__(self, tick: Everytick, listening: Listening) -> None:
        self._tick, self._server = tick, WebServer(tick, listening)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="everytick-web", daemon=True)
        self.url = ""

    async def start(self) -> str:
        """Listen, and return the address of the first page. Raise OSError if the port is taken."""
        self._thread.start()
        try:
            self.url = await self._there(self._begin())
        except BaseException:
            await self.close()
            raise
        return self.url

    async def close(self) -> None:
        """End the service and its thread. A second call does nothing."""
        if self._loop.is_closed():
            return
        await self._there(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def _begin(self) -> str:
        await self._tick.open_beside()
        return await self._server.start()

    async def _end(self) -> None:
        await self._server.close()
        await self._tick.close_beside()

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def _config(service: Servable, listening: Listening) -> uvicorn.Config:
    return uvicorn.Config(
        service,
        root_path=listening.prefix,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_CLOSE_SECONDS,
    )


def _bound(listening: Listening) -> socket.socket:
    """Return a socket that listens there: bound by us, so that a taken port is an error of ours to tell."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # The protocol by its name: asyncio turns off Nagle's algorithm only then, and a body would wait 40 ms for its head.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listening.host, listening.port))
        # At once: who reads the address may ask before the server's own task has run.
        bound.listen(_BACKLOG)
    except BaseException:
        bound.close()
        raise
    return bound


async def _close_idle(server: uvicorn.Server) -> None:
    """Close connections on which no whole request has come for long: a client may send its headers byte by byte."""
    idle_since: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        now = time.monotonic()
        for connection in list(server.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                idle_since.pop(connection, None)
            elif now - idle_since.setdefault(connection, now) > _IDLE_SECONDS:
                connection.transport.close()
