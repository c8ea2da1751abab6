"""A beat for Celery: `celery -A app beat -S everytick.beat.celery:Scheduler`.

It reads `beat_schedule` as it is, and sends the tasks to Celery's workers as Celery's own beat does. What differs is
who decides: every entry is a job in a store, so each of its times is sent once, however many beats run, and what was
missed is caught up, kept in the history and explained.

It is set in Celery's configuration: `everytick_store` (else EVERYTICK_STORE, else `everytick.db` in this folder),
`everytick_name` of the application (else that of the Celery application), and `everytick_defaults`, policies for all
entries. An entry may have policies of its own under the key `everytick`.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from celery.beat import Scheduler as CeleryScheduler

from everytick.app import Everytick
from everytick.beat.celery_schedules import schedule_of
from everytick.config.settings import without_password
from everytick.domain.occurrence import Cause
from everytick.domain.retry import Retry
from everytick.errors import EverytickError
from everytick.runners.context import Context  # noqa: TC001, read from the annotation when the job is defined
from everytick.sources.importing.celery_beat import DEFAULTS
from everytick.sources.importing.findings import Unsayable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_log = logging.getLogger("everytick.beat")

STORE_VARIABLE = "EVERYTICK_STORE"
DEFAULT_STORE = "sqlite:///everytick.db"

SENDING: Mapping[str, object] = {
    **DEFAULTS,
    "retry": Retry(30, "1s", factor=1.5, max_interval="1m"),
    "task_timeout": "1m",
    "on_orphan": "restart",
}
"""How a task is sent unless configuration says otherwise. A broker that is away for some minutes loses nothing. A beat
that dies while it sends leaves it to another, which may send the task a second time, with the same id."""

_LOOK_SECONDS = 5.0
"""How long Celery sleeps between two looks at whether our node still runs."""


class Scheduler(CeleryScheduler):  # type: ignore[misc]  # Celery ships no types
    """Celery's scheduler with everytick inside. Any number of beats may run on one store."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._tick: Everytick | None = None
        super().__init__(*args, **kwargs)
        self.max_interval: float = min(self.max_interval, _LOOK_SECONDS)

    def setup_schedule(self) -> None:
        """Make a job of every entry, and start the node. An entry without an equal here is left out, and logged."""
        own = {name: dict(entry) for name, entry in (self.app.conf.beat_schedule or {}).items()}
        policies = {name: entry.pop("everytick", {}) for name, entry in own.items()}
        self.install_default_entries(self.data)
        self.merge_inplace(own)
        try:
            self._tick = _application(self.app)
            for name, entry in self.data.items():
                self._define(self._tick, name, entry, policies.get(name, {}))
            self._tick.start_background()
        except EverytickError as error:
            # Celery would log any other exception with its traceback, and this is a mistake in the configuration.
            raise SystemExit(f"everytick: {error}") from error

    def _define(self, tick: Everytick, name: str, entry: Any, policies: Mapping[str, Any]) -> None:
        try:
            rule = schedule_of(entry.schedule)
        except Unsayable as reason:
            _log.error("entry %r of beat_schedule is left out: %s; the other entries run", name, reason)
            return
        defaults = self.app.conf.get("everytick_defaults") or {}
        given: dict[str, Any] = {**SENDING, "description": f"sends {entry.task}", **defaults, **policies}
        tick.job(rule, name=name, **given)(_sender(self, entry))

    def send(self, entry: Any, ctx: Context, args: list[Any] | None, kwargs: dict[str, Any] | None) -> str:
        """Send one task as Celery's beat does; return its id, which is the same for every attempt."""
        changed: dict[str, Any] = {
            "args": entry.args if args is None else args,
            "kwargs": entry.kwargs if kwargs is None else kwargs,
            "options": {**entry.options, "headers": _headers(entry, ctx), "task_id": task_id(ctx)},
        }
        self.apply_async(type(entry)(**{**dict(entry), **changed}), advance=False)
        return task_id(ctx)

    def tick(self, *_: Any, **__: Any) -> float:
        """Return how long Celery may sleep: the node plans and sends by itself. Raise RuntimeError if it has ended."""
        if self._tick is None or self._tick.node is None:
            raise RuntimeError("the node of everytick has ended, and nothing is sent: see the lines before this one")
        return float(self.max_interval)

    def should_sync(self) -> bool:
        """Return False: everything is in the store already."""
        return False

    def sync(self) -> None:
        """Do nothing, as everything is in the store already."""

    def close(self) -> None:
        """Stop the node, once what is being sent is sent."""
        if self._tick is not None:
            self._tick.stop_background("drain")
        super().close()

    @property
    def info(self) -> str:
        """What Celery's banner says of this scheduler."""
        return f"    . store -> {without_password(_store_of(self.app))}"


def task_id(ctx: Context) -> str:
    """Return the id of the task in Celery: that of the run, so that it follows from the entry and its time."""
    return ctx.idempotency_key.rpartition("_")[2]


def _headers(entry: Any, ctx: Context) -> dict[str, Any]:
    """Return the entry's own headers, and which time of which entry the task is sent for."""
    return {
        **(entry.options.get("headers") or {}),
        "schedule_id": entry.name,
        "scheduled_at": ctx.scheduled_for.isoformat().replace("+00:00", "Z"),
        "trigger_type": "cron" if ctx.cause is Cause.SCHEDULE else str(ctx.cause),
    }


def _application(app: Any) -> Everytick:
    conf = app.conf
    name = conf.get("everytick_name") or app.main or "celery"
    zone = conf.timezone or ("UTC" if conf.enable_utc else "local")
    return Everytick(_store_of(app), name=str(name), timezone=str(zone))


def _store_of(app: Any) -> str:
    return str(app.conf.get("everytick_store") or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)


def _sender(scheduler: Scheduler, entry: Any) -> Callable[..., str]:
    """Return the body of an entry's job. A run that is asked for may give other arguments than the entry has."""

    def send(ctx: Context, args: list[Any] | None = None, kwargs: dict[str, Any] | None = None) -> str:
        return scheduler.send(entry, ctx, args, kwargs)

    return send
