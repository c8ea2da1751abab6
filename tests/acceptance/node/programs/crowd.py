"""A node of five slots: asked for many short bodies first, then for thirty long ones, or only there to help.

`crowd ADDRESS hold` asks and holds on to every long body that it begins; `crowd ADDRESS help` ends each at once.
"""

import asyncio
import sys

from everytick import Context, every
from tests.acceptance.node.programs.quick import application, say

HOLDS = sys.argv[2] == "hold"
tick = application(slots=5)


@tick.job(every("P1Y"))
async def short() -> None:
    pass


@tick.job(every("P1Y"))
async def long(ctx: Context) -> None:
    say("began", ctx.occurrence_id)
    if HOLDS:
        await asyncio.Event().wait()


async def main() -> None:
    async with tick:
        if HOLDS:
            for asked in [await tick.trigger("short", overlap="allow") for _ in range(300)]:
                await asked.wait(timeout="60s")
            for _ in range(30):
                await tick.trigger("long", overlap="allow")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
