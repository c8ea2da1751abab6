"""Engines: the same promises with RabbitMQ as Celery's broker. Most tests are in the slow group."""

import asyncio
import signal
from typing import Any

import pytest
from amqp.exceptions import NotFound

from everytick import Everytick, on_request
from tests.acceptance.engines.conftest import PATIENCE_SECONDS, Yard, connected, kill
from tests.acceptance.engines.test_celery import attempts, defined, ended, heard
from tests.acceptance.engines.test_going_on import application, begun_by_a_process, recorded, until
from tests.servers.rabbit import Rabbit


def waiting_in(rabbit: Rabbit, queue: str) -> int:
    """Return how many messages no worker has taken yet."""
    with connected(rabbit) as connection:
        try:
            return int(connection.default_channel.queue_declare(queue, passive=True).message_count)
        except NotFound:
            return 0


def declare(rabbit: Rabbit, queue: str, **arguments: Any) -> None:
    """Make a queue as a worker that knows more about it would."""
    with connected(rabbit) as connection:
        connection.default_channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)


def noting(tick: Everytick, name: str, **options: Any) -> None:
    """Define a job whose task notes a word."""
    job = tick.define(name, on_request(), runner="celery", overlap="allow", task_timeout="4m")
    job.target("shop.note", options=options or None)


async def test_results_errors_and_queues_are_those_of_redis(rabbit_yard: Yard) -> None:
    """Celery with RabbitMQ; a task that fails is tried again by everytick alone."""
    yard = rabbit_yard
    yard.worker("--queues", "celery,reports")
    tick = yard.tick()
    defined(tick, "shop.add")
    tick.define("where", on_request(), runner="celery").target(
        "shop.where", options={"queue": "reports", "priority": 3}
    )
    retry: dict[str, Any] = {"max": 1, "interval": "10ms"}
    tick.define("fail", on_request(), runner="celery", retry=retry).target("shop.fail")
    async with tick:
        found = await ended(tick, {"first": 2, "second": 3})
        [attempt] = await attempts(tick, found.id)
        where = await (await tick.trigger("where")).wait("60s")
        fails = await (await tick.trigger("fail")).wait("60s")
        tries = await attempts(tick, fails.id)
    assert (found.status, found.result, attempt.handed_to) == ("completed", 5, f"celery:{attempt.id}"), yard.lines()
    told = {"queue": "reports", "priority": 3, "everytick_job": "where", "everytick_attempt": 1}
    assert where.result == told
    assert [each.status for each in tries] == ["failed", "failed"]
    assert "by nothing at all" in (tries[0].error or "")
    assert yard.runs() == ["add", "fail", "fail"]


async def test_another_node_goes_on_and_can_cancel_it(rabbit_yard: Yard) -> None:
    """What was handed over survives its node; a cancel revokes what runs and what waits."""
    yard = rabbit_yard
    yard.worker("--concurrency", "1")
    process, first, begun = await begun_by_a_process(yard)
    kill(process)
    async with application(yard) as other:
        yard.told.rpush("go", "done")
        status, result, tries = await recorded(other, first)
        assert (status, result, [each.id for each in tries]) == ("completed", "done", [begun])
        runs = await other.trigger("wait")
        await heard(yard, "begun")
        defined(other, "shop.add")
        await other.sync()
        waits = await other.trigger("work", [1, 2])
        for handle in (waits, runs):
            assert await handle.cancel("no longer wanted")
            assert (await handle.wait("60s")).status == "canceled"
        # The one process of the worker is free: what ran was ended, and what waited never begins.
        again = await other.trigger("wait")
        await heard(yard, "begun")
        yard.told.rpush("go", "free")
        assert (await again.wait("60s")).result == "free"
    assert len(yard.runs()) == 3
    assert "add" not in yard.runs()


@pytest.mark.slow
async def test_a_queue_that_a_worker_has_declared_with_priorities_keeps_them(rabbit_yard: Yard, rabbit: Rabbit) -> None:
    """A node that knows an address only does not know the queue's arguments, and must not contradict them."""
    yard = rabbit_yard
    declare(rabbit, "celery", **{"x-max-priority": 10})
    tick = yard.tick()
    noting(tick, "low", priority=1)
    noting(tick, "high", priority=9)
    async with tick:
        low = [await tick.trigger("low", [f"low {number}"]) for number in range(3)]
        await until(lambda: waiting_in(rabbit, "celery") == 3)
        high = await tick.trigger("high", ["high"])
        await until(lambda: waiting_in(rabbit, "celery") == 4)
        yard.worker("--concurrency", "1", ENGINE_PRIORITIES="10")
        for handle in (high, *low):
            assert (await handle.wait("60s")).status == "completed", yard.lines()
    assert yard.runs() == ["high", "low 0", "low 1", "low 2"]


