"""`next`: what runs next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import click

from everytick.cli.applications import address_of_app, application, is_remote
from everytick.cli.asking import NoTables, look
from everytick.cli.common_options import VerbCommand
from everytick.cli.completing import job_argument
from everytick.cli.exits import Refused
from everytick.cli.ids import with_short_ids
from everytick.cli.limits import tell_brakes
from everytick.cli.output import is_terminal, say, show_json, show_table
from everytick.cli.times import Times, zone_of
from everytick.cli.verb_options import reading
from everytick.domain.limits import reaches_of_job
from everytick.errors import NotFound, StoreUnavailable, shown
from everytick.exits import Exit
from everytick.schedules.clock_changes import change_words, clock_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everytick.answers.values import UpcomingRun
    from everytick.app import Everytick
    from everytick.domain.job import Job
    from everytick.domain.limits import Limits

_MOST_RUNS = 10_000
_USUAL_RUNS = 10


@click.command(
    "next",
    cls=VerbCommand,
    help="Show the next run of each job, or the next runs of one JOB.\n\n"
    "With -n or --until, the runs of all jobs in order. "
    "Without a store, or while it does not answer, as the application's code and files say. "
    "Example: everytick next nightly -n 5 --tz Europe/Berlin",
)
@job_argument("job", required=False)
@click.option(
    "-n",
    "count",
    type=click.IntRange(1, _MOST_RUNS),
    help=f"How many runs at most; of one JOB {_USUAL_RUNS} unless given.",
)
@click.option("--until", metavar="T", help="Only through this moment.")
@click.option("--tz", metavar="ZONE", help="Show times in this zone.")
@reading
def next_verb(job: str | None, count: int | None, until: str | None, tz: str | None, as_json: bool, utc: bool) -> None:
    """Show what runs next."""
    times = Times(utc, zone_of(tz))
    end = None if until is None else times.read(until)
    # One job that runs every few seconds must not hide all others.
    is_one_each = job is None and count is None and until is None

    agenda = _agenda(job, 1 if is_one_each else count or _USUAL_RUNS, skipped=not is_one_each)
    if agenda.limits is not None:
        tell_brakes(agenda.limits, times)
    found = sorted((run for run in agenda.runs if end is None or run[0].at <= end), key=lambda run: run[0].at)
    found = found if is_one_each else found[: count or _USUAL_RUNS]
    rows = [
        (run.at, run_job.name, note, run.instant if run.mark == "moved" else None, run.id, run.mark, run.detail)
        for (run, run_job), note in zip(found, _notes(found, agenda.now), strict=True)
    ]
    if as_json:
        names = ("at", "job", "clock_change", "moved_from", "asked_for", "mark", "detail")
        show_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    notes = [
        "; ".join(
            filter(
                None,
                (
                    row[2],
                    _mark_words(run, times),
                    _asked_words(run),
                    _dependence_words(run, run_job),
                    _frozen_words(run, run_job, agenda, times),
                ),
            )
        )
        for row, (run, run_job) in zip(rows, found, strict=True)
    ]
    table = [(row[0], row[1], note) for row, note in zip(rows, notes, strict=True)]
    is_noted = any(notes) or not is_terminal()
    show_table([times.heading("at"), "job", "note"][: 2 + is_noted], [row[: 2 + is_noted] for row in table], times)
    if not rows:
        say("nothing is to come")


def _dependence_words(run: UpcomingRun, job: Job) -> str:
    """Say on which jobs the run depends; one that people ask for obeys those that say so."""
    found = [dependency.job for dependency in job.settings.depends_on if dependency.requests or not run.is_asked_for]
    return f"depends on {' and '.join(found)}" if found else ""


def _frozen_words(run: UpcomingRun, job: Job, agenda: Agenda, times: Times) -> str:
    """Say that a brake or freeze window is known that will hold when the run is due."""
    if agenda.limits is None or not agenda.limits.reaches:
        return ""
    names = reaches_of_job(job.settings.tags, job.name, run.queue or job.settings.queue)
    brake = agenda.limits.frozen_at(names, run.at)
    if brake is None:
        return ""
    until = "it is released" if brake.until is None else times.shown(brake.until)
    return f"braked until {until}" + (f" ({brake.reason})" if brake.reason else "")


class Agenda(NamedTuple):
    """Runs with their jobs, the time it is, and the store's limits and brakes."""

    runs: list[tuple[UpcomingRun, Job]]
    now: datetime
    limits: Limits | None = None


