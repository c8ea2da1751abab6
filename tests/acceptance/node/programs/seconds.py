"""A node with jobs that are due every second and say which instant they ran for."""

from everytick import Context, every
from tests.acceptance.node.programs.quick import application, say

tick = application()


@tick.job(every("1s"), overlap="queue", recovery="execute_all")
async def on_the_loop(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


@tick.job(every("1s"), overlap="queue", recovery="execute_all")
def in_a_thread(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


if __name__ == "__main__":
    tick.run()
