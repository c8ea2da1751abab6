"""A Redis of a test's own, which it may kill, freeze, and start again with all, some or none of its data."""

import os
import signal
from pathlib import Path
from subprocess import Popen

import redis

from tests.acceptance.node.fleet import WITHIN
from tests.servers import keeper
from tests.servers.installations import redis_installations


class StoppableRedis:
    """A Redis that keeps its folder and its port while it is gone. Each change is on its disk before it answers."""

    def __init__(self, scratch: Path) -> None:
        self._scratch, self._port = scratch, keeper.free_port()
        programs = keeper.programs(redis_installations()[0], scratch)
        self._command = [*keeper.redis_command(programs, scratch), str(self._port)]
        self.address = keeper.ADDRESSES["redis"].format(port=self._port)
        self._process: Popen[str] | None = None
        self.start()

    def start(self, *, keeps: bool = True) -> None:
        """It answers, with what it has on disk if it keeps anything."""
        how = ["--appendonly", "yes", "--appendfsync", "always"] if keeps else []
        self._process = keeper.popen([*self._command, *how], self._scratch)
        keeper.wait_until_ready(self._process)

    def kill(self) -> None:
        """It is gone at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(WITHIN)

    def freeze(self) -> None:
        """It stands still, with its connections open, until `thaw`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        """It goes on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def saved(self) -> bytes:
        """Return what is on its disk, every commit whole."""
        return self._file.read_bytes()

    def put_back(self, saved: bytes) -> None:
        """Put what was on its disk there again; it is gone meanwhile."""
        self._file.write_bytes(saved)

    @property
    def _file(self) -> Path:
        return self._scratch / "appendonly.aof"

    @property
    def client(self) -> "redis.Redis":
        """A connection for what an operator does."""
        return redis.Redis(port=self._port, decode_responses=True)
