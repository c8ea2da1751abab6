"""`import`: turns the schedules of another scheduler into job files. What it cannot convert is listed, not guessed."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from everytick.cli.common_options import Noun
from everytick.cli.exits import Refused
from everytick.cli.output import say
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everytick.sources.importing.findings import Findings

F = TypeVar("F", bound="Callable[..., Any]")

_STDIN = "-"


class _SourceReader(Protocol):
    """Finds the jobs in a file, and gives none of them a name that is taken."""

    def __call__(self, raw: bytes, file: str, /, *, taken: set[str]) -> Findings: ...


@click.group(
    "import",
    cls=Noun,
    help="Turn what another scheduler keeps into files of jobs.\n\n"
    "YAML on stdout or into a folder; what is not carried over on stderr, with its place and why.\n\n"
    "Examples: crontab -l | everytick import crontab -; everytick import systemd /etc/systemd/system -o jobs/",
)
def import_verb() -> None:
    """Turn what another scheduler keeps into files of jobs."""


def _sources(function: F) -> F:
    """Add FILE…, `-o` and `--strict`."""
    files = click.argument("files", metavar="FILE…", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
    folder = click.option(
        "-o", "--output", "folder", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False),
        help="Write one file there for each FILE, and overwrite none.",
    )  # fmt: skip
    strict = click.option("--strict", is_flag=True, help="End with 1 if anything was not carried over.")
    return files(folder(strict(function)))


def _timezone(function: F) -> F:
    said = "The zone of the machine it comes from, where the file names none."
    return click.option("--timezone", metavar="ZONE", callback=_zone, help=said)(function)


def _zone(ctx: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
    if given is None:
        return None
    from everytick.app.text_reading import zone_named

    return zone_named(given).name


@import_verb.command("crontab", help="Read crontabs.\n\nExample: crontab -l | everytick import crontab - > jobs.yaml")
@_sources
@_timezone
@click.option("--system", is_flag=True, help="A user stands before each command, as in /etc/crontab and /etc/cron.d.")
def crontab_verb(files: Sequence[Path], folder: Path | None, strict: bool, timezone: str | None, system: bool) -> int:
    """Read crontabs."""
    from everytick.sources.importing.crontab import read_crontab

    return _import("crontab", files, folder, strict, partial(read_crontab, system=system, timezone=timezone))


@import_verb.command(
    "systemd",
    help="Read timers of systemd with their services, which stand beside them; a folder stands for its timers.\n\n"
    "Example: everytick import systemd /etc/systemd/system/backup.timer",
)
@_sources
@_timezone
@click.option(
    "--service", "services", metavar="FILE", multiple=True, type=click.Path(path_type=Path, dir_okay=False),
    help="A service that does not stand beside its timer.",
)  # fmt: skip
def systemd_verb(
    files: Sequence[Path], folder: Path | None, strict: bool, timezone: str | None, services: Sequence[Path]
) -> int:
    """Read timers of systemd."""
    from everytick.sources.importing.systemd import ServiceFile, read_timer

    def read(raw: bytes, file: str, *, taken: set[str]) -> Findings:
        def service(name: str) -> ServiceFile | None:
            named = [service for service in services if service.name == name] or [Path(file).with_name(Path(name).name)]
            return (str(named[0]), _bytes(named[0])) if named[0].is_file() else None

        findings = read_timer(raw, file, service=service, timezone=timezone, taken=taken)
        for unit in {file, *(left_out.file for left_out in findings.left)}:
            if Path(f"{unit}.d").is_dir():
                why = f"drop-ins are not read: systemctl cat {shown(Path(unit).name)} writes all of it into one file"
                findings.leave(1, f"{unit}.d", why, file=unit)
        return findings

    timers = [timer for path in files for timer in (sorted(path.glob("*.timer")) if path.is_dir() else [path])]
    return _import("systemd timers", timers, folder, strict, read)


@import_verb.command(
    "celery-beat",
    help="Read Celery's beat_schedule, from JSON or from a Python file, which is read and never run.\n\n"
    "Example: everytick import celery-beat proj/celeryconfig.py",
)
@_sources
@_timezone
@click.option(
    "--send-with", metavar="APP", help="Send each task to Celery's workers, as celery -A APP call does, not call it."
)
def celery_beat_verb(
    files: Sequence[Path], folder: Path | None, strict: bool, timezone: str | None, send_with: str | None
) -> int:
    """Read Celery's beat_schedule."""
    from everytick.sources.importing.celery_beat import read_beat

    return _import("celery beat", files, folder, strict, partial(read_beat, send_with=send_with, timezone=timezone))


