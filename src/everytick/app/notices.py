"""Notices to a supervisor such as systemd: that it runs, that it lives, that it stops; a datagram each."""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Self

_SOCKET, _EVERY, _WHO = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


class Notices:
    """Tells the supervisor that started this process, if it asked for that; else nothing.

    What it set in the environment is taken out of there, so that no task of ours speaks for
    this process.
    """

    def __init__(self, address: str | None, every: float | None) -> None:
        self._address, self._every = address, every
        self._next: asyncio.TimerHandle | None = None

    @classmethod
    def asked_for(cls) -> Self:
        """What the environment asks for."""
        asked = {name: os.environ.pop(name, "") for name in (_SOCKET, _EVERY, _WHO)}
        address = asked[_SOCKET]
        if not address.startswith(("/", "@")):
            return cls(None, None)
        is_ours = asked[_WHO] in ("", str(os.getpid()))
        length = int(asked[_EVERY]) / 1e6 if asked[_EVERY].isdecimal() and is_ours else 0.0
        # A name that begins with @ is of Linux's abstract ones, which begin with a zero.
        return cls("\0" + address[1:] if address.startswith("@") else address, length / 2 or None)

    def running(self) -> None:
        """It runs; from now on a loop that does not turn is noticed by the supervisor."""
        self._tell("READY=1")
        if self._address is not None and self._every is not None:
            self._live()

    def stopping(self) -> None:
        """It stops, for which it has its time; how long that takes is not the watchdog's to judge."""
        self._tell("STOPPING=1")

    def over(self) -> None:
        """Nothing is told any more."""
        if self._next is not None:
            self._next.cancel()

    def _live(self) -> None:
        assert self._every is not None, "only where it is asked for"
        self._tell("WATCHDOG=1")
        self._next = asyncio.get_running_loop().call_later(self._every, self._live)

    def _tell(self, what: str) -> None:
        if self._address is None:
            return
        # A supervisor that is gone, or does not listen, is no reason to stop working.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.sendto(what.encode(), self._address)
