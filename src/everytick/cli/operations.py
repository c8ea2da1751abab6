"""The operations, each under the name it has in Python; who asks is the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from everytick.cli.asking import ask, who
from everytick.cli.common_options import VerbCommand
from everytick.cli.completing import job_argument
from everytick.cli.exits import Refused
from everytick.cli.ids import whole_id
from everytick.cli.output import say, write
from everytick.cli.times import Times
from everytick.cli.verb_options import agreed, confirm, in_utc, one_of, sure
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from everytick.app import Everytick
    from everytick.app.handle import Handle
    from everytick.domain.occurrence import Occurrence
    from everytick.stores.base import Whole

F = TypeVar("F", bound="Callable[..., Any]")

_LARGEST_PAYLOAD_CHARACTERS = 1_000_000
"""How much of a file is read as a payload: the check of payloads refuses more."""


def _reason(function: F) -> F:
    return click.option("--reason", default="", metavar="TEXT", help="Why; it is stored.")(function)


def _requesting(function: F) -> F:
    """Add the options that all requests for an occurrence have."""
    for option in (
        click.option("--timeout", metavar="TIME", help="With --wait: give up after so long, like 10m; exit code 124."),
        click.option("--wait", is_flag=True, help="Wait for its end; exit code 1 if it does not end well."),
        click.option(
            "--overlap",
            callback=one_of("skip", "queue", "queue_latest", "allow", "cancel_running"),
            metavar="RULE",
            help="What to do if the job is already running (skip, queue, …); default: queue, or what the job allows.",
        ),
        click.option("--key", metavar="TEXT", help="The same key again asks for the same occurrence."),
    ):
        function = option(function)
    return function


# --------------------------------------------------------------------------------------------------------- requests


@click.command(
    "trigger",
    cls=VerbCommand,
    help="Ask for an occurrence, now or later; the schedule is not moved.\n\n"
    "Writes the occurrence's id. Examples: everytick trigger nightly --payload '{\"pages\": 3}' --wait; "
    "everytick trigger nightly --after 10m",
)
@job_argument("job")
@click.option("--payload", metavar="JSON", help="What its tasks are given; @FILE reads a file.")
@click.option("--at", metavar="T", help="When it runs: stored until then, listed by next, ended by cancel.")
@click.option("--after", metavar="TIME", help="The same, so long from now, like 10m.")
@in_utc
@_reason
@_requesting
def trigger_verb(
    job: str,
    payload: str | None,
    at: str | None,
    after: str | None,
    reason: str,
    key: str | None,
    overlap: Any,
    wait: bool,
    timeout: str | None,
    utc: bool,
) -> int:
    """Ask for an occurrence, now or later."""
    from everytick.domain.config import UNSET

    if at is not None and after is not None:
        raise click.UsageError("--at and --after both say when it runs: give one of them")
    given, moment = UNSET if payload is None else _json(payload), None if at is None else Times(utc).read(at)

    async def asked(app: Everytick) -> Handle:
        return await app.trigger(job, given, at=moment, after=after, key=key, overlap=overlap, reason=reason, by=who())

    return _request(asked, wait, timeout, job)


@click.command(
    "replay",
    cls=VerbCommand,
    help="Ask for an occurrence that does again what an ended one did.\n\n"
    "It keeps the original's time and payload and is linked to it. Writes the new occurrence's id.",
)
@click.argument("occurrence", required=False)
@click.option("--job-occurrence", "named", metavar="ID", help="The occurrence, if OCCURRENCE is not given.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is stored.")
@click.option("--from-task", metavar="TASK", help="Run only this task and what comes after it again.")
@_requesting
def replay_verb(
    occurrence: str | None,
    named: str | None,
    reason: str,
    from_task: str | None,
    key: str | None,
    overlap: Any,
    wait: bool,
    timeout: str | None,
) -> int:
    """Ask for an occurrence that does again what an ended one did."""
    text = occurrence or named
    if text is None or (occurrence and named):
        raise click.UsageError("name one occurrence to do again: everytick replay OCCURRENCE --reason TEXT")

    async def asked(app: Everytick) -> Handle:
        id_ = await whole_id(app, text)
        return await app.replay(id_, reason=reason, from_task=from_task, key=key, overlap=overlap, by=who())

    return _request(asked, wait, timeout)


def _request(asked: Callable[[Everytick], Any], wait: bool, timeout: str | None, job: str | None = None) -> int:
    """Ask, write the id, and follow it if that is wanted."""
    from everytick.cli.waiting import follow, tell_end
    from everytick.domain.durations import duration

    if timeout is not None and not wait:
        raise click.UsageError("--timeout is about --wait: give both")
    within = None if timeout is None else duration(timeout)

    async def done(app: Everytick) -> Whole | None:
        handle = await asked(app)
        write(handle.id)
        return await follow(app, handle.id, within, job) if wait else None

    whole = ask(done)
    return Exit.DONE if whole is None else tell_end(whole)


def _json(text: str) -> object:
    import json

    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")[: _LARGEST_PAYLOAD_CHARACTERS + 1]
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise Refused(f"--payload {shown(text)} cannot be read: {reason}") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"--payload is not JSON: {error}; write it like '{{\"pages\": 3}}' or @file.json") from error


@click.command("cancel", cls=VerbCommand, help="End an occurrence, or ask its node to stop it.")
@click.argument("occurrence")
@_reason
@sure
def cancel_verb(occurrence: str, reason: str, yes: bool) -> None:
    """End an occurrence, or ask its node to stop it."""

    async def asked(app: Everytick) -> tuple[str, Occurrence]:
        id_ = await whole_id(app, occurrence)
        return id_, (await app.occurrence(id_)).occurrence

    id_, found = ask(asked)
    confirm(f"cancel {id_}, which is {found.status}?", yes)
    was_active = ask(lambda app: app.cancel(id_, reason=reason, by=who()))
    say("canceled, or its node was told to stop it" if was_active else f"it had ended before: {found.status}")


# ----------------------------------------------------------------------------------------------------- the schedule


@click.command(
    "pause", cls=VerbCommand, help="Hold a job's schedule.\n\nExample: everytick pause nightly --until 2026-12-24T18:00"
)
@job_argument("job")
@click.option("--until", metavar="T", help="When it goes on by itself; else a person must resume it.")
@click.option(
    "--missed",
    default="skip",
    type=click.Choice(["skip", "catch_up", "last"]),
    help="What becomes of the instants meanwhile: skipped, all handed to recovery, or the newest of them.",
)
@_reason
@in_utc
def pause_verb(job: str, until: str | None, missed: Any, reason: str, utc: bool) -> None:
    """Hold a job's schedule."""
    times = Times(utc)
    end = None if until is None else times.read(until)
    ask(lambda app: app.pause(job, until=end, reason=reason, missed=missed, by=who()))
    say(f"'{job}' is paused" + (": everytick resume lets it go on" if end is None else f" until {times.shown(end)}"))


