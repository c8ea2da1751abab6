"""Starts, stops, loops and forks that cross each other's way."""

import asyncio
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import NodeScope


class Shop:
    """An application whose one job begins, and ends when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.tick = Everytick(f"sqlite:///{folder}/e.db", name="shop", grace_period="1s")
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.tick.job(every("P1Y"), name="work")(self._work)

    async def _work(self) -> None:
        self.begun.set()
        await self.may_end.wait()

    async def last(self) -> OccurrenceStatus:
        [occurrence] = await self.tick.history()
        await self.tick.close()
        return occurrence.status


async def _one_at_work(folder: Path) -> Shop:
    shop = Shop(folder)
    await shop.tick.start()
    await shop.tick.trigger("work")
    await asyncio.wait_for(shop.begun.wait(), 60)
    return shop


async def test_a_second_stop_waits_for_the_same_end(tmp_path: Path) -> None:
    """The shutdown hook of a framework and `async with` do that; neither closes the store under the other."""
    shop = await _one_at_work(tmp_path)
    stops = [asyncio.create_task(shop.tick.stop("drain")) for _ in range(2)]
    done, _ = await asyncio.wait(stops, timeout=0.2)
    assert not done
    shop.may_end.set()
    await asyncio.wait_for(asyncio.gather(*stops), 60)
    assert await shop.last() is OccurrenceStatus.COMPLETED


async def test_a_stop_that_cancels_hastens_one_that_drains(tmp_path: Path) -> None:
    """S0-110: the second word counts, and both return."""
    shop = await _one_at_work(tmp_path)
    first = asyncio.create_task(shop.tick.stop("drain"))
    await asyncio.wait([first], timeout=0.2)
    await asyncio.wait_for(shop.tick.stop(), 60)
    await asyncio.wait_for(first, 60)
    assert await shop.last() is OccurrenceStatus.CANCELED


async def test_canceling_the_block_of_an_application_stops_it(tmp_path: Path) -> None:
    """S3-030: what ran is told to stop, its end is written, and no node is left."""
    shop = Shop(tmp_path)

    async def serve() -> None:
        async with shop.tick:
            await shop.tick.trigger("work")
            await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await asyncio.wait_for(shop.begun.wait(), 60)
    serving.cancel()
    await asyncio.wait_for(asyncio.wait([serving]), 60)
    assert (serving.cancelled(), shop.tick.node) == (True, None)
    assert await shop.last() is OccurrenceStatus.CANCELED


async def test_a_stop_ends_a_start_that_is_under_way(tmp_path: Path) -> None:
    """And nothing of it is left: no thread, no node, no store."""
    before = set(threading.enumerate())
    shop = Shop(tmp_path)
    start = asyncio.create_task(shop.tick.start())
    await asyncio.sleep(0)
    await asyncio.wait_for(shop.tick.stop(), 60)
    with pytest.raises(RuntimeError, match="stopped before it had started"):
        await start
    left = {thread for thread in set(threading.enumerate()) - before if not thread.name.startswith("asyncio")}
    for thread in left:
        # Those that have said their last word may need a moment to be gone.
        thread.join(60)
    assert ({thread.name for thread in left if thread.is_alive()}, shop.tick.node) == (set(), None)
    async with shop.tick:
        assert shop.tick.node is not None


async def test_a_job_that_is_defined_while_the_node_runs_runs_with_its_hooks(tmp_path: Path) -> None:
    """Its function and its hooks are known from then on, not only after the next start."""
    tick, told = Everytick(f"sqlite:///{tmp_path}/e.db", name="shop", grace_period="1s"), asyncio.Event()
    called: list[str] = []
    async with tick:

        @tick.job(every("P1Y"))
        async def added_later() -> None:
            called.append("body")

        @added_later.definition.on_start
        async def start() -> None:
            called.append("on_start")

        @added_later.definition.on_complete
        async def complete() -> None:
            told.set()

        ended = await (await tick.trigger("added_later")).wait(timeout="60s")
        assert ended.status is OccurrenceStatus.COMPLETED
        await asyncio.wait_for(told.wait(), 60)
        assert called == ["on_start", "body"]


async def test_what_could_not_be_run_here_runs_as_soon_as_its_definition_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A node leaves what it does not know to others for a minute, but learns at once what is defined beside it."""
    address = f"sqlite:///{tmp_path}/e.db"
    other, tick = Everytick(address, name="shop"), Everytick(address, name="shop", grace_period="1s", poll="100ms")
    other.job(every("P1Y"), name="later")(lambda: None)
    async with tick:
        handle = await other.trigger("later")
        while "cannot run here" not in caplog.text:
            await (await tick._opened()).bell(0.05)
        tick.job(every("P1Y"), name="later")(lambda: None)
        await tick.sync()
        ended = await handle.wait(timeout="60s")
        assert ended.status is OccurrenceStatus.COMPLETED
    await other.close()


