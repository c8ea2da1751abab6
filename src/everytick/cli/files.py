"""Files of jobs: check them, compare them with a store, and store what they say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from everytick.answers.runs_to_come import SIGNS, change_data
from everytick.cli.applications import is_remote, store_beside
from everytick.cli.asking import ask, look, store_of_app, who
from everytick.cli.common_options import VerbCommand, state
from everytick.cli.exits import Refused
from everytick.cli.output import safe, say, show_json, show_table, write
from everytick.cli.progress import ProgressDisplay
from everytick.cli.times import Times
from everytick.cli.verb_options import agreed, confirm, reading, sure
from everytick.cli.versions import (
    RUNS,
    is_version,
    parts_of,
    plan_option,
    show_two,
    update_policy_option,
    version_number,
    words,
)
from everytick.domain.texts import OVER
from everytick.errors import PlanMoved, shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from everytick.answers.values import Preview
    from everytick.app import Everytick
    from everytick.client import Client
    from everytick.domain.changes import Change
    from everytick.domain.job import Job
    from everytick.sources.job_files import FileJob, JobFile
    from everytick.sources.yaml_reader import Mistake

F = TypeVar("F", bound="Callable[..., Any]")

_OWNER = "file"
_JOB_AND_TWO = 3
"""Arguments of `diff` that name a job and two of its versions."""


def _paths(function: F) -> F:
    kind = click.Path(path_type=Path)
    return click.argument("paths", metavar="[PATH…]", nargs=-1, type=kind, callback=_named)(function)


def _named(ctx: click.Context, parameter: click.Parameter, given: tuple[Path, ...]) -> tuple[Path, ...]:
    """The paths, or the folder of the configuration."""
    if given or ctx.resilient_parsing:
        return given
    folder = state().settings["jobs"].value
    if folder is None:
        raise click.UsageError("no file or folder was named: give its path, or write jobs = into everytick.toml")
    here = Path.cwd()
    path = Path(folder)
    # As a person would type it: what is said of files begins with it.
    return (path.relative_to(here) if path.is_relative_to(here) and path != here else path,)


def _owner(function: F) -> F:
    said = "Whose jobs these are: what other owners have is left alone."
    return click.option("--owner", metavar="NAME", default=_own, help=f"{said} By default jobs_owner.")(function)


def _own() -> str:
    return str(state().settings["jobs_owner"].value)


@click.command(
    "validate",
    cls=VerbCommand,
    help="Check files of jobs: every mistake at once, as file:line:column; exit code 65 if there is any.\n\n"
    "Without PATH, the folder that the configuration names. Needs no store.\n\n"
    "Example: everytick validate jobs/ --format github",
)
@_paths
@click.option("--format", "form", type=click.Choice(["text", "github"]), default="text", help="github marks the lines.")
def validate_verb(paths: Sequence[Path], form: str) -> int:
    """Check files of jobs."""
    files = read_files(paths, _OWNER)
    mistakes = told(files, form)
    jobs = sum(len(file.jobs) for file in files)
    if mistakes:
        say(f"{_count(mistakes, 'mistake')} in {_count(len(files), 'file')}", mark="red")
        return Exit.INVALID_FILE
    _say_over([file_job.job for file in files for file_job in file.jobs])
    say(f"{_count(len(files), 'file')} with {_count(jobs, 'job')}: no mistakes")
    return Exit.DONE


def _say_over(jobs: Iterable[Job]) -> None:
    """Name the jobs whose schedule is over by this machine's clock."""
    now = datetime.now(UTC)
    for job in jobs:
        if job.is_over(now):
            say(f"job '{shown(job.name)}' {OVER.format(schedule=job.schedule.describe())}", mark="yellow")


def _runs(function: F) -> F:
    said = "Name every run to come that is added or removed."
    return click.option("--runs", "with_runs", is_flag=True, help=said)(function)


@click.command(
    "diff",
    cls=VerbCommand,
    help="Say which jobs are new, changed or gone in files, compared with the store; nothing is changed.\n\n"
    "And which of the runs to come are added, removed and kept by that, under a hash that apply --plan takes. "
    "With a job and two versions, say what these differ in. "
    "Examples: everytick diff jobs/ --store sqlite:///everytick.db; everytick diff nightly v3 v5",
)
@_paths
@_owner
@_runs
@update_policy_option
@reading
def diff_verb(paths: Sequence[Path], owner: str, with_runs: bool, policy: str | None, as_json: bool, utc: bool) -> int:
    """Compare files with the store, or two versions of a job."""
    if len(paths) == _JOB_AND_TWO and all(is_version(str(path)) for path in paths[1:]) and not paths[1].exists():
        show_two(str(paths[0]), version_number(str(paths[1])), version_number(str(paths[2])), as_json, utc)
        return Exit.DONE
    read = _read_good(paths, owner)
    _refuse_policy(policy)
    told = look(
        lambda app: _previewed(app, read, owner, prune=True, policy=policy),
        telling="comparing",
        folder=_folder_of(paths),
    )
    _show(told, as_json, with_runs, Times(utc))
    if told.hash and not told.refusals and any(change.kind != "unchanged" for change in told.changes):
        prune = " --prune" if any(change.kind == "removed" for change in told.changes) else ""
        under = "" if policy is None else f" --policy '{policy}'"
        say(f"to store exactly this: everytick apply {' '.join(map(str, paths))}{prune}{under} --plan {told.hash}")
    return _refused(told.refusals)


