"""A node with a job that does not wait for its store and whose tasks never end: `long_local.py ADDRESS held|free`.

A node that is `free` lets everything end at once. A locked file counts as away within a second.
"""

import asyncio
import sys

from everytick import Context, every
from everytick.node.events import Event, Happening
from everytick.stores.sqlite import opening
from tests.acceptance.node.programs.quick import application, say

opening.patiently.__defaults__ = (1.0,)
tick = application(slots=1_000)


@tick.job(every("1s"), overlap="allow", recovery="execute_all", on_store_outage="fire_local", on_orphan="restart")
async def slow(ctx: Context) -> None:
    say("began", int(ctx.scheduled_for.timestamp()), ctx.attempt)
    if sys.argv[2] == "held":
        await asyncio.Event().wait()
    say("ended", int(ctx.scheduled_for.timestamp()))


@tick.on_event
def tell(event: Event) -> None:
    if event.kind in (Happening.STORE_LOST, Happening.STORE_FOUND, Happening.DUPLICATE):
        say(event.kind)


if __name__ == "__main__":
    tick.run()
