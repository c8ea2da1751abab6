"""`limits`, `limit`, `brake` and `release`: how many may run or start at once, on all nodes of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from everytick.answers.fleet import limits_data
from everytick.cli.asking import ask, look, who
from everytick.cli.common_options import Noun, VerbCommand, state
from everytick.cli.output import say, show_json, show_table
from everytick.cli.times import Times
from everytick.cli.verb_options import in_utc, reading, watchable
from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everytick.app import Everytick
    from everytick.domain.limits import BrakeRecord, Limits, ReachRecord

_CHANGES_SHOWN = 10
_REASON = click.option("--reason", default="", metavar="TEXT", help="Why; it is stored.")


def _reaching(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name what is meant, instead of REACH."""
    for kind in ("tag", "queue", "job"):
        option = click.option(f"--{kind}", metavar="NAME", help=f"The same as {kind}:NAME.")
        function = option(function)
    return click.argument("reach", required=False)(function)


def _named(reach: str | None, tag: str | None, queue: str | None, job: str | None) -> str:
    given = [f"{kind}:{name}" for kind, name in (("tag", tag), ("queue", queue), ("job", job)) if name is not None]
    given += [] if reach is None else [reach]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} are several: give one of them")
    return given[0] if given else "all"


@click.command(
    "limits",
    cls=VerbCommand,
    help="Show limits and brakes, how far each is used, and who changed them last.\n\nExample: everytick limits",
)
@reading
@watchable
def limits_verb(as_json: bool, utc: bool) -> None:
    """Show the limits and brakes of the store."""
    found = look(lambda app: app.limits())
    if as_json:
        show_json(limits_data(found))
        return
    times = Times(utc)
    headings = ["reach", "limit", "running", "waiting", "now", "reason"]
    show_table(headings, [_row(reach, found, times) for reach in found.reaches], times)
    if not found.reaches:
        say("there is no limit and no brake")
    if found.changes:
        show_table(
            [times.heading("changed"), "reach", "what", "by", "reason"],
            [
                (change.at, change.reach, change.what, change.by, change.reason)
                for change in found.changes[:_CHANGES_SHOWN]
            ],
            times,
        )


def _row(record: ReachRecord, found: Limits, times: Times) -> Sequence[object]:
    reach = record.reach
    brake, limit = reach.brake(found.now), reach.limit
    reason = brake.reason if brake is not None else "" if limit is None else limit.reason
    return (
        reach.name,
        "" if limit is None else str(limit),
        record.running,
        record.waiting,
        "; ".join(_state(record, found, times)),
        reason,
    )


def _state(record: ReachRecord, found: Limits, times: Times) -> list[str]:
    """Return what holds for the reach now, in a few words each."""
    reach, words = record.reach, []
    brake, release = reach.brake(found.now), reach.release
    if brake is not None:
        until = "" if brake.until is None else f" until {times.shown(brake.until)}"
        words.append(f"braked since {times.shown(brake.since)}{until}{f' by {brake.by}' if brake.by else ''}")
    elif release is not None and release.rate is not None:
        words.append(f"released at {release.rate}, {release.left} left")
    elif release is not None:
        words.append("released")
    later = (
        coming for known in reach.brakes if (coming := known.at(found.now)) is not None and coming.since > found.now
    )
    words += [f"brake will hold from {times.shown(coming.since)}{_ends(coming, times)}" for coming in later]
    if brake is None and record.closed:
        opens = "" if record.opens_at is None else f", next at {times.shown(record.opens_at)}"
        words.append(f"full{opens}")
    return words or ["open"]


def _ends(brake: BrakeRecord, times: Times) -> str:
    """Say when a brake to come ends, where it comes again."""
    return "" if brake.begins is None or brake.until is None else f" until {times.shown(brake.until)}, and so on"


def tell_brakes(found: Limits, times: Times) -> None:
    """Say which brakes hold, before anything else is shown."""
    for record in found.reaches:
        brake = record.reach.brake(found.now)
        if brake is not None:
            what = "everything" if record.reach.name == "all" else record.reach.name
            by, why = f" by {brake.by}" if brake.by else "", f": {brake.reason}" if brake.reason else ""
            until = "" if brake.until is None else f" until {times.shown(brake.until)}"
            say(
                f"{what} is braked since {times.shown(brake.since)}{until}{by}{why}; {record.waiting} wait",
                mark="yellow",
            )


# -------------------------------------------------------------------------------------------------------------- limits


@click.group("limit", cls=Noun, help="Set or remove a limit, for all nodes of the store.")
def limit_verb() -> None:
    """Set or remove a limit."""


