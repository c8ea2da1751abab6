"""A PostgreSQL of a test's own, which it may stop, start, set to read only, and replace by an older copy of itself."""

import asyncio
import os
import shlex
import shutil
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
        _, _, data, *options, _ = keeper.postgres_command(self._programs, scratch)
        self._data = Path(data)
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

    def copy(self) -> Path:
        """Copy its files while it runs, and return the copy's folder."""
        return asyncio.run(self._copy())

    async def _copy(self) -> Path:
        copy = self._scratch / "copy"
        db = await asyncpg.connect(self.address)
        try:
            await db.execute("select pg_backup_start('copy', fast => true)")
            shutil.copytree(self._data, copy, ignore=shutil.ignore_patterns("postmaster.*"))
            label = await db.fetchval("select labelfile from pg_backup_stop(wait_for_archive => false)")
        finally:
            await db.close()
        # The log is copied once more: the copy is sound only with what was logged until it was whole.
        shutil.copytree(self._data / "pg_wal", copy / "pg_wal", dirs_exist_ok=True)
        (copy / "backup_label").write_text(label)
        if owner := keeper.account():
            for path in (copy, *copy.rglob("*")):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        return copy

    def fail_over(self, copy: Path) -> None:
        """It crashes, and the copy answers in its place at the same address, without what was written since."""
        self._control("stop", "--mode", "immediate")
        shutil.rmtree(self._data)
        copy.rename(self._data)
        self.start()

    def _control(self, verb: str, *options: object) -> None:
        with keeper.popen(
            [self._programs / "pg_ctl", verb, "--wait", "--pgdata", self._data, *options], self._scratch
        ) as control:
            assert control.wait(WITHIN) == 0, f"pg_ctl {verb} failed"
