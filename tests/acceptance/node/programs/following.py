"""A node that follows its store: `following STORE NEXT GATE`, where NEXT is - for a node that does not follow."""

import sys
import threading
from pathlib import Path

from everytick import Context, every, on_request
from tests.acceptance.node.programs.quick import application, say

NEXT, GATE = sys.argv[2:4]
tick = application(next_store=None if NEXT == "-" else NEXT)


async def run(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


for number in range(8):
    tick.job(every("1s"), name=f"every_second_{number}", overlap="queue", recovery="execute_all")(run)


@tick.job(on_request(), task_timeout=None)
def held(ctx: Context) -> str:
    """Run until the gate is there."""
    say("held", ctx.fence)
    while not Path(GATE).exists():
        threading.Event().wait(0.02)
    say("let go", ctx.fence)
    return "ended"


if __name__ == "__main__":
    tick.run()
