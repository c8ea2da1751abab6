"""The stream of events."""

import asyncio
import gc
import threading
from datetime import UTC, datetime

import pytest

from everytick.app import Everytick
from everytick.app.stream import MOST_KEPT
from everytick.domain.ids import job_id, occurrence_id
from everytick.node.events import Event, Happening
from everytick.schedules.interval import every

AT = datetime(2026, 1, 1, tzinfo=UTC)


def event(job: str, kind: Happening = Happening.STARTED) -> Event:
    return Event(kind, AT, job)


async def test_a_stream_gives_what_happens_from_the_moment_it_was_asked_for() -> None:
    """S0-039, C-39: the stream of ticks; of one job or of all."""
    tick = Everytick("memory://")
    tick._listeners.tell(event("before"))
    every_one, one = tick.events(), tick.events("etl")
    for name in ("etl", "other", "etl"):
        tick._listeners.tell(event(name))
    assert [(await anext(every_one)).job for _ in range(3)] == ["etl", "other", "etl"]
    assert [(await anext(one)).job for _ in range(2)] == ["etl", "etl"]
    await one.aclose()
    tick._listeners.tell(event("etl"))
    with pytest.raises(StopAsyncIteration):
        await anext(one)


async def test_a_node_tells_each_tick_on_the_stream() -> None:
    """S0-039, C-39: which occurrence of which instant has begun, as its node begins it."""
    tick = Everytick("memory://")

    @tick.job(every("1d"))
    async def work() -> None: ...

    stream = tick.events("work")
    begun: list[Event] = []
    async with tick:
        asked = [(await (await tick.trigger("work")).wait(timeout="60s")) for _ in range(2)]
        while len(begun) < 2:
            told = await asyncio.wait_for(anext(stream), 60)
            begun += [told] if told.kind is Happening.STARTED else []
    assert [(each.occurrence_id, each.scheduled_for) for each in begun] == [
        (each.id, each.scheduled_for) for each in asked
    ]


async def test_a_reader_that_waits_is_woken_from_another_thread() -> None:
    """A node in the background has a loop of its own."""
    tick = Everytick("memory://")
    stream = tick.events()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    thread = threading.Thread(target=tick._listeners.tell, args=(event("etl"),))
    thread.start()
    assert (await asyncio.wait_for(waiting, 60)).job == "etl"
    thread.join()


async def test_closing_ends_a_reader_that_waits() -> None:
    tick = Everytick("memory://")
    stream = tick.events()

    async def read() -> list[Event]:
        return [each async for each in stream]

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    await stream.aclose()
    assert await asyncio.wait_for(reading, 60) == []


def test_an_unreferenced_stream_ends_and_a_slow_reader_loses_the_oldest_events() -> None:
    """Nothing grows without bound."""
    tick = Everytick("memory://")
    stream = tick.events()
    for number in range(MOST_KEPT + 5):
        tick._listeners.tell(event(str(number)))
    assert len(stream._kept) == MOST_KEPT
    assert stream._kept[0].job == "5"
    del stream
    gc.collect()
    tick._listeners.tell(event("etl"))
    assert not tick._listeners.wanted


def test_a_function_may_listen_too() -> None:
    """It is called with every event; one that raises disturbs no other."""
    tick = Everytick("memory://")
    told = []

    @tick.on_event
    def listen(event: Event) -> None:
        told.append(event.job)

    tick._listeners.tell(event("etl"))
    assert told == ["etl"]
    assert callable(listen)


async def test_each_instant_of_a_schedule_is_a_tick_on_the_stream() -> None:
    """S0-039: with the id that follows from its instant, so a reader knows which run it hears of."""
    tick = Everytick("memory://")

    @tick.job(every("1s"))
    async def work() -> None: ...

    stream = tick.events("work")
    begun: list[Event] = []
    async with tick:
        while len(begun) < 2:
            told = await asyncio.wait_for(anext(stream), 60)
            begun += [told] if told.kind is Happening.STARTED else []
    instants = [each.scheduled_for for each in begun if each.scheduled_for is not None]
    assert instants == sorted(set(instants))
    assert {each.microsecond for each in instants} == {0}
    assert [each.occurrence_id for each in begun] == [occurrence_id(job_id("work"), each) for each in instants]