@click.command(
    "apply",
    cls=VerbCommand,
    help="Store what files say: a new version of each job that changed; a second time changes nothing.\n\n"
    "All of it is one transaction: a mistake in one file, and none is stored. Example: everytick apply jobs/ --prune",
)
@_paths
@_owner
@click.option("--prune", is_flag=True, help="Remove jobs of the owner that stand in none of these files.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@plan_option
@update_policy_option
@_runs
@sure
@reading
def apply_verb(
    paths: Sequence[Path],
    owner: str,
    prune: bool,
    dry_run: bool,
    plan: str | None,
    policy: str | None,
    with_runs: bool,
    yes: bool,
    as_json: bool,
    utc: bool,
) -> int:
    """Store what files say."""
    read, folder = _read_good(paths, owner), _folder_of(paths)
    _refuse_policy(policy)
    if not dry_run:
        _make_store_beside(folder)
    compare = look if dry_run else ask

    async def compared(app: Everytick) -> tuple[Preview, list[str]]:
        found = await _previewed(app, read, owner, prune=prune, policy=policy)
        return found, [] if prune else await _staying(app, read, owner)

    told, staying = compare(compared, telling="comparing", folder=folder)
    if not dry_run and not told.refusals:
        _ask_before_removing(told, yes)
        options: dict[str, Any] = {"owner": owner, "prune": prune, "policy": policy, "plan": plan}

        def work(confirmed: bool) -> list[Change]:
            return ask(
                lambda app: _applied(app, read, confirmed=confirmed, **options), telling="storing", folder=folder
            )

        try:
            told = replace(told, changes=tuple(agreed(work, yes)))
        except PlanMoved:
            _show(told, as_json, with_runs, Times(utc))
            raise
    if not told.refusals or dry_run:
        _show(told, as_json, with_runs, Times(utc))
        changed = {change.name for change in told.changes if change.kind in ("added", "changed")}
        _say_over(found.job for name, found in read.jobs.items() if name in changed)
    if staying and not told.refusals:
        names, count = shown(", ".join(staying), 300), _count(len(staying), "job")
        say(f"{count} of owner '{shown(owner)}' not in these files: {names}; --prune removes such jobs")
    if dry_run or told.refusals:
        say("nothing was changed: " + ("this was a dry run" if dry_run else "all is stored, or nothing"))
    return _refused(told.refusals)


def _folder_of(paths: Sequence[Path]) -> str | None:
    """Return the folder beside which the store is if none is named: the one that contains all these paths."""
    folders = {path if path.is_dir() else path.parent for path in paths}
    return str(folders.pop()) if len(folders) == 1 else None


def _make_store_beside(folder: str | None) -> None:
    """Make the store of a folder that has none, as `run --jobs` does. A named store must exist."""
    settings = state().settings
    if is_remote() or folder is None or settings["app"].value is not None or settings["store"].value is not None:
        return
    beside = settings["jobs"].value or folder
    if not store_beside(beside).exists():
        ask(store_of_app, make=True, folder=folder)
        say(f"made the store {store_beside(beside)}: everytick run --jobs {beside} runs what it holds")


def _ask_before_removing(told: Preview, yes: bool) -> None:
    gone = [change.name for change in told.changes if change.kind == "removed"]
    if gone:
        confirm(f"Remove {_count(len(gone), 'job')}: {shown(', '.join(gone), 300)}?", yes)


@click.command(
    "schema",
    cls=VerbCommand,
    help="Write the JSON Schema of files of jobs, with which editors complete and underline.\n\n"
    "Example: everytick schema > everytick.schema.json",
)
def schema_verb() -> None:
    """Write the JSON Schema of files of jobs."""
    from everytick.sources.yaml_models import json_schema

    show_json(json_schema())


async def _previewed(app: Everytick, read: ReadFiles, owner: str, *, prune: bool, policy: str | None) -> Preview:
    options: dict[str, Any] = {"owner": owner, "prune": prune, "policy": policy}
    if not is_remote():
        return await app.preview_files(read.jobs, **options)
    from everytick.cli.remote import refusals_of_files, sent_files

    with refusals_of_files():
        return await cast("Client", app).preview_files(**sent_files(read.files), **options)


async def _staying(app: Everytick, read: ReadFiles, owner: str) -> list[str]:
    """Return the names of the owner's jobs that stand in none of the files: without --prune they stay."""
    return [
        record.job.name for record in await app.jobs() if record.job.owner == owner and record.job.name not in read.jobs
    ]


async def _applied(app: Everytick, read: ReadFiles, **options: Any) -> list[Change]:
    if not is_remote():
        return await app.apply_files(read.jobs, by=who(), **options)
    from everytick.cli.remote import refusals_of_files, sent_files

    with refusals_of_files():
        return await cast("Client", app).apply_files(**sent_files(read.files), **options)


def _refuse_policy(text: str | None) -> None:
    """Raise if this is no update policy."""
    from everytick.app.stored_jobs import update_policy_of

    update_policy_of(text)


class ReadFiles(NamedTuple):
    """Files without mistakes, and their jobs by name."""

    files: Sequence[JobFile]
    jobs: Mapping[str, FileJob]


def read_files(paths: Sequence[Path], owner: str) -> list[JobFile]:
    """Return the content of these files and folders. Raise if there is none."""
    from everytick.sources.files import read_all

    for path in paths:
        if not path.exists():
            raise Refused(f"there is no file or folder {shown(str(path))}: correct its name", Exit.NOT_FOUND)
    with ProgressDisplay("reading files") as progress:

        def tell(done: int, total: int) -> None:
            progress.done, progress.total = done, total

        files = read_all(paths, owner=owner, tell=tell)
    if not files:
        named = ", ".join(shown(str(path)) for path in paths)
        raise Refused(f"there is no .yaml or .yml file in {named}: name a file, or another folder", Exit.NOT_FOUND)
    return files


def _read_good(paths: Sequence[Path], owner: str) -> ReadFiles:
    """Return the files with their jobs. Raise if one has a mistake."""
    files = read_files(paths, owner)
    if mistakes := [mistake for file in files for mistake in file.mistakes]:
        for mistake in mistakes:
            say(str(mistake), mark="red")
        raise Refused(f"{_count(len(mistakes), 'mistake')}: nothing was stored", Exit.INVALID_FILE)
    for warning in (warning for file in files for warning in file.warnings):
        say(str(warning), mark="yellow")
    return ReadFiles(files, {job.job.name: job for file in files for job in file.jobs})


def told(files: Iterable[JobFile], form: str) -> int:
    """Write every mistake and warning, and return how many mistakes there are."""
    mistakes = [mistake for file in files for mistake in (*file.mistakes, *file.warnings)]
    for mistake in mistakes:
        if form == "github":
            click.echo(_github(mistake))
        else:
            write(str(mistake))
    return sum(not mistake.is_warning for mistake in mistakes)


def _github(mistake: Mistake) -> str:
    """The line that marks a place in a pull request."""
    kind = "warning" if mistake.is_warning else "error"
    said = safe(mistake.message).replace("%", "%25").replace("\n", "%0A")
    file = safe(mistake.file).replace("%", "%25").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} file={file},line={mistake.line},col={mistake.column}::{said}"