@import_verb.command(
    "apscheduler",
    help="Read a listing of APScheduler 3's jobs, which a script writes where your application runs.\n\n"
    "Example: everytick import apscheduler --script > list_jobs.py; python list_jobs.py myapp:scheduler > jobs.json; "
    "everytick import apscheduler jobs.json",
)
@_sources
@click.option("--script", "wants_script", is_flag=True, help="Print the script that writes the listing.")
def apscheduler_verb(files: Sequence[Path], folder: Path | None, strict: bool, wants_script: bool) -> int:
    """Read a listing of APScheduler's jobs."""
    from everytick.sources.importing.apscheduler import read_listing, script

    if wants_script:
        click.echo(script(), nl=False)
        return Exit.DONE
    return _import("apscheduler", files, folder, strict, read_listing)


@import_verb.command(
    "cronjob",
    help="Read Kubernetes CronJobs from manifests.\n\n"
    "Example: kubectl get cronjobs -A -o yaml | everytick import cronjob - -o jobs/",
)
@_sources
@_timezone
def cronjob_verb(files: Sequence[Path], folder: Path | None, strict: bool, timezone: str | None) -> int:
    """Read Kubernetes CronJobs."""
    from everytick.sources.importing.cronjob import read_manifest

    return _import("cronjobs", files, folder, strict, partial(read_manifest, timezone=timezone))


# ----------------------------------------------------------------------------------------------------------- the common


def _import(
    what: str,
    files: Sequence[Path],
    folder: Path | None,
    strict: bool,
    read: _SourceReader,
) -> int:
    """Read all files, then write their jobs and list the parts that are not converted. An invalid file ends it."""
    from everytick.sources.importing.findings import UnreadableSource

    if not files:
        raise Refused("no file was named: give FILE, or - for what comes in on stdin")
    taken: set[str] = set()
    try:
        findings = [read(_bytes(path), _shown(path), taken=taken) for path in files]
    except UnreadableSource as error:
        raise Refused(str(error), Exit.INVALID_FILE) from None
    if folder is None:
        _to_stdout(what, findings)
    else:
        _to_folder(what, files, findings, folder)
    return _told(findings, strict)


def _bytes(path: Path) -> bytes:
    from everytick.sources.yaml_reader import LARGEST_FILE

    if str(path) == _STDIN:
        return sys.stdin.buffer.read(LARGEST_FILE + 1)
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise Refused(f"there is no file {shown(str(path))}: correct its name", Exit.NOT_FOUND) from None
    except IsADirectoryError:
        raise Refused(f"{shown(str(path))} is a folder: name a file in it") from None


def _shown(path: Path) -> str:
    return "stdin" if str(path) == _STDIN else str(path)


def _to_stdout(what: str, findings: Sequence[Findings]) -> None:
    from everytick.sources.importing.findings import file_of

    if any(finding.jobs for finding in findings):
        click.echo(file_of(findings, _head(what, [finding.file for finding in findings])), nl=False)


def _to_folder(what: str, files: Sequence[Path], findings: Sequence[Findings], folder: Path) -> None:
    """Write each job file. Refuse if one exists already, before the first is written."""
    from everytick.sources.importing.findings import file_of

    texts: dict[Path, str] = {}
    for path, finding in zip(files, findings, strict=True):
        if finding.jobs:
            target, number = folder / f"{_stem(path)}.yaml", 1
            while target in texts:
                number += 1
                target = folder / f"{_stem(path)}-{number}.yaml"
            texts[target] = file_of([finding], _head(what, [finding.file]))
    if there := [target for target in texts if target.exists()]:
        raise Refused(f"{shown(str(there[0]))} is there already: move it away, or give another folder", Exit.CONFLICT)
    folder.mkdir(parents=True, exist_ok=True)
    for target, text in texts.items():
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
        say(f"wrote {target}")


def _stem(path: Path) -> str:
    return "imported" if str(path) == _STDIN else path.stem.lstrip(".") or "imported"


def _head(what: str, files: Sequence[str]) -> list[str]:
    return [f"Imported from {what}: {', '.join(files)}", "Check it with everytick validate, and look at it with next."]


def _told(findings: Sequence[Findings], strict: bool) -> int:
    left = [left_out for finding in findings for left_out in finding.left]
    for left_out in left:
        say(str(left_out), mark="yellow")
    jobs = sum(len(finding.jobs) for finding in findings)
    say(f"{_count(jobs, 'job')} imported, {_count(len(left), 'thing')} not carried over")
    if packages := _called_packages(findings):
        listed = ", ".join(f'"{shown(package)}"' for package in packages)
        say(f"a node runs their calls only if it allows them: write allow_calls = [{listed}] into everytick.toml")
    return Exit.FAILED if not jobs or (strict and left) else Exit.DONE


def _called_packages(findings: Sequence[Findings]) -> list[str]:
    """Return the packages of the functions that imported jobs call."""
    called = [dict(job.parts).get("call") for finding in findings for job in finding.jobs]
    return sorted({str(call).partition(":")[0].partition(".")[0] for call in called if call})


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
