"""Requests that a test makes itself, beside the nodes, as an operator does."""

import asyncio

from everytick import Everytick


def ask(address: str, job: str, times: int = 1) -> list[str]:
    """Ask for so many runs of this job and return the ids of their occurrences."""

    async def asking() -> list[str]:
        tick = Everytick(address, name="asking")
        try:
            return [(await tick.trigger(job)).id for _ in range(times)]
        finally:
            await tick.close()

    return asyncio.run(asking())
