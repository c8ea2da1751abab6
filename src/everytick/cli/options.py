"""Options that several verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from everytick.cli.exits import Refused
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")

_WATCH_SECONDS = 2.0
"""How often --watch shows the answer again."""


def reading(function: F) -> F:
    """Add `--json` and `--utc`, which every reading verb has."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Write one JSON document; times in UTC.")
    return as_json(in_utc(function))


def in_utc(function: F) -> F:
    """Add `--utc`."""
    return click.option("--utc", is_flag=True, help="Show and read times in UTC, not in this machine's zone.")(function)


def watchable(function: F) -> F:
    """Add `--watch`, which shows the answer again and again until Ctrl-C."""
    import time
    from functools import wraps

    @click.option("--watch", is_flag=True, help="At a terminal: show it anew every two seconds, until Ctrl-C.")
    @wraps(function)
    def watched(*args: Any, watch: bool, **kwargs: Any) -> Any:
        from everytick.cli.output import is_terminal

        if not watch:
            return function(*args, **kwargs)
        if kwargs.get("as_json") or not is_terminal():
            raise Refused("--watch needs a terminal and draws a table: leave it out here")
        while True:
            click.clear()
            function(*args, **kwargs)
            time.sleep(_WATCH_SECONDS)

    return cast("F", watched)


def sure(function: F) -> F:
    """Add `--yes`."""
    return click.option("--yes", is_flag=True, help="Do not ask; needed where no terminal can ask.")(function)


def agreed(work: Callable[[bool], T], yes: bool) -> T:
    """Return what the operation returns. If it is guarded and not confirmed yet, ask, and carry it out confirmed."""
    from everytick.errors import NeedsConfirmation

    try:
        return work(yes)
    except NeedsConfirmation as need:
        then = "propose it to a second person" if need.is_for_two else "go on"
        confirm(f"{need.what} ({need.cost}): {'; '.join(need.reasons)}; {then}?", False)
    return work(True)


def confirm(question: str, yes: bool) -> None:
    """Return if the user says yes. A verb that deletes asks on a terminal and needs `--yes` everywhere else."""
    import sys

    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{question.rstrip('?')}: not a terminal, cannot ask for confirmation: pass --yes")
    from everytick.cli.output import safe

    if not click.confirm(safe(question), err=True):
        raise Refused("nothing was changed", Exit.FAILED)
