"""A node of its own that does one thing and never hears the end of it: the test kills it at its commit.

python -m tests.stores.postgres.victim <address> <schema> plan|run|edit
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from everytick.domain.changes import Put
from everytick.domain.policies import update_policy
from everytick.stores.base import NodeScope
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import began, ended, job, plan_once


async def run_in_transactions(store: PostgresStore) -> None:
    """Claim one, and let its task write and succeed together."""
    [claim] = await store.claim(NodeScope("victim"), 1)
    now = await store.now()
    async with store.transaction(claim) as begun:
        await begun.execute(f"insert into {store.schema}.booking values (7)")
        await begun.commit(ended(claim, began(claim, now), now))


async def open_a_window(store: PostgresStore) -> None:
    """Change a job for a while: two versions, and what is in line takes the first."""
    await store.apply([Put(job("job-0", "30 * * * *"), None, update_policy("windowed 3"))])


DEEDS: dict[str, Callable[[PostgresStore], Awaitable[object]]] = {
    "plan": plan_once,
    "run": run_in_transactions,
    "edit": open_a_window,
}


async def main(address: str, schema: str, deed: str) -> None:
    """Do the deed, which is never finished."""
    store = PostgresStore(address, schema=schema)
    await store.open()
    await DEEDS[deed](store)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
