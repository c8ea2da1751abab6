"""`templates`: the parts of jobs that have a name, built in, of files, and of an application."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everytick.cli.common_options import VerbCommand, state
from everytick.cli.files import read_files, told
from everytick.cli.loading import loaded
from everytick.cli.output import show_json, show_table
from everytick.cli.times import Times
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from everytick.domain.templates import Template
    from everytick.sources.job_files import JobFile


@click.command(
    "templates",
    cls=VerbCommand,
    help="List the templates that jobs may name: built-in ones, those of files, and those of an application.\n\n"
    "Without PATH, the folder that the configuration names, if any. Needs no store.\n\n"
    "Example: everytick templates jobs/",
)
@click.argument("paths", metavar="[PATH…]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document.")
def templates_verb(paths: Sequence[Path], as_json: bool) -> int:
    """List the templates that jobs may name."""
    from everytick.schedules.templates import built_in

    settings = state().settings
    folder, app = settings["jobs"].value, settings["app"].value
    files = read_files(paths or [Path(folder)], "file") if paths or folder else []
    own = () if app is None else loaded(app).templates
    # What an application offers includes what is built in, and a file offers what it uses from others.
    found = dict.fromkeys([*built_in(), *own, *_offered(files)])
    if as_json:
        show_json([_data(template) for template in found])
    else:
        rows = [
            (template.name, template.schedule, ", ".join(_others(template)), template.description, template.place)
            for template in found
        ]
        show_table(("template", "schedule", "and", "description", "stands in"), rows, Times(utc=True))
    return Exit.INVALID_FILE if told([file for file in files if file.mistakes], "text") else Exit.DONE


def _offered(files: Iterable[JobFile]) -> list[Template]:
    return [template for file in files for template in file.shared.templates]


def _others(template: Template) -> list[str]:
    return [part for part in template.parts if part != "schedule"]


def _data(template: Template) -> dict[str, Any]:
    return {
        "name": template.name,
        "description": template.description,
        "schedule": None if template.schedule is None else str(template.schedule),
        "policies": template.overrides.as_data(),
        "tasks": [{"name": task.name, "after": task.after, "target": task.target} for task in template.tasks],
        "stands_in": template.place,
    }
