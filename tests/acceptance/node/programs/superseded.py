"""A node with a crowd of jobs that are due every second and always fail: `superseded.py ADDRESS CROWD`.

The retry of a failure is due one second after it, which is just after the next instant.
"""

import sys

from everytick import Context, Everytick, Retry, every
from tests.acceptance.node.programs.quick import application, say


def add_job(tick: Everytick, name: str) -> None:
    @tick.job(every("1s"), name=name, retry=Retry(None, "1s", superseded_by_next=True))
    async def fail(ctx: Context) -> None:
        say("ran", ctx.job, ctx.scheduled_for.isoformat(), ctx.attempt)
        raise ValueError("as always")


if __name__ == "__main__":
    crowd = int(sys.argv[2])
    tick = application(slots=2 * crowd)
    for number in range(crowd):
        add_job(tick, f"job{number}")
    tick.run()
