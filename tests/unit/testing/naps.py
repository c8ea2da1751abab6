"""A wait on the loop's own timer: on a virtual loop it takes virtual time and no other."""

import asyncio


async def until_rung(seconds: float) -> None:
    """Return when a timer of so many seconds rings."""
    loop = asyncio.get_running_loop()
    rung = loop.create_future()
    loop.call_later(seconds, rung.set_result, None)
    await rung
