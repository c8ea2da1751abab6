"""The jobs of the example: replace this module by your own, and `-a jobs:tick` by its name."""

from __future__ import annotations

import os

from everytick import Context, Everytick


def store() -> str:
    """Return the address of the store: from a file, as containers get secrets, or from the environment."""
    if (file := os.environ.get("EVERYTICK_STORE_FILE")) is not None:
        with open(file, encoding="utf-8") as text:
            return text.read().strip()
    return os.environ["EVERYTICK_STORE"]


tick = Everytick(store(), name="example")


@tick.job("* * * * *")
async def every_minute(ctx: Context) -> str:
    """Say for which minute this ran."""
    return f"ran for {ctx.scheduled_for:%H:%M}"
