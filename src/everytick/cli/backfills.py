"""`everytick backfill` and `everytick backfills`: past instants that run after all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from everytick.answers.fleet import backfill_data
from everytick.cli.asking import ask, look, who
from everytick.cli.common_options import Noun, VerbCommand
from everytick.cli.completing import job_argument
from everytick.cli.exits import Refused
from everytick.cli.ids import short
from everytick.cli.output import is_terminal, length, say, show_json, show_pairs, show_table, write
from everytick.cli.times import Times
from everytick.cli.verb_options import confirm, in_utc, reading, sure, watchable
from everytick.domain.backfills import RATE
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from everytick.app import Everytick
    from everytick.app.backfills import Backfill
    from everytick.domain.backfills import BackfillRecord

F = TypeVar("F", bound="Callable[..., Any]")


class _Backfilling(Noun):
    """The group of verbs: a job in the place of a verb is told which verb takes it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            job = shown(args[0], 40)
            raise click.UsageError(
                f"{error.message}: to plan one, {ctx.command_path} plan {job} --from T", ctx
            ) from error


@click.group(
    "backfill",
    cls=_Backfilling,
    help="Let past instants run after all: plan, approve, show, pause, resume, cancel.\n\n"
    "Example: everytick backfill plan nightly --from 2026-11-01 --through 2026-11-08",
)
def backfill_verb() -> None:
    """Let past instants run after all."""


# ------------------------------------------------------------------------------------------------------------- plan


@backfill_verb.command(
    "plan",
    help="Plan a backfill: say how many instants of that time have no occurrence, and keep it under an id.\n\n"
    "Nothing runs before it is approved. Writes its id; with --dry-run how many there are.\n\n"
    "Example: everytick backfill plan nightly --from 2026-11-01 --through 2026-11-08",
)
@job_argument("job")
@click.option("--from", "since", metavar="T", help="The instants from this moment on.")
@click.option("--after", metavar="T", help="The instants after this moment.")
@click.option("--through", required=True, metavar="T", help="And not later than this one.")
@click.option("--again", is_flag=True, help="Also those that have an occurrence.")
@click.option("--overlap", type=click.Choice(["queue", "allow"]), help="Whether they run beside others of the job.")
@click.option(
    "--as-of",
    default="then",
    type=click.Choice(["then", "now"]),
    help="Whether the definition of that time names the instants, or the newest.",
)
@click.option("--rate", default=RATE, metavar="N", type=int, help=f"At most so many start in a minute; {RATE}.")
@click.option("--newest-first", is_flag=True, help="Begin with the newest instant.")
@click.option("--reason", default="", metavar="TEXT", help="Why; it is stored.")
@click.option("--dry-run", is_flag=True, help="Only say how many; keep nothing.")
@click.option("--yes", is_flag=True, help="Approve it at once.")
@in_utc
def plan_verb(
    job: str, since: str | None, after: str | None, through: str, dry_run: bool, yes: bool, utc: bool, **given: Any
) -> None:
    """Plan a backfill."""
    times = Times(utc)
    begin, end = _beginning(times, since, after), times.read(through)
    if begin >= end:
        raise Refused(f"it begins at {shown(since or after or '')} and ends before, at {shown(through)}: swap the two")

    async def asked(app: Everytick) -> tuple[Backfill, timedelta | None, bool]:
        made = await app.backfill(job, begin, end, dry_run=dry_run, approve=yes, confirmed=yes, by=who(), **given)
        record = await app.job(job)
        return made, await app.usual_length(job), record.pause is not None

    made, usual, is_paused = ask(asked, telling="looking for instants without an occurrence")
    if not made.instants:
        say("every instant of that time has its occurrence already")
        if dry_run:
            write("0")
        return
    _tell(made, job, given["rate"], usual, times)
    if is_paused:
        say(f"job '{shown(job)}' is paused: its backfill runs all the same")
    if dry_run:
        write(str(len(made.instants)))
        return
    assert made.id is not None, "it is kept"
    say("it runs now" if yes else f"nothing runs yet: everytick backfill approve {short(made.id)}")
    write(made.id)


def _beginning(times: Times, since: str | None, after: str | None) -> datetime:
    from everytick.domain.durations import MICROSECOND

    if (since is None) == (after is None):
        raise click.UsageError("say where it begins: give --from T, or --after T, which leaves T itself out")
    return times.read(since) - MICROSECOND if since is not None else times.read(after or "")


def _tell(made: Backfill, job: str, rate: int, usual: timedelta | None, times: Times) -> None:
    """Say how many there are, the first and the last, and what they will cost."""
    from everytick.domain.backfills import WINDOW

    count = f"{len(made.instants):,}{' or more' if made.more else ''}"
    first, last = times.shown(made.instants[0]), times.shown(made.instants[-1])
    say(f"{count} instants of '{shown(job)}' have no occurrence, from {first} to {last}")
    takes = f"at most {rate} start in a minute: at least {length(len(made.instants) * WINDOW / rate)}"
    if usual is not None:
        takes += f"; a run usually takes {length(usual)}, all of them {length(len(made.instants) * usual)} of running"
    say(takes)


# ----------------------------------------------------------------------------------------------- what becomes of it


def _id_argument(function: F) -> F:
    return click.argument("id_", metavar="ID")(function)


@backfill_verb.command("approve", help="Let a planned backfill run.\n\nExample: everytick backfill approve 3f2a1b2c")
@_id_argument
def approve_verb(id_: str) -> None:
    """Let a planned backfill run."""
    _steer(id_, lambda found: found.approve(), "it runs now", "it runs already")


