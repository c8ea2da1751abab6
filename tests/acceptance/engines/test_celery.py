"""Engines: work that a Celery worker does is recorded as if it had been done here."""

import asyncio
import json
import pickle
from typing import Any

import pytest

from everytick import Everytick, InvalidPolicies, InvalidSetting, on_request
from everytick.domain.occurrence import Attempt, EndedOccurrence
from tests.acceptance.engines.conftest import Yard, kill


def defined(tick: Everytick, target: str, **policies: Any) -> None:
    options = policies.pop("options", None)
    tick.define("work", on_request(), runner="celery", **policies).target(target, options=options)


async def ended(tick: Everytick, payload: Any = None) -> EndedOccurrence:
    handle = await tick.trigger("work", payload)
    return await handle.wait("60s")


async def attempts(tick: Everytick, occurrence_id: str) -> list[Attempt]:
    store = await tick._opened()
    return [attempt for _, attempt in (await store.whole(occurrence_id)).attempts]


async def heard(yard: Yard, key: str) -> str:
    return await asyncio.to_thread(yard.hear, key)


async def test_a_result_comes_back_into_history(yard: Yard) -> None:
    """Results and durations are those of the worker, and the attempt says where it was carried out."""
    yard.worker()
    tick = yard.tick()
    defined(tick, "shop.add")
    async with tick:
        found = await ended(tick, {"first": 2, "second": 3})
        assert (found.status, found.result) == ("completed", 5), yard.lines()
        assert (await ended(tick, [4, 5])).result == 9
        [attempt] = await attempts(tick, found.id)
    assert attempt.handed_to == f"celery:{attempt.id}"
    assert attempt.started_at is not None
    assert attempt.ended_at is not None
    assert attempt.ended_at > attempt.started_at
    assert yard.runs() == ["add", "add"]


async def test_an_error_comes_back_with_its_traceback_and_is_retried_by_everytick_alone(yard: Yard) -> None:
    """Engine retries are always off; `Retry.on` knows the names of what was raised there."""
    yard.worker()
    tick = yard.tick()
    defined(tick, "shop.fail", retry={"max": 1, "interval": "10ms", "on": ["builtins.ArithmeticError"]})
    async with tick:
        found = await ended(tick)
        tries = await attempts(tick, found.id)
    assert found.status == "failed"
    assert [each.status for each in tries] == ["failed", "failed"]
    assert "by nothing at all" in (tries[0].error or "")
    assert "Traceback" in (tries[0].error or "")
    assert len({each.handed_to for each in tries}) == 2
    assert yard.runs() == ["fail", "fail"]


async def test_a_task_that_asks_celery_for_another_try_has_failed(yard: Yard) -> None:
    yard.worker()
    tick = yard.tick()
    defined(tick, "shop.again")
    async with tick:
        found = await ended(tick)
        assert found.status == "failed"
        # A second run of the same task would come before this one.
        assert (await ended(tick)).status == "failed"
    assert yard.runs() == ["again", "again"]


async def test_queue_and_priority_bring_it_to_the_worker_that_is_meant(yard: Yard) -> None:
    yard.worker("--queues", "reports")
    tick = yard.tick()
    defined(tick, "shop.where", options={"queue": "reports", "priority": 3})
    async with tick:
        found = await ended(tick)
    told = {"queue": "reports", "priority": 3, "everytick_job": "work", "everytick_attempt": 1}
    assert found.result == told


async def test_a_cancel_revokes_what_runs_and_what_waits(yard: Yard) -> None:
    yard.worker("--concurrency", "1")
    tick = yard.tick()
    defined(tick, "shop.wait", overlap="allow")
    async with tick:
        first = await tick.trigger("work")
        await heard(yard, "begun")
        second = await tick.trigger("work")
        for handle in (second, first):
            assert await handle.cancel("no longer wanted")
            found = await handle.wait("60s")
            assert (found.status, (found.error or "")[-16:]) == ("canceled", "no longer wanted")
        # The one process of the worker is free: the first was ended, and the second never begins.
        third = await tick.trigger("work")
        begun = await heard(yard, "begun")
        yard.told.rpush("go", "done")
        assert (await third.wait("60s")).result == "done"
        [attempt] = await attempts(tick, third.id)
    assert begun == attempt.id
    assert yard.runs()[1:] == [attempt.id]


async def test_a_timeout_ends_what_a_lost_worker_has_begun(yard: Yard) -> None:
    """A lost worker is found by our own deadline, and the retry policy decides what follows."""
    worker = yard.worker()
    tick = yard.tick()
    defined(tick, "shop.wait", task_timeout="4s", retry={"max": 1, "interval": "10ms"})
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


