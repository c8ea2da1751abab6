"""A proxy before the server that cuts the line exactly where it hurts: around a COMMIT, or a statement that is one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import Enum
from urllib.parse import urlsplit, urlunsplit

from tests.listening import listening
from tests.servers.launch import Server

_HEADER = 5
_ENCRYPT = (80877103).to_bytes(4)
_MARK = b" as is_moved"
_END = b"S\0\0\0\4"


class Cut(Enum):
    """Where the line breaks: the server never hears of the commit, or the client never hears the answer."""

    BEFORE = "before"
    AFTER = "after"


class Proxy:
    """Hands bytes on; once armed, it breaks the connections on which the next commits are sent."""

    def __init__(self, address: str) -> None:
        self._target = urlsplit(address)
        self._cut = Cut.BEFORE
        self._left = 0
        self._only = b""
        self._meanwhile: Callable[[], None] = lambda: None
        self.cuts = 0
        self.port = 0
        self._passes = asyncio.Event()
        self._passes.set()

    def arm(self, cut: Cut, times: int = 1, meanwhile: Callable[[], None] = lambda: None, *, only: str = "QB") -> None:
        """Break the line at so many of the next commits; `meanwhile` is done before the client can notice.

        `only` says at which: those in words (Q), or the statements that are one (B).
        """
        self._cut, self._left, self._meanwhile, self._only = cut, times, meanwhile, only.encode()

    def hold(self) -> None:
        """Hand on nothing any more that is said to the server, as if it were frozen."""
        self._passes.clear()

    def let_pass(self) -> None:
        """Hand on what was held, and whatever comes."""
        self._passes.set()

    @property
    def address(self) -> str:
        """The server's address, by way of this proxy."""
        user = f"{self._target.username}@" if self._target.username else ""
        return urlunsplit(self._target._replace(netloc=f"{user}127.0.0.1:{self.port}"))

    async def serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it or a commit breaks it."""
        await self._passes.wait()
        server, forward = await asyncio.open_connection(self._target.hostname, self._target.port)
        back = asyncio.create_task(_hand_on(server, answer))
        try:
            await self._ask(client, forward, back, server)
        finally:
            back.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await back
            for writer in (forward, answer):
                writer.transport.abort()

    async def _ask(
        self,
        client: asyncio.StreamReader,
        forward: asyncio.StreamWriter,
        back: asyncio.Task[None],
        server: asyncio.StreamReader,
    ) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            greeted = False
            while not greeted:  # a greeting may be a question about encryption first
                length = await client.readexactly(4)
                greeting = await client.readexactly(int.from_bytes(length) - 4)
                forward.write(length + greeting)
                greeted = greeting[:4] != _ENCRYPT
            own: set[bytes] = set()
            while True:
                message = await _message(client)
                if message[:1] == b"P" and _MARK in message:
                    own.add(message[_HEADER:].split(b"\0")[0])
                if self._left and message[:1] in self._only and _is_commit(message, own):
                    while message[:1] == b"B" and _END not in message:
                        message += await _message(client)
                    await self._break(message, forward, back, server)
                    return
                await self._passes.wait()
                forward.write(message)
                await forward.drain()

    async def _break(
        self, message: bytes, forward: asyncio.StreamWriter, back: asyncio.Task[None], server: asyncio.StreamReader
    ) -> None:
        self.cuts, self._left = self.cuts + 1, self._left - 1
        back.cancel()
        with suppress(asyncio.CancelledError):
            await back
        if self._cut is Cut.AFTER:
            forward.write(message)
            while (await _message(server))[:1] != b"Z":
                pass  # the server is ready for more, so the commit is done; its answer is lost
        self._meanwhile()


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while some := await reader.read(65536):
            writer.write(some)
            await writer.drain()
    writer.close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    header = await reader.readexactly(_HEADER)
    return header + await reader.readexactly(int.from_bytes(header[1:]) - 4)


def _is_commit(message: bytes, own: set[bytes]) -> bool:
    """Tell a COMMIT, or one of those statements that leave a mark, in a transaction of their own."""
    if message[:1] == b"B":
        return message[_HEADER:].split(b"\0")[1] in own
    return message[:1] == b"Q" and message[_HEADER:].rstrip(b"\0").strip(b" ;").lower() == b"commit"


@asynccontextmanager
async def proxied(server: Server) -> AsyncIterator[Proxy]:
    """Give a proxy before the server; its connections are gone afterwards."""
    proxy = Proxy(server.address)
    async with listening(proxy.serve) as proxy.port:
        yield proxy
