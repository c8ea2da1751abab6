"""A node whose job writes in its own transaction, and is killed before or after the commit: `ADDRESS MOMENT`."""

import asyncio
import sys

from everytick import Context, every
from everytick.domain.report import Report
from tests.acceptance.node.programs.quick import application, say

MOMENT = sys.argv[2]
tick = application()
writes = tick.define("writes", every("P1Y"), on_orphan="restart", on_create="immediately")


@writes.task
async def write(ctx: Context) -> None:
    async with ctx.transaction() as tx:
        await tx.execute(f"insert into effect (fence) values ({ctx.fence})")
        if MOMENT == "before":
            say("written", ctx.attempt)
            await hold_the_first(ctx)
    if MOMENT == "after":
        say("committed", ctx.attempt)
        await hold_the_first(ctx)


async def hold_the_first(ctx: Context) -> None:
    if ctx.attempt == 1:
        await asyncio.Event().wait()


@tick.job(every("1s"))
async def second() -> None:
    """Tells how time passes on this node."""
    say("second")


@writes.on_complete
async def over(report: Report) -> None:
    say("ended", report.status)


if __name__ == "__main__":
    tick.run()