async def test_one_that_waits_for_a_worker_keeps_no_slot(yard: Yard) -> None:
    """What was handed over does not run here: a node of one slot hands over many, and runs its own jobs meanwhile."""
    tick = yard.tick(slots=1)
    defined(tick, "shop.add", overlap="allow", task_timeout="1m")

    @tick.job(on_request(), name="own")
    async def own() -> str:
        return "here"

    async with tick:
        handles = [await tick.trigger("work", [number, 1]) for number in range(20)]
        assert (await (await tick.trigger("own")).wait("30s")).result == "here"
        yard.worker()
        assert [(await handle.wait("60s")).result for handle in handles] == list(range(1, 21))
    assert len(yard.runs()) == 20


async def handed(yard: Yard, tick: Everytick) -> tuple[Any, str]:
    """Return a run that was handed over, and the id in the message that no worker gets."""
    handle = await tick.trigger("work")
    message = json.loads(await heard(yard, "celery"))
    return handle, message["headers"]["id"]


async def test_the_ends_of_many_are_asked_for_in_one_question(yard: Yard) -> None:
    """Decision 49: what waits for workers costs one question a time, whatever there is of it."""
    yard.told.config_resetstat()
    tick = yard.tick()
    defined(tick, "shop.add", overlap="allow", task_timeout="2m")
    async with tick:
        runs = [await handed(yard, tick) for _ in range(8)]
        yard.told.mset({f"celery-task-meta-{id_}": '{"status": "SUCCESS", "result": 1}' for _, id_ in runs})
        assert [(await handle.wait("30s")).result for handle, _ in runs] == [1] * 8
    asked: Any = yard.told.info("commandstats")
    assert asked["cmdstat_mget"]["calls"] > 0
    assert "cmdstat_get" not in asked


async def test_a_result_that_cannot_be_read_is_no_harm_to_others(yard: Yard) -> None:
    """A worker may write by pickle, and a task may raise what needs arguments: each has its end, and so have others."""
    tick = yard.tick()
    defined(tick, "shop.add", overlap="allow", task_timeout="2m", retry={"max": 3, "interval": "10ms"})
    raised = {"exc_type": "ExceptionGroup", "exc_module": "builtins", "exc_message": ["two of them", []]}
    texts = [
        pickle.dumps({"status": "SUCCESS", "result": 1}),
        b"[]",
        json.dumps({"status": "FAILURE", "result": raised}).encode(),
        json.dumps({"status": "SUCCESS", "result": 42}).encode(),
    ]
    async with tick:
        runs = [await handed(yard, tick) for _ in texts]
        yard.told.mset({f"celery-task-meta-{id_}": text for (_, id_), text in zip(runs, texts, strict=True)})
        ends = [await handle.wait("30s") for handle, _ in (runs[0], runs[1], runs[3])]
        await heard(yard, "celery")  # the next try is handed over once the first one's end is recorded
        [first, *_] = await attempts(tick, runs[2][0].id)
    assert [end.status for end in ends] == ["failed", "failed", "completed"]
    assert ends[2].result == 42
    assert all("set result_serializer to json for its worker" in (end.error or "") for end in ends[:2])
    assert "two of them" in (first.error or "")


async def test_what_cannot_be_handed_over_is_refused_at_the_door(yard: Yard) -> None:
    tick = Everytick(yard.store, name="engine-node")
    defined(tick, "shop.add")
    with pytest.raises(InvalidSetting, match="EVERYTICK_CELERY"):
        await tick.start()
    other, more = tick.define("other", on_request()), tick.define("more", on_request(), runner="celery")
    other.target("shop.add")
    with pytest.raises(InvalidPolicies, match="which only an engine can call"):
        _ = other.job
    with pytest.raises(InvalidPolicies, match="queues' is not an option"):
        more.target("shop.add", options={"queues": "a"})


async def test_results_that_no_other_node_could_read_are_refused(yard: Yard) -> None:
    for broker, results, words in (
        ("amqp://localhost", None, "celery_results"),
        ("amqp://localhost", "rpc://", "one process only (rpc://): set a result_backend that every node can ask"),
        ("no.such.module:app", None, "names no Celery application"),
    ):
        tick = Everytick(yard.store, name="engine-node", celery=broker, celery_results=results)
        defined(tick, "shop.add")
        async with tick:
            await tick.trigger("work", [1, 2])
            assert tick.node is not None
            job = tick.definitions[0].job
            assert words in tick.node.scope._catalogue.why(job)
