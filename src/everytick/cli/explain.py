"""`explain`: what a schedule means, and why an instant ran or did not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from everytick.answers.occurrences import explanation_data
from everytick.answers.schedules import CHANGES_WITHIN, explained
from everytick.cli.applications import WAYS
from everytick.cli.asking import look
from everytick.cli.common_options import VerbCommand, state
from everytick.cli.exits import Refused
from everytick.cli.ids import with_short_ids
from everytick.cli.next import upcoming
from everytick.cli.output import listed, say, show_json, show_pairs, show_table, show_text
from everytick.cli.times import Times, zone_of
from everytick.cli.verb_options import reading
from everytick.errors import NotFound, shown
from everytick.exits import Exit
from everytick.schedules.clock_changes import change_words, clock_changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick import Explanation
    from everytick.app import Everytick
    from everytick.domain.schedule import Schedule

_MOST_INSTANTS = 10_000
_LAST_DECISIONS = 5
_KINDS = ("cron", "every", "repeat", "once", "after", "posix", "quartz")


@click.command(
    "explain",
    cls=VerbCommand,
    help="Say what a schedule means, or why a job ran or did not.\n\n"
    "EXPR is any schedule and needs no store. Of a job: the last decisions and the next run, or with --at one "
    "instant.\n\n"
    "Examples: everytick explain '30 2 * * 1-5' --tz Europe/Berlin; everytick explain nightly; "
    "everytick explain nightly --at 2026-11-15T02:30",
)
@click.argument("expr_or_job")
@click.option("--at", metavar="T", help="The instant of a job to explain.")
@click.option("--tz", metavar="ZONE", help="The zone of a schedule that names none.")
@click.option(
    "-n",
    "count",
    default=_LAST_DECISIONS,
    show_default=True,
    type=click.IntRange(1, _MOST_INSTANTS),
    help="How many instants.",
)
@reading
def explain_verb(expr_or_job: str, at: str | None, tz: str | None, count: int, as_json: bool, utc: bool) -> None:
    """Say what a schedule means, or why a job ran or did not."""
    if at is None:
        _explain_schedule_or_job(expr_or_job, tz, count, as_json, utc)
        return
    times = Times(utc, zone_of(tz))
    instant = times.read(at)

    async def asked(app: Everytick) -> Explanation:
        return await app.explain(expr_or_job, await _meant(app, expr_or_job, instant))

    explanation = look(asked)
    if as_json:
        show_json(explanation_data(explanation))
        return
    what = f"{explanation.verdict}: {explanation.job} at {times.shown(explanation.at)}"
    show_text(f"{what}: {_said(explanation, times)}")
    facts = (
        ("occurrence", None if explanation.occurrence is None else explanation.occurrence.id),
        ("behind", explanation.behind),
        ("moved to", explanation.moved_to),
        ("instant before", explanation.previous),
        ("instant after", explanation.next),
    )
    show_pairs([(name, value) for name, value in facts if value is not None] or [("at", explanation.at)], times)


async def _meant(app: Everytick, job: str, instant: datetime) -> datetime:
    """Return the time of the run in this second if there is one: tables show whole seconds."""
    if instant.microsecond:
        return instant
    just_before, end = instant - timedelta(microseconds=1), instant + timedelta(seconds=1, microseconds=-1)
    found = {run.scheduled_for async for run in await app.history(job, after=just_before, through=end)}
    return instant if not found or instant in found else min(found)


def _said(found: Explanation, times: Times) -> str:
    """Return the sentence without job and instant, with its times in the zone and its ids as tables show them."""
    return with_short_ids(times.in_text(found.text.partition(": ")[2], found.at))


def _explain_job(job: str, tz: str | None, count: int, as_json: bool, utc: bool) -> None:
    """The last decisions about a job, the oldest first, and the next run."""
    times = Times(utc, zone_of(tz))

    async def asked(app: Everytick) -> list[Explanation]:
        decided = [occurrence.scheduled_for for occurrence in await app.history(job, limit=count)]
        following = [*await _undecided(app, job), *(run.at for run in await upcoming(app, job, 1))]
        # An instant that a pause holds is decided already, and the watermark may still stand before it.
        instants = dict.fromkeys((*reversed(decided), *following))
        return [await app.explain(job, at) for at in instants]

    explanations = look(asked)
    if as_json:
        show_json([explanation_data(decision) for decision in explanations])
        return
    rows = [(decision.at, decision.verdict, _said(decision, times)) for decision in explanations]
    show_table([times.heading("at"), "what", "why"], rows, times)
    if not rows:
        say(f"nothing of '{shown(job)}' was decided yet, and nothing is to come")


async def _undecided(app: Everytick, job: str) -> Sequence[datetime]:
    """Return the first instant of the job that is due and not planned, None for a removed job."""
    try:
        record = await app.job(job)
    except NotFound:
        return []
    now = await app.now()
    return await app.instants(job, record.watermark, now, limit=1) if record.watermark < now else []


def _explain_schedule_or_job(text: str, tz: str | None, count: int, as_json: bool, utc: bool) -> None:
    """Explain the text as a schedule. If it is none and an application or a store is named, as the name of a job."""
    from everytick.app.text_reading import schedule_of
    from everytick.errors import InvalidSchedule

    try:
        schedule = schedule_of(text)
    except InvalidSchedule as error:
        settings = state().settings
        if all(settings[key].value is None for key in ("app", "store", "url", "jobs")):
            hint = _kind_meant(text) if " " in text else f" (to ask about a job, name its store: {WAYS})"
            raise Refused(f"{error}{hint}") from error
        try:
            _explain_job(text, tz, count, as_json, utc)
        except Refused as refused:
            # A text with spaces was meant as a schedule.
            raise Refused(str(error)) if refused.code is Exit.NOT_FOUND and " " in text.strip() else refused from None
        return
    _explain_schedule(schedule, tz, count, as_json, utc)


def _kind_meant(text: str) -> str:
    """Return the kind of schedule whose name the first word nearly is: it was read as cron, which has no names."""
    from everytick.domain.names import did_you_mean

    first = text.split(maxsplit=1)[0].rstrip(":")
    return did_you_mean(first, _KINDS) if first.isalpha() and first not in _KINDS else ""


def _explain_schedule(read: Schedule, tz: str | None, count: int, as_json: bool, utc: bool) -> None:
    """Show a schedule in words, with the instants around now and its clock changes. No store is opened."""
    from everytick.app.text_reading import in_zone

    schedule = in_zone(read, zone_of(tz) or "UTC")
    now = datetime.now(UTC)
    found = explained(schedule, now, count)
    note, former, following = found.pop("note"), found["previous"], found["next"]
    if as_json:
        show_json(found)
        return
    zone = getattr(getattr(schedule, "tz", None), "name", None)
    times = Times(utc, zone if zone is not None else "UTC")
    show_text(schedule.describe())
    rows: list[tuple[str, object]] = [
        ("schedule", str(schedule)),
        ("times in", times.zone),
        *listed("previous", former),
    ]
    rows += listed("next", following) or [("next", note or ("never again" if former else "never"))]
    rows += listed("clock", [change_words(change) for change in clock_changes(schedule, now, now + CHANGES_WITHIN)])
    show_pairs(rows, times)
    if note and following:
        say(note)
