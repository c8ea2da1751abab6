"""A retry that is due, and the next instant of its job that is due too, in real time."""

import asyncio

import asyncpg
import pytest

from everytick.stores.addresses import store_of
from tests.acceptance.node.conftest import new_database
from tests.acceptance.node.fleet import Fleet
from tests.servers.launch import Server
from tests.stores.acting import everything

CROWD = 20


@pytest.fixture
def address(postgres: Server) -> str:
    """The address of an empty store on PostgreSQL."""
    return asyncio.run(new_database(postgres))


def test_a_due_retry_does_not_run_before_the_instant_that_supersedes_it(address: str, fleet: Fleet) -> None:
    """L1, S2-019, S2-023, S2-065: a failure at an instant is to be tried again just after the next instant.

    So whenever a retry is due, an instant of its job is due as well, and takes its place. Here no plan can be made for
    two seconds, while claims can, by this node and by another: the retries wait for the plan, and no attempt is a
    second one.
    """
    node = fleet.start("superseded", address, CROWD)
    for _ in range(2 * CROWD):
        fleet.hear("ran ", by=node)
    asyncio.run(_keep_from_planning(address, fleet))
    for _ in range(2 * CROWD):
        fleet.hear("ran ", by=node)
    node.tell_to_stop()
    assert node.ended() == 0
    assert {line.rpartition(" ")[2] for line in fleet.heard() if line.startswith("ran ")} == {"1"}


async def _keep_from_planning(address: str, fleet: Fleet) -> None:
    """Hold the rows that every plan writes and no claim does."""
    db = await asyncpg.connect(address)
    try:
        async with db.transaction():
            await db.execute("select from everytick.job_state for update")
            fleet.hear_for(2.0)
            assert await db.fetchval("select count(*) from everytick.occurrences where status = 'awaiting_retry'")
            assert await _claimed_by_another(address) == []
    finally:
        await db.close()


async def _claimed_by_another(address: str) -> list[str]:
    """Claim what a node could that has slots and cannot plan; return which jobs that gave."""
    store = store_of(address)
    await store.open()
    try:
        return [claim.job.name for claim in await store.claim(await everything(store, "another"), CROWD)]
    finally:
        await store.close()