@limit_verb.command(
    "set",
    help="Limit how many occurrences of REACH run at once, or how many start in a time.\n\n"
    "REACH is all, queue:NAME, tag:NAME or job:NAME. What runs now counts and goes on.\n\n"
    "Example: everytick limit set tag:crm --most 5 --rate 60/1m",
)
@click.argument("reach")
@click.option("--most", type=int, metavar="N", help="At most so many at once.")
@click.option("--rate", metavar="N/TIME", help="At most so many starts in so long, like 60/1m.")
@click.option("--burst", is_flag=True, help="Let the starts of a rate come at once; else they are spread.")
@_REASON
def set_verb(reach: str, most: int | None, rate: str | None, burst: bool, reason: str) -> None:
    """Set a limit."""
    if burst and rate is None:
        raise click.UsageError("--burst is about --rate: give both")

    async def asked(app: Everytick) -> None:
        await app.set_limit(reach, most=most, rate=rate, burst_allowed=burst, reason=reason, by=who())

    ask(asked)
    parts = [*([] if most is None else [f"at most {most} at once"]), *([] if rate is None else [f"{rate} starts"])]
    say(f"{shown(reach)} is limited: {', '.join(parts)}")


@limit_verb.command("remove", help="Take the limit of REACH away.")
@click.argument("reach")
@_REASON
def remove_verb(reach: str, reason: str) -> None:
    """Take a limit away."""
    is_removed = ask(lambda app: app.remove_limit(reach, reason=reason, by=who()))
    say(f"{shown(reach)} has no limit any more" if is_removed else f"{shown(reach)} had no limit")


# -------------------------------------------------------------------------------------------------------------- brakes


@click.command(
    "brake",
    cls=VerbCommand,
    help="Let nothing start, or nothing of REACH, until it is released.\n\n"
    "REACH is all, queue:NAME, tag:NAME or job:NAME; without it, all. What runs goes on. Instants are still decided "
    "and wait as their job says. With --from and --until it is a freeze window, with --begins and --ends one that "
    "comes again: --begins '0 16 * * fri' --ends '0 6 * * mon'.\n\n"
    "Example: everytick brake --tag crm --reason 'the CRM is down'",
)
@_reaching
@click.option("--from", "since", metavar="T", help="When it begins; default: now.")
@click.option("--until", metavar="T", help="When it ends by itself.")
@click.option("--begins", metavar="SCHEDULE", help="When each window of a brake begins that comes again.")
@click.option("--ends", metavar="SCHEDULE", help="When each of them ends.")
@click.option("--tz", metavar="ZONE", default="UTC", help="The zone of these two schedules; default: UTC.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is stored and shown.")
@in_utc
def brake_verb(
    reach: str | None,
    tag: str | None,
    queue: str | None,
    job: str | None,
    since: str | None,
    until: str | None,
    begins: str | None,
    ends: str | None,
    tz: str,
    reason: str,
    utc: bool,
) -> None:
    """Let nothing start."""
    times, name = Times(utc), _named(reach, tag, queue, job)
    begin, end = (None if at is None else times.read(at) for at in (since, until))
    options: dict[str, Any] = {"begins": begins, "ends": ends, "timezone": tz, "reason": reason}
    ask(lambda app: app.brake(name, since=begin, until=end, **options, by=who()))
    what = "everything" if name == "all" else shown(name)
    if begin is None and begins is None:
        until_when = f"{state().program} release" if end is None else times.shown(end)
        say(f"{what} is braked until {until_when}: nothing starts, and what runs goes on")
    else:
        say(f"a brake for {what} is stored: {state().program} limits shows when it holds")


@click.command(
    "release",
    cls=VerbCommand,
    help="End a brake: what has waited starts by priority, then age, at a rate.\n\n"
    "REACH is as for brake; without it, all. Where no brake holds, brakes to come are taken away.\n\n"
    "Example: everytick release --tag crm --rate 30/1m",
)
@_reaching
@click.option("--rate", metavar="N/TIME", help="How many start in so long, like 30/1m; default: all in ten minutes.")
@click.option("--at-once", is_flag=True, help="Let everything start that the nodes have slots for.")
@_REASON
def release_verb(
    reach: str | None,
    tag: str | None,
    queue: str | None,
    job: str | None,
    rate: str | None,
    at_once: bool,
    reason: str,
) -> None:
    """End a brake."""
    if rate is not None and at_once:
        raise click.UsageError("--rate and --at-once say different things: give one of them")
    name = _named(reach, tag, queue, job)
    is_released = ask(lambda app: app.release(name, rate=rate, at_once=at_once, reason=reason, by=who()))
    say(f"{shown(name)} is released" if is_released else f"{shown(name)} had no brake")
