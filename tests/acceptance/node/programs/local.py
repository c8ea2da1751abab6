"""A node with one job that does not wait for its store, due every second."""

from everytick import Context, every
from everytick.node.events import Event, Happening
from tests.acceptance.node.programs.quick import application, say

tick = application()


@tick.job(every("1s"), overlap="allow", recovery="execute_all", on_store_outage="fire_local")
async def here(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()))


@tick.on_event
def tell(event: Event) -> None:
    if event.kind in (Happening.STORE_LOST, Happening.STORE_FOUND, Happening.DUPLICATE):
        say(event.kind)


if __name__ == "__main__":
    tick.run()
