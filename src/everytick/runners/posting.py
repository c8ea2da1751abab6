"""One HTTP request of a notice, without a library: an answer's status, no redirects, no proxies, no answer's body.

The name is resolved once and that very address is connected to, as for an http task (S9). Only `AddressRules` say
where a request may go.
"""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from urllib.parse import urlsplit

from everytick.domain.values import value
from everytick.errors import shown
from everytick.runners.addresses import AddressRules

_LONGEST_LINE_BYTES = 8 * 1024
_MOST_ANNOUNCED = 200
"""Most answers that only announce another. A server that sends more, or longer lines, is given up."""


class BadAnswer(Exception):
    """What came back is no answer in HTTP."""


@value
class HttpRequest:
    """What to send, and where."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


async def send(request: HttpRequest, rules: AddressRules) -> int:
    """Send the request and return the status of its answer. The caller limits how long that may take."""
    parts = urlsplit(request.url)
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    address = await rules.resolve(host, port)
    # The certificate is that of the name, not of the number connected to.
    secured = {"ssl": _certificates(), "server_hostname": host} if is_secure else {}
    reader, writer = await asyncio.open_connection(address, port, limit=_LONGEST_LINE_BYTES, **secured)  # type: ignore[arg-type]
    try:
        writer.write(_written(request, parts.netloc, f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"))
        await writer.drain()
        return await _status(reader)
    finally:
        writer.close()
        with suppress(OSError, asyncio.CancelledError):
            # Given up at once: the receiver has said all that counts.
            writer.transport.abort()


def without_secrets(url: str) -> str:
    """Return the address as it may stand in a log: neither its path nor its query, which may be secrets."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return shown(f"{parts.scheme}://{parts.hostname}{port}/…", 300)


def _written(request: HttpRequest, host: str, place: str) -> bytes:
    headers = {
        "Host": host,
        "User-Agent": "everytick",
        "Accept": "*/*",
        "Connection": "close",
        "Content-Length": str(len(request.body)),
        **request.headers,
    }
    lines = [f"{request.method} {place} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise BadAnswer("a line of the request holds a line break")
    return "\r\n".join([*lines, "", ""]).encode("utf-8") + request.body


async def _status(reader: asyncio.StreamReader) -> int:
    """Return the status of the answer; those that only announce another (100 to 199) are passed over."""
    for _ in range(_MOST_ANNOUNCED):
        line = await _line(reader)
        version, _, rest = line.partition(b" ")
        code = rest[:3]
        if not version.startswith(b"HTTP/") or not code.isdigit():
            raise BadAnswer("the answer is not HTTP")
        if int(code) >= 200:
            return int(code)
        while (await _line(reader)).strip():
            pass
    raise BadAnswer("the answer does not end")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readline()
    except ValueError:
        raise BadAnswer("a line of the answer is too long") from None
    if not line.endswith(b"\n"):
        raise BadAnswer("the connection was closed before an answer came")
    return line


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates that are trusted; read once."""
    return ssl.create_default_context()
