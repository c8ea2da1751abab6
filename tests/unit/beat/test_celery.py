"""The scheduler for Celery, as far as it needs no broker."""

import pytest
from celery import Celery

from everytick.beat.celery import Scheduler


def test_the_banner_of_celery_names_the_store_without_its_password() -> None:
    app = Celery("shop", broker="memory://")
    app.conf.everytick_store = "postgresql://shop:secret@db/shop"

    assert Scheduler(app, lazy=True).info == "    . store -> postgresql://shop:…@db/shop"


def test_a_beat_whose_node_has_ended_says_so() -> None:
    scheduler = Scheduler(Celery("shop", broker="memory://"), lazy=True)

    with pytest.raises(RuntimeError, match="nothing is sent"):
        scheduler.tick()
