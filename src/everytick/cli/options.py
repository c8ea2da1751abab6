"""Options that several verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from everytick.cli.exits import Exit, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def reading(function: F) -> F:
    """Add `--json` and `--utc`, which every reading verb has."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Write one JSON document; times in UTC.")
    return as_json(in_utc(function))


def in_utc(function: F) -> F:
    """Add `--utc`."""
    return click.option("--utc", is_flag=True, help="Show and read times in UTC, not in this machine's zone.")(function)


def sure(function: F) -> F:
    """Add `--yes`."""
    return click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can be asked.")(function)


def confirm(question: str, yes: bool) -> None:
    """Return if somebody says yes; a verb that destroys asks at a terminal and needs `--yes` everywhere else."""
    import sys

    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{question.rstrip('?')}: nobody can be asked here, so say it with --yes")
    from everytick.cli.output import safe

    if not click.confirm(safe(question), err=True):
        raise Refused("nothing was changed", Exit.FAILED)
