"""A node whose jobs run on request; `short` runs once by itself, to tell that the node is up.

A body of `slow` runs until the process gets SIGUSR1, one of `other` until it gets SIGUSR2. What a body returns names
the occurrence that it ran for, so that a result in another occurrence is seen.

`asked.py ADDRESS slowly`: after a SIGCONT the event loop goes on only when the process gets SIGHUP. Its other threads,
the beat's among them, go on at once.
"""

import asyncio
import signal
import sys

from everytick import Context, Everytick, every
from everytick.domain.report import Report
from tests.acceptance.node.programs.quick import application, say

SIGNALS = {"slow": signal.SIGUSR1, "other": signal.SIGUSR2, "short": None}


def add_job(tick: Everytick, name: str, number: signal.Signals | None) -> None:
    job = tick.define(
        name,
        every("P1Y"),
        on_orphan="restart",
        overlap="allow",
        on_create="immediately" if name == "short" else "next",
    )
    told = asyncio.Event()

    @job.task
    async def answer(ctx: Context) -> str:
        if number is not None:
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        say("began", name, ctx.occurrence_id)
        if number is not None:
            await told.wait()
        say("over", name, ctx.occurrence_id)
        return f"result of {ctx.occurrence_id}"

    @job.on_complete
    async def ended(report: Report) -> None:
        say("ended", name, report.status)


def wake_slowly() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    signal.signal(signal.SIGCONT, lambda *_: signal.sigwait({signal.SIGHUP}))


if __name__ == "__main__":
    if "slowly" in sys.argv:
        wake_slowly()
    tick = application(slots=200)
    for name, number in SIGNALS.items():
        add_job(tick, name, number)
    tick.run()
