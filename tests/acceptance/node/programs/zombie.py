"""A node whose job holds on, when it is first tried, until the process gets SIGUSR1."""

import asyncio
import signal

from everytick import Context, every
from everytick.domain.report import Report
from tests.acceptance.node.programs.quick import application, say

tick = application()
held = tick.define("held", every("P1Y"), on_orphan="restart", on_create="immediately")


@held.task
async def hold(ctx: Context) -> str:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, told.set)
    say("began", ctx.attempt, ctx.fence)
    if ctx.attempt == 1:
        try:
            await told.wait()
        finally:
            say("over", ctx.attempt)
    return f"attempt {ctx.attempt}"


@held.on_complete
async def ended(report: Report) -> None:
    say("ended", report.status)


if __name__ == "__main__":
    tick.run()
