"""Files of jobs: check them, compare them with a store, and store what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from everytick.cli.exits import Exit, Refused
from everytick.cli.options import confirm, reading, sure
from everytick.cli.output import safe, say, show_json, show_table, write
from everytick.cli.session import ask, store_of_app, who
from everytick.cli.state import Verb, state
from everytick.cli.times import Times
from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from everytick.app import Everytick
    from everytick.sources.job_files import FileJob, JobFile
    from everytick.sources.syncing import Synced
    from everytick.sources.yaml_reader import Mistake

F = TypeVar("F", bound="Callable[..., Any]")

_OWNER = "file"
_SIGNS = {"added": "new", "changed": "changed", "removed": "gone", "unchanged": "unchanged"}


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
    return (Path(folder),)


def _owner(function: F) -> F:
    said = "Whose jobs these are: what other owners have is left alone."
    return click.option("--owner", metavar="NAME", default=_own, help=f"{said} By default jobs_owner.")(function)


def _own() -> str:
    return str(state().settings["jobs_owner"].value)


@click.command(
    "validate",
    cls=Verb,
    help="Check files of jobs: every mistake at once, as file:line:column; exit code 65 if there is any.\n\n"
    "Without PATH, the folder that the configuration names. Needs no store.\n\n"
    "Example: everytick validate jobs/ --format github",
)
@_paths
@click.option("--format", "form", type=click.Choice(["text", "github"]), default="text", help="github marks the lines.")
def validate_verb(paths: Sequence[Path], form: str) -> int:
    """Check files of jobs."""
    files = _read(paths, _OWNER)
    mistakes = _told(files, form)
    jobs = sum(len(file.jobs) for file in files)
    if mistakes:
        say(f"{_count(mistakes, 'mistake')} in {_count(len(files), 'file')}", mark="red")
        return Exit.INVALID_FILE
    say(f"{_count(len(files), 'file')} with {_count(jobs, 'job')}: no mistakes")
    return Exit.DONE


@click.command(
    "diff",
    cls=Verb,
    help="Say which jobs are new, changed or gone in files, compared with the store; nothing is changed.\n\n"
    "Example: everytick diff jobs/ --store sqlite:///everytick.db",
)
@_paths
@_owner
@reading
def diff_verb(paths: Sequence[Path], owner: str, as_json: bool, utc: bool) -> int:
    """Compare files with the store."""
    jobs = _jobs(paths, owner)
    synced = ask(lambda app: _sync(app, jobs, owner, prune=True, dry_run=True))
    _show(synced, as_json, utc)
    return _refused(synced)


@click.command(
    "apply",
    cls=Verb,
    help="Store what files say: a new version of each job that changed; a second time changes nothing.\n\n"
    "All files are checked first: a mistake in one, and none is stored. Example: everytick apply jobs/ --prune",
)
@_paths
@_owner
@click.option("--prune", is_flag=True, help="Remove jobs of the owner that stand in none of these files.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@sure
@reading
def apply_verb(
    paths: Sequence[Path], owner: str, prune: bool, dry_run: bool, yes: bool, as_json: bool, utc: bool
) -> int:
    """Store what files say."""
    jobs = _jobs(paths, owner)
    if prune and not dry_run:
        gone = [
            each.name
            for each in ask(lambda app: _sync(app, jobs, owner, prune=True, dry_run=True)).changes
            if each.kind == "removed"
        ]
        if gone:
            confirm(f"Remove {_count(len(gone), 'job')}: {shown(', '.join(gone), 300)}?", yes)
    synced = ask(lambda app: _sync(app, jobs, owner, prune=prune, dry_run=dry_run))
    _show(synced, as_json, utc)
    if dry_run:
        say("nothing was changed: this was a dry run")
    return _refused(synced)


@click.command(
    "schema",
    cls=Verb,
    help="Write the JSON Schema of files of jobs, with which editors complete and underline.\n\n"
    "Example: everytick schema > everytick.schema.json",
)
def schema_verb() -> None:
    """Write the JSON Schema of files of jobs."""
    from everytick.sources.yaml_models import json_schema

    show_json(json_schema())


async def _sync(app: Everytick, jobs: dict[str, FileJob], owner: str, *, prune: bool, dry_run: bool) -> Synced:
    from everytick.sources.syncing import sync_jobs

    store = await store_of_app(app)
    return await sync_jobs(store, jobs, owner=owner, prune=prune, dry_run=dry_run, by=who())


def _read(paths: Sequence[Path], owner: str) -> list[JobFile]:
    from everytick.sources.files import read_all

    files = read_all(paths, owner=owner)
    if not files:
        named = ", ".join(shown(str(path)) for path in paths)
        raise Refused(f"there is no .yaml or .yml file in {named}: name a file, or another folder", Exit.NOT_FOUND)
    return files


def _jobs(paths: Sequence[Path], owner: str) -> dict[str, FileJob]:
    """The jobs of the files, if all of them are without a mistake."""
    files = _read(paths, owner)
    if mistakes := [each for file in files for each in file.mistakes]:
        for mistake in mistakes:
            say(str(mistake), mark="red")
        raise Refused(f"{_count(len(mistakes), 'mistake')}: nothing was stored", Exit.INVALID_FILE)
    for warning in (each for file in files for each in file.warnings):
        say(str(warning), mark="yellow")
    return {job.job.name: job for file in files for job in file.jobs}


def _told(files: Iterable[JobFile], form: str) -> int:
    """Write every mistake and warning, and return how many mistakes there are."""
    found = [each for file in files for each in (*file.mistakes, *file.warnings)]
    for each in found:
        if form == "github":
            click.echo(_github(each))
        else:
            write(str(each))
    return sum(not each.is_warning for each in found)


def _github(mistake: Mistake) -> str:
    """The line that marks a place in a pull request."""
    kind = "warning" if mistake.is_warning else "error"
    said = safe(mistake.message).replace("%", "%25").replace("\n", "%0A")
    file = safe(mistake.file).replace("%", "%25").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} file={file},line={mistake.line},col={mistake.column}::{said}"


def _show(synced: Synced, as_json: bool, utc: bool) -> None:
    """Write what changed; what stays as it is, is only counted."""
    changes = [each for each in synced.changes if each.kind != "unchanged"]
    if as_json:
        show_json(
            [
                {"job": each.name, "change": _SIGNS[each.kind], "parts": each.parts, "version": each.version}
                for each in changes
            ]
        )
    else:
        rows = [(_SIGNS[each.kind], each.name, ", ".join(each.parts)) for each in changes]
        show_table(("change", "job", "what"), rows, Times(utc))
    say(f"{_count(len(changes), 'change')}, {len(synced.changes) - len(changes)} unchanged")


def _refused(synced: Synced) -> int:
    """Say which jobs could not be stored, and return the exit code that tells so."""
    for mistake in synced.mistakes:
        say(str(mistake), mark="red")
    return Exit.CONFLICT if synced.mistakes else Exit.DONE


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
