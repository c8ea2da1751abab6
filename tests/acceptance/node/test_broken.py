"""A store that answers with errors: no outage that passes, but one for jobs that fire without it and for readiness."""

import asyncio
from pathlib import Path

import asyncpg

from everytick.stores.sqlite.store import SqliteStore
from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import query
from tests.acceptance.node.stoppable import StoppableServer


def test_a_job_that_does_not_wait_for_the_store_fires_while_a_table_is_missing(
    server: StoppableServer, fleet: Fleet
) -> None:
    """W5, C-46, S1-020: with the sentence, in one line instead of a traceback a second; mended, all goes on."""
    node = fleet.start("local", server.address)
    for _ in range(6):
        fleet.hear("ran here", by=node)
    change(server.address, "alter table everytick.job_state rename to elsewhere")
    fleet.hear("store_lost", by=node)
    fleet.hear_error("DB-driven scheduling failed, falling back to Option 1", by=node)
    for _ in range(3):
        fleet.hear("ran here", by=node)
    change(server.address, "alter table everytick.elsewhere rename to job_state")
    fleet.hear("store_found", by=node, within=60)
    node.tell_to_stop()
    assert node.ended() == 0
    assert "Traceback" not in node.complaints()
    assert node.complaints().count("nothing that needs the store fires until it is mended") == 1


def test_a_start_on_a_store_without_one_of_its_tables_fails_with_the_reason(fleet: Fleet, tmp_path: Path) -> None:
    """F20, S0-101: it does not begin as if the store were only away."""
    path = tmp_path / "store.db"
    asyncio.run(made(path))
    query(f"sqlite:///{path}", "drop table attempt")
    node = fleet.start("seconds", f"sqlite:///{path}")
    assert node.ended() != 0
    assert "recovery failed: " in node.complaints()
    assert "no such table: " in node.complaints()


async def made(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.close()


def change(address: str, sql: str) -> None:
    asyncio.run(_change(address, sql))


async def _change(address: str, sql: str) -> None:
    db = await asyncpg.connect(address)
    try:
        await db.execute(sql)
    finally:
        await db.close()