@click.command("resume", cls=VerbCommand, help="End a pause.\n\nExample: everytick resume nightly --missed last")
@job_argument("job")
@click.option(
    "--missed",
    type=click.Choice(["skip", "catch_up", "last"]),
    help="What becomes of the instants that were held; else what the pause says.",
)
@sure
def resume_verb(job: str, missed: Any, yes: bool) -> None:
    """End a pause."""

    def work(confirmed: bool) -> bool:
        return ask(lambda app: app.resume(job, missed=missed, confirmed=confirmed, by=who()))

    was_paused = agreed(work, yes)
    say(f"'{job}' goes on" if was_paused else f"'{job}' was not paused")


@click.command("enable", cls=VerbCommand, help="Let a disabled job run again, from its next instant on.")
@job_argument("job")
@sure
def enable_verb(job: str, yes: bool) -> None:
    """Let a disabled job run again."""
    changed = agreed(lambda confirmed: ask(lambda app: app.enable(job, confirmed=confirmed, by=who())), yes)
    say(f"'{job}' is enabled" if changed else f"'{job}' was enabled already")


@click.command("disable", cls=VerbCommand, help="Disable a job: no scheduled runs and no triggers until it is enabled.")
@job_argument("job")
@sure
def disable_verb(job: str, yes: bool) -> None:
    """Disable a job."""
    changed = agreed(lambda confirmed: ask(lambda app: app.disable(job, confirmed=confirmed, by=who())), yes)
    say(f"'{job}' is disabled" if changed else f"'{job}' was disabled already")


@click.command("reschedule", cls=VerbCommand, help="Set a job's next run; the instants before it give way.")
@job_argument("job")
@click.argument("at")
@in_utc
def reschedule_verb(job: str, at: str, utc: bool) -> None:
    """Set a job's next run."""
    times = Times(utc)
    instant = times.read(at)
    ask(lambda app: app.reschedule(job, instant, by=who()))
    say(f"'{job}' runs next at {times.shown(instant)}")


@click.command("skip", cls=VerbCommand, help="Skip one upcoming run of a job; undo takes that back.")
@job_argument("job")
@click.argument("at")
@_reason
@in_utc
def skip_verb(job: str, at: str, reason: str, utc: bool) -> None:
    """Skip one upcoming run."""
    times = Times(utc)
    instant = times.read(at)
    ask(lambda app: app.skip(job, instant, reason=reason, by=who()))
    say(f"'{job}' will skip {times.shown(instant)}")


@click.command("move", cls=VerbCommand, help="Let one single future instant of a job run at another time.")
@job_argument("job")
@click.argument("at")
@click.argument("to")
@_reason
@in_utc
def move_verb(job: str, at: str, to: str, reason: str, utc: bool) -> None:
    """Let one single future instant run at another time."""
    times = Times(utc)
    instant, target = times.read(at), times.read(to)
    ask(lambda app: app.move(job, instant, target, reason=reason, by=who()))
    say(f"'{job}' runs at {times.shown(target)} instead of {times.shown(instant)}")


