"""The queues that come with the beat, on a real Redis."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from redis.asyncio import Redis

from everytick.beat import BatchQueue, CeleryQueue, EnqueuedJob, JobQueue, Priority, RedisQueue
from everytick.domain.payload import payload
from tests.acceptance.beat.beats import Place, minutely, registry_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = EnqueuedJob("id-1", "clean", payload({"ä": [1, None]}), Priority.NORMAL, "cleanup", NOON, NOON)


async def test_a_list_for_each_priority_and_the_oldest_comes_first(place: Place, client: Redis) -> None:
    """S3-020: workers take from the right end, the urgent list first."""
    queue = RedisQueue(client)
    for number, priority in enumerate((Priority.LOW, Priority.NORMAL, Priority.NORMAL, Priority.HIGH)):
        await queue.enqueue(replace(JOB, id=str(number), priority=priority, schedule_id=f"schedule-{number}"))

    popped = [await client.brpop(queue.lists, timeout=1) for _ in range(4)]
    taken = [found[1] for found in popped if found is not None]

    assert [json.loads(text)["id"] for text in taken] == ["3", "1", "2", "0"]
    assert json.loads(taken[0])["payload"] == {"ä": [1, None]}


async def test_a_time_of_a_schedule_is_taken_once(place: Place, client: Redis) -> None:
    """C-15: neither again, nor one before it, nor after the jobs were taken; another schedule is its own."""
    queue = RedisQueue(client)
    later = replace(JOB, scheduled_at=NOON + timedelta(microseconds=1))

    assert [await queue.enqueue(job) for job in (JOB, JOB, later)] == [True, False, True]
    await client.delete(*queue.lists)
    assert [await queue.enqueue(job) for job in (JOB, later, replace(JOB, schedule_id="other"))] == [False, False, True]
    assert list(await queue.enqueue_batch([later, replace(later, scheduled_at=NOON + timedelta(days=1))])) == [
        None,
        None,
    ]
    assert await client.llen("bananas:queue:normal") == 2


async def test_an_error_of_one_job_is_not_that_of_the_others(place: Place, client: Redis) -> None:
    queue = RedisQueue(client)
    await client.set("bananas:queue:high", "no list")
    urgent = replace(JOB, priority=Priority.HIGH, schedule_id="urgent")

    failed, fine = await queue.enqueue_batch([urgent, JOB])

    assert "WRONGTYPE" in str(failed)
    assert fine is None
    with pytest.raises(Exception, match="WRONGTYPE"):
        await queue.enqueue(urgent)


async def test_what_a_queue_must_be_able_to_do_is_a_protocol(place: Place, client: Redis) -> None:
    queues: list[JobQueue] = [RedisQueue(client), CeleryQueue(object())]

    assert [isinstance(queue, BatchQueue) for queue in queues] == [True, False]


async def test_a_job_is_a_task_of_celery(place: Place, client: Redis) -> None:
    """S3-020: name, keyword arguments, id, headers, and a queue by priority."""
    app = Celery("shop", broker=place.address)
    queue = CeleryQueue(app, {"high": {"queue": "urgent"}})
    schedule = minutely(job="shop.clean", payload={"max_age_days": 30}, priority="high")
    beat = place.beat(registry_of(schedule, minutely("plain", job="shop.plain")), queue)

    assert await beat.tick() == 2

    message = json.loads(str(await client.lindex("urgent", 0)))
    headers = message["headers"]
    assert {key: headers[key] for key in ("task", "id", "schedule_id", "scheduled_at", "trigger_type")} == {
        "task": "shop.clean",
        "id": (await beat.state("pulse")).last_job_id,
        "schedule_id": "pulse",
        "scheduled_at": "2026-01-01T12:00:00Z",
        "trigger_type": "cron",
    }
    assert arguments(message) == {"max_age_days": 30}
    assert arguments(json.loads(str(await client.lindex("celery", 0)))) == {}
    app.close()


def arguments(message: dict[str, Any]) -> Any:
    """Return the keyword arguments of a task."""
    return json.loads(base64.b64decode(message["body"]))[1]


async def test_a_broker_that_is_away_is_an_error_of_the_schedule(place: Place, client: Redis) -> None:
    """S3-021: the next tick tries again; and a payload that cannot be keyword arguments is refused with a word."""
    app = Celery("shop", broker="redis://127.0.0.1:1/0")
    beat = place.beat(registry_of(minutely(), minutely("list", payload=[1])), CeleryQueue(app))

    assert await beat.tick() == 0

    assert "refused" in (await beat.state("pulse")).last_error
    assert (await beat.state("list")).last_error == (
        "payload must be an object of keyword arguments for Celery, got [1]"
    )
    app.close()