def _show(told: Preview, as_json: bool, with_runs: bool, times: Times) -> None:
    """Write the changes. Unchanged jobs are only counted."""
    changes = [change for change in told.changes if change.kind != "unchanged"]
    if as_json:
        show_json([change_data(change, told.runs.get(change.name), told.hash) for change in changes])
    else:
        rows = [
            (SIGNS[change.kind], change.name, ", ".join(change.parts), words(told.runs.get(change.name), times))
            for change in changes
        ]
        show_table(("change", "job", "what", "runs to come"), rows, times)
        if with_runs:
            show_table(("runs to come", "job", times.heading("at")), _each_run(told), times)
    say(f"{_count(len(changes), 'change')}, {len(told.changes) - len(changes)} unchanged")


def _each_run(told: Preview) -> Iterator[tuple[str, str, datetime]]:
    for name, runs in told.runs.items():
        changed_runs = [
            (what, at) for what, some in zip(RUNS, parts_of(runs), strict=True) for at in some if what != "kept"
        ]
        for what, at in sorted(changed_runs, key=lambda one: one[1]):
            yield what, name, at


def _refused(refusals: Sequence[str]) -> int:
    """Say which jobs cannot be stored, and return the exit code that tells so."""
    for refusal in refusals:
        say(refusal, mark="red")
    return Exit.CONFLICT if refusals else Exit.DONE


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
