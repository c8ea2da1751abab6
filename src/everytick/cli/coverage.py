"""`coverage`: which data of a job are done, missing, under way, done twice or unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everytick.answers.wire import data_of
from everytick.cli.asking import look
from everytick.cli.common_options import VerbCommand
from everytick.cli.completing import job_argument
from everytick.cli.output import say, show_json, show_table
from everytick.cli.times import Times
from everytick.cli.verb_options import reading
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.app.coverage import CoverageLedger

_REPAIRS = 5
"""Most gaps that are shown with the backfill that fills them."""


@click.command(
    "coverage",
    cls=VerbCommand,
    help="Show which instants of a JOB are done, missing, under way or done twice, as spans of time.\n\n"
    "Ends with 1 if any is missing, and says which backfill fills each gap. Unknown are those from before the job "
    "was stored, and those that its retention no longer keeps.\n\n"
    "Example: everytick coverage nightly --after 2026-11-01 --through 2026-11-08",
)
@job_argument("job")
@click.option("--after", required=True, metavar="T", help="The instants after this moment.")
@click.option("--through", metavar="T", help="And not later than this one; now if it is left out.")
@reading
def coverage_verb(job: str, after: str, through: str | None, as_json: bool, utc: bool) -> int:
    """Show which data of a job are done."""
    times = Times(utc)

    async def asked(app: Everytick) -> CoverageLedger:
        end = await app.now() if through is None else times.read(through)
        return await app.coverage(job, times.read(after), end)

    ledger = look(asked)
    if as_json:
        show_json(data_of(ledger))
    else:
        _tell(ledger, job, times)
    return Exit.DONE if ledger.is_whole else Exit.FAILED


def _tell(ledger: CoverageLedger, job: str, times: Times) -> None:
    headings = [times.heading("after"), times.heading("through"), "state", "instants", "why"]
    rows = [(span.after, span.through, span.state, span.count, span.why) for span in ledger.spans]
    show_table(headings, rows, times)
    if ledger.is_cut:
        say(f"there are more: ask again with --after {times.shown(ledger.through)}")
    if not rows:
        say("the job has no instant in that time")
    for span in ledger.missing[:_REPAIRS]:
        # Where an occurrence failed, only a backfill that runs it again fills the gap. Nothing in a gap is done.
        again = " --again" if span.ids else ""
        begin, end = span.after.isoformat(), span.through.isoformat()
        say(f"to fill the gap: everytick backfill plan {shown(job)} --after {begin} --through {end}{again}")
