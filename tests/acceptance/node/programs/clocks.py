"""A node with two jobs: `held` runs until the process gets SIGUSR1, `asked` prints that it ran at each request."""

import asyncio
import signal

from everytick import Context, every
from everytick.domain.report import Report
from tests.acceptance.node.programs.quick import application, say

tick = application()
held = tick.define("held", every("P1Y"), on_orphan="restart", on_create="immediately", execution_timeout="10m")
asked = tick.define("asked", every("P1Y"), execution_timeout="20s")


@held.task
async def hold(ctx: Context) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, told.set)
    say("began", ctx.attempt)
    await told.wait()


@asked.task
async def answer(ctx: Context) -> None:
    say("ran")


@held.on_complete
async def over(report: Report) -> None:
    say("held", report.status)


@asked.on_complete
async def answered(report: Report) -> None:
    say("asked", report.status, report.error)


if __name__ == "__main__":
    tick.run()