@pytest.mark.parametrize("held", [False, True])
async def test_an_application_starts_though_a_job_of_it_was_edited_too_often_while_no_node_ran(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, held: bool
) -> None:
    """It is what makes room for more edits; where there is none, since a next run was set, the others run."""
    address = f"sqlite:///{tmp_path}/e.db"
    before = Everytick(address, name="shop")
    before.job(every("P1Y"), name="worn")(lambda: None)
    await before.sync()
    if held:
        await before.pause("worn")
        await before.reschedule("worn", "2100-01-01T00:00:00Z")
    for number in range(15):
        edited = Everytick(address, name="shop")
        edited.job(every(f"P{number + 3}Y"), name="worn")(lambda: None)
        await edited.sync()
        await edited.close()
    await before.close()
    tick = Everytick(address, name="shop", grace_period="1s")
    for name in ("worn", "new"):
        tick.job(every("P2Y"), name=name)(lambda: None)
    async with tick:
        ended = await (await tick.trigger("new")).wait(timeout="60s")
        assert ended.status is OccurrenceStatus.COMPLETED
        found = {record.job.name: record.job.version for record in await tick.jobs()}
        assert found == {"new": 1, "worn": 16 if held else 17}
    assert ("job 'worn' cannot be stored as this program defines it" in caplog.text) is held


# ------------------------------------------------------------------------------------------------- several loops


async def test_a_background_that_would_wait_for_this_loop_is_refused(tmp_path: Path) -> None:
    """The loop that opened the store would stand still, and the background wait for it."""
    shop = Shop(tmp_path)
    await shop.tick.jobs()
    with pytest.raises(RuntimeError, match=r"write `await tick.start\(\)` here"):
        shop.tick.start_background()
    await shop.tick.close()


@pytest.mark.parametrize("address", ["memory://", "sqlite:///{}/e.db"])
async def test_a_node_takes_the_store_to_its_own_loop(tmp_path: Path, address: str) -> None:
    """The loop that had opened it uses a bridge from then on, and earlier requests are kept."""
    tick = Everytick(address.format(tmp_path), name="shop", grace_period="1s")
    ran: list[str] = []

    @tick.job(every("P1Y"))
    async def work() -> None:
        ran.append(threading.current_thread().name)

    early = await tick.trigger("work", key="early")
    await asyncio.to_thread(tick.start_background)
    try:
        late = await tick.trigger("work", key="late")
        for each in (early, late):
            assert (await each.wait(timeout="60s")).status is OccurrenceStatus.COMPLETED
    finally:
        await asyncio.to_thread(tick.stop_background)
    assert ran == ["everytick", "everytick"]


async def test_a_bridge_carries_verbs_and_facts_and_refuses_the_rest(tmp_path: Path) -> None:
    """A transaction cannot be held open over a bridge; a fact needs none."""
    shop = Shop(tmp_path)
    await asyncio.to_thread(shop.tick.start_background)
    try:
        store = await shop.tick._opened()
        assert (store.address.is_in_memory, store.address.file) == (False, tmp_path / "e.db")
        with pytest.raises(TypeError, match="due can only be asked on the loop that opened the store"):
            store.due(NodeScope("node-1"), 1)
    finally:
        await asyncio.to_thread(shop.tick.stop_background)


