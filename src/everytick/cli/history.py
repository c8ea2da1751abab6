"""`history`: what ran, what did not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import click

from everytick.answers.occurrences import occurrence_data
from everytick.cli.asking import look
from everytick.cli.common_options import VerbCommand
from everytick.cli.completing import job_argument
from everytick.cli.ids import short, with_short_ids
from everytick.cli.output import say, show_json, show_table
from everytick.cli.times import Times, before
from everytick.cli.verb_options import reading, status_option, watchable
from everytick.domain.decisions import Why

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from everytick.app import Everytick
    from everytick.domain.occurrence import Attempt, Occurrence
    from everytick.domain.promise_policies import PromiseKind

    Unkept: TypeAlias = Mapping[str, Sequence[PromiseKind]]

_PAGE_ROWS = 1000
"""How many occurrences one question reads."""

FAILED = ("failed", "failed_stale", "completed_with_errors")


@click.command(
    "history",
    cls=VerbCommand,
    help="Show what ran, newest first; of one JOB also what did not run, and why.\n\n"
    "Example: everytick history nightly --failed --since 7d",
)
@job_argument("job", required=False)
@click.option("--failed", is_flag=True, help="Only what did not end well.")
@status_option
@click.option("--cause", metavar="CAUSE", help="Only this cause: schedule, trigger, replay, backfill, create, restart.")
@click.option("--since", metavar="TIME", help="Only runs from the last 24h, 7d, …")
@click.option("--after", metavar="T", help="Only what was scheduled after this moment.")
@click.option("--through", metavar="T", help="Only what was scheduled through this moment.")
@click.option("-n", "count", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
@reading
@watchable
def history_verb(
    job: str | None,
    failed: bool,
    status: tuple[str, ...],
    cause: str | None,
    since: str | None,
    after: str | None,
    through: str | None,
    count: int,
    as_json: bool,
    utc: bool,
) -> None:
    """Show what ran, newest first."""
    times = Times(utc)
    if since is not None and after is not None:
        raise click.UsageError("--since and --after both say where to begin: give one")

    async def asked(app: Everytick) -> tuple[list[Occurrence], dict[str, str], Unkept]:
        start = None if after is None else times.read(after)
        if since is not None:
            start = before(await app.now(), since)
        end = None if through is None else times.read(through)
        statuses = [*status, *(FAILED if failed else ())]
        page = await app.history(
            job, status=statuses or None, cause=cause, after=start, through=end, limit=min(count, _PAGE_ROWS)
        )
        occurrences: list[Occurrence] = []
        async for occurrence in page:
            occurrences.append(occurrence)
            if len(occurrences) == count:
                break
        return occurrences, await names_of(app, occurrences), await app.unkept(occurrences)

    occurrences, names, unkept = look(asked)
    if as_json:
        show_json(
            [
                occurrence_data(occurrence, names) | {"broken_promises": unkept.get(occurrence.id, ())}
                for occurrence in occurrences
            ]
        )
        return
    _show_occurrences(occurrences, names, unkept, times)
    if not occurrences:
        say("no matching runs")


def _show_occurrences(
    occurrences: Sequence[Occurrence], names: Mapping[str, str], unkept: Unkept, times: Times
) -> None:
    """Show a row for each occurrence."""
    headings = [times.heading("scheduled for"), "job", "status", "cause", "took", "id", "why"]
    rows = [
        (
            occurrence.scheduled_for,
            names[occurrence.job_id],
            occurrence.status,
            occurrence.cause,
            took(occurrence),
            short(occurrence.id),
            why(occurrence, unkept.get(occurrence.id, ())),
        )
        for occurrence in occurrences
    ]
    show_table(headings, rows, times)


async def names_of(app: Everytick, found: Iterable[Occurrence]) -> dict[str, str]:
    """The names of the jobs, also of those that were removed since."""
    return await app.job_names(occurrence.job_id for occurrence in found)


def took(found: Occurrence | Attempt) -> object:
    return None if found.started_at is None or found.ended_at is None else found.ended_at - found.started_at


def why(found: Occurrence, unkept: Sequence[PromiseKind] = ()) -> str | None:
    """Return why it ended as it did, ran or did not, and which promises it broke; None if nothing is known."""
    # The reason of what recovery kept says so itself.
    late = "late" if found.late and not (found.reason or "").startswith("late") else None
    # Of what failed on time the error is the whole answer.
    reason = None if found.error and found.reason == Why.ON_TIME else found.reason
    broken = [f"{kind} broken" for kind in unkept]
    return with_short_ids("; ".join(filter(None, (late, found.error, reason, *broken)))) or None


def last_of_each(tries: Iterable[tuple[str, Attempt]]) -> list[tuple[str, Attempt]]:
    """Return the last attempt of each task."""
    return list(dict(tries).items())
