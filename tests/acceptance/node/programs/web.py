"""A web application with a job of its own, for any number of web workers: `uvicorn …programs.web:app`."""

import os

from fastapi import FastAPI

from everytick import Context, Everytick, every
from tests.acceptance.node.programs.quick import QUICK, say

tick = Everytick(os.environ["STORE"], name="web", **QUICK)
app = FastAPI(lifespan=tick.lifespan)


@tick.job(every("1s"), overlap="queue", recovery="execute_all")
async def beat(ctx: Context) -> None:
    say("ran", ctx.job, int(ctx.scheduled_for.timestamp()), os.getpid())


@app.get("/")
async def root() -> dict[str, int]:
    return {"worker": os.getpid()}
