"""Engines: what was handed over survives the node, the stop, and a broker that is away."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import redis as driver

from everytick import Everytick, on_request
from everytick.app.handle import Handle
from everytick.domain.occurrence import Attempt
from tests.acceptance.engines.brokers import Broker
from tests.acceptance.engines.conftest import PATIENCE_SECONDS, Yard, kill
from tests.acceptance.engines.test_celery import attempts, heard


async def until(is_so: Callable[[], bool]) -> None:
    """Return once it is so; ask in a thread, while the node goes on."""
    nobody = asyncio.Event()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await asyncio.to_thread(is_so):
            with suppress(TimeoutError):
                await asyncio.wait_for(nobody.wait(), 0.02)


def application(yard: Yard, **settings: Any) -> Everytick:
    """Return an application with the job of the node programs."""
    tick = yard.tick(**settings)
    tick.define("wait", on_request(), runner="celery", task_timeout="2m").target("shop.wait")
    return tick


async def recorded(tick: Everytick, occurrence_id: str) -> tuple[str, Any, list[Attempt]]:
    """Return how the occurrence ended, once it has."""
    found = await Handle(occurrence_id, tick._opened).wait(f"{PATIENCE_SECONDS}s")
    return found.status, found.result, await attempts(tick, occurrence_id)


async def begun_by_a_process(yard: Yard) -> tuple[Any, str, str]:
    """Let a node of its own hand a task over; return the process, the occurrence and the task's id."""
    asking = application(yard)
    process = yard.node()
    await asking.sync()
    handle = await asking.trigger("wait")
    begun = await heard(yard, "begun")
    await asking.close()
    return process, handle.id, begun


async def test_another_node_goes_on_when_the_first_is_killed(yard: Yard) -> None:
    """An occurrence handed to an engine survives the node that handed it over; the task runs once."""
    yard.worker()
    process, occurrence_id, begun = await begun_by_a_process(yard)
    kill(process)
    async with application(yard) as other:
        yard.told.rpush("go", "done")
        status, result, tries = await recorded(other, occurrence_id)
        node = other.node.name if other.node else ""
        whole = await (await other._opened()).whole(occurrence_id)
    assert (status, result) == ("completed", "done")
    assert [(each.number, each.status, each.id) for each in tries] == [(1, "success", begun)]
    assert (whole.occurrence.node, tries[0].node != node) == (node, True)
    assert yard.runs() == [begun]


async def test_an_end_while_no_node_lives_is_recorded_by_the_next(yard: Yard) -> None:
    worker = yard.worker()
    process, occurrence_id, begun = await begun_by_a_process(yard)
    kill(process)
    yard.told.rpush("go", "long before")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0
    async with application(yard) as other:
        status, result, _ = await recorded(other, occurrence_id)
    assert (status, result, yard.runs()) == ("completed", "long before", [begun])


async def test_a_node_that_stops_leaves_it_alone(yard: Yard) -> None:
    """Running, stop: an attempt handed to an engine is neither canceled nor waited for; the next node records it."""
    yard.worker()
    first = application(yard)
    await first.start()
    handle = await first.trigger("wait")
    begun = await heard(yard, "begun")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await first.stop("drain")
    async with application(yard) as second:
        yard.told.rpush("go", "done")
        status, result, tries = await recorded(second, handle.id)
    assert (status, result, [each.status for each in tries]) == ("completed", "done", ["success"])
    assert yard.runs() == [begun]


async def test_the_next_node_can_cancel_it(yard: Yard) -> None:
    yard.worker()
    process, occurrence_id, _ = await begun_by_a_process(yard)
    kill(process)
    tick = yard.tick()
    tick.define("wait", on_request(), runner="celery", task_timeout="2m").target("shop.wait")
    async with tick:
        assert await Handle(occurrence_id, tick._opened).cancel("enough")
        status, _, tries = await recorded(tick, occurrence_id)
    assert (status, [each.status for each in tries]) == ("canceled", ["canceled"])


async def test_a_broker_that_is_away_for_a_while_loses_and_doubles_nothing(yard: Yard, broker: Broker) -> None:
    """What is asked for meanwhile waits for the broker; what was in it before runs afterwards."""
    yard.broker = broker.address
    tick = yard.tick()
    tick.define("add", on_request(), runner="celery", overlap="allow", task_timeout="2m").target("shop.add")
    async with tick:
        before = [await tick.trigger("add", [number, 0]) for number in range(10)]
        with driver.Redis.from_url(broker.address) as queue:
            await until(lambda: queue.llen("celery") == 10)
        broker.kill()
        meanwhile = [await tick.trigger("add", [number, 0]) for number in range(10, 20)]
        await until(lambda: tick.node is not None and tick.node.engine.slots.busy == 10)
        broker.start()
        yard.worker(ENGINE_BROKER=broker.address)
        results = [(await handle.wait("60s")).result for handle in (*before, *meanwhile)]
    assert results == list(range(20))
    assert len(yard.runs()) == 20


async def test_results_that_are_away_for_a_while_are_found_later(yard: Yard, broker: Broker) -> None:
    """A result backend that does not answer loses nothing: it is asked again."""
    results = broker.address
    tick = Everytick(yard.store, name="engine-node", celery=yard.broker, celery_results=results)
    tick.define("wait", on_request(), runner="celery", task_timeout="2m").target("shop.wait")
    yard.worker(ENGINE_RESULTS=results)
    async with tick:
        handle = await tick.trigger("wait")
        await heard(yard, "begun")
        broker.kill()
        broker.start()
        yard.told.rpush("go", "done")
        assert (await handle.wait("60s")).result == "done"
