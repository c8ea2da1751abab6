"""A node with a job that is due every second, and one that takes three seconds and waits for nothing behind it."""

import asyncio
from contextlib import suppress

from everytick import Context, every
from everytick.node.events import Event, Happening
from tests.acceptance.node.programs.quick import application, say

tick = application()


@tick.job(every("1s"), overlap="queue", recovery="execute_all")
async def quick(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


@tick.job(every("1s"), overlap="skip", execution_timeout="20s")
async def longer(ctx: Context) -> None:
    say("began", int(ctx.scheduled_for.timestamp()))
    with suppress(TimeoutError):
        async with asyncio.timeout(3):
            await asyncio.Event().wait()
    say("ended", int(ctx.scheduled_for.timestamp()))


@tick.on_event
def tell(event: Event) -> None:
    if event.kind in (Happening.STORE_LOST, Happening.STORE_FOUND):
        say(event.kind)


if __name__ == "__main__":
    tick.run()
