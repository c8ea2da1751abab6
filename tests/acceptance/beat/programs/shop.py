"""A Celery application as a project would have it, but that its task tells a Redis list of every run."""

import json
import os
from datetime import timedelta

import redis
from celery import Celery
from celery.schedules import crontab, solar

app = Celery("shop", broker=os.environ["SHOP_REDIS"])
app.conf.broker_connection_retry_on_startup = True
app.conf.beat_schedule = {
    "pulse": {"task": "shop.pulse", "schedule": timedelta(seconds=1), "args": (16,), "kwargs": {"unit": "kg"}},
    "nightly": {"task": "shop.pulse", "schedule": crontab(minute=0, hour=3), "args": (1,)},
    "sunset": {"task": "shop.pulse", "schedule": solar("sunset", -37.8, 144.9), "args": (2,)},
}
told = redis.Redis.from_url(os.environ["SHOP_REDIS"])


@app.task(name="shop.pulse", bind=True)  # type: ignore[untyped-decorator]
def pulse(self: object, weight: int, unit: str = "t") -> None:
    request = self.request  # type: ignore[attr-defined]
    sent = {key: request.headers[key] for key in ("schedule_id", "scheduled_at", "trigger_type")}
    told.rpush("runs", json.dumps({"id": request.id, "weight": weight, "unit": unit, **sent}))
