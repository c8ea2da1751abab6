"""What a node can be told, read and checked once."""

from __future__ import annotations

from dataclasses import field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from everytick.domain.durations import duration, format_duration
from everytick.domain.names import checked_name
from everytick.domain.snapshots import PLAN_LIMIT
from everytick.domain.values import value
from everytick.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterable

_LEAST = timedelta(milliseconds=10)
"""Shortest duration that a setting may have, if it has no other bound: asking more often would keep a node busy."""

_MOST_SLOTS = 100_000
"""Largest number that a setting which counts slots, threads, processes or jobs may have."""

LATE_SHARE = 0.25
"""The share of slots for what is late, unless a setting says otherwise: a catch-up takes four times as long."""

JOB_LIMIT = 200
"""Most jobs that metrics tell apart unless a setting says otherwise: each job has about a hundred series."""


@value
class NodeSettings:
    """How a node works; the defaults suit one process of an application.

    `slots` is how many occurrences run at once, `late_share` the share of them for what is late and for backfills,
    which get at least one. `poll` is how long a node sleeps at most. A
    node that was not heard of for `node_timeout` is taken for dead. `smtp` is the address of the
    server that takes the e-mail of notices, and may hold a password. `metrics_job_limit` is how many jobs
    are told apart in metrics. `dead_man_url` is told every minute that the fleet lives, and may hold a secret.
    `next_store` is the address to which the store may be moved while the node runs, and may hold a password.

    `celery` is an application, as module:object, or the address of its broker, with that of its results in
    `celery_results`. `dask` is the address of a scheduler, `ray` that of a cluster. `engine_slots` is how many
    occurrences may wait for these without a slot.
    """

    slots: int = 50
    late_share: float = LATE_SHARE
    threads: int = 32
    processes: int = 32
    grace_period: timedelta = timedelta(seconds=30)
    reaper_interval: timedelta = timedelta(seconds=5)
    heartbeat: timedelta = timedelta(seconds=5)
    node_timeout: timedelta = timedelta(seconds=20)
    poll: timedelta = timedelta(seconds=5)
    plan_limit: int = PLAN_LIMIT
    queues: tuple[str, ...] = ("default",)
    log_folder: Path | None = None
    allow_calls: tuple[str, ...] = ()
    allow_addresses: tuple[str, ...] = ()
    hook_timeout: timedelta = timedelta(minutes=5)
    timezone_data: str = "system"
    smtp: str | None = field(default=None, repr=False)
    smtp_sender: str | None = None
    metrics_job_limit: int = JOB_LIMIT
    dead_man_url: str | None = field(default=None, repr=False)
    next_store: str | None = field(default=None, repr=False)
    celery: str | None = field(default=None, repr=False)
    celery_results: str | None = field(default=None, repr=False)
    dask: str | None = None
    ray: str | None = None
    engine_slots: int = 1_000


