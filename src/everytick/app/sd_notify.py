"""sd_notify: tells systemd, or another supervisor, that the process is ready, alive or stopping, by datagrams."""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Self

_SOCKET, _EVERY, _WHO = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


class Supervisor:
    """Tells the supervisor how this process stands, if its variables are in the environment; else nothing.

    It removes the variables from the environment, so that no program that a task starts speaks for this process.
    """

    def __init__(self, address: str | None, watchdog_seconds: float | None) -> None:
        self._address, self._watchdog_seconds = address, watchdog_seconds
        self._next: asyncio.TimerHandle | None = None

    @classmethod
    def from_environment(cls) -> Self:
        """Return the supervisor that the environment names; one that is told nothing if it names none."""
        variables = {name: os.environ.pop(name, "") for name in (_SOCKET, _EVERY, _WHO)}
        address = variables[_SOCKET]
        if not address.startswith(("/", "@")):
            return cls(None, None)
        is_ours = variables[_WHO] in ("", str(os.getpid()))
        limit_seconds = int(variables[_EVERY]) / 1e6 if variables[_EVERY].isdecimal() and is_ours else 0.0
        # A leading @ means an abstract socket of Linux, whose name begins with a zero byte.
        return cls("\0" + address[1:] if address.startswith("@") else address, limit_seconds / 2 or None)

    def ready(self) -> None:
        """Tell that the process is ready. From now on the supervisor notices a blocked event loop."""
        self._send("READY=1")
        if self._address is not None and self._watchdog_seconds is not None:
            self._feed_watchdog()

    def stopping(self) -> None:
        """Tell that the process stops. The watchdog is fed on: the stop has a time limit of its own."""
        self._send("STOPPING=1")

    def stopped(self) -> None:
        """Feed the watchdog no longer."""
        if self._next is not None:
            self._next.cancel()

    def _feed_watchdog(self) -> None:
        assert self._watchdog_seconds is not None, "only called with an interval"
        self._send("WATCHDOG=1")
        self._next = asyncio.get_running_loop().call_later(self._watchdog_seconds, self._feed_watchdog)

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        # If the supervisor is gone or does not listen, the process works on.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
            datagrams.setblocking(False)
            datagrams.sendto(message.encode(), self._address)