@backfill_verb.command("pause", help="Let a backfill make nothing more until it is resumed; what it has made runs.")
@_id_argument
def pause_verb(id_: str) -> None:
    """Let a backfill rest."""
    _steer(id_, lambda found: found.pause(), "it is paused", "it was paused before")


@backfill_verb.command("resume", help="Let a paused backfill go on.")
@_id_argument
def resume_verb(id_: str) -> None:
    """Let a paused backfill go on."""
    _steer(id_, lambda found: found.resume(), "it goes on", "it was not paused")


@backfill_verb.command("cancel", help="End a backfill, and what it has made and no node has begun.")
@_id_argument
@sure
def cancel_verb(id_: str, yes: bool) -> None:
    """End a backfill."""
    record = look(lambda app: _found(app, id_))
    confirm(f"cancel backfill {record.id} of '{shown(record.job)}', which is {record.status}?", yes)
    _steer(
        record.id, lambda found: found.cancel(), "it is canceled; what runs is left to end", "it was canceled before"
    )


def _steer(id_: str, act: Callable[[Backfill], Any], changed: str, same: str) -> None:
    async def asked(app: Everytick) -> bool:
        record = await _found(app, id_)
        return bool(await act(await app.find_backfill(record.id, by=who())))

    say(changed if ask(asked) else same)


async def _found(app: Everytick, text: str) -> BackfillRecord:
    """Return the backfill whose id the text is or begins."""
    beginning = f"backfill_{text.removeprefix('backfill_')}"
    found = [backfill for backfill in await app.backfills(limit=1_000) if backfill.id.startswith(beginning)]
    if not found:
        raise Refused(
            f"no backfill has an id that begins with {shown(text)}: everytick backfills lists them", Exit.NOT_FOUND
        )
    if len(found) > 1:
        both = " and ".join(sorted(record.id for record in found))
        raise Refused(f"{shown(text)} begins the ids {both}: type more of the one you mean")
    return found[0]


# ------------------------------------------------------------------------------------------------------------- look


@backfill_verb.command("show", help="Show a backfill and how far it has come.")
@_id_argument
@reading
@watchable
def show_verb(id_: str, as_json: bool, utc: bool) -> None:
    """Show a backfill and how far it has come."""
    record = look(lambda app: _found(app, id_))
    if as_json:
        show_json(backfill_data(record))
        return
    order, left = record.order, record.time_left
    pairs: list[tuple[str, object]] = [
        ("id", record.id),
        ("job", record.job),
        ("status", f"{record.status}, behind {short(record.behind)}" if record.behind else str(record.status)),
        ("after", order.after),
        ("through", order.through),
        ("order", "newest first" if order.newest_first else "oldest first"),
        ("done", record.done),
        ("failed", record.failed),
        ("canceled", record.canceled),
        ("running", record.running),
        ("waiting", record.waiting),
        ("left", "many" if record.left is None else record.left),
        ("pace", _pace(record)),
        ("time to go", None if left is None or not record.left else f"at least {length(left)}"),
        ("planned", record.planned_at),
        ("planned by", order.by or None),
        ("reason", order.reason or None),
        ("approved", record.approved_at),
        ("approved by", record.approved_by or None),
    ]
    show_pairs([(name, value) for name, value in pairs if value is not None], Times(utc))


@click.command(
    "backfills",
    cls=VerbCommand,
    help="List backfills and how far they have come, newest first.\n\nExample: everytick backfills nightly",
)
@job_argument("job", required=False)
@reading
@watchable
def backfills_verb(job: str | None, as_json: bool, utc: bool) -> None:
    """List backfills and how far they have come."""
    found: Sequence[BackfillRecord] = look(lambda app: app.backfills(job))
    if as_json:
        show_json([backfill_data(record) for record in found])
        return
    times = Times(utc)
    if is_terminal():
        headings = ["id", "job", "status", times.heading("from"), "through", "how far"]
        rows = [
            (
                short(record.id),
                record.job,
                str(record.status),
                _first_moment(record),
                record.order.through,
                _how_far(record),
            )
            for record in found
        ]
        show_table(headings, rows, times)
        return
    headings = ["id", "job", "status", times.heading("after"), "through", "done", "failed", "running", "left", "pace"]
    columns = [
        (
            short(record.id),
            record.job,
            str(record.status),
            record.order.after,
            record.order.through,
            record.done,
            record.failed,
            record.running + record.waiting,
            "many" if record.left is None else record.left,
            _pace(record),
        )
        for record in found
    ]
    show_table(headings, columns, times)


def _first_moment(record: BackfillRecord) -> datetime:
    """Return the moment that a person gave as the beginning: `--from T` is stored as a microsecond before T."""
    from everytick.domain.durations import MICROSECOND

    begin = record.order.after + MICROSECOND
    return begin if begin.microsecond == 0 else record.order.after


def _how_far(record: BackfillRecord) -> str:
    """Return in one sentence how many are done and to come, and how fast."""
    running, left = record.running + record.waiting, "many" if record.left is None else record.left
    counts = f"{record.done} done, {record.failed} failed, {running} running, {left} left"
    return f"{counts}; {_pace(record)}"


def _pace(record: BackfillRecord) -> str:
    slower = "" if record.pace >= record.order.rate else f" of {record.order.rate}"
    return f"{record.pace}{slower} a minute"
