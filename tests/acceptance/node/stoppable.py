"""A PostgreSQL of a test's own, which it may stop, start, and set to read only."""

import asyncio
import shlex
from pathlib import Path

import asyncpg

from tests.acceptance.node.fleet import WITHIN
from tests.servers import keeper
from tests.servers.installations import postgres_installations


class StoppableServer:
    """A PostgreSQL that keeps its folder and its port while it is stopped."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._programs = keeper.programs(postgres_installations()[0], scratch)
        _, _, self._data, *options, _ = keeper.postgres_command(self._programs, scratch)
        port = keeper.free_port()
        self._options = shlex.join([*options, "-p", str(port)])
        self.address = keeper.ADDRESSES["postgres"].format(port=port)
        self.start()

    def start(self) -> None:
        """It answers."""
        self._control("start", "--log", self._scratch / "log", "--options", self._options)

    def stop(self) -> None:
        """It is gone, and so is every session."""
        self._control("stop", "--mode", "fast")

    def set_read_only(self, read_only: bool) -> None:
        """Every session, also those that are open, may write or may not, as on a server that was fenced off."""
        asyncio.run(self._set_read_only(read_only))

    async def _set_read_only(self, read_only: bool) -> None:
        db = await asyncpg.connect(self.address)
        try:
            await db.execute(f"alter system set default_transaction_read_only = {'on' if read_only else 'off'}")
            await db.execute("select pg_reload_conf()")
        finally:
            await db.close()

    def _control(self, verb: str, *options: object) -> None:
        with keeper.popen(
            [self._programs / "pg_ctl", verb, "--wait", "--pgdata", self._data, *options], self._scratch
        ) as control:
            assert control.wait(WITHIN) == 0, f"pg_ctl {verb} failed"
