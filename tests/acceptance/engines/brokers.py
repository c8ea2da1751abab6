"""A Redis of one test that can be killed and started again, and forgets nothing that it has acknowledged."""

import socket
import subprocess
from pathlib import Path

import redis as driver

from tests.servers.installations import redis_installations
from tests.servers.launch import first

_LONGEST_SECONDS = 30


class Broker:
    """One server on a port of its own."""

    def __init__(self, folder: Path) -> None:
        found = first(redis_installations(), "Redis", "PATH")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._program, self._folder = found.root / found.programs / "redis-server", folder
        self.address = f"redis://127.0.0.1:{self._port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it with what it knew, and return once it answers."""
        lasting = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
        words = ("--bind", "127.0.0.1", "--port", str(self._port), "--dir", str(self._folder), *lasting)
        with (self._folder / "redis.log").open("ab") as lines:
            self._process = subprocess.Popen([str(self._program), *words], stdout=lines, stderr=subprocess.STDOUT)
        retry = driver.retry.Retry(driver.backoff.ConstantBackoff(0.05), _LONGEST_SECONDS * 20)
        errors = [driver.exceptions.ConnectionError, driver.exceptions.BusyLoadingError]
        with driver.Redis.from_url(self.address, retry=retry, retry_on_error=errors) as asking:
            asking.ping()

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_LONGEST_SECONDS)
            self._process = None