@click.command(
    "amend",
    cls=VerbCommand,
    help="Run one single future instant of a job with a payload or policies of its own.\n\n"
    "Example: everytick amend nightly 2026-12-24T02:30Z --payload '{\"pages\": 3}' --set priority=5",
)
@job_argument("job")
@click.argument("at")
@click.option("--payload", metavar="JSON", help="What its tasks are given; @FILE reads a file.")
@click.option(
    "--set", "policies", metavar="NAME=VALUE", multiple=True, help="A policy of this run alone, like queue=gpu."
)
@_reason
@in_utc
def amend_verb(job: str, at: str, payload: str | None, policies: tuple[str, ...], reason: str, utc: bool) -> None:
    """Run one single future instant with a payload or policies of its own."""
    from everytick.domain.config import Level, policy_arguments

    times = Times(utc)
    instant, given = times.read(at), policy_arguments(Level.OCCURRENCE, dict(map(_policy, policies)), job)
    if payload is not None:
        given["payload"] = _json(payload)
    ask(lambda app: app.amend(job, instant, reason=reason, by=who(), **given))
    say(f"'{job}' at {times.shown(instant)} runs with {', '.join(sorted(given))} of its own")


def _policy(text: str) -> tuple[str, Any]:
    """Read one policy as it is written after --set; its value is JSON, or else text."""
    from everytick.app.text_reading import policy_pair

    pair = policy_pair(text)
    if pair is None:
        raise click.UsageError(f"--set {shown(text)} is not NAME=VALUE: write it like --set priority=5")
    return pair


@click.command(
    "add",
    cls=VerbCommand,
    help="Add one single run at a time to come that the schedule does not name.\n\n"
    "Writes the occurrence's id; undo takes it back.",
)
@job_argument("job")
@click.argument("at")
@click.option("--payload", metavar="JSON", help="What its tasks are given; @FILE reads a file.")
@_reason
@in_utc
def add_verb(job: str, at: str, payload: str | None, reason: str, utc: bool) -> None:
    """Add one single run at a time to come."""
    from everytick.domain.config import UNSET

    times = Times(utc)
    moment, given = times.read(at), UNSET if payload is None else _json(payload)
    handle = ask(lambda app: app.add(job, moment, given, reason=reason, by=who()))
    write(handle.id)
    say(f"'{job}' runs also at {times.shown(moment)}")


@click.command(
    "undo",
    cls=VerbCommand,
    help="Take back what was said of one time to come: skip, move, amend, add, reschedule.\n\n"
    "AT is the instant, or the time to which a run was moved, rescheduled or added.",
)
@job_argument("job")
@click.argument("at")
@_reason
@in_utc
def undo_verb(job: str, at: str, reason: str, utc: bool) -> None:
    """Take back what was said of one time to come."""
    times = Times(utc)
    moment = times.read(at)
    undone = ask(lambda app: app.undo(job, moment, reason=reason, by=who()))
    say(f"'{job}' at {times.shown(moment)}: the {' and the '.join(undone)} is undone")


# -------------------------------------------------------------------------------------------------- the definitions


@click.command("rename", cls=VerbCommand, help="Give a job another name; its id, watermark and history stay.")
@job_argument("old")
@click.argument("new")
@click.option("--detach", is_flag=True, help="Also if code or a file defines it: it is then the API's own.")
@sure
def rename_verb(old: str, new: str, detach: bool, yes: bool) -> None:
    """Give a job another name."""

    def work(confirmed: bool) -> None:
        ask(lambda app: app.rename(old, new, detach=detach, confirmed=confirmed, by=who()))

    agreed(work, yes)
    say(f"'{old}' is called '{new}'")


@click.command(
    "remove",
    cls=VerbCommand,
    help="Take a job out of service; its history is kept.\n\n"
    "With --purge the job and everything that belongs to it is forgotten for good, also of one removed before.",
)
@job_argument("job")
@click.option(
    "--purge", is_flag=True, help="Forget its history too; refused, and nothing changed, while something of it runs."
)
@sure
def remove_verb(job: str, purge: bool, yes: bool) -> None:
    """Take a job out of service."""

    async def asked(app: Everytick) -> datetime | None:
        return None if purge else (await app.status(job)).next_run

    coming = ask(asked)
    following = "" if coming is None else f", which runs next at {Times().shown(coming)}"
    confirm(f"{'forget all of' if purge else 'remove'} '{shown(job)}'{following}?", yes)
    agreed(lambda confirmed: ask(lambda app: app.remove(job, purge=purge, confirmed=confirmed, by=who())), yes)
    done = "forgotten, with all that belonged to it" if purge else "removed"
    say(f"'{job}' is {done}; what defines it in code brings it back at its next start")
