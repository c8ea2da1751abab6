"""`everytick run`: the application's node in the foreground, or once through what is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everytick.cli.common_options import VerbCommand, setting_option, state
from everytick.cli.exits import Refused
from everytick.cli.history import FAILED
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.access.settings import AccessSettings
    from everytick.app import Everytick
    from everytick.app.serving import Listening
    from everytick.node.events import Event

_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.02, 0.5
"""Between two reads of the store: the first wait, doubled each time up to the last."""


@click.command(
    "run",
    cls=VerbCommand,
    help="Plan and run the jobs of an application or a folder until told to stop.\n\n"
    "A folder is watched: what changes in it is live at once. "
    "Ctrl-C, SIGTERM or a closed terminal stops cleanly: what runs is told to stop and gets the grace period. "
    "A second Ctrl-C or SIGTERM leaves at once.\n\n"
    "Examples: everytick run -a jobs:tick --slots 20 --queue default,mail; everytick run --jobs jobs/",
)
@setting_option("--slots", metavar="N", help="How many occurrences run at once.")
@setting_option("--queue", "queues", metavar="NAMES", help="Which queues to work on, with commas between them.")
@setting_option("--grace-period", metavar="TIME", help="How long a stop waits for what runs, like 30s.")
@setting_option(
    "--log-level", metavar="LEVEL", help="From which level on lines are written: debug, info, warning, error."
)
@setting_option("--log-format", metavar="FORMAT", help="text, or json for one JSON object per line.")
@setting_option(
    "--web-address", metavar="ADDRESS", help="Where the dashboard and the API listen; 127.0.0.1 unless set."
)
@setting_option("--web-port", metavar="PORT", help="The port on which they listen; 0 is any free one.")
@setting_option("--web-auth", metavar="WHO", help="auto, or users: people sign in even while there is no user.")
@click.option("--no-web", is_flag=True, help="Serve neither dashboard nor API.")
@click.option("--drain", is_flag=True, help="When told to stop, let everything that runs finish first.")
@click.option(
    "--once", is_flag=True, help="Run what is due now to its end, then leave; exit code 1 if any of it failed."
)
def run_verb(no_web: bool, drain: bool, once: bool) -> int:
    """Run the application."""
    from everytick.cli.applications import application
    from everytick.cli.logging import set_up, tell_open_secrets

    settings = state().settings
    app = application(to_run=True)
    _refuse_missing(app)
    set_up(settings["log_level"].value, settings["log_format"])
    tell_open_secrets(settings)
    _greet(app, once)
    if once:
        import asyncio

        failures = Failures()
        app.on_event(failures.hear)
        asyncio.run(_once(app))
        return Exit.FAILED if failures.count else Exit.DONE
    app.run_or_raise(drain=drain, web=listening() if settings["web"].value and not no_web else None)
    return Exit.DONE


def listening() -> Listening:
    """Return where the settings let the service listen."""
    from everytick.app.serving import Listening

    settings = state().settings
    host, port, prefix = (settings[f"web_{key}"].value for key in ("address", "port", "prefix"))
    return Listening.at(host, port, prefix or "", _access())


def _access() -> AccessSettings:
    """Return how the settings let people come in."""
    from everytick.access.settings import access_settings

    oidc = [f"oidc_{key}" for key in ("issuer", "client_id", "client_secret", "claim", "trust_email")]
    keys = ["auth", "hosts", "proxies", "proxy_header", "proxy_role", *oidc]
    return access_settings(**{key: state().settings[f"web_{key}"].value for key in keys})


class Failures:
    """Counts the occurrences that ended badly."""

    def __init__(self) -> None:
        self.count = 0

    def hear(self, event: Event) -> None:
        """Count the event if it is such an end."""
        self.count += event.kind == "ended" and event.status in FAILED


def _greet(app: Everytick, once: bool) -> None:
    import logging

    from everytick.app.console_lines import where
    from everytick.cli.applications import address_of_app

    what = "runs what is due and leaves" if once else "Ctrl-C stops it, a second leaves at once"
    slots, queues = app.settings.slots, ", ".join(app.settings.queues)
    store = where(address_of_app(app))
    logging.getLogger("everytick").info("%s on %s, %d slots, queues %s: %s", _named(app), store, slots, queues, what)


def _named(app: Everytick) -> str:
    """Return in words what runs here."""
    from everytick.app.console_lines import counted
    from everytick.cli.applications import NAME

    code = "" if app.name == NAME else f"application {app.name} with {counted(len(app.definitions), 'job')}"
    folder = "" if app.jobs_folder is None else f"folder {app.jobs_folder}"
    return " and ".join(filter(None, (code, folder)))


def _refuse_missing(app: Everytick) -> None:
    folder = app.jobs_folder
    if folder is not None and not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise Refused(f"{shown(str(folder))} {what}: make it, or name another one with --jobs", Exit.NOT_FOUND)


async def _once(app: Everytick) -> None:
    """Start the node, wait until nothing of before its start is left to do, and stop it."""
    import asyncio
    import signal

    from everytick.app.foreground import stop_signals
    from everytick.cli.asking import store_of_app

    loop, here = asyncio.get_running_loop(), asyncio.current_task()
    assert here is not None, "a coroutine that runs is a task"
    loop.add_signal_handler(signal.SIGTERM, here.cancel)
    if signal.SIGHUP in stop_signals():
        # A terminal that closes may say so twice, which must not break off the stop.
        loop.add_signal_handler(signal.SIGHUP, lambda: here.cancelling() or here.cancel())
    try:
        await app.start()
        now, pause = await (await store_of_app(app)).now(), _FIRST_LOOK_SECONDS
        while await _is_left(app, now):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_SECONDS)
        await app.stop("drain")
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        await app.stop()


async def _is_left(app: Everytick, now: datetime) -> bool:
    """Tell whether anything of this application that was due then waits or runs.

    A retry that a node waits for itself, for 5 seconds at most, is part of it; one that is further away is not.
    """
    from everytick.cli.asking import store_of_app
    from everytick.domain.statuses import OccurrenceStatus as Status
    from everytick.stores.base import HistoryFilter

    store = await store_of_app(app)
    names = {definition.name for definition in app.definitions}
    owner = None if app.jobs_folder is None else app.jobs_owner
    records = {
        record.job.id: record for record in await store.list() if record.job.name in names or record.job.owner == owner
    }
    if any(record.wake_at is not None and record.wake_at <= now for record in records.values()):
        return True
    statuses = (Status.PENDING, Status.RUNNING, Status.QUEUED, Status.AWAITING_RETRY)
    page = await store.history(HistoryFilter(statuses=statuses, through=now, limit=1000))
    for occurrence in page.occurrences:
        record = records.get(occurrence.job_id)
        if record is None or record.job.settings.queue not in app.settings.queues:
            continue
        if occurrence.status is Status.AWAITING_RETRY:
            if occurrence.owner is not None:
                return True
            continue
        waits = occurrence.status is not Status.RUNNING and (occurrence.ready_at or occurrence.scheduled_for) > now
        if not waits and (occurrence.status is not Status.QUEUED or record.pause is None):
            return True
    return False
