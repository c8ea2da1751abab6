"""A node with jobs that are due every second and write which attempt of which instant ran under which fence."""

import os
import sys

from everytick import Context, every
from tests.acceptance.node.programs.quick import application, say

FILE = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
tick = application()


def write(ctx: Context) -> None:
    """Append one line; a line this short is written whole."""
    words = ctx.job, int(ctx.scheduled_for.timestamp()), ctx.attempt, ctx.fence, os.getpid()
    os.write(FILE, (" ".join(map(str, words)) + "\n").encode())
    say("ran", *words)


@tick.job(every("1s"), overlap="queue", recovery="execute_all", on_orphan="restart", max_lost=None)
async def on_the_loop(ctx: Context) -> None:
    write(ctx)


@tick.job(every("1s"), overlap="queue", recovery="execute_all", on_orphan="restart", max_lost=None)
def in_a_thread(ctx: Context) -> None:
    write(ctx)


if __name__ == "__main__":
    tick.run()
