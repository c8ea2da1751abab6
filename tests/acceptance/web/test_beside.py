"""The service beside a node: on a loop of its own, so that no page holds up a tick."""

import asyncio
import threading
from pathlib import Path

import httpx2
import pytest

from everytick import Everytick, every
from everytick.app.readiness import Readiness
from everytick.app.serving import Listening
from everytick.web.asgi import Service
from everytick.web.service import WebThread


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_jobs_run_while_a_page_takes_its_time(tmp_path: Path, kind: str) -> None:
    """A route that blocks its loop stands for a page about very many jobs."""
    tick = Everytick("memory://" if kind == "memory" else f"sqlite:///{tmp_path / 'store.db'}", name="shop")
    ran = asyncio.Queue[None]()

    @tick.job(every("100ms"))
    async def pulse() -> None:
        ran.put_nowait(None)

    release, is_blocked = threading.Event(), threading.Event()

    async def block() -> str:
        is_blocked.set()
        release.wait(60)
        return "done"

    await tick.start()
    await tick.serve_beside(Listening.at("127.0.0.1", 0))
    service = tick._service
    assert isinstance(service, WebThread)
    served = service._server.service
    assert isinstance(served, Service)
    served.app.add_api_route("/block", block)
    async with httpx2.AsyncClient(base_url=service.url, timeout=60) as asking:
        blocked = asyncio.create_task(asking.get("block"))
        await asyncio.to_thread(is_blocked.wait, 60)
        while not ran.empty():
            ran.get_nowait()
        for _ in range(3):
            await asyncio.wait_for(ran.get(), 60)
        release.set()
        assert (await blocked).json() == "done"
        jobs = (await asking.get("api/jobs")).json()
    assert "pulse" in str(jobs)
    await tick.stop()


async def test_a_node_whose_loop_stands_still_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service could answer for it, since it has a loop of its own: a supervisor must know all the same."""
    monkeypatch.setattr("everytick.app.readiness._ANSWER_SECONDS", 0.2)
    tick = Everytick("memory://", name="shop")
    await asyncio.to_thread(tick.start_background)
    loop, release, is_blocked = tick.node_loop(), threading.Event(), threading.Event()
    assert loop is not None

    def stand_still() -> None:
        is_blocked.set()
        release.wait(60)

    assert await Readiness(tick).loop() is None
    loop.call_soon_threadsafe(stand_still)
    await asyncio.to_thread(is_blocked.wait, 60)
    assert await Readiness(tick).loop() == "the node's loop has stood still for 0.2 s"
    release.set()
    await asyncio.to_thread(tick.stop_background)
