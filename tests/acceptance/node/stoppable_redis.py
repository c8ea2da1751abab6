"""A Redis of a test's own, which it may kill, freeze, and start again with all, some or none of its data."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis

from tests.acceptance.node.fleet import WITHIN
from tests.servers import keeper
from tests.servers.installations import redis_installations

if TYPE_CHECKING:
    from subprocess import Popen


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
        with self._process as process:
            process.kill()
            process.wait(WITHIN)

    def freeze(self) -> None:
        """It stands still, with its connections open, until `thaw`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        """It goes on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def saved(self) -> dict[Path, bytes]:
        """Return what is on its disk now."""
        self.freeze()
        try:
            return {file: file.read_bytes() for file in self._scratch.rglob("appendonly*") if file.is_file()}
        finally:
            self.thaw()

    def put_back(self, saved: dict[Path, bytes]) -> None:
        """Put what was on its disk there again, while it is gone: all that was written since is lost."""
        for file, contents in saved.items():
            file.write_bytes(contents)

    def tell(self, *command: str) -> Any:
        """Carry out a command of an operator's and return its answer."""
        with redis.Redis(port=self._port, decode_responses=True) as client:
            return client.execute_command(*command)
