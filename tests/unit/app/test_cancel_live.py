"""Canceling while a node works: whenever it comes, it finds what was asked for."""

import asyncio
from pathlib import Path

import pytest

from everytick.app import Everytick


@pytest.mark.parametrize("where", ["memory", "sqlite"])
async def test_a_trigger_can_be_canceled_whenever_the_cancel_comes(where: str, tmp_path: Path) -> None:
    """Before the plan, after it, and while it runs; nothing that was canceled comes to its end."""
    tick = Everytick("memory://" if where == "memory" else f"sqlite:///{tmp_path}/a.db", name="shop")
    finished: list[str] = []

    @tick.job("0 0 1 1 *", name="long", overlap="allow")
    async def long() -> None:
        await asyncio.Event().wait()
        finished.append("never")

    async with tick:
        for turns in range(40):
            handle = await tick.trigger("long")
            for _ in range(turns % 8):
                await asyncio.sleep(0)
            assert await tick.cancel(handle.id), f"canceled after {turns % 8} turns of the loop"
            assert (await handle.wait(timeout="60s")).status == "canceled"
    assert finished == []
