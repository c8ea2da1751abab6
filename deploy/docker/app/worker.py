"""The Celery application of the example: a beat of everytick sends, workers run."""

from __future__ import annotations

import os

from celery import Celery
from jobs import store

app = Celery("worker", broker=os.environ["CELERY_BROKER_URL"])
app.conf.everytick_store = store()
app.conf.everytick_name = "celery-beat"
app.conf.broker_connection_retry_on_startup = True
# A task that a worker was killed with is delivered again, and a worker takes no more than it runs.
app.conf.task_acks_late = True
app.conf.worker_prefetch_multiplier = 1
app.conf.beat_schedule = {"add-every-minute": {"task": "worker.add", "schedule": 60.0, "args": (2, 3)}}


@app.task
def add(one: int, other: int) -> int:
    """Return the sum."""
    return one + other
