"""A node whose job has a past to fill, beside one that is due every second; each says which instant it runs.

Runs of odd minutes last until there is a file of the name that is the second argument.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from everytick import Context, every
from tests.acceptance.node.programs.quick import application, say

tick = application(slots=8)
GO_ON = Path(sys.argv[2])


def may_end() -> bool:
    return GO_ON.exists()


@tick.job(every("1m", start="2026-01-01T00:00:00Z"), overlap="allow", on_orphan="restart", max_lost=None)
async def nightly(ctx: Context) -> None:
    say("fills", int(ctx.scheduled_for.timestamp()))
    while ctx.scheduled_for.minute % 2 and not may_end():
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.05)


@tick.job(every("1s"), overlap="queue", recovery="execute_all", on_orphan="restart", max_lost=None)
async def live(ctx: Context) -> None:
    say("live", int(ctx.scheduled_for.timestamp()))


if __name__ == "__main__":
    tick.run()
