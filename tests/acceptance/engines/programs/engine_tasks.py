"""A Celery application whose tasks tell a Redis list of every run, and wait there for a word to go on."""

import os
from typing import Any

import redis
from celery import Celery

app = Celery("engine_tasks", broker=os.environ["ENGINE_BROKER"], backend=os.environ["ENGINE_RESULTS"])
app.conf.broker_connection_retry_on_startup = True
app.conf.worker_prefetch_multiplier = 1
app.conf.task_queue_max_priority = int(os.environ.get("ENGINE_PRIORITIES", "0")) or None
told = redis.Redis.from_url(os.environ["ENGINE_TOLD"], socket_timeout=None)


@app.task(name="shop.add")  # type: ignore[untyped-decorator]
def add(first: int, second: int) -> int:
    told.rpush("runs", "add")
    return first + second


@app.task(name="shop.note")  # type: ignore[untyped-decorator]
def note(word: str) -> None:
    told.rpush("runs", word)


@app.task(name="shop.fail")  # type: ignore[untyped-decorator]
def fail() -> None:
    told.rpush("runs", "fail")
    raise ZeroDivisionError("by nothing at all")


@app.task(name="shop.again", autoretry_for=(OSError,), retry_backoff=True, max_retries=5)  # type: ignore[untyped-decorator]
def again() -> None:
    told.rpush("runs", "again")
    raise OSError("try me again")


@app.task(name="shop.wait", bind=True)  # type: ignore[untyped-decorator]
def wait(self: Any) -> str:
    """Say that it runs, and wait for the word."""
    told.rpush("runs", self.request.id)
    told.rpush("begun", self.request.id)
    found: Any = told.blpop(["go"], timeout=120)
    return str(found[1].decode())


@app.task(name="shop.where", bind=True)  # type: ignore[untyped-decorator]
def where(self: Any) -> dict[str, Any]:
    request = self.request
    known = {key: request.headers[key] for key in ("everytick_job", "everytick_attempt")}
    return {"queue": request.delivery_info["routing_key"], "priority": request.delivery_info["priority"], **known}


@app.task(name="shop.thing")  # type: ignore[untyped-decorator]
def thing() -> int:
    return 1
