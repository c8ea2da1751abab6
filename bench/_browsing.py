"""A plain HTTP client for measuring: one connection, one request after another, with the moment of the first byte.

A client with comforts would take more of the two cores than the service that it measures.
"""

import asyncio
import gzip
import time
from typing import NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    """What came back. Times are seconds from the request on; `sent` counts the bytes of the body on the wire."""

    status: int
    first_byte: float
    complete: float
    sent: int
    body: bytes


class Connection:
    """A connection that is kept open."""

    def __init__(self, url: str, headers: str = "") -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None, f"{url} has no host"
        self._host, self._port, self._root = parts.hostname, parts.port or 80, parts.path.rstrip("/")
        self._headers = headers
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def get(self, path: str) -> Answer:
        """Return the answer to one request, decompressed."""
        reader, began = await self.send(path), time.perf_counter()
        status, headers = await read_head(reader)
        first = time.perf_counter() - began
        body = await _body(reader, headers)
        complete = time.perf_counter() - began
        plain = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        if headers.get("connection") == "close":
            await self.close()
        return Answer(status, first, complete, len(body), plain)

    async def send(self, path: str, accept: str = "text/html,*/*") -> asyncio.StreamReader:
        """Send one request; the reader gives what comes back."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        assert self._reader is not None, "opened above"
        self._writer.write(
            f"GET {self._root}{path} HTTP/1.1\r\nhost: {self._host}:{self._port}\r\naccept: {accept}\r\n"
            f"accept-encoding: gzip\r\n{self._headers}\r\n".encode()
        )
        await self._writer.drain()
        return self._reader

    async def close(self) -> None:
        """Close the connection; the next request opens another."""
        writer, self._reader, self._writer = self._writer, None, None
        if writer is not None:
            writer.close()


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Return the status and the headers of an answer."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]), {name.lower(): text.strip() for name, text in pairs}


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)
