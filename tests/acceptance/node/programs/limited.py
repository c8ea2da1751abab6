"""A node of many slots that looks again only when it is told to; its bodies say when they begin and end."""

import asyncio
import time
from contextlib import suppress

from everytick import Context, on_request
from tests.acceptance.node.programs.quick import application, say

tick = application(slots=67, poll="1h")


@tick.job(on_request(), tags=["crm"], overlap="allow", on_orphan="restart")
async def sync(ctx: Context) -> None:
    say("began", ctx.occurrence_id, time.monotonic_ns())
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 0.02)
    say("ended", ctx.occurrence_id, time.monotonic_ns())


@tick.job(on_request(), overlap="allow")
async def free() -> None:
    say("free")


async def main() -> None:
    async with tick:
        say("ready")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
