"""A real RabbitMQ for tests, which they may kill and start again: `with rabbit_server() as rabbit`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers.launch import ROOT, ServerFailed


class Rabbit:
    """One broker; a process of its own keeps it, and ends it when this one ends in whatever way."""

    def __init__(self, keeper: "subprocess.Popen[str]") -> None:
        self._keeper = keeper
        self.address = ""
        self.start()

    def start(self) -> None:
        """Start it with what it has kept, and return once it takes connections."""
        self.address = self._told("start")["address"]

    def kill(self) -> None:
        """End it without a word."""
        self._told("kill")

    def stop(self) -> None:
        """End it in order."""
        self._told("stop")

    def _told(self, word: str) -> dict[str, str]:
        assert self._keeper.stdin
        assert self._keeper.stdout
        self._keeper.stdin.write(f"{word}\n")
        self._keeper.stdin.flush()
        said: dict[str, str] = json.loads(self._keeper.stdout.readline() or '{"error": "the keeper has ended"}')
        if "error" in said:
            raise ServerFailed(said["error"])
        return said


@contextmanager
def rabbit_server() -> Iterator[Rabbit]:
    """Give a fresh broker; afterwards neither its processes nor its folder are left."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.rabbit_keeper"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for us; the keeper follows when we close the pipe
    )
    with keeper:  # leaving closes the pipe and waits
        yield Rabbit(keeper)
