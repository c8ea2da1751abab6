"""A node of its own that does one thing and never hears the end of it: the test kills it at its commit.

python -m tests.stores.postgres.victim <address> <schema> plan|run
"""

import asyncio
import sys

from everytick.stores.base import NodeScope
from everytick.stores.postgres.store import PostgresStore
from tests.stores.acting import began, ended, plan_once


async def run_in_transactions(store: PostgresStore) -> None:
    """Claim one, and let its task write and succeed together."""
    [claim] = await store.claim(NodeScope("victim"), 1)
    now = await store.now()
    async with store.transaction(claim) as begun:
        await begun.execute(f"insert into {store.schema}.booking values (7)")
        await begun.commit(ended(claim, began(claim, now), now))


async def main(address: str, schema: str, deed: str) -> None:
    """Do the deed, which is never finished."""
    store = PostgresStore(address, schema=schema)
    await store.open()
    await (plan_once(store) if deed == "plan" else run_in_transactions(store))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