@pytest.mark.slow
async def test_what_no_queue_takes_is_a_failure_at_once(rabbit_yard: Yard, rabbit: Rabbit) -> None:
    """RabbitMQ drops such a message: without the broker's word the attempt would wait for its timeout."""
    tick = rabbit_yard.tick()
    noting(tick, "urgent", queue="urgent")
    async with tick:
        first = await tick.trigger("urgent", ["one"])
        await until(lambda: waiting_in(rabbit, "urgent") == 1)
        with connected(rabbit) as connection:
            connection.default_channel.queue_delete("urgent")
        second = await (await tick.trigger("urgent", ["two"])).wait("60s")
        assert (second.status, "NO_ROUTE" in (second.error or "")) == ("failed", True), second.error
        # The next one makes the queue anew.
        third = await tick.trigger("urgent", ["three"])
        await until(lambda: waiting_in(rabbit, "urgent") == 1)
        for handle in (first, third):
            await handle.cancel("enough")
            await handle.wait("60s")


@pytest.mark.slow
async def test_a_timeout_ends_what_a_lost_worker_has_begun(rabbit_yard: Yard) -> None:
    """A lost worker is found by our own deadline, and the retry policy decides what follows."""
    yard = rabbit_yard
    worker = yard.worker()
    tick = yard.tick()
    defined(tick, "shop.wait", task_timeout="6s", retry={"max": 1, "interval": "10ms"})
    async with tick:
        handle = await tick.trigger("work")
        await heard(yard, "begun")
        kill(worker)
        yard.worker()
        await heard(yard, "begun")
        yard.told.rpush("go", "done")
        found = await handle.wait("60s")
        tries = await attempts(tick, found.id)
    assert (found.status, found.result) == ("completed", "done")
    assert [each.status for each in tries] == ["timeout", "success"]
    assert len(yard.runs()) == 2


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_broker_that_is_killed_and_comes_back_loses_and_doubles_nothing(
    rabbit_yard: Yard, rabbit: Rabbit
) -> None:
    """What was in it before runs afterwards, what is asked for meanwhile waits, and what ran ends once.

    The worker holds one task that runs and one that it has fetched: the broker gives the second to it once more.
    """
    yard = rabbit_yard
    yard.worker("--concurrency", "1")
    tick = yard.tick()
    noting(tick, "note")
    tick.define("wait", on_request(), runner="celery", task_timeout="4m").target("shop.wait")
    async with tick:
        running = await tick.trigger("wait")
        begun = await heard(yard, "begun")
        before = [await tick.trigger("note", [f"note {number}"]) for number in range(10)]
        await until(lambda: waiting_in(rabbit, "celery") == 9)
        await asyncio.to_thread(rabbit.kill)
        meanwhile = [await tick.trigger("note", [f"note {number}"]) for number in range(10, 20)]
        await until(lambda: tick.node is not None and tick.node.engine.slots.busy == 10)
        await asyncio.to_thread(rabbit.start)
        await until(lambda: waiting_in(rabbit, "celery") == 19)
        yard.told.rpush("go", "done")
        assert (await running.wait("60s")).result == "done"
        for handle in (*before, *meanwhile):
            assert (await handle.wait("100s")).status == "completed", yard.lines()
    assert sorted(yard.runs()) == sorted([begun, *(f"note {number}" for number in range(20))])


@pytest.mark.slow
async def test_a_connection_that_broke_while_idle_leaves_nothing_in_doubt(rabbit_yard: Yard, rabbit: Rabbit) -> None:
    """A broker that was restarted between two hand-overs costs neither a task nor a timeout."""
    yard = rabbit_yard
    tick = yard.tick()
    noting(tick, "note")
    async with tick:
        first = await tick.trigger("note", ["one"])
        await until(lambda: waiting_in(rabbit, "celery") == 1)
        await asyncio.to_thread(rabbit.stop)
        await asyncio.to_thread(rabbit.start)
        second = await tick.trigger("note", ["two"])
        await until(lambda: waiting_in(rabbit, "celery") == 2)
        yard.worker()
        for handle in (first, second):
            found = await handle.wait("60s")
            [attempt] = await attempts(tick, found.id)
            assert attempt.status == "success"
    assert sorted(yard.runs()) == ["one", "two"]


@pytest.mark.slow
async def test_a_node_that_stops_leaves_it_alone(rabbit_yard: Yard) -> None:
    """Running, stop: an attempt handed to an engine is neither canceled nor waited for; the next node records it."""
    yard = rabbit_yard
    worker = yard.worker()
    first = application(yard)
    await first.start()
    handle = await first.trigger("wait")
    begun = await heard(yard, "begun")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await first.stop("drain")
    yard.told.rpush("go", "while no node lived")
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, PATIENCE_SECONDS) == 0
    async with application(yard) as second:
        status, result, tries = await recorded(second, handle.id)
    assert (status, result, [each.status for each in tries]) == ("completed", "while no node lived", ["success"])
    assert yard.runs() == [begun]