def node_settings(
    *,
    slots: int = 50,
    late_share: float = LATE_SHARE,
    threads: int = 32,
    processes: int = 32,
    grace_period: object = "30s",
    reaper_interval: object = "5s",
    heartbeat: object = "5s",
    node_timeout: object = "20s",
    poll: object = "5s",
    plan_limit: int = PLAN_LIMIT,
    queues: Iterable[str] = ("default",),
    log_folder: str | Path | None = None,
    allow_calls: Iterable[str] = (),
    allow_addresses: Iterable[str] = (),
    hook_timeout: object = "5m",
    timezone_data: str = "system",
    smtp: str | None = None,
    smtp_sender: str | None = None,
    metrics_job_limit: int = JOB_LIMIT,
    dead_man_url: str | None = None,
    next_store: str | None = None,
    celery: str | None = None,
    celery_results: str | None = None,
    dask: str | None = None,
    ray: str | None = None,
    engine_slots: int = 1_000,
) -> NodeSettings:
    """Return the settings, checked alone and against each other."""
    settings = NodeSettings(
        slots=_whole("slots", slots, _MOST_SLOTS),
        late_share=_share("late_share", late_share),
        threads=_whole("threads", threads, _MOST_SLOTS),
        processes=_whole("processes", processes, _MOST_SLOTS),
        grace_period=_length("grace_period", grace_period, timedelta(0)),
        reaper_interval=_length("reaper_interval", reaper_interval),
        heartbeat=_length("heartbeat", heartbeat),
        node_timeout=_length("node_timeout", node_timeout),
        poll=_length("poll", poll),
        plan_limit=_whole("plan_limit", plan_limit, PLAN_LIMIT),
        queues=_names("queues", queues),
        log_folder=None if log_folder is None else Path(log_folder),
        allow_calls=_names("allow_calls", allow_calls, least=0),
        allow_addresses=_names("allow_addresses", allow_addresses, least=0),
        hook_timeout=_length("hook_timeout", hook_timeout),
        timezone_data=_zone_tables(timezone_data),
        smtp=smtp,
        smtp_sender=smtp_sender,
        metrics_job_limit=_whole("metrics_job_limit", metrics_job_limit, _MOST_SLOTS),
        dead_man_url=_address("dead_man_url", dead_man_url),
        next_store=None if next_store is None else _store_address(next_store),
        celery=_place("celery", celery),
        celery_results=_place("celery_results", celery_results),
        dask=_place("dask", dask),
        ray=_place("ray", ray),
        engine_slots=_whole("engine_slots", engine_slots, _MOST_SLOTS),
    )
    _refuse_mistaken_mail(settings)
    if settings.node_timeout < 3 * settings.heartbeat:
        reason = (
            f"is shorter than three heartbeats of {format_duration(settings.heartbeat)}: a healthy node would be taken "
            f"for dead; give at least {format_duration(3 * settings.heartbeat)} or a shorter heartbeat"
        )
        raise InvalidSetting("node_timeout", format_duration(settings.node_timeout), reason)
    return settings


def _refuse_mistaken_mail(settings: NodeSettings) -> None:
    """Return if e-mail can be sent by these settings, or none is to be sent."""
    if settings.smtp is None and settings.smtp_sender is None:
        return
    if settings.smtp is None:
        raise InvalidSetting("smtp_sender", settings.smtp_sender, "needs the server that sends it: set smtp too")
    # Loaded only for this: few nodes send e-mail.
    from everytick.runners.mail import mail_server

    mail_server(settings.smtp, settings.smtp_sender)


def _zone_tables(tables: str) -> str:
    if tables not in ("system", "package"):
        reason = 'must be "system", the tables of this machine, or "package", those of the installed tzdata package'
        raise InvalidSetting("timezone_data", tables, reason)
    return tables


def _store_address(address: str) -> str:
    from everytick.stores.addresses import checked_address

    return checked_address(address)


def _address(setting: str, address: str | None) -> str | None:
    if address is not None and (
        not address.startswith(("http://", "https://")) or not address.isprintable() or " " in address
    ):
        raise InvalidSetting(setting, "…", "must be an address such as https://example.org/ping/…")
    return address


def _place(setting: str, place: object) -> str | None:
    if place is None or (isinstance(place, str) and place.strip() and place.isprintable()):
        return place
    kind = type(place).__name__
    raise InvalidSetting(setting, "…", f'must be text, such as "shop.celery:app" or an address, and is a {kind}')


def _whole(setting: str, number: object, most: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise InvalidSetting(setting, number, f"must be a whole number from 1 to {most:,}")
    return number


def _share(setting: str, share: object) -> float:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise InvalidSetting(setting, share, "must be a share above 0 and up to 1, such as 0.25")
    return float(share)


def _length(setting: str, text: object, least: timedelta = _LEAST) -> timedelta:
    length = duration(text)
    if length < least:
        raise InvalidSetting(setting, text, f"must be at least {format_duration(least)}")
    return length


def _names(setting: str, names_given: Iterable[str], least: int = 1) -> tuple[str, ...]:
    if isinstance(names_given, str):
        raise InvalidSetting(setting, names_given, f'must be a list of names, like {setting}=["{names_given}"]')
    names = tuple(checked_name(setting, name) for name in names_given)
    if len(names) < least:
        raise InvalidSetting(setting, names, "must hold one name or more")
    return names
