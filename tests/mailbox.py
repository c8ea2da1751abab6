"""A mail server for tests: takes every e-mail by SMTP without encryption, and keeps it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes
from email.message import Message
from email.policy import default

from tests.listening import listening


class MailTaker:
    """What the server was sent, in order; it refuses as many e-mails first as it is told."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.receivers: list[list[str]] = []
        self.refusing = 0
        self.port = 0
        self._came = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet, and take what comes."""
        writer.write(b"220 here\r\n")
        await self.converse(reader, writer)

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak as much SMTP as smtplib needs."""
        receivers: list[str] = []
        while line := (await reader.readline()).strip():
            verb = line[:4].upper()
            if verb == b"RCPT":
                receivers.append(line.partition(b"<")[2].partition(b">")[0].decode())
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                raw = (await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n")
                writer.write(self._taken(raw, receivers))
            elif verb == b"MAIL" and self.refusing:
                self.refusing -= 1
                writer.write(b"451 not now\r\n")
            else:
                writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 good\r\n")
            if verb == b"QUIT":
                break
        writer.close()

    def _taken(self, raw: bytes, receivers: list[str]) -> bytes:
        self.messages.append(message_from_bytes(raw, policy=default))
        self.receivers.append(list(receivers))
        self._came.set()
        return b"250 taken\r\n"

    async def came(self) -> Message:
        """Return the newest e-mail once there is one."""
        await self._came.wait()
        return self.messages[-1]


@asynccontextmanager
async def mail_taker() -> AsyncIterator[MailTaker]:
    """Listen on a port of this machine."""
    made = MailTaker()
    async with listening(made.serve) as made.port:
        yield made
