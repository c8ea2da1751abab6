"""The virtual loop: waits take no time, order is kept, threads are waited for."""

import asyncio
import time
from threading import Event, get_ident

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everytick.node.alarms import Alarms
from everytick.node.inbox import BeatWanted
from everytick.testing.virtual import VirtualLoop, run_virtually
from tests.unit.node.parts import inbox
from tests.unit.testing.naps import until_rung


def test_a_year_takes_no_time() -> None:
    async def main(loop: VirtualLoop) -> float:
        await until_rung(365 * 86400)
        return loop.time()

    began = time.monotonic()

    assert run_virtually(main) == 365 * 86400
    assert time.monotonic() - began < 60


def test_timers_ring_in_their_order_and_at_their_time() -> None:
    rung: list[tuple[str, float]] = []

    async def nap(loop: VirtualLoop, name: str, seconds: float) -> None:
        await until_rung(seconds)
        rung.append((name, loop.time()))

    async def main(loop: VirtualLoop) -> None:
        await asyncio.gather(nap(loop, "c", 30), nap(loop, "a", 10), nap(loop, "b", 20))

    run_virtually(main)

    assert rung == [("a", 10), ("b", 20), ("c", 30)]


def test_a_timeout_strikes_at_its_time() -> None:
    async def main(loop: VirtualLoop) -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await until_rung(3600)
        return loop.time()

    assert run_virtually(main) == 5


def test_time_stands_still_while_a_thread_works() -> None:
    """A timer that is due long before the thread is done, by the wall, rings after it."""
    order: list[str] = []
    go_on = Event()

    def work() -> None:
        go_on.wait(60)
        order.append("thread")

    async def timer() -> None:
        await until_rung(1)
        order.append("timer")

    async def main(loop: VirtualLoop) -> None:
        ringing = asyncio.ensure_future(timer())
        working = asyncio.ensure_future(asyncio.to_thread(work))
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(ringing, working)

    run_virtually(main)

    assert order == ["thread", "timer"]


async def test_it_runs_beside_a_loop_that_is_running() -> None:
    async def main(loop: VirtualLoop) -> int:
        await until_rung(60)
        return get_ident()

    assert run_virtually(main) != get_ident()


async def test_what_it_raises_is_raised_here() -> None:
    async def main(loop: VirtualLoop) -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        run_virtually(main)


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1e9), max_size=20))
def test_every_timer_is_reached_however_far_it_is(lengths: list[float]) -> None:
    rung: list[float] = []

    async def nap(loop: VirtualLoop, seconds: float) -> None:
        await until_rung(seconds)
        rung.append(loop.time() - seconds)

    async def main(loop: VirtualLoop) -> None:
        await asyncio.gather(*(nap(loop, each) for each in lengths))

    run_virtually(main)

    assert [abs(each) < 2e-6 for each in rung] == [True] * len(lengths)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=8))
def test_an_alarm_that_looks_at_the_clock_itself_is_reached(microseconds: list[int]) -> None:
    """An alarm of a node rings only if the clock has passed it, to the last bit of a float, and else winds again."""
    rung: list[float] = []

    async def main(loop: VirtualLoop) -> None:
        alarms = Alarms(loop.time)
        for each in microseconds:
            done = loop.create_future()
            alarms.after(each / 1e6, inbox(done.set_result), BeatWanted())
            await done
            rung.append(loop.time())

    run_virtually(main)

    assert len(rung) == len(microseconds)
    assert rung == sorted(rung)


def test_an_error_of_a_task_has_no_context_of_ours() -> None:
    """A2: a traceback of `simulate` showed 'no running event loop' above the error of the task."""

    async def main(loop: VirtualLoop) -> BaseException | None:
        try:
            raise ValueError("boom")
        except ValueError as error:
            return error.__context__

    assert run_virtually(main) is None
