"""Right and wrong calls of the public API; each wrong one names the error that a type checker must find there.

Nothing here runs. `test_calls.py` takes the comments away and holds the errors against them.
"""

from datetime import datetime

from everytick import Context, Everytick, ExecutionReport, Handle, Occurrence, every

tick = Everytick("memory://", timezone="Europe/Berlin", slots=5)


@tick.job(every("10s"), task_timeout="5s")
def plain() -> None: ...


@tick.job("0 * * * *", payload={"x": 1})
def adds(x: int, y: int = 0) -> int:
    return x + y


@tick.job(every("1h"), payload={"table": "orders"})
async def loads(ctx: Context, table: str, *, limit: int = 10) -> str:
    return f"{ctx.job} {table} {limit}"


etl = tick.define("etl", "0 2 * * *", overlap="queue")


@etl.task
async def extract(ctx: Context) -> int:
    return ctx.attempt


@etl.task(after=["extract"])
def load() -> None: ...


@etl.on_complete
async def report(report: ExecutionReport) -> None: ...


async def right(ctx: Context) -> None:
    done: int = adds(1, y=2)
    text: str = await loads(ctx, "orders", limit=done)
    number: int = await extract(ctx)
    handle: Handle = await adds.trigger(1, y=number)
    ended: Occurrence = await handle.wait(timeout="5s")
    await plain.trigger()
    await loads.trigger("orders", limit=3)
    await loads.trigger(table=text)
    await loads.trigger(table=text, after="10m")
    await tick.trigger("adds", {"x": 1}, at="2026-11-20T09:00Z")
    await tick.trigger("adds", payload={"x": 1}, overlap="skip", by="ada")
    at: datetime | None = (await tick.status("adds")).next_run
    name: str = (await tick.job("adds")).job.name
    assert isinstance(at, datetime)
    await tick.pause(name, until=at, missed="catch_up")
    async for each in await tick.history("adds", status="failed"):
        assert each.id != ended.id
    waited: Handle = tick.wait(tick.trigger("adds"))
    over: Occurrence = tick.wait(waited, timeout="1m")
    assert over.id == waited.id


async def wrong(ctx: Context) -> None:
    adds("1")  # type: ignore[arg-type]
    await loads("orders")  # type: ignore[call-arg, arg-type]
    await adds.trigger("1")  # type: ignore[call-overload]
    await adds.trigger(1, z=2)  # type: ignore[call-overload]
    await adds.trigger()  # type: ignore[call-overload]
    await plain.trigger(1)  # type: ignore[call-overload]
    await loads.trigger(ctx, "orders")  # type: ignore[call-overload]
    await loads.trigger("orders", limit="3")  # type: ignore[call-overload]
    await loads.trigger(table=5)  # type: ignore[call-overload]
    await tick.trigger("adds", overlap="maybe")  # type: ignore[arg-type]
    await tick.trigger("adds", after=5)  # type: ignore[arg-type]
    await adds.trigger(x=1, at=5)  # type: ignore[call-overload]
    await tick.pause("adds", missed="drop")  # type: ignore[arg-type]
    tick.define("other", every("1h"), overlp="skip")  # type: ignore[call-arg]
    tick.define("other", every("1h"), overlap="never")  # type: ignore[arg-type]
    _number: int = await (await adds.trigger(1)).wait()  # type: ignore[assignment]
