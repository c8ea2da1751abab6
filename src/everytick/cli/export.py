"""`export`: jobs as files that can be applied elsewhere, history as lines that other programs read."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from everytick.answers.occurrences import occurrence_data
from everytick.answers.wire import plain
from everytick.cli.asking import look
from everytick.cli.common_options import Noun
from everytick.cli.completing import job_argument
from everytick.cli.exits import Refused
from everytick.cli.output import is_terminal, safe, say
from everytick.cli.times import Times, before
from everytick.cli.verb_options import status_option
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everytick.app import Everytick
    from everytick.domain.occurrence import Occurrence
    from everytick.sources.exporting import Exported
    from everytick.stores.base import JobRecord

_PAGE_ROWS = 1000
"""How many occurrences one question reads."""

_COLUMNS = (
    "id", "job", "scheduled_for", "status", "cause", "late", "started_at", "ended_at", "node", "error", "reason",
    "replay_of", "version",
)  # fmt: skip


@click.group(
    "export",
    cls=Noun,
    help="Write jobs as YAML, or history as JSON lines or CSV.\n\n"
    "Examples: everytick export jobs > jobs.yaml; everytick export history --since 30d --format csv > runs.csv",
)
def export_verb() -> None:
    """Write jobs as YAML, or history as JSON lines or CSV."""


# --------------------------------------------------------------------------------------------------------------- jobs


@export_verb.command(
    "jobs",
    help="Write the jobs of the store, or those that are named, as a file of jobs.\n\n"
    "Applied to an empty store it gives the same definitions; jobs that no file can hold are listed. "
    "Example: everytick export jobs -o jobs/",
)
@click.argument("names", metavar="[JOB]…", nargs=-1)
@click.option("--owner", metavar="NAME", help="Only jobs of this owner: code, file or another.")
@click.option("--as-calls", is_flag=True, help="Write functions of an application as calls, which nodes must allow.")
@click.option(
    "-o", "--output", "folder", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False),
    help="Write there, one file for all jobs that share their defaults, and overwrite none.",
)  # fmt: skip
def jobs_verb(names: Sequence[str], owner: str | None, as_calls: bool, folder: Path | None) -> int:
    """Write the jobs of the store as YAML."""
    from everytick.sources.exporting import export_jobs

    records = [record for record in look(lambda app: _records(app, names)) if owner in (None, record.job.owner)]
    if not records:
        raise Refused("there is no such job in the store: everytick list names them all", Exit.NOT_FOUND)
    jobs = [record.job for record in records]
    exported = export_jobs(jobs, one_file=folder is None, as_calls=as_calls, head=["Written by everytick export jobs."])
    if folder is None:
        click.echo("".join(exported.texts), nl=False)
    else:
        _to_folder(exported, folder)
    return _told(exported, records)


async def _records(app: Everytick, names: Sequence[str]) -> Sequence[JobRecord]:
    from everytick.domain.notices import OWNER

    if names:
        return [await app.job(name) for name in names]
    # A job that sends notices follows from the job that it tells of.
    return [record for record in await app.jobs() if record.job.owner != OWNER]


def _to_folder(found: Exported, folder: Path) -> None:
    targets = [
        folder / ("jobs.yaml" if number == 1 else f"jobs-{number}.yaml") for number in range(1, len(found.texts) + 1)
    ]
    if there := [target for target in targets if target.exists()]:
        raise Refused(f"{shown(str(there[0]))} is there already: move it away, or give another folder", Exit.CONFLICT)
    folder.mkdir(parents=True, exist_ok=True)
    for target, text in zip(targets, found.texts, strict=True):
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
        say(f"wrote {target}")


def _told(found: Exported, records: Sequence[JobRecord]) -> int:
    left = {left_out.name for left_out in found.left}
    for left_out in found.left:
        say(f"not exported: {left_out}", mark="yellow")
    for record in records:
        if record.job.name not in left and record.pause is not None:
            say(f"job '{shown(record.job.name)}' is paused, and no file says so: suspended: true would hold it")
        if record.job.name not in left and record.job.reports:
            say(f"job '{shown(record.job.name)}' has hooks in its application, and no file has any", mark="yellow")
    if found.is_merged:
        say("applications gave their jobs different defaults, so each job says its own: -o FOLDER keeps them apart")
    say(f"{_count(found.count, 'job')} exported, {len(found.left)} not")
    return Exit.FAILED if found.left else Exit.DONE


# ------------------------------------------------------------------------------------------------------------ history


@export_verb.command(
    "history",
    help="Write what ran, newest first, one line each; of one JOB also what did not run, and why.\n\n"
    "It is read and written page by page, however long it is. Example: everytick export history nightly --since 30d",
)
@job_argument("job", required=False)
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
@status_option
@click.option("--since", metavar="TIME", help="Only runs from the last 24h, 7d, …")
@click.option("--after", metavar="T", help="Only what was scheduled after this moment.")
@click.option("--through", metavar="T", help="Only what was scheduled through this moment.")
@click.option(
    "--utc", is_flag=True, help="Read times in UTC, not in this machine's zone; they are written in UTC always."
)
def history_verb(
    job: str | None,
    form: str,
    status: tuple[str, ...],
    since: str | None,
    after: str | None,
    through: str | None,
    utc: bool,
) -> None:
    """Write what ran."""
    if since is not None and after is not None:
        raise click.UsageError("--since and --after both say where to begin: give one")
    times = Times(utc)
    begin = None if after is None else times.read(after)
    end = None if through is None else times.read(through)

    async def written(app: Everytick) -> int:
        start = begin if since is None else before(await app.now(), since)
        page = await app.history(job, status=status or None, after=start, through=end, limit=_PAGE_ROWS)
        return await _write_all(app, page, _writer(form, sys.stdout))

    say(f"{look(written):,} exported")


async def _write_all(app: Everytick, page: Any, write: Callable[[dict[str, Any]], None]) -> int:
    """Write the occurrences one after another. Only the names of jobs are kept in memory."""
    from everytick.cli.progress import ProgressDisplay

    names: dict[str, str] = {}
    progress = ProgressDisplay("exporting")
    occurrence: Occurrence
    # Lines on a terminal show the progress themselves.
    with nullcontext() if is_terminal() else progress:
        async for occurrence in page:
            if occurrence.job_id not in names:
                names |= await app.job_names([occurrence.job_id])
            write(occurrence_data(occurrence, names))
            progress.step()
    return progress.done


def _writer(form: str, to: TextIO) -> Callable[[dict[str, Any]], None]:
    """Return a function that writes one row."""
    import csv
    import json

    if form == "jsonl":
        return lambda row: print(json.dumps(plain(row), ensure_ascii=True, separators=(",", ":")), file=to)
    rows = csv.DictWriter(to, _COLUMNS, lineterminator="\n")
    rows.writeheader()
    return lambda row: rows.writerow({key: _cell(plain(row[key])) for key in _COLUMNS})


def _cell(given: object) -> object:
    """A cell of CSV: nothing for None, words for switches, and no control characters but line ends."""
    if isinstance(given, bool):
        return "true" if given else "false"
    return safe(given) if isinstance(given, str) else given


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
