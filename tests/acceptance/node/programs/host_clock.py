"""A node on a host whose clock is wrong by the seconds that a file says: `host_clock.py ADDRESS FILE`.

`seconds` is due every second. `held` runs for ever when it is first tried, and `retried` fails on a node that started
with a wrong clock.
"""

import asyncio
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everytick import Context, Everytick, Retry, every
from everytick.stores.addresses import store_of
from everytick.stores.host_clock import HostClock
from tests.acceptance.node.programs.quick import QUICK, say

step = Path(sys.argv[2])
began_right = float(step.read_text()) == 0


def wall() -> datetime:
    """What the host's clock shows."""
    return datetime.now(UTC) + timedelta(seconds=float(step.read_text()))


store = store_of(sys.argv[1], clock=HostClock(wall))
tick = Everytick(store, name="acceptance", **QUICK)


@tick.job(every("1s"))
async def seconds(ctx: Context) -> None:
    say("ran", ctx.scheduled_for.isoformat())


@tick.job(every("P1Y"), on_create="immediately", on_orphan="restart")
async def held(ctx: Context) -> None:
    say("held", ctx.attempt)
    if ctx.attempt == 1:
        await asyncio.Event().wait()


@tick.job(every("P1Y"), on_create="immediately", retry=Retry(50, "6s"))
async def retried(ctx: Context) -> None:
    say("retried well" if began_right else "retried in vain", ctx.attempt)
    if not began_right:
        raise ValueError("not here")


async def main() -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await store.open()
    async with tick:
        await told.wait()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
