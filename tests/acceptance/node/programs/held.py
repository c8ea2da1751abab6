"""A node with one job that runs until it is told to stop, or without end: `held.py ADDRESS ON_ORPHAN obedient|deaf`."""

import asyncio
import sys
import threading

from everytick import Context, every
from tests.acceptance.node.programs.quick import application, say

tick = application()
held = tick.define("held", every("P1Y"), on_orphan=sys.argv[2], on_create="immediately")  # type: ignore[arg-type]

if sys.argv[3] == "obedient":

    @held.task
    async def obedient(ctx: Context) -> None:
        say("began", ctx.attempt)
        if ctx.attempt == 1:
            await asyncio.Event().wait()

else:

    @held.task
    def deaf(ctx: Context) -> None:
        say("began", ctx.attempt)
        never = threading.Event()
        while not ctx.canceled:
            never.wait(0.01)
        say("told to stop")
        never.wait()


if __name__ == "__main__":
    tick.run()
