"""Two applications on one store in one process, each with a job that is due every second."""

import asyncio
import os
import sys

from everytick import Context, Everytick, every
from tests.acceptance.node.programs.quick import QUICK, say

first, second = (Everytick(sys.argv[1], name=name, **QUICK) for name in ("first", "second"))


@first.job(every("1s"))
async def of_the_first(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


@second.job(every("1s"))
async def of_the_second(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


async def main() -> None:
    async with first, second:
        say("started", os.getpid())
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
