"""A node that tells when it loses and finds its store, with two jobs that are due every second."""

from everytick import Context, every
from everytick.node.events import Event, Happening
from tests.acceptance.node.programs.quick import application, say

tick = application()


@tick.job(every("1s"), overlap="queue", recovery="execute_all")
async def all_of_them(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


@tick.job(every("1s"), recovery="execute_last")
async def only_the_last(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


@tick.on_event
def tell(event: Event) -> None:
    if event.kind in (Happening.STORE_LOST, Happening.STORE_FOUND):
        say(event.kind)


if __name__ == "__main__":
    tick.run()
