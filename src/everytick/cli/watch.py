"""`everytick watch`: in a second place, raises an alarm when a fleet falls silent."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from everytick.cli.common_options import VerbCommand
from everytick.cli.exits import Refused
from everytick.cli.output import say
from everytick.errors import EverytickError
from everytick.exits import Exit

if TYPE_CHECKING:
    from everytick.app.fleet_watch import FleetAlarm
    from everytick.domain.fleet_pings import FleetPing

_TELL_SECONDS = 60.0


@click.command(
    "watch",
    cls=VerbCommand,
    help="Raise an alarm when a fleet falls silent.\n\n"
    "It listens at URL for the pings of nodes that have dead_man_url set to it. Run it somewhere else than the fleet. "
    "The path is the secret that the nodes must know. No store is opened.\n\n"
    "Examples: everytick watch http://127.0.0.1:9485/a-long-secret --command 'mail -s silent ops@example.org'; "
    "everytick watch http://127.0.0.1:9485/ping --once",
)
@click.argument("address", metavar="URL")
@click.option("--silence", metavar="TIME", default="3m", help="How long without a ping is an alarm; 3m unless set.")
@click.option("--command", metavar="TEXT", help="A program that reads the event as JSON from its standard input.")
@click.option("--webhook", metavar="URL", help="An address to which the event is posted as a CloudEvent.")
@click.option("--once", is_flag=True, help="Leave with exit code 1 at the first alarm.")
def watch_verb(address: str, silence: str, command: str | None, webhook: str | None, once: bool) -> int:
    """Watch a fleet."""
    from everytick.app.fleet_watch import FleetWatch, WatchPlace
    from everytick.domain.durations import duration

    try:
        place, limit = WatchPlace.at(address), duration(silence)
    except EverytickError as error:
        raise Refused(str(error), Exit.USAGE) from error
    if limit < timedelta(seconds=1):
        raise Refused("--silence must be at least 1s", Exit.USAGE)

    async def alarm(told: FleetAlarm) -> None:
        say(told.text, mark="red" if told.is_silent else "green")
        await _tell(told, command, webhook)

    def heard(ping: FleetPing) -> None:
        promises = len(ping.at_risk) + ping.more
        say(f"the fleet is heard: {ping.nodes} nodes live, {promises} promises are due within an hour")

    watch = FleetWatch(place, limit, alarm, heard)
    try:
        asyncio.run(watch.run(once=once, started=lambda port: say(f"listening on port {port}")))
    except OSError as error:
        text = f"{place.host}:{place.port} cannot be used ({error.strerror or error}): give another port"
        raise Refused(text, Exit.UNREACHABLE) from error
    return Exit.FAILED


async def _tell(told: FleetAlarm, command: str | None, webhook: str | None) -> None:
    """Tell the program and the address; what fails is said, and the watch goes on."""
    event = json.dumps(told.as_event()).encode()
    kind = "silent" if told.is_silent else "heard"
    if command is not None:
        await _run(command, event, kind)
    if webhook is not None:
        await _post(webhook, event)


async def _run(command: str, event: bytes, kind: str) -> None:
    import os

    environment = {**os.environ, "EVERYTICK_EVENT": kind}
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec("/bin/sh", "-c", command, stdin=pipe, env=environment)
    try:
        async with asyncio.timeout(_TELL_SECONDS):
            await child.communicate(event)
    except TimeoutError:
        child.kill()
        await child.wait()
    if child.returncode:
        say(f"the command ended with {child.returncode}", mark="red")


async def _post(url: str, event: bytes) -> None:
    from everytick.runners.addresses import AddressRules, Forbidden, Unresolved
    from everytick.runners.posting import BadAnswer, HttpRequest, send, without_secrets

    request = HttpRequest("POST", url, {"Content-Type": "application/cloudevents+json"}, event)
    try:
        async with asyncio.timeout(_TELL_SECONDS):
            status = await send(request, AddressRules(("0.0.0.0/0", "::/0")))
        wrong = "" if status < 300 else f"it answered {status}"
    except (OSError, TimeoutError, BadAnswer, Forbidden, Unresolved) as error:
        wrong = str(error) or type(error).__name__
    if wrong:
        say(f"{without_secrets(url)} was not told: {wrong}", mark="red")
