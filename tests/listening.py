"""A server of a test's own on a port of this machine, of which no connection is left behind.

`asyncio.Server.close` leaves connections open. A handler that still waits for its client when the test ends is
canceled with the loop, and its socket is found open by the garbage collector, in the middle of another test.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, *, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve each connection on the port that is given. Afterwards, all of them are closed."""
    handlers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers[asyncio.create_task(handle(reader, writer))] = writer

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        for writer in handlers.values():
            writer.transport.abort()
        await asyncio.sleep(0)  # a transport closes its socket in the next round of the loop
