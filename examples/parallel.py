"""Ten tasks at once: the seventh fails for good after its retries, and the tenth cleans up all the same.

    python examples/parallel.py

Under fail-fast the first task that fails for good cancels its running peers. A task whose
own failure strategy is "continue" is not canceled: that is what a clean-up needs.
"""

import asyncio

from everytick import Context, Everytick, ExecutionReport, Retry, every

tick = Everytick("memory://")
nightly = tick.define("nightly", every("1d"), mode="parallel", failure="fail_fast")


async def copy(ctx: Context) -> None:
    ctx.log.info("copying")
    await asyncio.sleep(60)


for number in (1, 2, 3, 4, 5, 6, 8, 9):
    nightly.task(name=f"copy-{number}")(copy)


@nightly.task(name="copy-7", retry=Retry(2, "200ms", factor=2.0))
async def broken(ctx: Context) -> None:
    print(f"copy-7: attempt {ctx.attempt} fails")
    raise OSError("the disk is full")


@nightly.task(name="clean-up-10", failure="continue")
async def clean_up() -> None:
    await asyncio.sleep(1.5)
    print("clean-up-10: done, though a peer has failed")


@nightly.on_complete
async def tell(report: ExecutionReport) -> None:
    print(f"\nnightly is {report.status}: {report.error}")
    for task in report.tasks:
        print(f"  {task.name:12} {task.status:10} attempts: {task.attempts}")


async def main() -> None:
    async with tick:  # runs a node as long as the block does
        await (await tick.trigger("nightly")).wait()


if __name__ == "__main__":
    asyncio.run(main())