def test_stopping_a_background_that_is_being_stopped_waits_for_it_and_hastens_a_drain(tmp_path: Path) -> None:
    """As `stop` does on one loop."""
    tick = Everytick(f"sqlite:///{tmp_path}/e.db", name="shop", grace_period="1s")
    begun = threading.Event()

    @tick.job(every("P1Y"))
    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    tick.start_background()
    tick.wait(tick.trigger("work"))
    assert begun.wait(60)
    draining = threading.Thread(target=tick.stop_background, args=("drain",), daemon=True)
    draining.start()
    draining.join(0.2)
    assert draining.is_alive()
    tick.stop_background()
    draining.join(60)
    assert not draining.is_alive()
    assert "everytick" not in {thread.name for thread in threading.enumerate()}
    [occurrence] = asyncio.run(tick.history())
    assert occurrence.status is OccurrenceStatus.CANCELED


def test_what_a_task_left_behind_does_not_keep_a_stop_in_the_background() -> None:
    """V4: a coroutine that refuses to be canceled stays with its thread, and the program goes on."""
    tick = Everytick("memory://", name="shop", grace_period="1s")
    left: list[asyncio.Task[None]] = []
    may_end = False

    async def refuses() -> None:
        while not may_end:
            with suppress(asyncio.CancelledError, TimeoutError):
                async with asyncio.timeout(0.05):
                    await asyncio.Event().wait()

    @tick.job(every("P1Y"))
    async def work() -> None:
        left.append(asyncio.create_task(refuses()))

    tick.start_background()
    tick.wait(tick.wait(tick.trigger("work")), timeout="60s")
    stopping = threading.Thread(target=tick.stop_background, daemon=True)
    stopping.start()
    stopping.join(60)
    returned, may_end = not stopping.is_alive(), True
    assert returned


# ------------------------------------------------------------------------------------------------------- forks

PYTHON = [sys.executable, "-W", "ignore::DeprecationWarning"]
"""Newer versions warn of every fork of a process that has threads."""


def test_a_fork_starts_an_application_of_its_own(tmp_path: Path) -> None:
    """C6: `gunicorn --preload` and multiprocessing; the copy has no thread of the original and closes nothing of it."""
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import os, signal
from everytick import Everytick, every
from everytick.stores.base import NodeScope
tick = Everytick("sqlite:///{tmp_path}/e.db", name="shop", grace_period="1s")

@tick.job(every("P1Y"))
async def work():
    return os.getpid()

def one(key):
    return tick.wait(tick.wait(tick.trigger("work", key=key)), timeout="20s").status

tick.start_background()
print("before", one("before"), flush=True)
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    print("copy asks", [each.job.name for each in tick.wait(tick.jobs())], flush=True)
    tick.wait(tick.jobs())
    tick.start_background()
    print("copy", one("copy"), flush=True)
    tick.stop_background()
    print("copy stopped", flush=True)
    os._exit(0)
print("left with", os.waitpid(pid, 0)[1], flush=True)
print("after", one("after"), flush=True)
tick.stop_background()
"""
    )
    done = subprocess.run([*PYTHON, str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == [
        "before completed",
        "copy asks ['work']",
        "copy completed",
        "copy stopped",
        "left with 0",
        "after completed",
    ]
    [told] = done.stderr.splitlines()
    assert told.startswith("this process was forked after start_background(): its node stayed in process ")
    assert told.endswith("call start_background() after the fork (gunicorn: in post_fork, or without --preload)")
    assert done.returncode == 0


def test_a_fork_does_not_ask_a_store_that_stayed_in_the_memory_of_its_original(tmp_path: Path) -> None:
    """A13: a copy of that memory would take the request, and no node would ever see it."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import os, signal
from everytick import Everytick, every
tick = Everytick("memory://", name="shop")

@tick.job(every("P1Y"))
async def work(): ...

tick.start_background()
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    for _ in range(2):
        try:
            tick.wait(work.trigger())
        except RuntimeError as error:
            print(error, flush=True)
    tick.start_background()
    print(tick.wait(tick.wait(work.trigger()), timeout="20s").status, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""
    )
    done = subprocess.run([*PYTHON, str(program)], capture_output=True, text=True, timeout=60, check=False)
    *refused, ran = done.stdout.splitlines()
    assert len(set(refused)) == 1
    assert "forked after start_background(), and the store stayed in the memory of process" in refused[0]
    assert (len(refused), ran, done.stderr) == (2, "completed", "")
