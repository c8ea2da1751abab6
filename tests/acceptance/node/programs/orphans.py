"""A node with one job for each way to treat an orphan; the second task of each holds on when it is first tried."""

import asyncio

from everytick import Context, Everytick, every
from everytick.domain.report import Report
from tests.acceptance.node.programs.quick import application, say


def add_job(tick: Everytick, on_orphan: str) -> None:
    job = tick.define(on_orphan, every("P1Y"), on_orphan=on_orphan, on_create="immediately")  # type: ignore[arg-type]

    @job.task
    async def first(ctx: Context) -> None:
        say(on_orphan, "first", ctx.attempt)

    @job.task
    async def second(ctx: Context) -> None:
        say(on_orphan, "second", ctx.attempt)
        if ctx.attempt == 1:
            await asyncio.Event().wait()

    @job.on_complete
    async def over(report: Report) -> None:
        say(on_orphan, "ended", report.status)


if __name__ == "__main__":
    tick = application()
    for way in ("fail", "restart", "resume"):
        add_job(tick, way)
    tick.run()