def _agenda(job: str | None, count: int, *, skipped: bool) -> Agenda:
    """The next runs of each job: from the store, or from definitions if there is none."""

    async def asked(app: Everytick) -> Agenda:
        records = await app.jobs() if job is None else [await app.job(job)]
        runs = [
            (run, record.job)
            for record in records
            for run in await upcoming(app, record.job.name, count, skipped=skipped)
        ]
        return Agenda(runs, await app.now(), await app.limits())

    if is_remote():
        return look(asked)
    app = application(make=True)
    if not app.definitions and app.jobs_folder is None:
        return look(asked)
    file = address_of_app(app).file
    if file is not None and not file.exists():
        say(f"there is no store {file} yet: this is what the definitions say")
        return _defined(app, job, count)
    try:
        return look(asked)
    except (StoreUnavailable, NoTables) as error:
        say(f"{error}; this is what the definitions say, whatever was paused or skipped")
        return _defined(app, job, count)


def _defined(app: Everytick, job: str | None, count: int) -> Agenda:
    """The next runs of what code and files define, by this machine's clock."""
    from everytick.answers.values import UpcomingRun
    from everytick.app.upcoming_runs import coming
    from everytick.domain.names import did_you_mean

    now = datetime.now(UTC)
    jobs = {job.name: job for job in _jobs_of(app)}
    if job is not None and job not in jobs:
        raise Refused(f"job not found: {shown(job)}{did_you_mean(job, jobs)}", Exit.NOT_FOUND)
    chosen = jobs.values() if job is None else [jobs[job]]
    runs = [(UpcomingRun(at), chosen_job) for chosen_job in chosen for at in coming(chosen_job, now, count)]
    return Agenda(runs, now)


def _jobs_of(app: Everytick) -> Iterator[Job]:
    yield from (definition.job for definition in app.definitions)
    if app.jobs_folder is not None:
        from everytick.sources.files import read_all

        for file in read_all([app.jobs_folder]):
            for mistake in file.mistakes:
                say(str(mistake), mark="red")
            yield from (file_job.job for file_job in file.jobs if not file_job.suspended)


async def upcoming(app: Everytick, name: str, count: int, *, skipped: bool = False) -> list[UpcomingRun]:
    """Return when the job runs next. A job that was removed since does not run."""
    try:
        return await app.upcoming(name, count, skipped=skipped)
    except NotFound:
        return []


def _mark_words(run: UpcomingRun, times: Times) -> str | None:
    """Say what a person did to a run of the schedule, who and why."""
    if run.mark is None:
        return None
    moved = f"from {times.shown(run.instant)}" if run.mark == "moved" and run.instant is not None else ""
    return " ".join(filter(None, (run.mark, moved, run.detail)))


def _asked_words(run: UpcomingRun) -> str | None:
    """Say of a run that was asked for, by whom and how it is canceled."""
    if run.id is None:
        return None
    return with_short_ids(f"{', '.join(filter(None, ('asked for', run.detail)))}, {run.id}")


def _notes(found: list[tuple[UpcomingRun, Job]], now: datetime) -> list[str | None]:
    """Return the clock changes between each run and the run of its job before it."""
    last: dict[str, datetime] = {}
    notes: list[str | None] = []
    for run, job in found:
        if run.is_asked_for or run.mark is not None:
            notes.append(None)
            continue
        at = run.at
        changes = clock_changes(job.schedule, last.get(job.id, now), at)
        notes.append("; ".join(map(change_words, changes)) or None)
        last[job.id] = at
    return notes
