"""`list`: the jobs of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everytick.answers.jobs import job_data, word
from everytick.cli.applications import how_to_run
from everytick.cli.asking import look
from everytick.cli.common_options import VerbCommand
from everytick.cli.jobs import with_status
from everytick.cli.limits import tell_brakes
from everytick.cli.node_reports import tell_broken
from everytick.cli.output import is_terminal, say, show_json, show_table
from everytick.cli.promises import breach_words
from everytick.cli.times import Times
from everytick.cli.verb_options import reading, watchable
from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick.answers.values import JobStatus, NodeReports
    from everytick.app import Everytick
    from everytick.domain.limits import Limits
    from everytick.stores.base import JobRecord


@click.command(
    "list", cls=VerbCommand, help="List the jobs in the store.\n\nExample: everytick list -k backup --failed"
)
@click.option("-k", "contains", metavar="TEXT", help="Only jobs whose name contains this.")
@click.option("--tag", metavar="TAG", help="Only jobs that carry this tag.")
@click.option("--failed", is_flag=True, help="Only jobs whose last occurrence did not end well.")
@click.option("--broken", is_flag=True, help="Only jobs that have broken a promise and not kept it since.")
@click.option("--all", "all_", is_flag=True, help="Also the jobs that send notices, such as nightly.on_failure.")
@reading
@watchable
def list_verb(
    contains: str | None, tag: str | None, failed: bool, broken: bool, all_: bool, as_json: bool, utc: bool
) -> None:
    """List the jobs in the store."""
    from everytick.domain.notices import OWNER

    async def asked(app: Everytick) -> tuple[list[tuple[JobRecord, JobStatus]], int, NodeReports, Limits]:
        records = await app.jobs()
        told = await app.reports(records)
        stored = {record.job.name for record in records}
        missing = sum(definition.name not in stored for definition in app.definitions)
        # A notice that cannot be sent is shown among what failed, asked for or not.
        shown = records if all_ or failed else [record for record in records if record.job.owner != OWNER]
        chosen = [record for record in shown if _is_chosen(record, contains, tag, failed)]
        pairs = await with_status(app, chosen)
        return [pair for pair in pairs if not broken or pair[1].breaches], missing, told, await app.limits()

    pairs, missing, told, limits = look(asked)
    times = Times(utc)
    tell_brakes(limits, times)
    if missing:
        are, them = ("is", "it") if missing == 1 else ("are", "them")
        say(f"{missing} of the application's jobs {are} not in the store yet: its first run brings {them} there")
    tell_broken(told)
    if as_json:
        show_json([job_data(*pair, told) for pair in pairs])
        return
    for record, status in pairs:
        for breach in status.breaches:
            say(f"{shown(record.job.name)}: {shown(breach_words(breach, times), 300)}", mark="red")
    _show_jobs(pairs, told, times)
    if not told.living and any(record.job.enabled for record, _ in pairs):
        say(f"no node is running: {how_to_run()} starts one", mark="yellow")
    if not pairs:
        say("no job answers to that" if contains or tag or failed or broken else "the store holds no job")


def _show_jobs(pairs: Sequence[tuple[JobRecord, JobStatus]], told: NodeReports, times: Times) -> None:
    """Show a row for each job."""
    following = times.heading("next run")
    headings = ["job", "status", "schedule", following, "last run", "last result", "broken file"]
    if is_terminal():
        # The schedule is the longest text: as the last column it may go below its row. Broken files are told above.
        headings = ["job", "status", following, "last run", "last result", "schedule"]
    rows = [
        {
            "job": record.job.name,
            "status": word(record, status, told.unknown.get(record.job.name)),
            "schedule": _schedule(record, times),
            following: status.next_run,
            "last run": status.last_run,
            "last result": status.last_result,
            "broken file": (told.of_job.get(record.job.name) or "").partition("\n")[0],
        }
        for record, status in pairs
    ]
    show_table(headings, [[row[heading] for heading in headings] for row in rows], times)


def _schedule(record: JobRecord, times: Times) -> str:
    """Return the schedule as text. On a terminal its zone is left out if the heading names it."""
    text = str(record.job.schedule)
    return text.removesuffix(f"; tz={times.zone}") if is_terminal() else text


def _is_chosen(record: JobRecord, contains: str | None, tag: str | None, failed: bool) -> bool:
    job = record.job
    if contains is not None and contains.lower() not in job.name.lower():
        return False
    if tag is not None and tag not in job.settings.tags:
        return False
    return not failed or record.ended_badly
