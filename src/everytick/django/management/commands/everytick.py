"""`manage.py everytick …`: every verb of the command line, for the application of this project."""

import argparse
from collections.abc import Sequence

from django.core.management.base import BaseCommand
from django.db import connections

from everytick.cli.main import called

APPLICATION = "everytick.django:tick"


class Command(BaseCommand):  # type: ignore[misc]
    """Hands its arguments to the command line of everytick, which reads options and answers with exit codes."""

    help = "Run the jobs of this project, look at them, operate them: manage.py everytick --help lists the verbs."
    requires_system_checks: Sequence[str] = ()

    def run_from_argv(self, argv: Sequence[str]) -> None:
        """Run the verb and leave with its exit code; options that Django has read already are left out."""
        raise SystemExit(_run(_without_django_options(argv[2:]), f"{_program(argv[0])} {argv[1]}"))

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take everything, for `call_command("everytick", "list")`."""
        parser.add_argument("arguments", nargs=argparse.REMAINDER)

    def handle(self, *args: str, **options: object) -> None:
        """Run the verb; leave only if it failed."""
        given = options["arguments"]
        assert isinstance(given, list), "argparse collects the rest of the line in a list"
        if code := _run(given, "manage.py everytick"):
            raise SystemExit(code)


def _run(arguments: Sequence[str], program: str) -> int:
    try:
        return called(arguments, program=program, application=APPLICATION)
    finally:
        connections.close_all()


def _without_django_options(arguments: Sequence[str]) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--settings", "--pythonpath"):
        parser.add_argument(option)
    return parser.parse_known_args(arguments)[1]


def _program(path: str) -> str:
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return "python -m django" if name == "__main__.py" else name
