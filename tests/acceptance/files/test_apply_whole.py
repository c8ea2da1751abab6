"""apply is one transaction: a process that is killed in the middle of it has stored nothing."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from everytick.sources.files import Folder
from everytick.sources.syncing import apply_jobs
from everytick.stores.addresses import AnyStore, store_of
from tests.acceptance.node.conftest import new_database

PROGRAM = Path(__file__).with_name("dying.py")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_process_killed_half_way_has_stored_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """And what was there is as it was; the next apply stores everything."""
    server = request.getfixturevalue("postgres") if kind == "postgres" else None
    address = f"sqlite:///{tmp_path}/jobs.db" if server is None else await new_database(server)
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "first.yaml").write_text('version: 1\njobs: {first: {schedule: "0 0 1 1 *", command: "true"}}')
    store = store_of(address)
    await store.open()
    try:
        await _applied(store, jobs)
        before = await store.list()
        (jobs / "first.yaml").write_text('version: 1\njobs: {first: {schedule: "0 0 2 1 *", command: "true"}}')
        for number in range(100):
            text = f'version: 1\njobs: {{job-{number}: {{schedule: "0 0 1 1 *", command: "true"}}}}'
            (jobs / f"{number}.yaml").write_text(text)

        died = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, address, jobs)

        assert await asyncio.wait_for(died.wait(), 60) == -signal.SIGKILL
        assert await store.list() == before
        await _applied(store, jobs)
        assert len(await store.list()) == 101
    finally:
        await store.close()


async def _applied(store: AnyStore, jobs: Path) -> None:
    folder = Folder(jobs)
    folder.load()
    synced = await apply_jobs(store, folder.jobs)
    assert synced.mistakes == ()
